/* made.h -- strings for the pages of the compiler.  They stay valid until the generator ends. */
#ifndef MADE_H
#define MADE_H
#include "base/arena.h"

Arena      *made_arena(void);
const char *made(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Options with a value in a text become code: "with --target cuda" -> "with `--target cuda`". */
const char *made_coded(const char *text);
const char *made_sentence(const char *text);          /* "a phrase" -> "A phrase.", and made_coded */

#endif
