// <stdbool.h> as fencewright models it.
#pragma once
#define bool _Bool
#define true 1
#define false 0
