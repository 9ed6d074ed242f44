/* json.h -- JSON by cJSON, whose memory comes from an arena. */
#ifndef LSP_JSON_H
#define LSP_JSON_H
#include "base/arena.h"
#include <cjson/cJSON.h>
#include <stdbool.h>

/* Sets the memory of all later trees.  An arena lives as long as one message. */
void json_use(Arena *a);
/* The text as a tree.  NULL if it is not JSON in UTF-8.  An escape \u0000, which would end a C
 * string, becomes \u0001.  Half of a surrogate pair becomes U+FFFD. */
cJSON *json_parse(Arena *a, char *text, size_t len);

const cJSON *json_at(const cJSON *o, const char *key); /* NULL if absent; o may be NULL */
const char *json_text_at(const cJSON *o, const char *key);
bool json_int_at(const cJSON *o, const char *key, int *out); /* a number from 0 to 2^31 - 1 */
bool json_true_at(const cJSON *o, const char *key);

int json_hex(char c); /* the value of a hexadecimal digit; -1: it is none */

/* Adds a text; bytes that are not UTF-8 become '?'. */
void json_add_text(Arena *a, cJSON *o, const char *key, const char *s);

#endif
