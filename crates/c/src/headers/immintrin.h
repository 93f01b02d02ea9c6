// <immintrin.h> and related headers as fencewright models them: fences and pauses, which the translator knows by name.
#pragma once
