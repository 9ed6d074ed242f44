/* screen.c -- draws curves into a grid of characters, see screen.h.
 *
 * A character of a grid is a point, or with UTF-8 a Braille character of 2 x 4 points: U+2800 plus a
 * bit for each point.
 */
#include "sweep/screen.h"
#include "base/environment.h"
#include "base/quote.h"
#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    LABELS = 9,
    CHARTS = 3,
    TALLEST = 12,
    LOWEST = 4,
    COLORS = 6,
    LETTERS = 26,
    DIGITS = 9,
    WIDE = 10
};
enum { NARROWEST = 20, WIDEST = 1000 }; /* columns of a screen */

Screen screen_of_stdout(bool color)
{
    struct winsize w = {0};
    const char *set = environment(ENV_COLUMNS);
    const int columns = set ? atoi(set) : 0;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) != 0)
        w = (struct winsize){0};
    setlocale(LC_CTYPE, "");
    Screen s = {.columns = columns > 0    ? columns
                           : w.ws_col > 0 ? w.ws_col
                                          : 100,
                .rows = w.ws_row,
                .utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0,
                .color = color};
    s.columns = s.columns < NARROWEST ? NARROWEST : s.columns > WIDEST ? WIDEST : s.columns;
    return s;
}

/* ---- a grid of points */

typedef struct Grid {
    int columns, rows;    /* characters */
    int across, down;     /* points of a character */
    unsigned char *dots;  /* [rows * columns]: bits of points */
    unsigned char *run;   /* index of the run that has drawn last */
    unsigned char *split; /* its CurveSplit */
} Grid;

static Grid grid_new(Arena *a, int columns, int rows, bool braille)
{
    const size_t n = (size_t)(columns * rows);
    return (Grid){columns,           rows,
                  braille ? 2 : 1,   braille ? 4 : 1,
                  arena_alloc(a, n), arena_alloc(a, n),
                  arena_alloc(a, n)};
}

static void set_point(Grid *g, int x, int y, int run, CurveSplit split)
{
    static const unsigned char bit[4][2] = {{1, 8}, {2, 16}, {4, 32}, {64, 128}};
    if (x < 0 || y < 0 || x >= g->columns * g->across || y >= g->rows * g->down)
        return;
    const int at = y / g->down * g->columns + x / g->across;
    g->dots[at] |= bit[y % g->down][x % g->across];
    g->run[at] = (unsigned char)run;
    g->split[at] = (unsigned char)split;
}

/* Draws a line between two points.  With Braille, the training set has every third point, and the
 * validation split dashes, which follow the columns, so that they continue in the next line. */
static void set_line(Grid *g, int x0, int y0, int x1, int y1, int run, CurveSplit split)
{
    const int dx = abs(x1 - x0), dy = abs(y1 - y0), n = dx > dy ? dx : dy;
    for (int i = 0; i <= n; i++) {
        const double part = n ? (double)i / n : 0;
        const int x = x0 + (int)lround(part * (x1 - x0)), y = y0 + (int)lround(part * (y1 - y0));
        const bool drawn = g->down == 1 || split == SPLIT_TEST ? true
                           : split == SPLIT_TRAIN              ? i % 3 == 0 || i == n
                                                               : x % 6 < 3;
        if (drawn)
            set_point(g, x, y, run, split);
    }
}

/* ---- charts */

typedef struct Range {
    double low, high;
    bool log; /* logarithmic: the last epochs of a loss would share one line otherwise */
} Range;

/* Where v lies: 0 at the low end, 1 at the high end. */
static double share(const Range *r, double v)
{
    return r->log ? log(v / r->low) / log(r->high / r->low) : (v - r->low) / (r->high - r->low);
}

static double value_at(const Range *r, double part)
{
    return r->log ? r->low * pow(r->high / r->low, part) : r->low + (r->high - r->low) * part;
}

static void widen(Range *r, double v)
{
    if (isfinite(v)) {
        r->low = fmin(r->low, v);
        r->high = fmax(r->high, v);
    }
}

/* A range with a width, of at least one finite number. */
static bool settle(Range *r)
{
    if (!(r->low <= r->high))
        return false;
    if (r->high - r->low < 1e-9 * fmax(fabs(r->low), 1e-30)) {
        const double room = fabs(r->low) > 0 ? 0.05 * fabs(r->low) : 0.5;
        r->low -= room;
        r->high += room;
    }
    return true;
}

