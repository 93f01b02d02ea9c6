// <string.h> as fencewright models it: copies, fills and comparisons of known size, and texts character by character.
#pragma once
#include <stddef.h>
void *memset(void *to, int value, size_t size);
void *memcpy(void *to, const void *from, size_t size);
void *memmove(void *to, const void *from, size_t size);
int memcmp(const void *first, const void *second, size_t size);
static inline size_t strlen(const char *text)
{
    size_t length = 0;
    while (text[length])
        length++;
    return length;
}
static inline int strncmp(const char *first, const char *second, size_t size)
{
    for (size_t n = 0; n < size; n++) {
        unsigned char one = (unsigned char)first[n], other = (unsigned char)second[n];
        if (one != other)
            return one < other ? -1 : 1;
        if (!one)
            break;
    }
    return 0;
}
static inline int strcmp(const char *first, const char *second)
{
    return strncmp(first, second, (size_t)-1);
}
static inline char *strcpy(char *to, const char *from)
{
    size_t n = 0;
    for (; from[n]; n++)
        to[n] = from[n];
    to[n] = 0;
    return to;
}
static inline char *strncpy(char *to, const char *from, size_t size)
{
    size_t n = 0;
    for (; n < size && from[n]; n++)
        to[n] = from[n];
    for (; n < size; n++)
        to[n] = 0;
    return to;
}
static inline char *strcat(char *to, const char *from)
{
    strcpy(to + strlen(to), from);
    return to;
}
char __VERIFIER_nondet_char(void);
// Any text of at most 63 characters, in a buffer of the thread.
static inline char *strerror(int number)
{
    static _Thread_local char text[64];
    for (int n = 0; n < 63; n++)
        text[n] = __VERIFIER_nondet_char();
    return text;
}
char *strdup(const char *text);
// Declared only: the functions below have no model.
void *memchr(const void *from, int value, size_t size);
void *memrchr(const void *from, int value, size_t size);
void *memmem(const void *from, size_t size, const void *part, size_t length);
void *mempcpy(void *to, const void *from, size_t size);
char *stpcpy(char *to, const char *from);
char *strncat(char *to, const char *from, size_t size);
char *strchr(const char *text, int character);
char *strrchr(const char *text, int character);
char *strchrnul(const char *text, int character);
char *strstr(const char *text, const char *part);
char *strpbrk(const char *text, const char *any);
size_t strspn(const char *text, const char *any);
size_t strcspn(const char *text, const char *any);
size_t strnlen(const char *text, size_t most);
char *strtok(char *text, const char *between);
char *strtok_r(char *text, const char *between, char **rest);
char *strsep(char **text, const char *between);
char *strndup(const char *text, size_t size);
char *strerror_r(int number, char *to, size_t size);
char *strsignal(int number);
int strcoll(const char *first, const char *second);
size_t strxfrm(char *to, const char *from, size_t size);
int strcasecmp(const char *first, const char *second);
int strncasecmp(const char *first, const char *second, size_t size);
