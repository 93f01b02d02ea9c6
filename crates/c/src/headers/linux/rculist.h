// <linux/rculist.h> as fencewright models it: doubly linked lists whose readers follow `next` only.
#pragma once
#include <linux/list.h>
#include <linux/rcupdate.h>
#define list_next_rcu(list) ((list)->next)
#define list_entry_rcu(pointer, type, member) container_of(READ_ONCE(pointer), type, member)
#define list_first_or_null_rcu(head, type, member)                                  \
    ({                                                                              \
        struct list_head *__head = (head);                                          \
        struct list_head *__next = READ_ONCE(__head->next);                         \
        __head != __next ? list_entry(__next, type, member) : (type *)NULL;         \
    })
#define list_for_each_entry_rcu(at, head, member, ...)                              \
    for (at = list_entry_rcu((head)->next, typeof(*at), member);                    \
         &at->member != (head);                                                     \
         at = list_entry_rcu(at->member.next, typeof(*at), member))
static inline void __list_add_rcu(struct list_head *one, struct list_head *prev, struct list_head *next)
{
    one->next = next;
    one->prev = prev;
    rcu_assign_pointer(prev->next, one);
    next->prev = one;
}
static inline void list_add_rcu(struct list_head *one, struct list_head *head)
{
    __list_add_rcu(one, head, head->next);
}
static inline void list_add_tail_rcu(struct list_head *one, struct list_head *head)
{
    __list_add_rcu(one, head->prev, head);
}
// Readers may still be at the element, so its `next` stays.
static inline void list_del_rcu(struct list_head *one)
{
    one->next->prev = one->prev;
    WRITE_ONCE(one->prev->next, one->next);
    one->prev = (struct list_head *)0x122;
}
static inline void list_replace_rcu(struct list_head *old, struct list_head *one)
{
    one->next = old->next;
    one->prev = old->prev;
    rcu_assign_pointer(one->prev->next, one);
    one->next->prev = one;
    old->prev = (struct list_head *)0x122;
}
