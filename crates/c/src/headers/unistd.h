// <unistd.h> as fencewright models it: time passes, and nothing else happens.
#pragma once
unsigned int sleep(unsigned int seconds);
int usleep(unsigned int microseconds);
