// <stdlib.h> as fencewright models it: memory, and ways to end.
#pragma once
#include <stddef.h>
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#define RAND_MAX 2147483647
void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void *realloc(void *pointer, size_t size);
void *aligned_alloc(size_t alignment, size_t size);
int posix_memalign(void **result, size_t alignment, size_t size);
void free(void *pointer);
_Noreturn void abort(void);
_Noreturn void exit(int status);
_Noreturn void _Exit(int status);
int atexit(void (*function)(void));
int rand(void);
void srand(unsigned int seed);
long random(void);
void srandom(unsigned int seed);
char *getenv(const char *name);
long strtol(const char *text, char **end, int base);
_Noreturn void quick_exit(int status);
int abs(int value);
long labs(long value);
int atoi(const char *text);
long atol(const char *text);
