/* kernels.h -- --target cuda without --kernels: which form of Tenon's own kernels. */
#ifndef KERNELS_H
#define KERNELS_H
#include "front/front.h"
#include "tool/command.h"

/* Whether both forms have to be planned: to choose one, or for `show` to compare them. */
bool kernels_open(const Command *c);
/* c and f: the step as launches, planned; together and other: as one launch with other steps.  A
 * program gets the form that is predicted to be much faster: c and f become together and other if
 * that is the second.  For `show`: c->forms gets the prediction. */
void kernels_choose(Command *c, Front *f, const Command *together, const Front *other);

#endif
