/* script.c -- writes a training script in Python: fills the template of a framework. */
#include "scripts/python.h"
#include "scripts/recipe.h"
#include "scripts/scripts.h"
#include <string.h>

static const Dialect *dialect_of(const char *to)
{
    static const Dialect *const all[] = {&pytorch, &keras, &mxnet};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i]->to, to) == 0)
            return all[i];
    return NULL;
}

bool script_known(const char *to)
{
    return dialect_of(to) != NULL;
}

/* Adds the common parts as places of the script, each with its name. */
static void add_parts(PlaceList *l)
{
    static const char *const part[] = {"imports", "reading", "safetensors", "loaded",
                                       "rate",    "right",   "parser",      "finish"};
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
        Text t = text_new(l->arena);
        const Places p = places_of(l);
        template_fill(template_part(l->arena, template_common, part[i]), &p, &t);
        places_add(l, part[i], t.s);
    }
}

bool script_python(const Graph *g, const char *to, const char *source, Text *out, Diag *d)
{
    const Dialect *dialect = dialect_of(to);
    PlaceList l = {.arena = out->arena};
    Text network = text_new(out->arena);
    if (!recipe_supported(g, to, d) || !python_network(g, dialect, &network, d))
        return false;
    recipe_places(g, source, &l);
    for (const PlaceText *own = dialect->place; own->name; own++)
        places_add(&l, own->name, own->text);
    add_parts(&l);
    places_add(&l, "network", network.s);
    const Places p = places_of(&l);
    template_fill(dialect->script, &p, out);
    return true;
}
