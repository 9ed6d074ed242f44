/* watch.c -- `tenon watch`: reads logs again while they grow, and draws when there are new records. */
#include "sweep/watch.h"
#include "base/environment.h"
#include "sweep/screen.h"
#include "sweep/tfevents.h"
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct Watch {
    Arena *arena;
    Diag *diag;
    bool once, color;
    const char *directory; /* of event files, or NULL */
    RunLog *run;
    Events *events;
    int n;
} Watch;

/* The name of a run as the name of a directory: no part of it leaves the directory of event files. */
static const char *directory_name(Arena *a, const char *name)
{
    char *copy = arena_strdup(a, name);
    for (char *s = copy; *s; s++)
        *s = *s == '/' ? '_' : *s;
    return *copy == '.' ? arena_printf(a, "_%s", copy) : copy;
}

/* The directory of a run: a_b for the logs a/b and a_b would be one, so the second one is a_b-2. */
static const char *own_directory(const Watch *w, int run)
{
    const char *name = directory_name(w->arena, w->run[run].name), *own = name;
    for (int i = 0, n = 2; i < run; i++)
        if (strcmp(w->events[i].run, own) == 0) {
            own = arena_printf(w->arena, "%s-%d", name, n++);
            i = -1;
        }
    return own;
}

static void read_words(Watch *w, int argc, char **argv)
{
    const char *color = "auto";
    int i = 0, events = 0;
    for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
        w->once |= strcmp(argv[i], "--once") == 0;
        if (strcmp(argv[i], "--tensorboard") == 0)
            w->directory = argv[++i];
        else if (strcmp(argv[i], "--color") == 0)
            color = argv[++i];
    }
    for (i++; i < argc; i++)
        ARENA_PUSH(w->arena, w->run, w->n, runlog_new(w->arena, argv[i]));
    const char *term = environment(ENV_TERM);
    const bool terminal = isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0;
    const bool colors = terminal && !environment(ENV_NO_COLOR);
    w->color = strcmp(color, "always") == 0 || (strcmp(color, "auto") == 0 && colors);
    w->once |= !terminal; /* text cannot be drawn again */
    /* Files of one name, as in a/run.jsonl and b/run.jsonl, are told apart by their paths. */
    for (int k = 0; k < w->n; k++)
        for (int j = 0; j < w->n; j++)
            if (j != k && strcmp(w->run[j].name, w->run[k].name) == 0) {
                for (int m = 0; m < w->n; m++)
                    w->run[m].name = w->run[m].path;
                k = j = w->n;
            }
    for (int k = 0; k < w->n; k++)
        ARENA_PUSH(w->arena, w->events, events,
                   events_new(w->arena, w->directory ? w->directory : ".", own_directory(w, k)));
}

/* Reads all logs; *changed: one of them has a new record. */
static bool read_all(Watch *w, bool *changed)
{
    *changed = false;
    for (int i = 0; i < w->n; i++) {
        bool one;
        if (!runlog_read(&w->run[i], &one, w->diag))
            return false;
        *changed |= one;
        if (w->directory && one && !events_write(&w->events[i], &w->run[i], w->diag))
            return false;
    }
    return true;
}

static bool all_ended(const Watch *w)
{
    int n = 0;
    for (int i = 0; i < w->n; i++)
        n += w->run[i].ended;
    return n == w->n;
}

static int lines_of(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

int watch_main(Arena *a, Diag *d, int argc, char **argv)
{
    Watch w = {.arena = a, .diag = d};
    int lines = 0, columns = 0;
    bool changed;
    read_words(&w, argc, argv);
    for (bool first = true;; first = false) {
        if (!read_all(&w, &changed))
            return 1;
        const Screen s = screen_of_stdout(w.color);
        if (first || changed || s.columns != columns) {
            Arena *page = arena_new(); /* a run of days draws often */
            Text t = text_new(page);
            screen_draw(&t, &s, w.run, w.n);
            /* A narrower terminal has wrapped the old lines, and a low one has moved them: everything
             * is drawn anew. */
            if (!first && (s.columns < columns || lines >= s.rows))
                printf("\033[H\033[2J");
            else if (!first)
                printf("\033[%dA\033[J", lines);
            fputs(t.s, stdout);
            lines = lines_of(t.s);
            columns = s.columns;
            arena_free(page);
        }
        if (w.once || all_ended(&w))
            return 0;
        if (fflush(stdout) != 0)
            return 1;
        nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
    }
}
