/* library.h -- the functions of the C library that kernels call, one line for each.
 *
 * <math.h> and <string.h> declare 700 functions.  To read both, gcc 12 takes 7 ms, in each
 * translation unit; the rest of a small kernel takes 50 ms.  So this file declares the few that are
 * used, with the types of the C standard.  C++ (a program for a GPU) gets the headers.
 */
#ifndef CPU_LIBRARY_H
#define CPU_LIBRARY_H

#if !defined(__GNUC__) || defined(__cplusplus)
#include <math.h>
#include <string.h>
#else
#include <stddef.h>

void *memcpy(void *restrict, const void *restrict, size_t);
void *memset(void *, int, size_t);

/* clang-format off */
#define RT_LIBRARY(name)                                                                           \
    double name(double);                                                                           \
    float name##f(float);
RT_LIBRARY(exp)
RT_LIBRARY(log)
RT_LIBRARY(log1p)
RT_LIBRARY(sqrt)
RT_LIBRARY(fabs)
RT_LIBRARY(sin)
RT_LIBRARY(cos)
RT_LIBRARY(tanh)
RT_LIBRARY(erf)
RT_LIBRARY(rint)
double pow(double, double);
float powf(float, float);

/* the text of glibc's definitions, so a file can include <math.h>, too */
#ifndef INFINITY
#define INFINITY (__builtin_inff ())
#define NAN (__builtin_nanf (""))
#endif
/* clang-format on */
#endif

#endif
