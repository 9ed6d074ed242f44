/* fmt.h -- `tenon fmt`: writes model files in the one style (front/format.h). */
#ifndef FMT_H
#define FMT_H
#include "tool/command.h"

bool fmt_files(const Command *c, Diag *d);

#endif
