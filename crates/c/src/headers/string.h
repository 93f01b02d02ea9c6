// <string.h> as fencewright models it: copies and fills of known size.
#pragma once
#include <stddef.h>
void *memset(void *to, int value, size_t size);
void *memcpy(void *to, const void *from, size_t size);
void *memmove(void *to, const void *from, size_t size);