/* The curves of a metric: single steps show more of a training than epochs do. */
static const Curve *curve_of(const RunLog *l, const char *name, CurveSplit split)
{
    const Curve *steps = split == SPLIT_TRAIN ? runlog_find(l, name, split, true) : NULL;
    return steps && steps->n > 1 ? steps : runlog_find(l, name, split, false);
}

static void draw_curve(Grid *g, const Curve *c, Range x, Range y, int run)
{
    const int width = g->columns * g->across - 1, height = g->rows * g->down - 1;
    int last_x = -1, last_y = -1;
    for (int i = 0; i < c->n; i++) {
        const CurvePoint *p = &c->point[i];
        if (!isfinite(p->y)) {
            last_x = -1;
            continue;
        }
        const int at_x = (int)lround(share(&x, p->x) * width);
        const int at_y = (int)lround((1 - share(&y, p->y)) * height);
        if (last_x < 0)
            set_point(g, at_x, at_y, run, c->split);
        else
            set_line(g, last_x, last_y, at_x, at_y, run, c->split);
        last_x = at_x;
        last_y = at_y;
    }
}

static void add_braille(Text *t, unsigned char dots)
{
    const char utf8[] = {(char)0xe2, (char)(0xa0 | dots >> 6), (char)(0x80 | (dots & 0x3f)), 0};
    text_add(t, dots ? utf8 : " ");
}

/* Small and capital letters, and the digits 1 to 9. */
static char letter(int run, int split)
{
    static const char first[] = {[SPLIT_TRAIN] = 'a', [SPLIT_TEST] = 'A', [SPLIT_VALIDATION] = '1'};
    return (char)(first[split] + run % (split == SPLIT_VALIDATION ? DIGITS : LETTERS));
}

static void add_grid_line(Text *t, const Screen *s, const Grid *g, int row)
{
    int end = g->columns; /* blanks at the end of a line are left out */
    while (end > 0 && !g->dots[row * g->columns + end - 1])
        end--;
    int color = 0;
    for (int i = 0; i < end; i++) {
        const int at = row * g->columns + i, own = 1 + g->run[at] % COLORS;
        if (s->color && g->dots[at] && own != color)
            text_printf(t, "\033[3%dm", color = own);
        if (g->down > 1)
            add_braille(t, g->dots[at]);
        else
            text_printf(t, "%c", g->dots[at] ? letter(g->run[at], g->split[at]) : ' ');
    }
    if (color)
        text_add(t, "\033[0m");
}

/* Cuts the text at the width of the screen.  A name in a log can have any character. */
static void add_cut(Text *t, const Screen *s, const char *line)
{
    int n = 0, shown = 0;
    line = quote_line(t->arena, line);
    for (; line[n] && shown < s->columns - 1; n++)
        shown += (line[n + 1] & 0xc0) != 0x80;
    text_addn(t, line, (size_t)n);
    text_add(t, "\n");
}

/* A list of parts, with a comma after each; a part that does not fit begins a new line.  A part that
 * is wider than a line is broken at its blanks. */
typedef struct Row {
    Text *out, line;
    const Screen *s;
    const char *indent; /* of the further lines */
    bool any;
} Row;

static int characters(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += (*text & 0xc0) != 0x80;
    return n;
}

static void row_break(Row *r)
{
    add_cut(r->out, r->s, r->line.s);
    r->line = text_new(r->out->arena);
    text_add(&r->line, r->indent);
}

/* Adds a part at the begin of a line. */
static void row_begin(Row *r, const char *part)
{
    enum { ROOM = 2 }; /* a blank before the word, and a comma after it */
    for (bool first = true; *part; first = false) {
        const char *word = arena_printf(r->out->arena, "%.*s", (int)strcspn(part, " "), part);
        const bool fits = characters(r->line.s) + characters(word) + ROOM < r->s->columns;
        if (!first && !fits)
            row_break(r);
        text_printf(&r->line, "%s%s", first || !fits ? "" : " ", word);
        part += strlen(word);
        part += strspn(part, " ");
    }
}

static void row_add(Row *r, const char *part)
{
    enum { COMMAS = 3 }; /* one before the part, with a blank, and one after it */
    const bool fits = characters(r->line.s) + characters(part) + COMMAS < r->s->columns;
    if (r->any && !fits) {
        text_add(&r->line, ",");
        row_break(r);
    }
    if (r->any && fits)
        text_printf(&r->line, ", %s", part);
    else
        row_begin(r, part);
    r->any = true;
}

