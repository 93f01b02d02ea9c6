// <unistd.h> as fencewright models it: time passes, and nothing else happens.
#pragma once
#include <stddef.h>
typedef long ssize_t;
unsigned int sleep(unsigned int seconds);
int usleep(unsigned int microseconds);
int getpid(void);
int fork(void);
_Noreturn void _exit(int status);
