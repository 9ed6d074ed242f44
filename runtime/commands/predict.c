/* predict.c -- the command `predict`: outputs for the samples of a file, one row for each sample.
 * Classes are printed as probabilities; for a text or an image, the class and its probability are
 * printed.  Where the target is numbers, the numbers of the output are printed.
 *
 * Several outputs are columns with a header, which names them, or a .npy file for each.  Rows of
 * a .npy file have the shape of the output: an image stays an image.
 */
#include "base/error.h"
#include "base/mapped.h"
#include "commands/commands.h"
#include "data/classes.h"
#include "data/columns.h"
#include "data/npy.h"
#include "data/vocab.h"
#include "files/params.h"
#include "step/net.h"
#include "train/evaluate.h"
#include "train/weights.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

typedef struct Sink {
    const char *id; /* --id: the name of the first column; NULL: there is none */
    int nfile;      /* several outputs as .npy: one for each; else 1 */
    File file[RT_OUTPUTS];
    File *now; /* the file that is written to */
    bool to_file, npy;
} Sink;

static void emit(Sink *s, const void *bytes, int64_t n)
{
    if (s->to_file)
        file_write(s->now, bytes, n);
    else
        fwrite(bytes, 1, (size_t)n, stdout);
}

/* Dies if the output would overwrite the input. */
static void keep_apart(const char *output, const char *input)
{
    struct stat a, b;
    if (output && input && stat(output, &a) == 0 && stat(input, &b) == 0 && a.st_dev == b.st_dev &&
        a.st_ino == b.st_ino && S_ISREG(a.st_mode))
        rt_die("--output %s is the file that is read (%s): name another one", output, input);
}

static int64_t output_count(const RtOutput *o)
{
    return data_numbers(o->rank, o->dim);
}

/* The path of file k: "out_digit.npy" for out.npy. */
static const char *sink_path(const RtProgram *p, const Sink *s, const char *path, int k)
{
    return s->nfile > 1 ? rt_format("%.*s_%s.npy", (int)strlen(path) - 4, path, p->output[k].name)
                        : path;
}

/* Checks the names of the files before anything is computed. */
static void check_sink(Sink *s, const RtProgram *p, const char *path)
{
    s->to_file = path && strcmp(path, "-") != 0 && strcmp(path, "/dev/stdout") != 0;
    s->npy = s->to_file && find_has_ending(path, ".npy");
    if (s->to_file && !s->npy && !find_has_ending(path, ".csv"))
        rt_die("%s: output is a .npy or a .csv file", path);
    if (s->npy && s->id)
        rt_die("--id is a column of a .csv file: write the output to one, not to %s", path);
    s->nfile = s->npy && p->noutput > 1 ? p->noutput : 1;
    for (int k = 0; s->to_file && k < s->nfile; k++)
        file_check(sink_path(p, s, path, k));
}

static void emit_text(Sink *s, const char *text)
{
    emit(s, text, (int64_t)strlen(text));
}

/* Writes a field of a .csv file, in quotes if its text needs them. */
static void emit_field(Sink *s, const char *text, int64_t n)
{
    static const char special[] = ",;\t\"\r\n";
    bool quoted = false;
    for (int64_t i = 0; i < n; i++)
        quoted |= strchr(special, text[i]) != NULL;
    if (!quoted) {
        emit(s, text, n);
        return;
    }
    emit(s, "\"", 1);
    for (int64_t i = 0; i < n; i++)
        emit(s, text[i] == '"' ? "\"\"" : text + i, text[i] == '"' ? 2 : 1);
    emit(s, "\"", 1);
}

/* ---- tables: columns have the names of the targets */

/* The column of the class that the program predicts; NULL: its data are no table, or it learns
 * something else than one class. */
static const Column *class_column(const RtProgram *p)
{
    const Columns *c = columns_now();
    const bool one = p->noutput == 0 && p->target_kind == RT_TARGET_CLASS;
    return c && one ? &c->at[c->ninput] : NULL;
}

/* Writes "diagnosis,diagnosis_benign,diagnosis_malignant": the class, and its probabilities; or the
 * names of the numbers. */
