/* recipe.c -- recipe.md, from the keys of a train block and their forms. */
#include "front/train.h"
#include "made.h"
#include "ops/op.h"
#include "reference.h"
#include <string.h>

enum { WIDTH = 110 };

#define ROW(p, ...) page_row(p, (const char *const[]){__VA_ARGS__})
#define TABLE(p, ...) page_table(p, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), (const char *const[]){__VA_ARGS__})

static void form(Page *p, const Form *form)
{
    const bool named = form->field[0].name != NULL, name = strcmp(form->name, "NAME") == 0;
    page_subsection(p, name ? "A name or a directory" : form->name);
    page_paragraph(p, "%s", made_sentence(form->about));
    if (named && !name)
        page_code(p, "text", form_signature(made_arena(), form, WIDTH));
    if (form->formula)
        page_code(p, "text", form->formula);
    for (const Field *f = form->field; f < form->field + FORM_FIELDS && f->name; f++) {
        const char *v = form_fallback(made_arena(), f);
        const char *given = v ? made("Default: `%s`", v) : form_required(f) ? "Must be given" : "May be left out";
        page_define(p, f->name, NULL, made("%s %s %s.", made_sentence(f->about), made_sentence(form_values(made_arena(), f, "`")), given));
    }
}

static const char *default_of(const TrainKey *k)
{
    return k->example ? "must be given" : k->fallback ? k->fallback : made("`%s`", form_number_text(made_arena(), k->field.fallback));
}

static void key(Page *p, const TrainKey *k)
{
    page_section(p, k->name);
    page_paragraph(p, "%s", made_coded(k->about));
    if (k->field.name)
        page_paragraph(p, "Values: %s.", k->field.want == WANT_WORD && strcmp(k->name, "expect") == 0
                                             ? made("a comparison with one of %s", form_words(made_arena(), k->field.words, "`"))
                                             : form_values(made_arena(), &k->field, "`"));
    for (int i = 0; k->losses && k->losses[i]; i++)
        page_define(p, k->losses[i], NULL, made("%s See [operations](operations.md#%s).", made_sentence(op_find(k->losses[i])->brief), k->losses[i]));
    if (k->example)
        page_code(p, "text", k->example);
    else
        page_paragraph(p, "Default: %s.", default_of(k));
    for (const Form *f = k->forms; f && f->name; f++)
        form(p, f);
}

void reference_recipe(Page *p)
{
    page_paragraph(p, "`train MODEL { ... }` in a model file says how the model is trained. Its keys stand in any order, one on a line; `data`, `loss` and "
                      "`optimizer` must be there. `tenon check` and `tenon show` need no train block.");
    page_code(p, "tenon", "model regularised(x: f32[784]) {\n"
                          "    h = dense(x, 64) |> relu |> dropout(0.2)\n"
                          "    return dense(h, 10)\n"
                          "}\n"
                          "\ntrain regularised {\n"
                          "    data      = synthetic(samples = 6400, classes = 10)\n"
                          "    normalize = per_channel(mean = [0.5], std = [0.25])\n"
                          "    loss      = softmax_cross_entropy(output, label) + 0.001 * l2(output)\n"
                          "    optimizer = adam(lr = 0.002, weight_decay = 1e-4)\n"
                          "    schedule  = cosine(end = 0.01, warmup = 1)\n"
                          "    clip      = [norm(1.0), value(0.5)]\n"
                          "    batch     = 64\n"
                          "    epochs    = 5\n"
                          "}\n");
    TABLE(p, "Key", "Default", "Same for --resume");
    for (const TrainKey *k = train_key_table; k->name; k++)
        ROW(p, made("[%s](#%s)", k->name, k->name), strlen(default_of(k)) < 70 ? default_of(k) : "see below", k->bound ? "yes" : "no");
    page_table_end(p);
    page_paragraph(p, "\"Same for --resume\": a checkpoint can be resumed only by a program whose key has the same value. `epochs` belongs to that, too, "
                      "with the schedules cosine and polynomial.");
    page_section(p, "Override on the command line");
    page_paragraph(p, "`tenon build FILE --set KEY=VALUE` replaces a key: its old value is gone, with all its arguments. So `--set optimizer=adam` has the "
                      "default arguments of adam. `--set KEY.ARGUMENT=VALUE` replaces one argument and keeps the others. A key that the file does not have "
                      "is added. The new value is checked like the file.");
    page_code(p, "sh", "tenon check models/lenet.tn --set batch=64\n"
                       "tenon check models/lenet.tn --set \"optimizer=adam(lr=1e-3)\"\n"
                       "tenon check models/lenet.tn --set optimizer.lr=0.1 --set clip.norm=1\n"
                       "tenon check models/lenet.tn --set data=./mine\n");
    for (const TrainKey *k = train_key_table; k->name; k++)
        key(p, k);
}
