/* example.h -- the train block at the end of the example of each op: enough to build, dump and
 * check gradients. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#define EXAMPLE_RECIPE(loss) EXAMPLE_SAMPLES("", loss)
#define EXAMPLE_SAMPLES(more, loss)                                                                \
    "\ntrain example {\n"                                                                          \
    "    data      = synthetic(samples = 64, test_samples = 16" more ")\n"                         \
    "    loss      = " loss "\n"                                                                   \
    "    optimizer = sgd(lr = 0.05)\n"                                                             \
    "    batch     = 8\n"                                                                          \
    "    epochs    = 1\n"                                                                          \
    "}\n"
/* The same for a target that is numbers, as "y: f32[3]". */
#define EXAMPLE_TARGET(target, loss) EXAMPLE_RECIPE(loss "\n    target    = " target)
#define EXAMPLE_TRAIN                EXAMPLE_RECIPE("softmax_cross_entropy")
/* The same for tokens. */
#define EXAMPLE_TOKENS EXAMPLE_SAMPLES(", vocab = 4", "softmax_cross_entropy")

#endif
