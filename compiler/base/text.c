/* text.c -- a string that grows, and functions on strings that a compiler needs. */
#include "base/text.h"
#include "runtime/base/glob.h"
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Text text_new(Arena *a)
{
    return (Text){.arena = a, .s = arena_alloc(a, 64), .cap = 64};
}

/* Makes room for n more bytes and the NUL. */
static void reserve(Text *t, size_t n)
{
    if (t->len + n + 1 <= t->cap)
        return;
    size_t cap = 2 * t->cap;
    while (cap < t->len + n + 1)
        cap *= 2;
    t->s = arena_grow(t->arena, t->s, t->len + 1, cap);
    t->cap = cap;
}

void text_addn(Text *t, const char *s, size_t n)
{
    reserve(t, n);
    if (n)
        memcpy(t->s + t->len, s, n);
    t->len += n;
    t->s[t->len] = 0;
}

void text_add(Text *t, const char *s)
{
    text_addn(t, s, strlen(s));
}

void text_add_argument(Text *t, size_t open, size_t *line, const char *word, int width)
{
    if (t->len > open && t->len - *line + strlen(word) + 3 > (size_t)width) {
        text_add(t, ",\n");
        *line = t->len;
        text_printf(t, "%*s", (int)open, "");
    } else if (t->len > open) {
        text_add(t, ", ");
    }
    text_add(t, word);
}

void text_printf(Text *t, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    const int n = vsnprintf(NULL, 0, fmt, ap);
    if (n > 0) {
        reserve(t, (size_t)n);
        vsnprintf(t->s + t->len, (size_t)n + 1, fmt, again);
        t->len += (size_t)n;
    }
    va_end(again);
    va_end(ap);
}

void text_shifted(Text *t, const char *lines, int columns)
{
    const size_t left = columns < 0 ? (size_t)-columns : 0;
    while (*lines) {
        const size_t length = strcspn(lines, "\n"), cut = left < length ? left : length;
        text_printf(t, "%*s%.*s\n", columns > 0 ? columns : 0, "", (int)(length - cut),
                    lines + cut);
        lines += length + (lines[length] == '\n');
    }
}

/* Edit distance of a and b without regard to case; swapping two neighbours counts once (optimal
 * string alignment).  Returns limit + 1 when the distance is larger than limit, or a word is too
 * long to be a name.  Source: Damerau 1964, "A technique for computer detection and correction of
 * spelling errors". */
static int distance(const char *a, const char *b, int limit)
{
    enum { LONG = 64 };
    const size_t na = strlen(a), nb = strlen(b);
    if (na >= LONG || nb >= LONG)
        return limit + 1;
    int row[3][LONG + 1];
    int *before = row[0], *last = row[1], *now = row[2];
    for (size_t j = 0; j <= nb; j++)
        last[j] = (int)j;
    for (size_t i = 1; i <= na; i++) {
        now[0] = (int)i;
        for (size_t j = 1; j <= nb; j++) {
            const int x = tolower((unsigned char)a[i - 1]), y = tolower((unsigned char)b[j - 1]);
            int d = last[j - 1] + (x != y);
            if (d > last[j] + 1)
                d = last[j] + 1;
            if (d > now[j - 1] + 1)
                d = now[j - 1] + 1;
            if (i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) &&
                y == tolower((unsigned char)a[i - 2]) && d > before[j - 2] + 1)
                d = before[j - 2] + 1;
            now[j] = d;
        }
        int *old = before;
        before = last;
        last = now;
        now = old;
    }
    return last[nb];
}

const char *text_nearest(const char *word, const char *const *candidate, int n)
{
    const char *best = foreign_word(word, candidate, n);
    if (best)
        return best;
    const int limit = 1 + (int)(strlen(word) / 3);
    int least = limit + 1;
    for (int i = 0; i < n; i++) {
        const int d = distance(word, candidate[i], limit);
        if (d < least && d < (int)strlen(candidate[i])) {
            least = d;
            best = candidate[i];
        }
    }
    return best;
}

bool text_glob(const char *pattern, const char *word)
{
    return glob_fits(pattern, word);
}

int text_character(const char *s, size_t n)
{
    static const struct {
        unsigned char first, last, low, high;
        int bytes;
    } form[] = {
        {0x00, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    const unsigned char *c = (const unsigned char *)s;
    for (size_t i = 0; n && i < sizeof form / sizeof *form; i++) {
        if (c[0] < form[i].first || c[0] > form[i].last)
            continue;
        if ((size_t)form[i].bytes > n ||
            (form[i].bytes > 1 && (c[1] < form[i].low || c[1] > form[i].high)))
            return 0;
        for (int k = 2; k < form[i].bytes; k++)
            if (c[k] < 0x80 || c[k] > 0xbf)
                return 0;
        return form[i].bytes;
    }
    return 0;
}

uint64_t text_hash(const void *bytes, size_t n, uint64_t seed)
{
    const unsigned char *p = bytes;
    uint64_t h = 0xcbf29ce484222325u ^ seed;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    h = (h ^ (h >> 33)) * 0xff51afd7ed558ccdu; /* the finaliser of MurmurHash3 */
    h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53u;
    return h ^ (h >> 33);
}

const char *text_commas(Arena *a, int64_t v)
{
    char digits[32], out[48];
    int n = snprintf(digits, sizeof digits, "%lld", (long long)v), w = 0;
    const int first = digits[0] == '-';
    for (int i = 0; i < n; i++) {
        if (i > first && (n - i) % 3 == 0)
            out[w++] = ',';
        out[w++] = digits[i];
    }
    return arena_strndup(a, out, (size_t)w);
}

int64_t text_size(const char *s)
{
    static const char letter[] = "KMGT";
    char *end;
    errno = 0;
    double v = strtod(s, &end);
    const char *unit = *end ? strchr(letter, *end >= 'a' ? *end - 32 : *end) : NULL;
    if (end == s || errno || !(v >= 0) ||
        (*end && (!unit || (end[1] && strcmp(end + 1, "B") != 0))))
        return -1;
    for (const char *u = letter; unit && u <= unit; u++)
        v *= 1000;
    return v < 1e18 ? (int64_t)v : -1;
}

const char *text_bytes(Arena *a, int64_t bytes)
{
    static const char *const unit[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
    double v = (double)bytes;
    int u = 0;
    while (v >= 999.5 && u < 6) {
        v /= 1000;
        u++;
    }
    return arena_printf(a,
                        u == 0 || v >= 99.95 ? "%.0f %s"
                        : v >= 9.995         ? "%.1f %s"
                                             : "%.2f %s",
                        v, unit[u]);
}
