/* main.c -- tenon: from a model file to a program that trains it.
 *
 *   front   text -> graphs                       front/, grammar/
 *   passes  graphs -> planned step               passes/, ops/
 *   emit    step -> C (cpu/target.c)             emit/ with cpu/ or cuda/
 *           step -> calls -> launches -> CUDA    (cuda/target.c)
 *   tool    C or CUDA -> executable              tool/
 */
#include "tool/process.h"
#include "tool/stack.h"
#include "tool/tool.h"

static bool compile(Arena *a, Command *c, Diag *d)
{
    Front f;
    if (!front_load(a, c->file, &c->front, d, &f))
        return false;
    if (c->kind == COMMAND_CHECK)
        return (!f.train || pass_check(f.train, d)) && printf("%s: ok\n", c->file) > 0;
    if (!tool_take_recipe(c, &f, d) || !tool_begin(c, &f, d) || !tool_plan(&f, &c->options, d) ||
        !tool_targets(c, &f, d))
        return false;
    switch (c->kind) {
    case COMMAND_SHOW:
        return tool_show(c, &f, d);
    case COMMAND_EMIT:
        return tool_emit(c, &f, d);
    default:
        return tool_build(c, &f, d);
    }
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
