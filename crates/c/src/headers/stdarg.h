// <stdarg.h> as fencewright models it: arguments without a type can be passed, and not be looked at.
#pragma once
typedef struct { int __unused; } va_list;
