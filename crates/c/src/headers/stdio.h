// <stdio.h> as fencewright models it: what is printed is not looked at.
#pragma once
#include <stddef.h>
typedef struct __fencewright_file { int __unused; } FILE;
FILE *stdin, *stdout, *stderr;
#define EOF (-1)
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