static void row_end(const Row *r)
{
    if (r->any)
        add_cut(r->out, r->s, r->line.s);
}

static bool draws_braille(const Screen *s, int nrun)
{
    return s->utf8 && (s->color || nrun == 1);
}

static void draw_chart(Text *t, const Screen *s, const RunLog *run, int n, const char *name,
                       int rows)
{
    Range x = {INFINITY, -INFINITY, false}, y = x;
    for (int i = 0; i < n; i++)
        for (int split = 0; split < SPLITS; split++) {
            const Curve *c = curve_of(&run[i], name, (CurveSplit)split);
            for (int k = 0; c && k < c->n; k++)
                widen(&x, c->point[k].x), widen(&y, c->point[k].y);
        }
    if (!settle(&x) || !settle(&y))
        return;
    y.log = y.low > 0 && y.high / y.low > WIDE;
    const bool braille = draws_braille(s, n);
    Grid g = grid_new(t->arena, s->columns - LABELS - 2, rows, braille);
    for (int split = 0; split < SPLITS; split++)
        for (int i = 0; i < n; i++) {
            const Curve *c = curve_of(&run[i], name, (CurveSplit)split);
            if (c)
                draw_curve(&g, c, x, y, i);
        }
    add_cut(t, s,
            arena_printf(t->arena, "%*s  %s%s", LABELS - 2, "", name,
                         y.log ? ", logarithmic" : ""));
    for (int row = 0; row < rows; row++) {
        const double value = value_at(&y, 1 - (double)row / (rows - 1));
        const bool labelled = row == 0 || row == rows - 1 || row == rows / 2;
        text_printf(t, "%*s %s", LABELS - 1, labelled ? arena_printf(t->arena, "%.4g", value) : "",
                    s->utf8 ? "│" : "|");
        add_grid_line(t, s, &g, row);
        text_add(t, "\n");
    }
    const char *first = arena_printf(t->arena, "epoch %.4g", x.low),
               *last = arena_printf(t->arena, "%.4g", x.high);
    add_cut(t, s,
            arena_printf(t->arena, "%*s%s%*s", LABELS + 1, "", first,
                         g.columns - (int)strlen(first), last));
}

/* ---- runs */

static const char *duration(Arena *a, double seconds)
{
    const int64_t s = (int64_t)ceil(fmin(seconds, 1e15)); /* a log can have wrong numbers */
    return s < 120      ? arena_printf(a, "%lld s", (long long)s)
           : s < 7200   ? arena_printf(a, "%lld min", (long long)(s + 30) / 60)
           : s < 172800 ? arena_printf(a, "%.1f h", (double)s / 3600)
                        : arena_printf(a, "%.1f days", (double)s / 86400);
}

static bool is_speed(const char *name)
{
    return strcmp(name, "lr") == 0 || strcmp(name, "samples_per_s") == 0;
}

/* Adds "test loss 0.1356", "test accuracy 0.9628", ...: the last numbers of a split. */
static void add_last(Row *r, const RunLog *l, CurveSplit split)
{
    static const char *const prefix[] = {"", "test ", "validation "};
    for (int i = 0; i < l->n; i++) {
        const char *name = l->curve[i].name;
        const Curve *c = runlog_find(l, name, split, false);
        c = c && c->n ? c : curve_of(l, name, split);
        bool again = is_speed(name); /* a curve of steps and one of epochs have one name */
        for (int k = 0; k < i; k++)
            again |= strcmp(l->curve[k].name, name) == 0;
        if (c && c->n && !again)
            row_add(r, arena_printf(r->out->arena, "%s%s %.4g", prefix[split], name,
                                    c->point[c->n - 1].y));
    }
}

static Row row_new(Text *t, const Screen *s, const char *indent)
{
    Row r = {t, text_new(t->arena), s, indent, false};
    text_add(&r.line, indent);
    return r;
}

/* The last numbers of all splits, on one line if it has room for them, else with a new line for
 * each split. */
static void add_numbers(Text *t, const Screen *s, const RunLog *l)
{
    static const CurveSplit order[] = {SPLIT_TRAIN, SPLIT_VALIDATION, SPLIT_TEST};
    Text one = text_new(t->arena);
    Row all = row_new(&one, s, "    ");
    for (int i = 0; i < SPLITS; i++)
        add_last(&all, l, order[i]);
    if (!all.any)
        row_add(&all, "no numbers yet");
    if (one.len == 0) {
        add_cut(t, s, all.line.s);
        return;
    }
    for (int i = 0; i < SPLITS; i++) {
        Row row = row_new(t, s, "    ");
        add_last(&row, l, order[i]);
        row_end(&row);
    }
}

