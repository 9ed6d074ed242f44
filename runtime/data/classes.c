/* classes.c -- see classes.h. */
#include "data/classes.h"
#include "base/error.h"
#include "files/safetensors.h"
#include <string.h>

static Classes now;

const Classes *classes_now(void)
{
    return now.n ? &now : NULL;
}

void classes_take(char *const *name, int64_t n)
{
    Classes c = {.n = n, .name = rt_alloc(sizeof *c.name * (size_t)n)};
    for (int64_t i = 0; i < n; i++)
        c.text_bytes += (int64_t)strlen(name[i]) + 1;
    char *at = c.text = rt_alloc((size_t)c.text_bytes);
    for (int64_t i = 0; i < n; i++) {
        char *line = rt_format("%s", name[i]);
        for (char *bad; (bad = strchr(line, '\n'));)
            *bad = '?';
        c.name[i] = line;
        at = stpcpy(at, line);
        *at++ = '\n';
    }
    now = c;
}

/* Returns the number of lines of a text. line: gets the lines, if it is not NULL. */
static int64_t lines(const char *text, const char *end, char **line)
{
    int64_t n = 0;
    for (const char *next; text < end; text = next + 1) {
        next = memchr(text, '\n', (size_t)(end - text));
        next = next ? next : end;
        if (line)
            line[n] = rt_format("%.*s", (int)(next - text), text);
        n++;
    }
    return n;
}

bool classes_of_weights(const RtProgram *p, const char *path)
{
    char why[256];
    StFile *f = st_open(path, why);
    const StEntry *e = f ? st_find(f, ST_CLASSES) : NULL;
    if (e) {
        const char *text = f->data + e->begin, *end = f->data + e->end;
        const int64_t n = lines(text, end, NULL);
        char **line = rt_alloc(sizeof *line * (size_t)n);
        if (n != p->classes)
            rt_die("%s names %lld classes, but %s has %lld", path, (long long)n, p->model,
                   (long long)p->classes);
        lines(text, end, line);
        classes_take(line, n);
    }
    if (f)
        st_close(f);
    return e != NULL;
}
