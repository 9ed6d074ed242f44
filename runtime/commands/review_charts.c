/* review_charts.c -- the confusion matrix, and predictions over targets, as SVG (review.h). */
#include "base/error.h"
#include "commands/review.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void begin_svg(Review *r, const char *name, int width, int height)
{
    review_begin(r->folder, name);
    review_print(r->folder,
                 "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                 "viewBox=\"0 0 %d %d\" font-family=\"Helvetica, Arial, sans-serif\" "
                 "font-size=\"12\" fill=\"#222\">\n"
                 "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
                 width, height, width, height, width, height);
}

static void end_svg(Review *r)
{
    review_print(r->folder, "</svg>\n");
    review_finish(r->folder);
}

/* place: more attributes, such as an anchor. */
static void put_text(Review *r, double x, double y, const char *place, const char *text)
{
    review_print(r->folder, "<text x=\"%.6g\" y=\"%.6g\" %s>", x, y, place);
    review_xml(r->folder, text);
    review_print(r->folder, "</text>\n");
}

/* ---- the confusion matrix */

enum { LETTER = 7, MARGIN = 16, TITLE = 52, LEGEND = 92 };

typedef struct Matrix {
    int64_t n, *count, *all;    /* all: labels of a class */
    int cell, left, top, every; /* pixels; a label for each `every`-th class */
    bool numbers, upright;      /* counts in cells; labels of columns are not turned */
    int64_t size;               /* cell * n */
} Matrix;

/* At most 16 characters of a name. */
static const char *short_name(const char *name)
{
    int bytes = 0;
    for (int n = 0; name[bytes] && n < 16; bytes++)
        n += ((unsigned char)name[bytes + 1] & 0xc0) != 0x80;
    return rt_format("%.*s%s", bytes, name, name[bytes] ? "..." : "");
}

static Matrix matrix_of(const ReviewTarget *t)
{
    Matrix m = {.n = t->is.classes, .count = t->confusion, .every = 1};
    m.all = rt_alloc(sizeof *m.all * (size_t)m.n);
    for (int64_t i = 0; i < m.n * m.n; i++)
        m.all[i / m.n] += m.count[i];
    for (int64_t k = 0; k < m.n; k++)
        m.all[k] += t->nans[k];
    size_t letters = 1, digits = 1;
    for (int64_t k = 0; k < m.n; k++)
        letters = (size_t)fmax(letters, strlen(short_name(review_class_name(t, k))));
    for (int64_t i = 0; i < m.n * m.n; i++)
        digits = (size_t)fmax(digits, snprintf(NULL, 0, "%lld", (long long)m.count[i]));
    m.numbers = m.n <= REVIEW_TEXT_CLASSES;
    m.cell = m.numbers   ? (int)fmax(34, LETTER * (double)digits + 10)
             : m.n <= 50 ? 16
                         : (int)fmax(1, 800 / (double)m.n);
    while (m.every * m.cell < 14)
        m.every *= m.every == 2 || m.every == 20 || m.every == 200 ? 5 : 2;
    m.upright = LETTER * ((int)letters + 1) <= m.cell * m.every;
    m.left = MARGIN + 24 + LETTER * (int)letters;
    m.top = TITLE + 24 + (m.upright ? 12 : LETTER * (int)letters);
    m.size = m.cell * m.n;
    return m;
}

/* The colour of a share of a row, from white to blue.  The square root shows small shares, too. */
static void put_colour(Review *r, double share)
{
    static const int blue[3] = {8, 69, 140};
    int c[3];
    for (int i = 0; i < 3; i++)
        c[i] = (int)(255 + sqrt(share) * (blue[i] - 255) + 0.5);
    review_print(r->folder, "fill=\"#%02x%02x%02x\"", c[0], c[1], c[2]);
}

static void put_cell(Review *r, const ReviewTarget *t, const Matrix *m, int64_t i, int64_t k)
{
    const long long n = m->count[i * m->n + k], all = m->all[i];
    review_print(r->folder, "<rect x=\"%lld\" y=\"%lld\" width=\"%d\" height=\"%d\" ",
                 (long long)(m->left + k * m->cell), (long long)(m->top + i * m->cell), m->cell,
                 m->cell);
    put_colour(r, (double)n / (double)all);
    review_print(r->folder, "><title>true ");
    review_xml(r->folder, review_class_name(t, i));
    review_print(r->folder, ", predicted ");
    review_xml(r->folder, review_class_name(t, k));
    review_print(r->folder, ": %lld of %lld</title></rect>\n", n, all);
}

