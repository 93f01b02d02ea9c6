// <stdalign.h> as fencewright models it.
#pragma once
#define alignas _Alignas
#define alignof _Alignof
