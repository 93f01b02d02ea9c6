// <dat3m.h>, as benchmarks of that tool include it: its functions are those of SV-COMP, and bounds of loops are not needed.
#pragma once
#include <stdint.h>
#define __VERIFIER_loop_bound(bound) ((void)0)
#define await_while(condition) while (condition)
