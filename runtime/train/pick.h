/* pick.h -- the weights with which a run begins: `start` of the recipe, or --weights with --only
 * and --except.
 */
#ifndef PICK_H
#define PICK_H
#include "options/options.h"
#include "step/net.h"

typedef struct Pick {
    RtStart from;                    /* file NULL: the run begins with initial values */
    bool recipe;                     /* it is that of the recipe, not of the command line */
    bool part;                       /* patterns choose parameters */
    bool done;                       /* pick_load has loaded them */
    bool vocabulary, columns;        /* the data are read with those of the file */
    const bool *take;                /* for each parameter: whether it is loaded */
    int64_t loaded, initial, unused; /* parameters; parameters; tensors of the file */
    /* their names, for people; layers as "conv1.*" */
    const char *loaded_names, *initial_names, *unused_names;
} Pick;

/* What the command line asks for, else the recipe.  Dies if a pattern fits no parameter, or if the
 * patterns leave none. */
Pick pick_start(const RtProgram *p, const Options *o);

/* Takes the vocabulary of texts, or the columns of a table, from the file, if it has them and no
 * pattern of `except` names them.  If some parameters are not loaded, the targets of a table, such
 * as its classes, are those of the data.  To be called before data are opened. */
void pick_words(const RtProgram *p, Pick *k);

/* Fills all parameters: those of the file, and initial values by `seed` for the others.  Each
 * initial value has the bits that it has without a file. */
void pick_load(Pick *k, Net *n, const Data *train, Pool *pool, uint64_t seed);

/* Prints what was loaded, if patterns or the recipe chose it. */
void pick_say(const Pick *k, const RtProgram *p);

#endif