static void emit_column_names(Sink *s, const RtProgram *p)
{
    const Columns *c = columns_now();
    const Column *class = class_column(p);
    for (int64_t k = c->ninput; k < c->n; k++) {
        emit_text(s, k > c->ninput ? "," : "");
        emit_field(s, c->at[k].name, (int64_t)strlen(c->at[k].name));
    }
    for (int64_t i = 0; class && i < class->value.n; i++) {
        emit_text(s, ",");
        const Piece *name = &class->value.piece[i];
        const char *text = rt_format("%s_%.*s", class->name, (int)name->length, name->bytes);
        emit_field(s, text, (int64_t)strlen(text));
    }
    emit_text(s, "\n");
}

/* Whether the output has a column for each name. */
static bool has_column_names(const RtProgram *p)
{
    const Columns *c = columns_now();
    return c && !p->trained && p->noutput == 0 &&
           (class_column(p) || c->n - c->ninput == p->outputs);
}

/* Writes "digit_0,digit_1,...,brightness". */
static void emit_names(Sink *s, const RtProgram *p)
{
    if (s->id && (has_column_names(p) || p->noutput > 0)) {
        emit_field(s, s->id, (int64_t)strlen(s->id));
        emit_text(s, ",");
    }
    if (has_column_names(p))
        emit_column_names(s, p);
    for (int k = 0; k < p->noutput; k++)
        for (int64_t i = 0, n = output_count(&p->output[k]); i < n; i++) {
            const char *name = p->output[k].name, *comma = k || i ? "," : "";
            const char *text = n == 1 ? rt_format("%s%s", comma, name)
                                      : rt_format("%s%s_%lld", comma, name, (long long)i);
            emit(s, text, (int64_t)strlen(text));
        }
    if (p->noutput > 0)
        emit(s, "\n", 1);
}

/* Writes the header of file k.  Vectors are rows, also those of a class for each position. */
static void emit_header(Sink *s, const RtProgram *p, int64_t rows, int k)
{
    const RtOutput *o = s->nfile > 1 || p->noutput == 1 ? &p->output[k] : NULL;
    const int rank = o ? o->rank : p->output_rank;
    const int64_t *dim = o ? o->dim : p->output_dim, all = o ? output_count(o) : p->outputs;
    char head[NPY_HEAD];
    emit(s, head,
         npy_header(head, p->real_bytes, rows, rank > 1 ? rank : 1, rank > 1 ? dim : &all));
}

static void open_sink(Sink *s, const RtProgram *p, const char *path, int64_t rows)
{
    for (int k = 0; s->to_file && k < s->nfile; k++) {
        s->now = &s->file[k];
        file_create(s->now, sink_path(p, s, path, k));
        if (s->npy)
            emit_header(s, p, rows, k);
    }
    if (!s->npy)
        emit_names(s, p);
}

/* y_i = exp(x_i - max) / sum, in double; `apart`: from a number to the next one. */
static void softmax(double *v, int64_t n, int64_t apart)
{
    double top = v[0], sum = 0;
    for (int64_t i = 1; i < n; i++)
        top = fmax(top, v[i * apart]);
    for (int64_t i = 0; i < n; i++)
        sum += v[i * apart] = exp(v[i * apart] - top);
    for (int64_t i = 0; i < n; i++)
        v[i * apart] /= sum;
}

/* Computes the softmax of each vector of `classes` numbers.  The numbers of a vector are adjacent;
 * or, if pixels > 0, each class is an image of this many pixels. */
static void make_classes(double *v, int64_t n, int64_t classes, int64_t pixels)
{
    for (int64_t i = 0; i < pixels; i++)
        softmax(v + i, classes, pixels);
    for (int64_t i = 0; i < n && pixels == 0; i += classes)
        softmax(v + i, classes, 1);
}

/* Whether the output is one number: the probability of class 1, where the classes are 0 and 1. */
static bool is_truth(const RtProgram *p)
{
    return p->classes == 2 && p->outputs == 1;
}

