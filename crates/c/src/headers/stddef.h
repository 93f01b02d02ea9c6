// <stddef.h> as fencewright models it.
#pragma once
typedef unsigned long size_t;
typedef long ptrdiff_t;
typedef int wchar_t;
typedef unsigned int wint_t;
typedef struct { long long __integer; long double __floating; } max_align_t;
#define NULL ((void *)0)
#define offsetof(type, member) __builtin_offsetof(type, member)
