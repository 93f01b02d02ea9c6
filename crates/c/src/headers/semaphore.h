// <semaphore.h> as fencewright models it.
#pragma once
#include <time.h>
#define SEM_VALUE_MAX 2147483647
#define SEM_FAILED ((sem_t *)0)
typedef struct { int __count; } sem_t;
int sem_init(sem_t *semaphore, int shared, unsigned int value);
int sem_destroy(sem_t *semaphore);
int sem_wait(sem_t *semaphore);
int sem_trywait(sem_t *semaphore);
int sem_post(sem_t *semaphore);
int sem_getvalue(sem_t *semaphore, int *result);
int sem_timedwait(sem_t *semaphore, const struct timespec *until);
int sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *until);
// Declared only: the functions below have no model.
sem_t *sem_open(const char *name, int flags, ...);
int sem_close(sem_t *semaphore);
int sem_unlink(const char *name);
