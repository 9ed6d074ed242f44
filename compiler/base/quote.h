/* quote.h -- text of the user inside generated text: file names, names of data sets, values of options.
 *
 * Nothing is known of such text: a file's name may hold quotes, line ends, the end of a comment, and bytes that are not UTF-8.
 * There is one function for each place where it can stand; every emitter calls it, and none prints such text with a bare %s.
 * s may be NULL, which is an empty text.  What cannot be printed becomes '?' where the text is only read by people.
 */
#ifndef QUOTE_H
#define QUOTE_H
#include "base/text.h"

const char *quote_c(Arena *a, const char *s);          /* a string literal of C and CUDA, with its quotes */
const char *quote_c_comment(Arena *a, const char *s);  /* inside a block comment, on one line */
const char *quote_python(Arena *a, const char *s);     /* a string literal of Python, with its quotes; the same bytes for os.fsencode */
const char *quote_python_doc(Arena *a, const char *s); /* inside """ and """, on one line */
const char *quote_shell(Arena *a, const char *s);      /* one word of bash on one line; in quotes only where it needs them */
const char *quote_line(Arena *a, const char *s);       /* inside a comment that ends with its line: shell, Slurm, Python; a terminal */
const char *quote_dot(Arena *a, const char *s);        /* inside the double quotes of Graphviz */
const char *quote_xml(Arena *a, const char *s);        /* text or an attribute's value of SVG and HTML */

#endif