/* Turns a row of outputs into probabilities. */
static void make_shares(const RtProgram *p, double *row)
{
    if (p->softmax_output)
        make_classes(row, p->outputs, p->classes, p->pixels);
    if (is_truth(p))
        row[0] = 1 / (1 + exp(-row[0]));
    for (int64_t k = 0; p->sigmoid_output && k < p->outputs; k++)
        row[k] = 1 / (1 + exp(-row[k]));
}

/* The same for several outputs. */
static void make_each_share(const RtProgram *p, double *row)
{
    for (int k = 0; k < p->noutput; k++) {
        const RtOutput *o = &p->output[k];
        const int64_t n = output_count(o);
        if (o->classes > 0)
            make_classes(row, n, o->classes, o->pixels);
        for (int64_t i = 0; o->binary && i < n; i++)
            row[i] = 1 / (1 + exp(-row[i]));
        row += n;
    }
}

static void emit_numbers(Sink *s, const RtProgram *p, const double *v, int64_t n)
{
    char text[40];
    for (int64_t i = 0; i < n; i++) {
        double whole = v[i];
        float half = (float)v[i];
        if (s->npy)
            emit(s, p->real_bytes == 8 ? (void *)&whole : (void *)&half, p->real_bytes);
        else
            emit(s, text,
                 snprintf(text, sizeof text, "%s%.*g", i ? "," : "", p->real_bytes == 8 ? 17 : 9,
                          isnan(v[i]) ? NAN : v[i])); /* without its sign */
    }
    if (!s->npy)
        emit(s, "\n", 1);
}

/* The largest of n shares, the first of equal ones; -1: one is NaN, so that there is none. */
static int64_t best_of(const double *share, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 0; i < n; i++) {
        if (isnan(share[i]))
            return -1;
        if (share[i] > share[best])
            best = i;
    }
    return best;
}

/* Writes "malignant,0.02,0.98". */
static void emit_named_class(Sink *s, const RtProgram *p, const Column *c, const double *v)
{
    double both[2] = {1 - v[0], v[0]};
    const double *share = is_truth(p) ? both : v;
    const int64_t best = best_of(share, c->value.n);
    if (best < 0)
        emit_text(s, "nan");
    else
        emit_field(s, c->value.piece[best].bytes, c->value.piece[best].length);
    emit_text(s, ",");
    emit_numbers(s, p, share, c->value.n);
}

static void emit_row(Sink *s, const RtProgram *p, const double *v)
{
    if (s->nfile == 1)
        emit_numbers(s, p, v, p->outputs);
    for (int k = 0; k < s->nfile && s->nfile > 1; k++) {
        s->now = &s->file[k];
        emit_numbers(s, p, v, output_count(&p->output[k]));
        v += output_count(&p->output[k]);
    }
}

/* Writes "1<tab>0.9731": a class and its probability. A token is printed as its text, and a class
 * as its name if it has one. */
static void emit_class(Sink *s, const RtProgram *p, const double *v)
{
    char text[64];
    const Classes *names = classes_now();
    int64_t best = best_of(v, p->outputs);
    double share = best < 0 ? NAN : v[best];
    if (best >= 0 && is_truth(p)) {
        best = v[0] >= 0.5;
        share = best ? v[0] : 1 - v[0];
    }
    if (best < 0) {
        emit_text(s, "nan\tnan\n");
        return;
    }
    if (names && best < names->n)
        emit(s, names->name[best], (int64_t)strlen(names->name[best]));
    else if (!vocab_now() || p->recipe.text.table || best >= vocab_now()->n)
        emit(s, text, snprintf(text, sizeof text, "%lld", (long long)best));
    else
        emit(s, vocab_now()->piece[best].bytes, vocab_now()->piece[best].length);
    emit(s, text, snprintf(text, sizeof text, "\t%.4f\n", share));
}

/* Writes "pets/17.jpg<tab>cat<tab>0.9731". */
static void emit_image(Sink *s, const RtProgram *p, const char *path, const double *v)
{
    emit(s, path, (int64_t)strlen(path));
    emit(s, "\t", 1);
    emit_class(s, p, v);
}

