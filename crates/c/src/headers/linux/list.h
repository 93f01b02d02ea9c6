// <linux/list.h> as fencewright models it: circular doubly linked lists.
#pragma once
#include <linux/compiler.h>
#define LIST_HEAD_INIT(name) { &(name), &(name) }
#define LIST_HEAD(name) struct list_head name = LIST_HEAD_INIT(name)
#define list_entry(pointer, type, member) container_of(pointer, type, member)
#define list_first_entry(head, type, member) list_entry((head)->next, type, member)
#define list_for_each(at, head) for (at = (head)->next; at != (head); at = at->next)
#define list_for_each_entry(at, head, member)                       \
    for (at = list_entry((head)->next, typeof(*at), member);        \
         &at->member != (head);                                     \
         at = list_entry(at->member.next, typeof(*at), member))
static inline void INIT_LIST_HEAD(struct list_head *list)
{
    list->next = list;
    list->prev = list;
}
static inline void __list_between(struct list_head *one, struct list_head *prev, struct list_head *next)
{
    next->prev = one;
    one->next = next;
    one->prev = prev;
    WRITE_ONCE(prev->next, one);
}
static inline void list_add(struct list_head *one, struct list_head *head)
{
    __list_between(one, head, head->next);
}
static inline void list_add_tail(struct list_head *one, struct list_head *head)
{
    __list_between(one, head->prev, head);
}
static inline void list_del(struct list_head *one)
{
    one->next->prev = one->prev;
    WRITE_ONCE(one->prev->next, one->next);
}
static inline int list_empty(const struct list_head *head)
{
    return READ_ONCE(head->next) == head;
}
