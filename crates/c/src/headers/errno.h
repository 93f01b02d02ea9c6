// <errno.h> as fencewright models it.
#pragma once
_Thread_local int errno;
#define EPERM 1
#define ENOENT 2
#define EINTR 4
#define EAGAIN 11
#define EWOULDBLOCK EAGAIN
#define ENOMEM 12
#define EBUSY 16
#define EEXIST 17
#define EINVAL 22
#define EDEADLK 35
#define EOVERFLOW 75
#define ETIMEDOUT 110
