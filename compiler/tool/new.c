/* new.c -- `tenon new`: writes a model file that builds and trains as it is.
 *
 * There is one network for each kind of sample: small, of common layers, and good enough to change.
 */
#include "tool/new.h"
#include "base/quote.h"
#include "front/format.h"
#include "front/sem.h"
#include "ops/op.h"
#include "tool/file.h"
#include "tool/option.h"
#include "tool/sample.h"
#include <errno.h>
#include <string.h>

static const Span nowhere;

/* ---- the networks; NAME is the model's */

/* "10 classes", "a number to learn" */
static const char *answer_text(Arena *a, const Sample *s)
{
    return s->targets == 1 ? "a number to learn"
           : s->targets    ? arena_printf(a, "%d numbers to learn", s->targets)
                           : arena_printf(a, "%d classes", s->classes);
}

static const char *samples_text(Arena *a, const Sample *s)
{
    switch (s->kind) {
    case SAMPLE_IMAGE:
        return arena_printf(a, "images of %d x %d pixels, %s", s->dim[1], s->dim[2],
                            answer_text(a, s));
    case SAMPLE_SEQUENCE:
        return arena_printf(a, "sequences of %d steps with %d numbers each, %s", s->dim[0],
                            s->dim[1], answer_text(a, s));
    case SAMPLE_ROW:
        return arena_printf(a, "rows of %d numbers, %s", s->dim[0], answer_text(a, s));
    case SAMPLE_TABLE:
        return arena_printf(a, "a table with %d number%s in a row; column '%s': %s", s->dim[0],
                            s->dim[0] == 1 ? "" : "s", quote_line(a, s->learned),
                            answer_text(a, s));
    case SAMPLE_TEXTS:
        return arena_printf(a, "texts of %d classes", s->classes);
    case SAMPLE_TEXT:
        break;
    }
    return arena_printf(a, "a text of %d different characters", s->vocab);
}

/* Writes the parameters of the last layer. */
static void write_params(Text *t, const Sample *s)
{
    if (s->targets)
        text_printf(t, "mean: float = %.4g, spread: float = %.4g) {\n", s->mean, s->spread);
    else
        text_printf(t, "classes: int = %d) {\n", s->classes);
}

/* Writes the last layer.  The output of a network with weights near 0 is near 0, so the layer gives
 * the output the mean and spread of the targets. */
static void write_answer(Text *t, const Sample *s)
{
    if (s->targets)
        text_printf(t, "return dense(h, %d) * spread + mean\n}\n\n", s->targets);
    else
        text_add(t, "return dense(h, classes)\n}\n\n");
}

/* Convolutions and pooling halve an image until it is small. */
static void write_image(Text *t, const char *name, const Sample *s)
{
    int h = s->dim[1], w = s->dim[2], filters = 16;
    const char *from = "image";
    text_printf(t, "model %s(image: f32[%d, %d, %d], ", name, s->dim[0], h, w);
    write_params(t, s);
    for (int i = 0; i < 4 && h >= 8 && w >= 8; i++, h /= 2, w /= 2, filters *= 2, from = "h")
        text_printf(t, "h = conv2d(%s, %d, kernel = 3, pad = 1) |> relu |> max_pool(2)\n", from,
                    filters);
    text_printf(t, "h = flatten(%s) |> dense(64) |> relu\n", from);
    write_answer(t, s);
}

/* Writes a network for a table, whose columns are standardised.  Two classes need one output. */
static void write_table(Text *t, const char *name, const Sample *s)
{
    const bool yes_no = s->classes == 2;
    text_printf(t, yes_no ? "model %s(row: f32[%d]) {\n" : "model %s(row: f32[%d], ", name,
                s->dim[0]);
    if (!yes_no)
        write_params(t, s);
    text_add(t, "h = dense(row, 64) |> relu\n"
                "h = dense(h, 32) |> relu\n");
    if (yes_no)
        text_add(t, "return dense(h, 1)\n}\n\n");
    else
        write_answer(t, s);
}

static void write_network(Text *t, const char *name, const Sample *s)
{
    switch (s->kind) {
    case SAMPLE_IMAGE:
        write_image(t, name, s);
        break;
    case SAMPLE_SEQUENCE:
        text_printf(t, "model %s(x: f32[steps, features], steps: int = %d, features: int = %d, ",
                    name, s->dim[0], s->dim[1]);
        write_params(t, s);
        text_add(t, "h = lstm(x, 64)\n");
        write_answer(t, s);
        break;
    case SAMPLE_ROW:
        text_printf(t, "model %s(row: f32[columns], columns: int = %d, ", name, s->dim[0]);
        write_params(t, s);
        text_add(t, "h = batch_norm(row, scale = false, shift = false)\n"
                    "h = dense(h, 64) |> relu\n"
                    "h = dense(h, 32) |> relu\n");
        write_answer(t, s);
        break;
    case SAMPLE_TABLE:
        write_table(t, name, s);
        break;
    case SAMPLE_TEXTS:
        text_printf(t,
                    "model %s(text: i32[time], vocab: int, time: int = 64, width: int = 32) {\n"
                    "return embedding(text, vocab, width, padding = 0) |> lstm(width) |> "
                    "dense(%d)\n}\n\n",
                    name, s->classes == 2 ? 1 : s->classes);
        break;
    case SAMPLE_TEXT:
        text_printf(t,
                    "model %s(text: i32[time], vocab: int, time: int = %d, width: int = 96) {\n"
                    "return one_hot(text, vocab) |> lstm(width, all = true) |> dense(vocab)\n}\n\n",
                    name, s->dim[0]);
        break;
    }
}

