/* main.c -- tenon: from a model file to a program that trains it.
 *
 *   front   text -> graphs            front/, grammar/   once
 *   passes  graphs -> planned step    passes/, ops/      twice for a GPU, if --kernels is open
 *   emit    step -> C or CUDA         emit/ with cpu/ or cuda/
 *   tool    C or CUDA -> executable   tool/
 */
#include "tool/kernels.h"
#include "tool/process.h"
#include "tool/stack.h"
#include "tool/tool.h"

/* Runs the passes over each graph.  The graphs of evaluation and of one token at a time use the
 * parameters where training planned them. */
static bool plan(Front *f, const Options *o, Diag *d)
{
    if (!f->train)
        return true;
    if (!pass_run_all(f->train, o, d))
        return false;
    f->token = o->cuda ? NULL : pass_token(f->test);
    f->test->peer = f->train;
    if (f->token)
        f->token->peer = f->train;
    return pass_run_all(f->test, o, d) && (!f->token || pass_run_all(f->token, o, d));
}

/* A step on a GPU is several launches, or one launch with other steps.  Each form has its own plan
 * of memory; the form with the shorter predicted time becomes the program.  Errors and warnings
 * are those of the first form.  --dump prints both. */
static bool plan_both_forms(Command *c, Front *f, Diag *d)
{
    Command together = *c;
    Front other = *f;
    other.train = graph_copy(f->train), other.test = graph_copy(f->test);
    together.options.persistent = true;
    if (!plan(f, &c->options, d))
        return false;
    if (plan(&other, &together.options, diag_new(diag_arena(d), DIAG_NEVER)))
        kernels_choose(c, f, &together, &other);
    return true;
}

static bool compile(Arena *a, Command *c, Diag *d)
{
    Front f;
    if (!front_load(a, c->file, &c->front, d, &f))
        return false;
    if (c->kind == COMMAND_CHECK)
        return (!f.train || pass_check(f.train, d)) && printf("%s: ok\n", c->file) > 0;
    if (!tool_begin(c, &f, d))
        return false;
    const bool both = f.train && kernels_open(c);
    return (both ? plan_both_forms(c, &f, d) : plan(&f, &c->options, d)) && tool_finish(c, &f, d);
}

typedef struct Words {
    int n;
    char **word;
} Words;

static int run(void *arg)
{
    const Words *w = arg;
    process_begin();
    Arena *a = arena_new();
    Diag *d = diag_new(a, command_color(w->n, w->word));
    Command c;
    const bool ok = command_parse(a, w->n, w->word, &c, d) &&
                    (c.kind < COMMAND_CHECK ? tool_answer(&c, d) : compile(a, &c, d)) &&
                    tool_flush(d);
    diag_print(d, stderr);
    arena_free(a);
    return ok ? 0 : 1;
}

int main(int argc, char **argv)
{
    return stack_run(run, &(Words){argc, argv});
}
