// <linux/slab.h> as fencewright models it.
#pragma once
#include <linux/types.h>
#include <stdlib.h>
#define GFP_KERNEL 0
#define GFP_ATOMIC 0
#define __GFP_ZERO 0
#define kmalloc(size, flags) malloc(size)
#define kzalloc(size, flags) calloc(1, size)
#define kcalloc(count, size, flags) calloc(count, size)
#define kfree(pointer) free((void *)(pointer))
