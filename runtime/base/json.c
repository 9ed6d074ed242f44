/* json.c -- the part of JSON (RFC 8259) that headers of safetensors files use; see json.h. */
#include "base/json.h"
#include <stdio.h>
#include <string.h>

Json json_read(const char *text, int64_t n)
{
    return (Json){.at = text, .end = text + n};
}

static bool json_fail(Json *j, const char *what)
{
    if (!j->wrong)
        j->wrong = what;
    j->at = j->end;
    return false;
}

static int peek(Json *j)
{
    while (j->at < j->end && strchr(" \t\r\n", *j->at) && *j->at)
        j->at++;
    return j->at < j->end ? (unsigned char)*j->at : -1;
}

bool json_peek(Json *j, char c)
{
    return peek(j) == c;
}

bool json_char(Json *j, char c)
{
    if (peek(j) != c)
        return json_fail(j, "a punctuation mark is missing");
    j->at++;
    return true;
}

bool json_next(Json *j, char close, bool *first)
{
    if (j->wrong)
        return false;
    if (json_peek(j, close)) {
        j->at++;
        return false;
    }
    if (!*first && !json_char(j, ','))
        return false;
    *first = false;
    return true;
}

static int hex4(Json *j)
{
    int v = 0;
    for (int i = 0; i < 4; i++) {
        const char *digits = "0123456789abcdef0123456789ABCDEF";
        const char *d = j->at < j->end && *j->at ? strchr(digits, *j->at) : NULL;
        if (!d) {
            json_fail(j, "\\u needs four hex digits");
            return 0;
        }
        v = v * 16 + (int)(d - digits) % 16;
        j->at++;
    }
    return v;
}

/* The code point after \u.  A surrogate pair is one character above U+FFFF; half a pair fails. */
static int code_point(Json *j)
{
    const int code = hex4(j);
    if (code == 0)
        return json_fail(j, "a string holds a character U+0000");
    if (code < 0xD800 || code > 0xDFFF)
        return code;
    const bool pair = code < 0xDC00 && j->end - j->at >= 2 && j->at[0] == '\\' && j->at[1] == 'u';
    j->at += pair ? 2 : 0;
    const int low = pair ? hex4(j) : 0;
    if (low < 0xDC00 || low > 0xDFFF)
        return json_fail(j, "a string holds half a surrogate pair");
    return 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
}

static int utf8(char *to, int code)
{
    if (code < 0x80) {
        to[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        to[0] = (char)(0xC0 | code >> 6);
        to[1] = (char)(0x80 | (code & 63));
        return 2;
    }
    if (code < 0x10000) {
        to[0] = (char)(0xE0 | code >> 12);
        to[1] = (char)(0x80 | (code >> 6 & 63));
        to[2] = (char)(0x80 | (code & 63));
        return 3;
    }
    to[0] = (char)(0xF0 | code >> 18);
    to[1] = (char)(0x80 | (code >> 12 & 63));
    to[2] = (char)(0x80 | (code >> 6 & 63));
    to[3] = (char)(0x80 | (code & 63));
    return 4;
}

bool json_string(Json *j, char *to, int64_t room)
{
    int64_t n = 0;
    if (!json_char(j, '"'))
        return false;
    while (j->at < j->end && *j->at != '"') {
        if (n > room - 5)
            return json_fail(j, "a string is too long");
        const char c = *j->at++;
        if ((unsigned char)c < 32)
            return json_fail(j, "a string holds a control character");
        if (c != '\\') {
            to[n++] = c;
            continue;
        }
        const char *plain = "\"\\/bfnrt", *is = "\"\\/\b\f\n\r\t";
        const char e = j->at < j->end ? *j->at++ : 0, *k = e ? strchr(plain, e) : NULL;
        if (k)
            to[n++] = is[k - plain];
        else if (e == 'u')
            n += utf8(to + n, code_point(j));
        else
            return json_fail(j, "a string holds an unknown escape");
    }
    to[n] = 0;
    return json_char(j, '"');
}

bool json_whole(Json *j, int64_t *v)
{
    *v = 0;
    int c = peek(j);
    if (c < '0' || c > '9')
        return json_fail(j, "a whole number is missing");
    for (; j->at < j->end && *j->at >= '0' && *j->at <= '9'; j->at++)
        if (__builtin_mul_overflow(*v, 10, v) || __builtin_add_overflow(*v, *j->at - '0', v))
            return json_fail(j, "a number is too large");
    return true;
}

bool json_word(Json *j, const char *word)
{
    const size_t n = strlen(word);
    if (peek(j) < 0 || (size_t)(j->end - j->at) < n || memcmp(j->at, word, n) != 0)
        return json_fail(j, "a value is missing");
    j->at += n;
    return true;
}

/* Skips to the end of a string whose first quote has been read. */
static bool skip_string(Json *j)
{
    for (; j->at < j->end && *j->at != '"'; j->at++) {
        if ((unsigned char)*j->at < 32)
            return json_fail(j, "a string holds a control character");
        j->at += *j->at == '\\' && j->at + 1 < j->end;
    }
    return json_char(j, '"');
}

static bool skip(Json *j, int depth)
{
    bool first = true;
    const int c = peek(j);
    if (depth > 64)
        return json_fail(j, "its values are nested too deep");
    if (c == '"')
        return json_char(j, '"') && skip_string(j);
    if (c == '[' || c == '{') {
        j->at++;
        while (json_next(j, c == '[' ? ']' : '}', &first))
            if ((c == '{' && (!json_char(j, '"') || !skip_string(j) || !json_char(j, ':'))) ||
                !skip(j, depth + 1))
                return false;
        return !j->wrong;
    }
    if (c == 't' || c == 'f' || c == 'n')
        return json_word(j, c == 't' ? "true" : c == 'f' ? "false" : "null");
    const char *begin = j->at;
    while (j->at < j->end && *j->at && strchr("+-.0123456789Ee", *j->at))
        j->at++;
    return j->at > begin ? true : json_fail(j, "a value is missing");
}

bool json_skip(Json *j)
{
    return skip(j, 0);
}

bool json_end(Json *j)
{
    return peek(j) < 0 && !j->wrong ? true : json_fail(j, "there is more after its end");
}

int json_character(const char *s)
{
    const unsigned char c = (unsigned char)*s, d = (unsigned char)(c ? s[1] : 0);
    const int n = c < 0x80 ? 1 : c < 0xC2 ? 0 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : c < 0xF5 ? 4 : 0;

    if ((c == 0xE0 && d < 0xA0) || (c == 0xED && d >= 0xA0) || (c == 0xF0 && d < 0x90) ||
        (c == 0xF4 && d >= 0x90))
        return 0;
    for (int i = 1; i < n; i++)
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    return n;
}

int64_t json_room(int64_t bytes)
{
    return 6 * bytes + 16;
}

int json_quote(char *to, int64_t room, const char *s)
{
    int n = 0, bytes;
    to[n++] = '"';
    for (; *s && n < room - 8; s += bytes ? bytes : 1) {
        bytes = json_character(s);
        if (*s == '"' || *s == '\\')
            to[n++] = '\\';
        /* names of files can be any bytes; JSON is UTF-8 */
        if (!bytes || (unsigned char)*s < 32)
            n += sprintf(to + n, "\\u%04x", bytes ? (unsigned)*s : 0xFFFDu);
        else
            for (int i = 0; i < bytes; i++)
                to[n++] = s[i];
    }
    to[n++] = '"';
    to[n] = 0;
    return n;
}
