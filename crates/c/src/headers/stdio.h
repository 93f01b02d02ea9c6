// <stdio.h> as fencewright models it: output has no effect on the program.
#pragma once
#include <stddef.h>
#include <stdarg.h>
#include <sys/types.h>
typedef struct _IO_FILE { int __unused; } FILE;
typedef struct { long __position; } fpos_t;
FILE *stdin, *stdout, *stderr;
#define EOF (-1)
#define BUFSIZ 8192
#define FILENAME_MAX 4096
#define FOPEN_MAX 16
#define L_tmpnam 20
#define SEEK_SET 0
#define SEEK_CUR 1
#define SEEK_END 2
#define _IOFBF 0
#define _IOLBF 1
#define _IONBF 2
int printf(const char *format, ...);
int fprintf(FILE *file, const char *format, ...);
int dprintf(int file, const char *format, ...);
int sprintf(char *to, const char *format, ...);
int snprintf(char *to, size_t size, const char *format, ...);
int puts(const char *text);
int fputs(const char *text, FILE *file);
int putchar(int character);
int fputc(int character, FILE *file);
int fflush(FILE *file);
int getchar(void);
int scanf(const char *format, ...);
int sscanf(const char *text, const char *format, ...);
int setvbuf(FILE *file, char *buffer, int mode, size_t size);
void perror(const char *text);
void setbuf(FILE *file, char *buffer);
// Declared only: the functions below have no model.
int vprintf(const char *format, va_list arguments);
int vfprintf(FILE *file, const char *format, va_list arguments);
int vsprintf(char *to, const char *format, va_list arguments);
int vsnprintf(char *to, size_t size, const char *format, va_list arguments);
int vdprintf(int file, const char *format, va_list arguments);
int asprintf(char **to, const char *format, ...);
int vasprintf(char **to, const char *format, va_list arguments);
int fscanf(FILE *file, const char *format, ...);
int vscanf(const char *format, va_list arguments);
int vsscanf(const char *text, const char *format, va_list arguments);
int putc(int character, FILE *file);
int fgetc(FILE *file);
int getc(FILE *file);
int ungetc(int character, FILE *file);
char *fgets(char *to, int size, FILE *file);
ssize_t getline(char **line, size_t *size, FILE *file);
ssize_t getdelim(char **line, size_t *size, int end, FILE *file);
size_t fread(void *to, size_t size, size_t count, FILE *file);
size_t fwrite(const void *from, size_t size, size_t count, FILE *file);
FILE *fopen(const char *name, const char *mode);
FILE *fdopen(int file, const char *mode);
FILE *freopen(const char *name, const char *mode, FILE *file);
FILE *tmpfile(void);
FILE *popen(const char *command, const char *mode);
int pclose(FILE *file);
int fclose(FILE *file);
int fileno(FILE *file);
int feof(FILE *file);
int ferror(FILE *file);
void clearerr(FILE *file);
int fseek(FILE *file, long by, int from);
int fseeko(FILE *file, off_t by, int from);
long ftell(FILE *file);
off_t ftello(FILE *file);
void rewind(FILE *file);
int fgetpos(FILE *file, fpos_t *position);
int fsetpos(FILE *file, const fpos_t *position);
int remove(const char *name);
int rename(const char *from, const char *to);
void flockfile(FILE *file);
void funlockfile(FILE *file);
