// <lkmm.h>, as benchmarks of the Linux kernel memory model include it: what Linux has.
#pragma once
#include <linux/spinlock.h>
