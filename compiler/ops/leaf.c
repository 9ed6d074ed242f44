/* leaf.c -- nodes without inputs: samples, labels, parameters, constants.  The function that adds
 * such a node sets its shape. */
#include "ops/op.h"

const Op op_leaf[] =
    {{.name = "input",
      .brief = "the samples of the batch",
      .arg = {{"mean", ARG_TENSOR, "none", "of each pixel, subtracted"}},
      .flags = OP_HIDDEN | OP_ROOT,
      .leaf = LEAF_INPUT},
     {.name = "label",
      .brief = "the class number of each sample, or the numbers that it is compared with",
      .flags = OP_HIDDEN | OP_ROOT,
      .leaf = LEAF_LABEL},
     {.name = "param", .brief = "a parameter: node.param", .flags = OP_HIDDEN, .leaf = LEAF_PARAM},
     {.name = "const",
      .brief = "a tensor filled with attribute value; emitters print the number",
      .flags = OP_HIDDEN,
      .leaf = LEAF_CONST},
     {0}};
