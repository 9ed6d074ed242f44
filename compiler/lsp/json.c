/* json.c -- JSON by cJSON, whose memory comes from an arena. */
#include "lsp/json.h"
#include "base/text.h"
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

cJSON *json_parse(Arena *a, char *text, size_t len)
{
    if (!is_utf8(text, len))
        return NULL;
    for (size_t i = 0; i + 5 < len; i++) {
        if (text[i] != '\\')
            continue;
        if (memcmp(&text[i + 1], "u0000", 5) == 0)
            text[i + 5] = '1';
        i++; /* the escaped character */
    }
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