/* White on dark cells.  The pointer meets the cell behind it, which has a title. */
static void put_count(Review *r, const Matrix *m, int64_t i, int64_t k)
{
    const int64_t n = m->count[i * m->n + k];
    put_text(r, (double)m->left + ((double)k + 0.5) * m->cell,
             (double)m->top + ((double)i + 0.5) * m->cell + 4,
             rt_format("text-anchor=\"middle\" pointer-events=\"none\"%s",
                       (double)n > 0.25 * (double)m->all[i] ? " fill=\"#fff\"" : ""),
             rt_format("%lld", (long long)n));
}

static void put_labels(Review *r, const ReviewTarget *t, const Matrix *m)
{
    for (int64_t k = 0; k < m->n; k += m->every) {
        const char *name = short_name(review_class_name(t, k));
        const double at = ((double)k + 0.5) * m->cell;
        put_text(r, m->left - 6, m->top + at + 4, "text-anchor=\"end\"", name);
        const double x = m->left + at, y = m->top - 6;
        put_text(r, x, y,
                 m->upright ? "text-anchor=\"middle\""
                            : rt_format("transform=\"rotate(-90 %.6g %.6g) translate(0 4)\"", x, y),
                 name);
    }
}

/* The scale of colours, to the right of the matrix. */
static void put_legend(Review *r, const Matrix *m)
{
    enum { STEPS = 40, HEIGHT = 120, WIDTH = 14 };
    const int64_t x = m->left + m->size + 20;
    for (int i = 0; i < STEPS; i++) {
        review_print(r->folder, "<rect x=\"%lld\" y=\"%d\" width=\"%d\" height=\"%d\" ",
                     (long long)x, m->top + HEIGHT / STEPS * (STEPS - 1 - i), WIDTH,
                     HEIGHT / STEPS);
        put_colour(r, (double)i / (STEPS - 1));
        review_print(r->folder, "/>\n");
    }
    for (int i = 0; i <= 2; i++)
        put_text(r, (double)x + WIDTH + 4, m->top + HEIGHT * (2 - i) / 2.0 + 4, "",
                 i == 0   ? "0 %"
                 : i == 1 ? "50 %"
                          : "100 %");
    put_text(r, (double)x, m->top + HEIGHT + 22, "font-size=\"11\" fill=\"#666\"", "of the row");
}

void review_confusion_chart(Review *r, const ReviewTarget *t)
{
    enum { LOWEST = 150 }; /* room for the legend */
    const Matrix m = matrix_of(t);
    const double height = fmax((double)m.size, LOWEST);
    begin_svg(r, review_name(t, "confusion.svg"), (int)(m.left + m.size + LEGEND),
              (int)(m.top + height + MARGIN));
    put_text(r, MARGIN, 24, "font-size=\"15\" font-weight=\"bold\"",
             *t->prefix ? rt_format("%s: %s", r->p->model, t->is.name) : r->p->model);
    put_text(r, m.left, TITLE, "fill=\"#666\"", "predicted class");
    if (t->nan > 0)
        put_text(r, MARGIN, 38, "font-size=\"11\" fill=\"#666\"",
                 rt_format("not drawn: %lld of NaN", (long long)t->nan));
    put_text(r, MARGIN + 8, m.top + (double)m.size / 2,
             rt_format("fill=\"#666\" text-anchor=\"middle\" transform=\"rotate(-90 %d %.6g)\"",
                       MARGIN + 8, m.top + (double)m.size / 2),
             "true class");
    for (int64_t i = 0; i < m.n * m.n; i++)
        if (m.count[i] > 0)
            put_cell(r, t, &m, i / m.n, i % m.n);
    for (int64_t i = 0; i < m.n * m.n && m.numbers; i++)
        if (m.count[i] > 0)
            put_count(r, &m, i / m.n, i % m.n);
    free(m.all);
    review_print(r->folder,
                 "<rect x=\"%d\" y=\"%d\" width=\"%lld\" height=\"%lld\" fill=\"none\" "
                 "stroke=\"#999\"/>\n",
                 m.left, m.top, (long long)m.size, (long long)m.size);
    put_labels(r, t, &m);
    put_legend(r, &m);
    end_svg(r);
}

/* ---- predictions over targets */

enum { POINTS = 2000, PANEL = 300, PANEL_LEFT = 70, PANEL_TOP = 60, PANEL_BELOW = 54, COLUMNS = 3 };

typedef struct Panel {
    double left, top;  /* of the square, in pixels */
    double low, scale; /* value at its left and lower edge; pixels of a value of 1 */
} Panel;

static double across(const Panel *p, double v)
{
    return p->left + (v - p->low) * p->scale;
}

