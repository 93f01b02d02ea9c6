// <genmc.h>, as programs for that tool include it: its functions are known to the translator by name.
#pragma once
#include <stdbool.h>
#include <stdint.h>
#define __VERIFIER_local_write(store) do { store; } while (0)
#define __VERIFIER_final_write(store) do { store; } while (0)
#define __VERIFIER_helped_CAS(exchange) do { exchange; } while (0)
#define __VERIFIER_helping_CAS(exchange) do { exchange; } while (0)
#define __VERIFIER_speculative_read(load) ({ load; })
#define __VERIFIER_confirming_read(load) ({ load; })
#define __VERIFIER_confirming_CAS(exchange) ({ exchange; })
#define __VERIFIER_final_CAS(exchange) ({ exchange; })
// What need not be done for the program to be safe: nobody goes on behind it.
#define __VERIFIER_optional(code)            \
    do {                                     \
        if (__VERIFIER_nondet_bool()) {      \
            code;                            \
            __VERIFIER_assume(0);            \
        }                                    \
    } while (0)
