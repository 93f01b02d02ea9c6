// <stdio.h> as fencewright models it: what is printed is not looked at.
#pragma once
#include <stddef.h>
typedef struct __fencewright_file FILE;
extern FILE *stdin, *stdout, *stderr;
int printf(const char *format, ...);
int fprintf(FILE *file, const char *format, ...);
int puts(const char *text);
int putchar(int character);
int fflush(FILE *file);
void perror(const char *text);
