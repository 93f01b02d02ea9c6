// <assert.h> as fencewright models it. It may be included repeatedly, with or without NDEBUG.
#undef assert
#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#define assert(condition) __fencewright_assert(condition)
#endif
#ifndef static_assert
#define static_assert _Static_assert
#endif
