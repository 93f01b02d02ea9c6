// <unistd.h> as fencewright models it: sleeping has no effect.
#pragma once
#include <stddef.h>
#include <sys/types.h>
#define STDIN_FILENO 0
#define STDOUT_FILENO 1
#define STDERR_FILENO 2
#define R_OK 4
#define W_OK 2
#define X_OK 1
#define F_OK 0
#define SEEK_SET 0
#define SEEK_CUR 1
#define SEEK_END 2
#define _SC_CLK_TCK 2
#define _SC_OPEN_MAX 4
#define _SC_PAGESIZE 30
#define _SC_PAGE_SIZE 30
#define _SC_NPROCESSORS_CONF 83
#define _SC_NPROCESSORS_ONLN 84
#define _SC_PHYS_PAGES 85
#define _SC_LEVEL1_DCACHE_LINESIZE 190
unsigned int sleep(unsigned int seconds);
int usleep(unsigned int microseconds);
int fork(void);
_Noreturn void _exit(int status);
// Declared only: the functions below have no model.
ssize_t read(int file, void *to, size_t size);
ssize_t write(int file, const void *from, size_t size);
ssize_t pread(int file, void *to, size_t size, off_t at);
ssize_t pwrite(int file, const void *from, size_t size, off_t at);
int close(int file);
int dup(int file);
int dup2(int file, int other);
int pipe(int files[2]);
int fsync(int file);
int ftruncate(int file, off_t size);
off_t lseek(int file, off_t by, int from);
int access(const char *name, int mode);
int unlink(const char *name);
int rmdir(const char *name);
int chdir(const char *name);
char *getcwd(char *result, size_t size);
int isatty(int file);
int gethostname(char *result, size_t size);
int getpagesize(void);
long sysconf(int name);
long syscall(long number, ...);
pid_t getpid(void);
pid_t getppid(void);
pid_t gettid(void);
uid_t getuid(void);
uid_t geteuid(void);
gid_t getgid(void);
gid_t getegid(void);
pid_t setsid(void);
unsigned int alarm(unsigned int seconds);
int pause(void);
int nice(int by);
int getopt(int count, char *const arguments[], const char *options);
extern char *optarg;
extern int optind, opterr, optopt;
extern char **environ;
int execv(const char *name, char *const arguments[]);
int execvp(const char *name, char *const arguments[]);
int execve(const char *name, char *const arguments[], char *const environment[]);
int execl(const char *name, const char *argument, ...);
int execlp(const char *name, const char *argument, ...);
