/* quote.h -- quotes user text for generated text: file names, names of data sets, values of
 * options.
 *
 * User text can contain anything: a file name may hold quotes, line ends, the end of a comment,
 * and bytes that are not UTF-8.  Each function serves one kind of place.  Emitters print user
 * text only through these functions, never with a bare %s.  NULL counts as an empty text.  In
 * text that no program reads, such as a comment, a byte that cannot be printed becomes '?'.
 */
#ifndef QUOTE_H
#define QUOTE_H
#include "base/text.h"

/* a string of a model file, with its quotes; s has no control bytes */
const char *quote_model(Arena *a, const char *s);
/* a string literal of C and CUDA, with its quotes */
const char *quote_c(Arena *a, const char *s);
const char *quote_c_comment(Arena *a, const char *s); /* inside a block comment, on one line */
/* a string literal of Python, with its quotes; os.fsencode gives back the same bytes */
const char *quote_python(Arena *a, const char *s);
const char *quote_python_doc(Arena *a, const char *s); /* inside """ and """, on one line */
/* one word of bash on one line; quoted only when necessary */
const char *quote_shell(Arena *a, const char *s);
/* in a line comment (shell, Slurm, Python), or on a terminal */
const char *quote_line(Arena *a, const char *s);
const char *quote_dot(Arena *a, const char *s); /* between double quotes in Graphviz */
const char *quote_xml(Arena *a, const char *s); /* text or an attribute's value of SVG and HTML */

#endif
