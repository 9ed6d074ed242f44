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
bool json_word(Json *j, const char *word);            /* true, false or null */

/* Decoded, as UTF-8, with an end mark. It fits where room is at least its bytes in the text + 4. */
bool json_string(Json *j, char *to, int64_t room);
bool json_whole(Json *j, int64_t *v);                 /* a whole number >= 0 */
bool json_skip(Json *j);                              /* any one value, at most 64 levels deep */
bool json_end(Json *j);                               /* nothing but blanks is left */

/* In a list or object: is there another item?  Takes ',' or close. */
bool json_next(Json *j, char close, bool *first);

/* A string as JSON, quotes included; returns the bytes written, at most room - 1, with an end
 * mark.  Bytes that are no UTF-8, as names of files may have, become U+FFFD.  In json_room(bytes of s)
 * bytes nothing is cut off. */
int  json_quote(char *to, int64_t room, const char *s);
int64_t json_room(int64_t bytes);                     /* for a string of `bytes` bytes */

#endif
