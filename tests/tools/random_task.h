/* random_task.h -- tasks of random_model.c: several inputs, outputs and targets, and losses of all
 * of them.
 *
 * An output is a vector or a matrix.  Its target is a class, a class for each row, numbers, truths,
 * or an input of its shape; an output without a target has a term of its own numbers.  Terms are
 * the losses of the language, or formulas over all outputs and targets.
 */
#ifndef RANDOM_TASK_H
#define RANDOM_TASK_H
#include "random_ops.h"
#include <stdlib.h>
#include <string.h>

enum { OUTPUTS = 3 };

typedef enum { ALONE, CLASS, CLASSES, NUMBERS, TRUTHS, INPUT } Kind;

typedef struct Task {
    int count;
    Value output[OUTPUTS]; /* the text is its name */
    Kind kind[OUTPUTS];    /* of its target */
} Task;

static const char *const result_name[] = {"first", "second", "third"};
static const char *const wanted_name[] = {"wanted0", "wanted1", "wanted2"};

/* Writes further inputs in the head of the model, and adds them to the pool; returns how many. */
static int more_inputs(Pool *p)
{
    static const char *const name[] = {"left", "right"};
    const int count = below(3);
    for (int i = 0; i < count; i++) {
        Value x = {.rank = from(1, 3)};
        for (int k = 0; k < x.rank; k++)
            x.dim[k] = from(1, 5);
        printf(", %s: f32%s", name[i], list(x.dim, x.rank));
        keep(p, &x, name[i]);
    }
    return count;
}

/* Writes the layer whose result has the shape of y. */
static void write_layer(const Value *y)
{
    printf("dense(%d)", size_of(y));
    if (y->rank != 1)
        printf(" |> reshape(%s)", list(y->dim, y->rank));
}

/* Writes the return statement.  The first output reads `all`: the values that nothing else reads.
 * x: an input of numbers, which can be the target, or NULL. */
static void task_outputs(Task *t, Pool *p, const char *all, const Value *x)
{
    const bool own = x && chance(20);
    t->count = own ? 1 : chance(40) ? 1 : from(2, OUTPUTS);
    for (int i = 0; i < t->count; i++) {
        Value *y = &t->output[i];
        y->rank = from(1, 2), y->dim[0] = from(1, 5), y->dim[1] = from(1, 4);
        if (own)
            *y = *x;
        do
            t->kind[i] = (Kind)below(INPUT);
        while ((t->kind[i] == CLASS && (y->rank != 1 || y->dim[0] < 2)) ||
               (t->kind[i] == CLASSES && (t->count > 1 || y->rank != 2 || y->dim[1] < 2)));
        t->kind[i] = own ? INPUT : i == 0 && t->kind[i] == ALONE ? NUMBERS : t->kind[i];
        say(y, "%s", t->count > 1 ? result_name[i] : "output");
        printf(i == 0 ? "    return " : ", ");
        if (t->count > 1)
            printf("%s = ", result_name[i]);
        printf(i == 0 ? "concat(%s) |> " : "flatten(%s) |> ", i == 0 ? all : any(p)->text);
        write_layer(y);
    }
    printf("\n}\n");
}

/* Writes the declarations of the targets, and adds those that are numbers to the pool of the loss. */
static void task_targets(const Task *t, Pool *q, const Value *x)
{
    int n = 0;
    for (int i = 0; i < t->count; i++)
        n += t->kind[i] != ALONE;
    if (n == 0)
        return;
    printf("    target = %s", n > 1 ? "(" : "");
    for (int i = 0, written = 0; i < t->count; i++) {
        const Value *y = &t->output[i];
        if (t->kind[i] == ALONE)
            continue;
        printf("%s", written++ ? ", " : "");
        if (t->kind[i] == INPUT)
            printf("%s", x->text);
        else
            printf("%s: ", wanted_name[i]);
        if (t->kind[i] == CLASS)
            printf("class");
        else if (t->kind[i] == CLASSES)
            printf("class[%d]", y->dim[0]);
        else if (t->kind[i] != INPUT)
            printf("f32%s", list(y->dim, y->rank));
        if (t->kind[i] == NUMBERS)
            keep(q, y, wanted_name[i]);
    }
    printf("%s\n", n > 1 ? ")" : "");
}

/* The loss of one output: one number a sample. */
static void task_term(const Task *t, int i, Pool *q, const Value *x, Value *term)
{
    static const char *const numbers[] = {"mse(%s, %s)", "l1(%s, %s)", "huber(%s, %s, delta = 0.3)",
                                          "0.5 * mse(%s, %s)", "l1(tanh(%s), %s)"};
    static const char *const classes[] = {"softmax_cross_entropy(%s, %s)",
                                          "softmax_cross_entropy(%s, %s, smoothing = 0.1)"};
    static const char *const truths[] = {"sigmoid_cross_entropy(%s, %s)",
                                         "sigmoid_cross_entropy(%s, %s, positive_weight = 2)"};
    const Value *y = &t->output[i];
    const char *wanted = t->kind[i] == INPUT ? x->text : wanted_name[i];
    *term = (Value){.rank = 0};
    switch (t->kind[i]) {
    case CLASS:
    case CLASSES:
        say(term, ONE_OF(classes), y->text, wanted);
        return;
    case TRUTHS:
        say(term, ONE_OF(truths), y->text, wanted);
        return;
    case NUMBERS:
    case INPUT:
        if (chance(60)) {
            say(term, ONE_OF(numbers), y->text, wanted);
            return;
        }
        *term = *y;
        say(term, "(%s - %s)%s", y->text, wanted, chance(50) ? " ** 2" : "");
        break;
    default:
        *term = *y;
    }
    Value more = *term; /* a formula over this value, all outputs and all numbers */
    for (int k = below(3); k > 0; k--) {
        Pool *all = calloc(1, sizeof *all);
        *all = *q;
        keep(all, &more, NULL);
        Value next;
        if (derive(all, &next) && next.rank >= 0 && strlen(next.text) < 300 &&
            strstr(next.text, more.text))
            more = next;
        free(all);
    }
    *term = more;
    if (term->rank)
        say(term, "tanh(%s)", more.text);
    to_number(term, true);
}

/* Writes the loss: the sum of the terms, with names or without. */
static void task_loss(const Task *t, Pool *q, const Value *x)
{
    static const char *const word[] = {"one", "two", "three"};
    const bool named = chance(60);
    printf("    loss = %s", named ? "terms(" : "");
    for (int i = 0; i < t->count; i++) {
        Value term;
        task_term(t, i, q, x, &term);
        printf("%s", i ? named ? ", " : " + " : "");
        if (named)
            printf("%s = ", word[i]);
        if (chance(30))
            printf("%.1f * ", 0.5 + below(4));
        printf("%s%s%s", "(", term.text, ")");
    }
    printf("%s\n", named ? ")" : "");
}

/* The number of classes that synthetic data need; 0: none, or the program knows. */
static int task_classes(const Task *t)
{
    return t->count > 1            ? 0
           : t->kind[0] == CLASS   ? t->output[0].dim[0]
           : t->kind[0] == CLASSES ? t->output[0].dim[1]
                                   : 0;
}

#endif
