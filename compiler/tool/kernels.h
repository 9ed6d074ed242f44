/* kernels.h -- --target cuda without --kernels: chooses the form of Tenon's own kernels. */
#ifndef KERNELS_H
#define KERNELS_H
#include "front/front.h"
#include "tool/command.h"

/* Whether both forms have to be planned: to choose one, or for `show` to compare them. */
bool kernels_open(const Command *c);
/* c and f have the planned step as several launches; together and other have it as one launch with
 * other steps.  c and f become the form that is predicted to be much faster.  c->forms gets both
 * predictions. */
void kernels_choose(Command *c, Front *f, const Command *together, const Front *other);

#endif
