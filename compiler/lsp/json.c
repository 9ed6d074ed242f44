/* json.c -- JSON by cJSON, whose memory comes from an arena. */
#include "lsp/json.h"
#include "base/text.h"
#include <ctype.h>
#include <limits.h>
#include <string.h>

/* cJSON's hooks have no argument for a state. */
static Arena *memory;

static void *take(size_t bytes)
{
    return arena_alloc(memory, bytes);
}

static void keep(void *p)
{
    (void)p;
}

void json_use(Arena *a)
{
    cJSON_Hooks hooks = {.malloc_fn = take, .free_fn = keep};
    memory = a;
    cJSON_InitHooks(&hooks);
}

static bool is_utf8(const char *text, size_t len)
{
    int step = 1;
    for (size_t i = 0; i < len && step; i += (size_t)step)
        step = text_character(&text[i], len - i);
    return step != 0;
}

int json_hex(char c)
{
    return isdigit((unsigned char)c)    ? c - '0'
           : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10
                                        : -1;
}

/* The UTF-16 unit of an escape \uXXXX at the beginning of a text; -1: there is none. */
static int escaped_unit(const char *text, size_t len)
{
    int unit = 0;
    if (len < 6 || text[0] != '\\' || text[1] != 'u')
        return -1;
    for (int i = 2; i < 6; i++) {
        const int digit = json_hex(text[i]);
        if (digit < 0)
            return -1;
        unit = 16 * unit + digit;
    }
    return unit;
}

/* Replaces each escape that a C string cannot hold by another escape of one UTF-16 unit. Such
 * escapes are NUL and half of a surrogate pair, which an editor can send while a character is
 * typed. */
static void replace_escapes(char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] != '\\')
            continue;
        const int unit = escaped_unit(&text[i], len - i),
                  next = unit < 0 ? -1 : escaped_unit(&text[i + 6], len - i - 6);
        const bool high = unit >= 0xd800 && unit < 0xdc00, low = unit >= 0xdc00 && unit < 0xe000;
        if (high && next >= 0xdc00 && next < 0xe000)
            i += 11; /* a pair */
        else if (high || low)
            memcpy(&text[i + 2], "fffd", 4);
        else if (unit == 0)
            text[i + 5] = '1';
        i += text[i] == '\\'; /* the escaped character */
    }
}

cJSON *json_parse(Arena *a, char *text, size_t len)
{
    if (!is_utf8(text, len))
        return NULL;
    replace_escapes(text, len);
    json_use(a);
    const char *end = NULL;
    cJSON *tree = cJSON_ParseWithLengthOpts(text, len, &end, false);
    for (; tree && end < text + len; end++)
        if (!memchr(" \t\r\n", *end, 4))
            return NULL; /* another value follows */
    return tree;
}

const cJSON *json_at(const cJSON *o, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(o, key);
}

const char *json_text_at(const cJSON *o, const char *key)
{
    return cJSON_GetStringValue(json_at(o, key));
}

bool json_int_at(const cJSON *o, const char *key, int *out)
{
    const cJSON *v = json_at(o, key);
    if (!cJSON_IsNumber(v) || !(v->valuedouble >= 0 && v->valuedouble <= INT_MAX))
        return false;
    *out = (int)v->valuedouble;
    return true;
}

bool json_true_at(const cJSON *o, const char *key)
{
    return cJSON_IsTrue(json_at(o, key));
}

void json_add_text(Arena *a, cJSON *o, const char *key, const char *s)
{
    const size_t n = strlen(s);
    char *copy = arena_strndup(a, s, n);
    for (size_t i = 0; i < n;) {
        const int step = text_character(&copy[i], n - i);
        if (!step)
            copy[i] = '?';
        i += step ? (size_t)step : 1;
    }
    cJSON_AddStringToObject(o, key, copy);
}
