// <immintrin.h> and its kin as fencewright models them: fences and pauses, which are known to the translator by name.
#pragma once
