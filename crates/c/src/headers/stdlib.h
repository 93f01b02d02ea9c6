// <stdlib.h> as fencewright models it: allocation, and functions that end the process.
#pragma once
#include <stddef.h>
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#define RAND_MAX 2147483647
#define MB_CUR_MAX 1
typedef struct { int quot, rem; } div_t;
typedef struct { long quot, rem; } ldiv_t;
typedef struct { long long quot, rem; } lldiv_t;
void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void *realloc(void *pointer, size_t size);
void *aligned_alloc(size_t alignment, size_t size);
int posix_memalign(void **result, size_t alignment, size_t size);
void free(void *pointer);
static inline void __fencewright_as_pointer_free(void *pointer)
{
    free(pointer);
}
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
// Declared only: the functions below have no model.
long long llabs(long long value);
div_t div(int value, int by);
ldiv_t ldiv(long value, long by);
lldiv_t lldiv(long long value, long long by);
long long atoll(const char *text);
double atof(const char *text);
double strtod(const char *text, char **end);
float strtof(const char *text, char **end);
long double strtold(const char *text, char **end);
long long strtoll(const char *text, char **end, int base);
unsigned long strtoul(const char *text, char **end, int base);
unsigned long long strtoull(const char *text, char **end, int base);
int rand_r(unsigned int *seed);
double drand48(void);
long lrand48(void);
long mrand48(void);
void srand48(long seed);
void *reallocarray(void *pointer, size_t count, size_t size);
void *memalign(size_t alignment, size_t size);
void *valloc(size_t size);
void *alloca(size_t size);
int setenv(const char *name, const char *value, int replace);
int unsetenv(const char *name);
int putenv(char *text);
int system(const char *command);
int at_quick_exit(void (*function)(void));
int mkstemp(char *name);
char *realpath(const char *name, char *result);
int getloadavg(double result[], int count);
void *bsearch(const void *key, const void *base, size_t count, size_t size, int (*compare)(const void *, const void *));
void qsort(void *base, size_t count, size_t size, int (*compare)(const void *, const void *));
