// <genmc.h>, as programs for GenMC include it. The translator knows its functions by name.
#pragma once
#include <stdbool.h>
#include <stdint.h>
// Annotations by which a program tells GenMC which executions it need not explore. Here they have no effect on the access.
#define __VERIFIER_local_write(access) access
#define __VERIFIER_final_write(access) access
#define __VERIFIER_helped_CAS(access) access
#define __VERIFIER_helping_CAS(access) access
#define __VERIFIER_speculative_read(access) access
#define __VERIFIER_confirming_read(access) access
#define __VERIFIER_confirming_CAS(access) access
#define __VERIFIER_final_CAS(access) access
// Code that may be skipped. A thread that executes it stops afterwards, but other threads see its effects.
#define __VERIFIER_optional(code) ({ if (__VERIFIER_nondet_bool()) { code; __VERIFIER_assume(false); } })
