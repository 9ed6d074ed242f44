/* json.h -- just enough strict JSON to read the header of a safetensors file. */
#ifndef JSON_H
#define JSON_H
#include <stdbool.h>
#include <stdint.h>

/* A reader over text[0 .. n-1]. After the first mistake `wrong` says what it was and everything
 * returns false. */
typedef struct Json { const char *at, *end, *wrong; } Json;

Json json_read(const char *text, int64_t n);
bool json_char(Json *j, char c);                      /* takes c (after blanks) or fails */
bool json_peek(Json *j, char c);                      /* is c next?  takes nothing */
bool json_string(Json *j, char *to, int room);        /* decoded, as UTF-8 */
bool json_whole(Json *j, int64_t *v);                 /* a whole number >= 0 */
bool json_end(Json *j);                               /* nothing but blanks is left */

/* In a list or object: is there another item?  Takes ',' or close. */
bool json_next(Json *j, char close, bool *first);

/* A string as JSON, quotes included; returns the bytes written, at most room - 1, with an end
 * mark.  Bytes that are no UTF-8, as names of files may have, become U+FFFD. */
int  json_quote(char *to, int room, const char *s);

#endif
