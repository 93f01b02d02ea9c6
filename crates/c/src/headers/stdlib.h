// <stdlib.h> as fencewright models it: memory, and ways to end.
#pragma once
#include <stddef.h>
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void *aligned_alloc(size_t alignment, size_t size);
int posix_memalign(void **result, size_t alignment, size_t size);
void free(void *pointer);
void abort(void);
void exit(int status);
int rand(void);
void srand(unsigned int seed);
