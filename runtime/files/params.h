/* params.h -- parameters in the order of files (row-major, usual layouts) and in the order of
 * memory (panels, channels last). */
#ifndef PARAMS_H
#define PARAMS_H
#include "rt.h"

enum { PARAMS_CHUNK = 1024 }; /* elements that callers move at a time */

int64_t params_count(const RtParam *p); /* elements in files */

/* Stores in place[k] the index in memory, in reals, of element first + k of the file, k = 0 ..
 * n-1. */
void params_places(const RtParam *p, int64_t first, int n, int64_t *place);

/* Copies elements first .. first + n - 1 in file order from or to a buffer in memory order
 * (n <= PARAMS_CHUNK). `out` gets reals of the program; `in` has doubles. */
void params_get(const RtParam *p, const char *memory, int real_bytes, int64_t first, int n,
                void *out);
void params_put(const RtParam *p, char *memory, int real_bytes, int64_t first, int n,
                const double *in);
/* The same, but `in` has reals of the program: all bits stay, also those of denormals. */
void params_put_bits(const RtParam *p, char *memory, int real_bytes, int64_t first, int n,
                     const void *in);

double params_real(const char *memory, int real_bytes, int64_t place); /* one element */
void params_set_real(char *memory, int real_bytes, int64_t place, double v);

/* A hash of all parameters of the program in the order and layout of checkpoints: `weights_hash` of
 * the log. */
uint64_t params_hash(const RtProgram *p, const char *fixed);

/* The first parameter with a NaN or an infinity, or NULL. */
const RtParam *params_nonfinite(const RtProgram *p, const char *fixed);

#endif
