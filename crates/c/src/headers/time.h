// <time.h> as fencewright models it: time passes, and nobody knows how much.
#pragma once
#include <stddef.h>
typedef long time_t;
typedef long clock_t;
typedef int clockid_t;
struct timespec { time_t tv_sec; long tv_nsec; };
#define CLOCK_REALTIME 0
#define CLOCK_MONOTONIC 1
#define CLOCKS_PER_SEC 1000000L
time_t time(time_t *result);
clock_t clock(void);
int clock_gettime(clockid_t clock, struct timespec *result);
int nanosleep(const struct timespec *wanted, struct timespec *rest);
