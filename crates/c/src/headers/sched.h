// <sched.h> as fencewright models it.
#pragma once
int sched_yield(void);
int sched_getcpu(void);
