// <sched.h> as fencewright models it.
#pragma once
#include <stddef.h>
#include <time.h>
struct sched_param { int sched_priority; };
typedef struct { unsigned long __bits[16]; } cpu_set_t;
#define SCHED_OTHER 0
#define SCHED_FIFO 1
#define SCHED_RR 2
#define SCHED_BATCH 3
#define SCHED_IDLE 5
#define CPU_SETSIZE 1024
#define CPU_ZERO(set) ((void)memset(set, 0, sizeof(cpu_set_t)))
#define CPU_SET(cpu, set) ((void)((set)->__bits[(cpu) / 64] |= 1UL << (cpu) % 64))
#define CPU_CLR(cpu, set) ((void)((set)->__bits[(cpu) / 64] &= ~(1UL << (cpu) % 64)))
#define CPU_ISSET(cpu, set) ((int)((set)->__bits[(cpu) / 64] >> (cpu) % 64 & 1))
int sched_yield(void);
int sched_getcpu(void);
// Declared only: the functions below have no model.
int sched_getaffinity(pid_t process, size_t size, cpu_set_t *set);
int sched_setaffinity(pid_t process, size_t size, const cpu_set_t *set);
int sched_get_priority_max(int policy);
int sched_get_priority_min(int policy);
int sched_getscheduler(pid_t process);
int sched_setscheduler(pid_t process, int policy, const struct sched_param *parameters);
int sched_setparam(pid_t process, const struct sched_param *parameters);
