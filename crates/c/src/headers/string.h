// <string.h> as fencewright models it: copies, fills and comparisons of known size.
#pragma once
#include <stddef.h>
void *memset(void *to, int value, size_t size);
void *memcpy(void *to, const void *from, size_t size);
void *memmove(void *to, const void *from, size_t size);
int memcmp(const void *first, const void *second, size_t size);
size_t strlen(const char *text);
int strcmp(const char *first, const char *second);
int strncmp(const char *first, const char *second, size_t size);
char *strcpy(char *to, const char *from);
char *strncpy(char *to, const char *from, size_t size);
char *strcat(char *to, const char *from);
char *strdup(const char *text);
char *strerror(int number);