static void draw_run(Text *t, const Screen *s, const RunLog *l, int i, int n)
{
    Arena *a = t->arena;
    Row r = {t, text_new(a), s, "    ", false};
    const bool letters = !draws_braille(s, n);
    if (s->color)
        text_printf(t, "\033[3%dm", 1 + i % COLORS);
    if (letters && n > 1)
        text_printf(&r.line, "%c %c  ", letter(i, SPLIT_TRAIN), letter(i, SPLIT_TEST));
    row_add(&r, arena_printf(a, "%s: %s", l->name,
                             l->model ? l->model : "no record of a training yet"));
    if (l->model) {
        row_add(&r, arena_printf(a, "epoch %.4g of %lld", l->epoch, (long long)l->epochs));
        if (l->rate > 0)
            row_add(&r, arena_printf(a, "%s samples/s", text_commas(a, (int64_t)l->rate)));
        if (l->best > 0)
            row_add(&r, arena_printf(a, "best epoch %lld", (long long)l->best));
        const double left = ((double)l->epochs - l->epoch) * l->per_epoch;
        if (l->ended)
            row_add(&r, arena_printf(a, "ended after %s", duration(a, l->seconds)));
        else if (l->per_epoch > 0 && left > 0)
            row_add(&r, arena_printf(a, "%s left", duration(a, left)));
    }
    row_end(&r);
    add_numbers(t, s, l);
    if (s->color)
        text_add(t, "\033[0m");
}

/* Whether any run has more than one number of a metric. */
static bool is_curve(const RunLog *run, int n, const char *name)
{
    bool found = false;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < run[i].n; k++)
            found |= strcmp(run[i].curve[k].name, name) == 0 && run[i].curve[k].n > 1;
    return found;
}

/* The metrics of the charts: the loss, the first metric of any run that is no loss, and the area
 * under the ROC curve or the IoU, which say more than an accuracy where one class is frequent. */
static int find_metrics(const RunLog *run, int n, const char *metric[CHARTS])
{
    static const char *const further[] = {"auc", "iou"};
    int found = 0;
    metric[found++] = "loss";
    for (int i = 0; i < n && found == 1; i++)
        for (int k = 0; k < run[i].n && found == 1; k++)
            if (strcmp(run[i].curve[k].name, "loss") != 0 && !is_speed(run[i].curve[k].name))
                metric[found++] = run[i].curve[k].name;
    for (size_t i = 0; i < sizeof further / sizeof *further && found < CHARTS; i++)
        if (is_curve(run, n, further[i]) && strcmp(metric[found - 1], further[i]) != 0)
            metric[found++] = further[i];
    return found;
}

static void add_legend(Text *t, const Screen *s, const RunLog *run, int n)
{
    const bool braille = draws_braille(s, n);
    bool validation = false;
    for (int i = 0; i < n; i++)
        validation |= runlog_has(&run[i], SPLIT_VALIDATION);
    Row r = row_new(t, s, "");
    row_add(&r, braille ? "dots: training set" : "small letters: training set");
    row_add(&r, braille ? "lines: test set" : "capitals: test set");
    if (validation)
        row_add(&r, braille ? "dashes: validation split" : "digits: validation");
    row_end(&r);
}

void screen_draw(Text *t, const Screen *s, const RunLog *run, int n)
{
    const char *metric[CHARTS];
    int charts = find_metrics(run, n, metric), head = 0;
    const size_t before = t->len;
    for (int i = 0; i < n; i++)
        draw_run(t, s, &run[i], i, n);
    add_legend(t, s, run, n);
    for (size_t i = before; i < t->len; i++)
        head += t->s[i] == '\n';
    while (charts > 2 && s->rows && (s->rows - 2 * charts - head - 1) / charts < LOWEST)
        charts--;
    int rows = s->rows ? (s->rows - 2 * charts - head - 1) / charts : TALLEST;
    rows = rows > TALLEST ? TALLEST : rows < LOWEST ? LOWEST : rows;
    for (int i = 0; i < charts; i++)
        draw_chart(t, s, run, n, metric[i], rows);
}
