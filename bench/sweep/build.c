/* build.c -- the programs of a sweep: built before the first run, so that no compiler disturbs one. */
#include "sweep/framework.h"
#include "sweep/sweep.h"
#include "tool/file.h"
#include <glob.h>
#include <stdio.h>
#include <string.h>

static const char *hash_of(Arena *a, const char *bytes, size_t n)
{
    return arena_printf(a, "%016llx", (unsigned long long)text_hash(bytes, n, 0));
}

/* The same name for the same program, so that a resumed sweep finds it. */
static const char *place(Sweep *s, const Program *p)
{
    const char *what = arena_printf(s->arena, "%s|%s|%lld|%d|%s", p->config->file, p->config->build,
                                    (long long)p->config->batch, p->mpi, p->config->framework);
    const char *stem = path_stem(s->arena, p->config->file);
    return path_join(s->arena, s->work,
                     arena_printf(s->arena, "%s-%s", stem, hash_of(s->arena, what, strlen(what))));
}

static Child command(Sweep *s, const Program *p, const Built *b)
{
    Child c = {.output = arena_printf(s->arena, "%s.build", b->path)};
    Arena *a = s->arena;
    child_word(a, &c, s->tenon);
    const char *to = framework_find(p->config->framework)->to;
    child_words(a, &c, to ? arena_printf(a, "emit --to %s", to) : "build");
    child_word(a, &c, p->config->file);
    child_word(a, &c, "-o");
    child_word(a, &c, b->path);
    if (p->config->batch) {
        child_word(a, &c, "--batch");
        child_word(a, &c, arena_printf(a, "%lld", (long long)p->config->batch));
    }
    if (p->mpi)
        child_words(a, &c, "--comm mpi");
    if (s->cold && !to)
        child_word(a, &c, "--no-cache");
    child_words(a, &c, p->config->build);
    return c;
}

const char *sweep_last_words(Arena *a, const char *path, int status)
{
    size_t n;
    const char *text = file_read(a, path, &n);
    while (text && n && (text[n - 1] == '\n' || text[n - 1] == ' '))
        n--;
    if (text && n) {
        const size_t most = 2000, skip = n > most ? n - most : 0; /* the message is at the end */
        return arena_strndup(a, text + skip, n - skip);
    }
    return status > 128 ? arena_printf(a, "ended by signal %d", status - 128)
                        : arena_printf(a, "exit code %d, without a message", status);
}

static const char *info_of(Sweep *s, const Built *b)
{
    Child c = {.output = arena_printf(s->arena, "%s.info", b->path), .timeout = 60};
    size_t n;
    child_word(s->arena, &c, b->path);
    child_word(s->arena, &c, "info");
    const char *text = child_run(s->arena, &c) ? file_read(s->arena, c.output, &n) : NULL;
    remove(c.output);
    return text;
}

/* The script in the directory `path`. */
static const char *script_in(Sweep *s, const char *path)
{
    glob_t found;
    const char *script = path;
    if (glob(path_join(s->arena, path, "*.py"), 0, NULL, &found) == 0) {
        script = arena_strdup(s->arena, found.gl_pathv[0]);
        globfree(&found);
    }
    return script;
}

static void finished(Sweep *s, int i, const Child *c)
{
    Built *b = &s->built[i];
    size_t n = 0;
    if (c->status == 0 && framework_find(s->plan.program[i].config->framework)->to)
        b->path = script_in(s, b->path);
    const char *bytes = c->status == 0 ? file_read(s->arena, b->path, &n) : NULL;
    b->compile_s = c->seconds;
    if (bytes) {
        b->binary = hash_of(s->arena, bytes, n);
        remove(c->output);
        return;
    }
    b->message = sweep_last_words(s->arena, c->output, c->status);
    b->binary = hash_of(s->arena, b->source, strlen(b->source));
    printf("not built: %s: %.*s\n", s->plan.program[i].config->file, (int)strcspn(b->message, "\n"),
           b->message);
    remove(c->output);
}

bool sweep_build(Sweep *s)
{
    const int n = s->plan.nprogram, jobs = s->cold ? 1 : (int)s->jobs;
    Child *c = arena_alloc(s->arena, sizeof *c * (size_t)(n + 1));
    size_t len;
    s->built = arena_alloc(s->arena, sizeof *s->built * (size_t)(n + 1));
    printf("building %d program%s\n", n, n == 1 ? "" : "s");
    fflush(stdout);
    for (int i = 0; i < n; i++) {
        const Program *p = &s->plan.program[i];
        const char *text = file_read(s->arena, p->config->file, &len);
        s->built[i] = (Built){.path = place(s, p), .source = text ? text : ""};
        c[i] = command(s, p, &s->built[i]);
    }
    for (int next = 0, running = 0; next < n || running;) {
        if (next < n && running < jobs) {
            if (child_start(s->arena, &c[next]))
                running++;
            else
                finished(s, next, &c[next]);
            next++;
            continue;
        }
        const int i = child_wait(c, n);
        if (i < 0)
            return false;
        running--;
        finished(s, i, &c[i]);
    }
    for (int i = 0; i < n; i++)
        if (!s->built[i].message && !framework_find(s->plan.program[i].config->framework)->to)
            s->built[i].info = info_of(s, &s->built[i]);
    return !child_stopped();
}
