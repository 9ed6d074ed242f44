/* targets.c -- the key target of a train block: what the outputs are compared with.
 *
 *   target = price: f32[1]                           numbers beside each sample
 *   target = image                                   an input
 *   target = mask: class[64, 64]                     a class for each pixel, or for each position
 *   target = (digit: class, brightness: f32[1])      several, each with its own array
 */
#include "front/train.h"
#include <string.h>

enum { TARGET_NAME = 32 }; /* letters of a name, which becomes a part of names in the log */
static const char number_type[] = "f32"; /* also in f64 programs */
static const char class_type[] = "class";

/* Reads a dimension of a target; false after reporting. */
static bool read_dim(Unit *u, Expr *e, int64_t *dim)
{
    const Value v = lower_const(u, e);
    if (v.kind == V_INT && v.i >= 1 && v.i <= INT32_MAX) {
        *dim = v.i;
        return true;
    }
    if (v.kind == V_INT)
        diag_error(u->diag, e->span, "the dimension %lld is outside 1 to 2147483647",
                   (long long)v.i);
    else if (v.kind != V_POISON)
        diag_error(u->diag, e->span, "a dimension is an int, this is %s", value_kind(v));
    return false;
}

static bool read_dims(Unit *u, const Typed *e, TargetSpec *out)
{
    int64_t count = 1;
    for (int i = 0; i < e->dims.n; i++) {
        sem_expr(u, e->dims.v[i], NULL, 0);
        if (!read_dim(u, e->dims.v[i], &out->dim[i]))
            return false;
        if (__builtin_mul_overflow(count, out->dim[i], &count) || count > (INT64_C(1) << 40) / 4) {
            diag_error(u->diag, e->type_span,
                       "the target '%s' of a sample is larger than 2^40 bytes", e->name);
            return false;
        }
    }
    out->rank = e->dims.n;
    return true;
}

/* Reads NAME: f32[...] */
static bool read_numbers(Unit *u, const Typed *e, TargetSpec *out)
{
    Diag *d = u->diag;
    if (strcmp(e->type, number_type) != 0) {
        diag_error(d, e->type_span, "a target is f32[...] or class, not %s", e->type);
        diag_help(d, "write %s: f32[1] for one number a sample, %s: class for a class", e->name,
                  e->name);
        return false;
    }
    if (!e->sized) {
        diag_error(d, e->type_span, "the target '%s' needs its dimensions", e->name);
        diag_help(d, "write target = %s: f32[1] for one number a sample", e->name);
        return false;
    }
    if (e->dims.n > SHAPE_MAX) {
        diag_error(d, e->type_span, "the target has %d dimensions, more than %d", e->dims.n,
                   SHAPE_MAX);
        return false;
    }
    return read_dims(u, e, out);
}

/* Reads NAME: class, class[T] or class[H, W] */
static bool read_class(Unit *u, const Typed *e, TargetSpec *out)
{
    out->kind = LEARN_CLASS;
    if (!e->sized)
        return true;
    if (e->dims.n == 1 || e->dims.n == 2)
        return read_dims(u, e, out);
    diag_error(u->diag, e->type_span, "classes have one or two dimensions, not %d", e->dims.n);
    diag_help(u->diag,
              "write %s: class for a class of the sample, %s: class[64, 64] for one of each pixel",
              e->name, e->name);
    return false;
}

/* Reports a target with several classes in a row of several targets: a row has one class of
 * each. */
static bool check_single(Unit *u, const TargetSpec *t)
{
    if (t->kind != LEARN_CLASS || t->rank == 0)
        return true;
    diag_error(u->diag, t->span,
               "a class for each pixel or position is not one of several targets");
    diag_help(u->diag,
              "learn it alone: target = %s: class[...]; truths from 0 to 1 can be one of "
              "several: %s: f32[...]",
              t->name, t->name);
    return false;
}

/* Reads NAME: f32[...], NAME: class, or the name of an input, which lower_loss checks.  Sets the
 * name also after an error, so that a loss that uses it causes no further message. */
static void read_target(Unit *u, Expr *e, TargetSpec *out)
{
    const bool typed = e->kind == EX_TYPED;
    const Span at = typed ? e->typed->name_span : e->span;
    *out = (TargetSpec){.kind = typed ? LEARN_NUMBERS : LEARN_INPUT,
                        .name = typed                ? e->typed->name
                                : e->kind == EX_NAME ? e->s
                                                     : "label",
                        .bad = true,
                        .span = e->span};
    if (e->bad)
        return;
    if (!typed && e->kind != EX_NAME) {
        diag_error(u->diag, e->span,
                   "a target is numbers with their name and shape, or the input by its name");
        diag_help(u->diag, "write target = price: f32[1]");
    } else if (strcmp(out->name, "output") == 0) {
        diag_error(u->diag, at,
                   "the target cannot be called 'output', which is the name of the result");
    } else if (typed && strcmp(e->typed->type, class_type) == 0) {
        out->bad = !read_class(u, e->typed, out);
    } else {
        out->bad = typed && !read_numbers(u, e->typed, out);
    }
}

static bool check_name(Unit *u, const Recipe *r, const TargetSpec *t)
{
    if (strlen(t->name) > TARGET_NAME) {
        diag_error(u->diag, t->span, "the name of a target has at most %d letters, not %zu",
                   TARGET_NAME, strlen(t->name));
        return false;
    }
    for (const TargetSpec *other = r->target; other < t; other++)
        if (strcmp(other->name, t->name) == 0) {
            diag_error(u->diag, t->span, "two targets are called '%s'", t->name);
            return false;
        }
    return true;
}

void targets_read(Unit *u, Recipe *r, Expr *e)
{
    if (e->kind != EX_TARGETS) {
        read_target(u, e, &r->target[0]);
        return;
    }
    const int n = e->list.n;
    r->ntarget = n < RT_TARGETS ? n : RT_TARGETS;
    for (int i = 0; i < r->ntarget; i++) {
        read_target(u, e->list.v[i], &r->target[i]);
        r->target[i].bad |= !r->target[i].bad &&
                            (!check_name(u, r, &r->target[i]) || !check_single(u, &r->target[i]));
    }
    if (n > RT_TARGETS) {
        diag_error(u->diag, e->list.v[RT_TARGETS]->span, "a recipe has at most %d targets, not %d",
                   RT_TARGETS, n);
        diag_help(u->diag, "store numbers that belong together in one target: scores: f32[8]");
        r->target[0].bad = true;
    }
}
