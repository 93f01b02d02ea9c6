// <stdnoreturn.h> as fencewright models it.
#pragma once
#define noreturn _Noreturn
