// <genmc.h>, as programs for that tool include it: its functions are known to the translator by name.
#pragma once
#include <stdbool.h>
#include <stdint.h>
