// <sys/time.h> as fencewright models it.
#pragma once
#include <sys/types.h>
#include <time.h>
struct timeval { time_t tv_sec; suseconds_t tv_usec; };
struct timezone { int tz_minuteswest, tz_dsttime; };
struct itimerval { struct timeval it_interval, it_value; };
#define timerisset(value) ((value)->tv_sec || (value)->tv_usec)
#define timerclear(value) ((value)->tv_sec = (value)->tv_usec = 0)
int gettimeofday(struct timeval *result, void *zone);
// Declared only: the functions below have no model.
int settimeofday(const struct timeval *value, const struct timezone *zone);
int getitimer(int which, struct itimerval *value);
int setitimer(int which, const struct itimerval *value, struct itimerval *before);
int utimes(const char *file, const struct timeval times[2]);
