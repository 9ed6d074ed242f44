/* json.h -- a strict reader for the header of a safetensors file, and strings as JSON. */
#ifndef JSON_H
#define JSON_H
#include <stdbool.h>
#include <stdint.h>

/* A reader over text[0 .. n-1].  After the first error `wrong` describes it, and all functions
 * return false. */
typedef struct Json {
    const char *at, *end, *wrong;
} Json;

Json json_read(const char *text, int64_t n);
bool json_char(Json *j, char c);           /* reads c (after blanks) or fails */
bool json_peek(Json *j, char c);           /* whether c is next; reads nothing */
bool json_word(Json *j, const char *word); /* reads true, false or null */

/* Number of bytes of the UTF-8 character at s, a string that ends with 0.  Returns 0 if the bytes
 * are no UTF-8. */
int json_character(const char *s);

/* Reads a string, decodes it to UTF-8 and ends it with 0.  room: bytes at `to`; the string fits if
 * it has at most room - 4 bytes in the text. */
bool json_string(Json *j, char *to, int64_t room);
bool json_whole(Json *j, int64_t *v); /* a whole number >= 0 */
bool json_skip(Json *j);              /* skips one value, at most 64 levels deep */
bool json_end(Json *j);               /* whether only blanks are left */

/* Inside a list or object: whether another item follows.  Reads ',' or `close`.  *first is true
 * before the first call. */
bool json_next(Json *j, char close, bool *first);

/* Writes s as a JSON string with quotes and a final 0; returns the bytes written without the 0, at
 * most room - 1.  Bytes that are no UTF-8 become U+FFFD.  If room is json_room(bytes of s), nothing
 * is cut off. */
int json_quote(char *to, int64_t room, const char *s);
int64_t json_room(int64_t bytes);

#endif
