/* pictures.h -- what Tenon draws: a graph as Graphviz text, the memory plan as SVG. */
#ifndef PICTURES_H
#define PICTURES_H
#include "base/text.h"
#include "ir/graph.h"

void picture_graph(const Graph *g, Text *out); /* a node for each operation */
void picture_blocks(const Graph *forward,
                    Text *out); /* the model as written, a node for each block */
/* the model as written: a node for each call, and a frame for each block instance */
void picture_calls(const Graph *forward, Text *out);
/* offsets and lifetimes of the buffers of a training step */
void picture_memory(const Graph *g, Text *out);

#endif
