// <signal.h> as fencewright models it: no signal arrives.
#pragma once
#include <sys/types.h>
#include <time.h>
typedef int sig_atomic_t;
typedef void (*__sighandler_t)(int);
typedef __sighandler_t sighandler_t;
typedef struct { unsigned long __bits[16]; } __sigset_t;
typedef __sigset_t sigset_t;
union sigval { int sival_int; void *sival_ptr; };
typedef union sigval __sigval_t;
typedef struct { int si_signo, si_errno, si_code, si_pid; void *si_addr; } siginfo_t;
typedef struct { void *ss_sp; int ss_flags; size_t ss_size; } stack_t;
struct sigaction { __sighandler_t sa_handler; void (*sa_sigaction)(int, siginfo_t *, void *); sigset_t sa_mask; int sa_flags; void (*sa_restorer)(void); };
#define SIG_DFL ((__sighandler_t)0)
#define SIG_IGN ((__sighandler_t)1)
#define SIG_ERR ((__sighandler_t)-1)
#define SIG_BLOCK 0
#define SIG_UNBLOCK 1
#define SIG_SETMASK 2
#define SA_NOCLDSTOP 1
#define SA_NOCLDWAIT 2
#define SA_SIGINFO 4
#define SA_ONSTACK 0x08000000
#define SA_RESTART 0x10000000
#define SA_NODEFER 0x40000000
#define SIGHUP 1
#define SIGINT 2
#define SIGQUIT 3
#define SIGILL 4
#define SIGTRAP 5
#define SIGABRT 6
#define SIGBUS 7
#define SIGFPE 8
#define SIGKILL 9
#define SIGUSR1 10
#define SIGSEGV 11
#define SIGUSR2 12
#define SIGPIPE 13
#define SIGALRM 14
#define SIGTERM 15
#define SIGSTKFLT 16
#define SIGCHLD 17
#define SIGCONT 18
#define SIGSTOP 19
#define SIGTSTP 20
#define SIGTTIN 21
#define SIGTTOU 22
#define SIGURG 23
#define SIGXCPU 24
#define SIGXFSZ 25
#define SIGVTALRM 26
#define SIGPROF 27
#define SIGWINCH 28
#define SIGIO 29
#define SIGPWR 30
#define SIGSYS 31
#define SIGPOLL SIGIO
#define NSIG 65
// Declared only: the functions below have no model.
__sighandler_t signal(int number, __sighandler_t handler);
int sigaction(int number, const struct sigaction *action, struct sigaction *before);
int raise(int number);
int kill(pid_t process, int number);
int pthread_kill(pthread_t thread, int number);
int pthread_sigmask(int how, const sigset_t *set, sigset_t *before);
int sigprocmask(int how, const sigset_t *set, sigset_t *before);
int sigemptyset(sigset_t *set);
int sigfillset(sigset_t *set);
int sigaddset(sigset_t *set, int number);
int sigdelset(sigset_t *set, int number);
int sigismember(const sigset_t *set, int number);
int sigsuspend(const sigset_t *set);
int sigpending(sigset_t *set);
int sigwait(const sigset_t *set, int *number);
int sigaltstack(const stack_t *stack, stack_t *before);
