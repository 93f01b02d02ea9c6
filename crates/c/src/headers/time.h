// <time.h> as fencewright models it: every call returns an arbitrary time.
#pragma once
#include <stddef.h>
typedef long time_t;
typedef long clock_t;
typedef int clockid_t;
typedef void *timer_t;
typedef int pid_t;
struct timespec { time_t tv_sec; long tv_nsec; };
struct itimerspec { struct timespec it_interval, it_value; };
struct tm { int tm_sec, tm_min, tm_hour, tm_mday, tm_mon, tm_year, tm_wday, tm_yday, tm_isdst; long tm_gmtoff; const char *tm_zone; };
#define CLOCK_REALTIME 0
#define CLOCK_MONOTONIC 1
#define CLOCK_PROCESS_CPUTIME_ID 2
#define CLOCK_THREAD_CPUTIME_ID 3
#define CLOCK_MONOTONIC_RAW 4
#define CLOCK_REALTIME_COARSE 5
#define CLOCK_MONOTONIC_COARSE 6
#define CLOCK_BOOTTIME 7
#define CLOCKS_PER_SEC 1000000L
#define TIME_UTC 1
#define TIMER_ABSTIME 1
time_t time(time_t *result);
clock_t clock(void);
int clock_gettime(clockid_t clock, struct timespec *result);
int nanosleep(const struct timespec *wanted, struct timespec *rest);
// Declared only: the functions below have no model.
int clock_getres(clockid_t clock, struct timespec *result);
int clock_settime(clockid_t clock, const struct timespec *value);
int clock_nanosleep(clockid_t clock, int flags, const struct timespec *wanted, struct timespec *rest);
int timespec_get(struct timespec *result, int base);
double difftime(time_t end, time_t start);
time_t mktime(struct tm *value);
struct tm *gmtime(const time_t *value);
struct tm *localtime(const time_t *value);
struct tm *gmtime_r(const time_t *value, struct tm *result);
struct tm *localtime_r(const time_t *value, struct tm *result);
char *asctime(const struct tm *value);
char *ctime(const time_t *value);
char *ctime_r(const time_t *value, char *result);
size_t strftime(char *result, size_t size, const char *format, const struct tm *value);
