// <dat3m.h>, as benchmarks of Dartagnan include it: its functions are those of SV-COMP, and loop bounds have no effect.
#pragma once
#include <stdint.h>
#define __VERIFIER_loop_bound(bound) ((void)0)
#define await_while(condition) while (condition)
