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
char *strdup(const char *text);
char *strerror(int number);
