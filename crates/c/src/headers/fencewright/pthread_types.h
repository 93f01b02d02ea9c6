// The types of <pthread.h>, which <sys/types.h> has too.
#pragma once
typedef unsigned long pthread_t;
typedef struct { int __detached; } pthread_attr_t;
typedef struct { int __owner, __type, __depth; } pthread_mutex_t;
typedef struct { int __type; } pthread_mutexattr_t;
typedef struct { int __owner; } pthread_spinlock_t;
typedef struct { unsigned long __waiting; int __state; } pthread_cond_t;
typedef struct { int __unused; } pthread_condattr_t;
typedef struct { int __state; } pthread_rwlock_t;
typedef struct { int __unused; } pthread_rwlockattr_t;
typedef struct { int __count, __arrived, __leaving; } pthread_barrier_t;
typedef struct { int __unused; } pthread_barrierattr_t;
typedef struct { int __done; } pthread_once_t;
typedef unsigned int pthread_key_t;