/* Opens the samples; texts are read with the vocabulary that is stored with the weights. */
static Data *open_input(const RtProgram *p, const Options *o)
{
    const bool arrays =
        o->input && (find_has_ending(o->input, ".npy") || find_has_ending(o->input, ".csv"));
    columns_of_weights(p, o->weights);
    if (!p->recipe.text.unit || arrays)
        return data_open_file(p, o->input, o->id);
    if (p->labels > 1)
        rt_die("%s computes the next token at each position: use `generate` to continue a text",
               p->model);
    if (!vocab_of_weights(p, o->weights))
        rt_die("%s holds no vocabulary, which predict needs to read a text: use weights that this "
               "program has saved",
               o->weights);
    return o->text ? data_open_text(p, o->text) : data_open_file(p, o->input, NULL);
}

/* Writes sample i, whose outputs are `row`: as a class with its name, as the likeliest class of an
 * image or a text on the screen, or as numbers. */
static void emit_sample(Sink *s, const RtProgram *p, const Data *d, int64_t i, double *row)
{
    const Column *column = class_column(p);
    const bool class = p->noutput == 0 && p->target_kind == RT_TARGET_CLASS;
    if (p->noutput > 0)
        make_each_share(p, row);
    else
        make_shares(p, row);
    if (s->id) {
        const char *name = d->id ? d->id[i] : images_path(d, i);
        emit_field(s, name, (int64_t)strlen(name));
        emit_text(s, ",");
    }
    if (column && !s->npy)
        emit_named_class(s, p, column, row);
    else if (class && !s->to_file && !s->id && d->images && p->pixels == 0)
        emit_image(s, p, images_path(d, i), row);
    else if (class && !s->to_file && vocab_now())
        emit_class(s, p, row);
    else
        emit_row(s, p, row);
}

/* Dies if the samples have no such names. */
static void check_ids(const Options *o, const Data *d)
{
    if (o->id && !d->id && !d->images)
        rt_die("%s is an array, whose samples have no names for --id", o->input);
    if (o->id && d->images && strcmp(o->id, "file") != 0)
        rt_die("images have no column '%s': --id file writes their paths", o->id);
}

int predict_run(const RtProgram *p, const Options *o)
{
    static Sink sink;
    sink.id = o->id;
    check_sink(&sink, p, o->output);
    for (int i = 0; o->output && i < sink.nfile; i++) {
        const char *path = sink_path(p, &sink, o->output, i);
        keep_apart(path, o->input);
        for (int k = 0; o->input && k < p->ninput; k++)
            keep_apart(path, parts_file(p, o->input, k));
        keep_apart(path, o->weights);
    }
    Net *n = net_new(p, pool_on(&o->place), o->comm, 1, false);
    net_samples(n, o->samples_in, 1);
    weights_load(n, o->weights);
    Data *d = open_input(p, o);
    check_ids(o, d);
    data_fill(d, n->pool);
    if (d->images && p->target_kind == RT_TARGET_CLASS)
        classes_of_weights(p, o->weights);
    open_sink(&sink, p, o->output, d->n);
    const Order order = order_stored(d->n, p->batch);
    char *output = rt_alloc((size_t)(p->batch * p->outputs * p->real_bytes));
    double *row = rt_alloc(sizeof *row * (size_t)p->outputs);
    for (int64_t first = 0; first < d->n; first += p->batch) {
        const int valid = (int)(d->n - first < p->batch ? d->n - first : p->batch);
        const Batch b = evaluate_batch(n, d, &order, first / p->batch);
        net_evaluate(n, &b, output);
        if (*n->wrong)
            data_wrong_token(d);
        mapped_check();
        for (int i = 0; i < valid; i++) {
            for (int64_t k = 0; k < p->outputs; k++)
                row[k] = params_real(output, p->real_bytes, i * p->outputs + k);
            emit_sample(&sink, p, d, first + i, row);
        }
    }
    for (int k = 0; sink.to_file && k < sink.nfile; k++)
        file_commit(&sink.file[k]);
    return 0;
}
