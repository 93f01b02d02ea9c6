// <linux/mutex.h> as fencewright models it.
#pragma once
#include <linux/compiler.h>
struct mutex { int __owner; };
#define __MUTEX_INITIALIZER(name) { 0 }
#define DEFINE_MUTEX(name) struct mutex name = __MUTEX_INITIALIZER(name)
void mutex_init(struct mutex *lock);
void mutex_lock(struct mutex *lock);
void mutex_unlock(struct mutex *lock);
int mutex_trylock(struct mutex *lock);