static double down(const Panel *p, double v)
{
    return p->top + PANEL - (v - p->low) * p->scale;
}

/* Sample j of `drawn` samples, which are spread over the split. */
static const double *pair_at(const Review *r, const ReviewTarget *t, int64_t k, int64_t j,
                             int64_t drawn)
{
    return review_row(r, t, j * r->d->n / drawn) + REVIEW_PAIRS + 2 * k;
}

/* A step of 1, 2 or 5 times a power of ten, for three to seven marks on a length. */
static double step_of(double length)
{
    const double power = pow(10, floor(log10(length / 4))), part = length / 4 / power;
    return power * (part < 1.5 ? 1 : part < 3.5 ? 2 : part < 7.5 ? 5 : 10);
}

static void put_marks(Review *r, const Panel *p)
{
    const double length = PANEL / p->scale, step = step_of(length);
    for (double i = ceil(p->low / step); i * step <= p->low + length; i++) {
        const double x = across(p, i * step), y = down(p, i * step);
        const char *text = rt_format("%.6g", i == 0 ? 0 : i * step);
        review_print(r->folder, "<path d=\"M%.6g %.6gv%d M%.6g %.6gh%d\" stroke=\"#e4e4e4\"/>\n", x,
                     p->top, PANEL, p->left, y, PANEL);
        put_text(r, x, p->top + PANEL + 16, "text-anchor=\"middle\"", text);
        put_text(r, p->left - 6, y + 4, "text-anchor=\"end\"", text);
    }
    review_print(r->folder,
                 "<rect x=\"%.6g\" y=\"%.6g\" width=\"%d\" height=\"%d\" fill=\"none\" "
                 "stroke=\"#999\"/>\n"
                 "<path d=\"M%.6g %.6gL%.6g %.6g\" stroke=\"#888\" stroke-dasharray=\"5 4\"/>\n",
                 p->left, p->top, PANEL, PANEL, p->left, p->top + PANEL, p->left + PANEL, p->top);
}

static void put_panel(Review *r, const ReviewTarget *t, int64_t k, double left, double top)
{
    const int64_t drawn = r->d->n < POINTS ? r->d->n : POINTS;
    double low = INFINITY, high = -INFINITY;
    for (int64_t j = 0; j < 2 * drawn; j++) {
        const double v = pair_at(r, t, k, j / 2, drawn)[j % 2];
        if (isfinite(v))
            low = fmin(low, v), high = fmax(high, v);
    }
    if (!(low < high))
        low = isfinite(low) ? low - 1 : 0, high = low + 2;
    const double edge = (high - low) / 20;
    const Panel p = {left, top, low - edge, PANEL / (high - low + 2 * edge)};
    put_text(r, left, top - 10, "font-weight=\"bold\"", review_number_name(r, t, k));
    put_marks(r, &p);
    review_print(r->folder, "<g fill=\"#08458c\" fill-opacity=\"0.4\">\n");
    for (int64_t j = 0; j < drawn; j++) {
        const double *pair = pair_at(r, t, k, j, drawn);
        if (isfinite(pair[0]) && isfinite(pair[1]))
            review_print(r->folder, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"2.5\"/>\n",
                         across(&p, pair[0]), down(&p, pair[1]));
    }
    review_print(r->folder, "</g>\n");
    put_text(r, left + PANEL / 2.0, top + PANEL + 36, "fill=\"#666\" text-anchor=\"middle\"",
             "target");
    put_text(r, left - 52, top + PANEL / 2.0,
             rt_format("fill=\"#666\" text-anchor=\"middle\" transform=\"rotate(-90 %.6g %.6g)\"",
                       left - 52, top + PANEL / 2.0),
             "prediction");
}

void review_scatter(Review *r, const ReviewTarget *t)
{
    const int panels = t->is.count < REVIEW_PANELS ? (int)t->is.count : REVIEW_PANELS;
    const int columns = panels < COLUMNS ? panels : COLUMNS,
              rows = (panels + columns - 1) / columns;
    const int width = PANEL_LEFT + PANEL + MARGIN, height = PANEL_TOP - 20 + PANEL + PANEL_BELOW;
    begin_svg(r, review_name(t, "scatter.svg"), columns * width, 30 + rows * height);
    put_text(r, MARGIN, 24, "font-size=\"15\" font-weight=\"bold\"",
             r->d->n > POINTS
                 ? rt_format("%s: %d of %lld samples", r->p->model, POINTS, (long long)r->d->n)
                 : r->p->model);
    for (int k = 0; k < panels; k++)
        put_panel(r, t, k, PANEL_LEFT + k % columns * width, PANEL_TOP + k / columns * height);
    end_svg(r);
}
