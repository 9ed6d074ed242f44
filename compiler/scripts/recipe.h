/* recipe.h -- what the templates of training scripts say about a graph and its recipe. */
#ifndef RECIPE_PLACES_H
#define RECIPE_PLACES_H
#include "base/diag.h"
#include "ir/graph.h"
#include "scripts/template.h"

/* Whether a script can read the recipe's data; if not, reports it for `--to TO`. */
bool recipe_supported(const Recipe *r, const char *to, Diag *d);
void recipe_places(const Graph *g, const char *source, PlaceList *l);

#endif