static void write_recipe(Text *t, const char *name, const Sample *s)
{
    const bool table = s->kind == SAMPLE_TABLE, text = s->kind == SAMPLE_TEXT,
               yes_no = (s->kind == SAMPLE_TEXTS || table) && s->classes == 2;
    text_printf(t, "train %s {\ndata = %s\n", name, s->data);
    if (s->targets)
        text_printf(t, "target = answer: f32[%d]\n", s->targets);
    else if (table)
        text_add(t, "target = answer: class\n");
    text_printf(t, "loss = %s\noptimizer = adam(lr = %s)\n",
                s->targets ? "mse"
                : yes_no   ? "sigmoid_cross_entropy"
                           : "softmax_cross_entropy",
                text ? "0.005" : "0.001");
    text_printf(t, "%s\n%sbatch = %d\nepochs = %d\n}\n",
                s->kind == SAMPLE_IMAGE || s->kind == SAMPLE_ROW || table ? "init = he"
                                                                          : "init = glorot",
                s->kind == SAMPLE_SEQUENCE || s->kind == SAMPLE_TEXTS || text ? "clip = norm(1.0)\n"
                                                                              : "",
                text || table ? 32 : 64,
                text    ? 3
                : table ? 30
                        : 5);
}

/* The whole file, before it is formatted in Tenon's style. */
static const char *model_text(Arena *a, const char *file, const char *name, const Sample *s)
{
    Text t = text_new(a);
    const char *path = quote_line(a, quote_shell(a, file));
    const char *program = strchr(file, '/') ? "PROGRAM" : name;
    text_printf(&t, "# A small network for %s.\n#\n", samples_text(a, s));
    text_printf(&t, "#   train     tenon build %s -o %s && ./%s --save %s.safetensors\n", path,
                program, program, program);
    text_printf(&t, "#   layers    tenon show %s\n", path);
    if (s->kind == SAMPLE_TEXT)
        text_printf(&t, "#   then      ./%s generate --weights %s.safetensors --prompt \"The \"\n",
                    program, program);
    if (s->kind == SAMPLE_TABLE)
        text_printf(&t, "#   then      ./%s predict --weights %s.safetensors --input NEW.csv\n",
                    program, program);
    text_printf(&t, "#   data      ./%s --data %s reads other data of the same kind\n\n", program,
                s->kind == SAMPLE_TEXT || s->kind == SAMPLE_TABLE ? "FILE" : "DIR");
    write_network(&t, name, s);
    write_recipe(&t, name, s);
    return t.s;
}

/* ---- the command */

static bool is_name(const char *word)
{
    static const char letters[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
    return *word && (*word < '0' || *word > '9') && !word[strspn(word, letters)];
}

/* Splits "dir/digits" or "dir/digits.tn" into the file and the name of the model. */
static bool split_name(Arena *a, const char *word, const char **file, const char **name, Diag *d)
{
    *name = path_stem(a, word);
    const char *base = strrchr(word, '/') ? strrchr(word, '/') + 1 : word;
    const bool ends = strlen(base) == strlen(*name) + 3 && strcmp(base + strlen(*name), ".tn") == 0;
    if (strcmp(base, *name) != 0 && !ends) {
        diag_error(d, nowhere, "a model file ends in .tn, not in '%s'", base + strlen(*name));
        return false;
    }
    if (!is_name(*name)) {
        diag_error(d, nowhere, "'%s' cannot be the name of a model", *name);
        diag_help(d, "a name has letters, digits and _, and begins with no digit");
        return false;
    }
    if (op_find(*name) || function_find(*name)) {
        diag_error(d, nowhere, "'%s' is %s", *name,
                   op_find(*name) ? "an operation" : "a function of Tenon");
        diag_help(d, "choose another name for the model");
        return false;
    }
    *file = ends ? word : arena_printf(a, "%s.tn", word);
    return true;
}

bool new_model(const Command *c, Diag *d)
{
    Arena *a = diag_arena(d);
    const char *file, *name;
    Sample sample;
    if (!c->file) {
        diag_error(d, nowhere, "tenon new needs the name of a model");
        diag_help(d, "%s", command_row(c->kind)->usage);
        return false;
    }
    if (c->learn && !*c->learn) {
        diag_error(d, nowhere, "--learn needs the name of a column");
        return false;
    }
    if (!split_name(a, c->file, &file, &name, d) ||
        !sample_find(a, c->data ? c->data : "mnist", c->learn, &sample, d))
        return false;
    if (c->learn && sample.kind != SAMPLE_TABLE) {
        diag_error(d, nowhere, "--learn names a column of a table, and the data are no table");
        diag_help(d, "a table is a file that ends in .csv or .tsv");
        return false;
    }
    const char *text = model_text(a, file, name, &sample);
    const Source source = {.name = file, .path = file, .text = text, .len = strlen(text)};
    Diag *quiet = diag_new(a, DIAG_NEVER);
    text = format_source(a, quiet, &source);
    if (!text) {
        diag_error(d, nowhere, "'%s' is a reserved word", name);
        diag_help(d, "choose another name for the model");
        return false;
    }
    const int error = file_create(a, file, text, strlen(text));
    if (error == EEXIST) {
        diag_error(d, nowhere, "%s exists, and tenon new replaces no file", file);
        diag_help(d, "choose another name, or remove the file");
    } else if (error) {
        diag_error(d, nowhere, "cannot write %s: %s", file, strerror(error));
    } else {
        printf("%s: %s\ntrain it: tenon run %s -- --save %s.safetensors\n", quote_line(a, file),
               samples_text(a, &sample), quote_line(a, quote_shell(a, file)), name);
    }
    return !error;
}
