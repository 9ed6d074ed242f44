/* terms.h -- a loss of named terms: terms(fit = mse, small = 0.001 * l2(output)).
 *
 * The loss is the sum of the terms, and each term is reported beside the loss as loss_NAME.
 */
#ifndef TERMS_H
#define TERMS_H
#include "front/sem.h"

/* The terms of a value of the key loss; NULL: the value is one expression.  If the model file
 * declares an op or block `terms`, then terms(...) is an ordinary call of it. */
const Args *terms_of(Unit *u, const Expr *loss);
/* Reports terms without names, with the same name, or too many; false after that. */
bool terms_check(Unit *u, const Expr *loss, const Args *terms);

#endif
