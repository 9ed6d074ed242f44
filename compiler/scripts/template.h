/* template.h -- text with named places.
 *
 *   @name               the value of a place
 *   @(name)             the same, before a letter or a digit
 *   @(name?text)        the text if the place has a value
 *   @(name?text|other)  one of two texts; both can contain places
 *   @if name            the lines up to @elif NAME, @else or @end if the place has a value
 *   @part name          begins a part: template_part()
 *
 * A condition is `a`, `not a`, `a or b`, `a and b`; terms are combined from left to right.  A line
 * that consists of one place becomes the lines of the value; without a value, the line is dropped.
 * Before any other character, @ has no special meaning.  The files *.in of this directory are
 * templates; the build makes an array of each (cmake/embed.cmake).
 */
#ifndef TEMPLATE_H
#define TEMPLATE_H
#include "base/text.h"

/* Gives places their values. */
typedef struct Places {
    /* The value, or NULL if the place has none.  at: the '@' of the place; NULL in a condition. */
    const char *(*value)(const void *of, const char *name, const char *at);
    const void *of;
} Places;

/* A list of places; a template with an unknown name aborts (a bug). */
typedef struct PlaceText {
    const char *name, *text; /* NULL: the place has no value */
} PlaceText;

typedef struct PlaceList {
    Arena *arena;
    int n;
    PlaceText *place;
} PlaceList;

void places_add(PlaceList *l, const char *name, const char *text);
void places_flag(PlaceList *l, const char *name, bool on);
void places_int(PlaceList *l, const char *name, int64_t value);
Places places_of(const PlaceList *l);

void template_fill(const char *template, const Places *p, Text *out);
bool template_holds(Arena *a, const char *condition, const Places *p);
/* The lines from "@part NAME" up to the next part; aborts (a bug) if the template has none. */
const char *template_part(Arena *a, const char *template, const char *name);

extern const char template_common[], template_pytorch[], template_keras[], template_mxnet[],
    template_slurm[];

#endif
