/* recipe.c -- facts about optimizers that several parts of the compiler need. */
#include "ir/recipe.h"

/* "sgd", as in the language. */
static const char *optimizer_name(const Optimizer *o)
{
    static const char *const name[] =
        {[OPT_SGD] = "sgd",     [OPT_RMSPROP] = "rmsprop", [OPT_ADAM] = "adam",
         [OPT_ADAMW] = "adamw", [OPT_ADAGRAD] = "adagrad", [OPT_LION] = "lion",
         [OPT_LARS] = "lars",   [OPT_LAMB] = "lamb"};
    return name[o->kind];
}

const char *optimizer_update(Arena *a, const Optimizer *o)
{
    return arena_printf(a, "update_%s", optimizer_name(o));
}

int optimizer_states(const Optimizer *o)
{
    switch (o->kind) {
    case OPT_SGD:
    case OPT_LARS:
        return o->momentum != 0;
    case OPT_RMSPROP:
        return o->momentum != 0 ? 2 : 1;
    case OPT_ADAGRAD:
    case OPT_LION:
        return 1;
    case OPT_ADAM:
    case OPT_ADAMW:
    case OPT_LAMB:
        break;
    }
    return 2;
}

bool optimizer_trusts(const Optimizer *o)
{
    return o->kind == OPT_LARS || o->kind == OPT_LAMB;
}
