// <strings.h> as fencewright models it.
#pragma once
#include <stddef.h>
#include <string.h>
#define bzero(to, size) ((void)memset(to, 0, size))
#define bcopy(from, to, size) ((void)memmove(to, from, size))
#define bcmp(first, second, size) memcmp(first, second, size)
static inline int ffs(int value)
{
    return __builtin_ffs(value);
}
static inline int ffsl(long value)
{
    return __builtin_ffsl(value);
}
static inline int ffsll(long long value)
{
    return __builtin_ffsll(value);
}
// Declared only: the functions below have no model.
char *index(const char *text, int character);
char *rindex(const char *text, int character);
int strcasecmp(const char *first, const char *second);
int strncasecmp(const char *first, const char *second, size_t size);
