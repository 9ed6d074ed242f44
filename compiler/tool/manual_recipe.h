/* manual_recipe.h -- the keys of a train block for `tenon ops`, from the tables that read them. */
#ifndef MANUAL_RECIPE_H
#define MANUAL_RECIPE_H
#include "front/train.h"

/* Prints all keys and the forms of their values: optimizers, schedules, losses, ... */
void manual_recipe_list(Arena *a);
/* Prints all keys, forms and results of this name.  false if there is none. */
bool manual_recipe_print(Arena *a, const char *name);
/* Adds their names to a list. */
void manual_recipe_names(Arena *a, const char ***name, int *n);

#endif
