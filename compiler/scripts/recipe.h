/* recipe.h -- values of places that describe a graph and its recipe, for training scripts. */
#ifndef RECIPE_PLACES_H
#define RECIPE_PLACES_H
#include "base/diag.h"
#include "ir/graph.h"
#include "scripts/template.h"

/* Whether a script can read the recipe's data; if not, reports it for `--to TO`. */
bool recipe_supported(const Graph *g, const char *to, Diag *d);
void recipe_places(const Graph *g, const char *source, PlaceList *l);

#endif
