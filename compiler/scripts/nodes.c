/* nodes.c -- which nodes of a graph a script writes, what they read, and the block to which they
 * belong. */
#include "scripts/network.h"
#include <string.h>

bool network_is_layer(const Node *n)
{
    return n->op->layer || node_is(n, "conv2d_dx");
}

bool network_is_norm(const Node *n)
{
    return node_is(n, "batch_norm") || node_is(n, "layer_norm") || node_is(n, "rms_norm") ||
           node_is(n, "group_norm");
}

const Node *network_meant(const Node *n)
{
    const Node *layer = python_recurrent(n);
    return layer ? layer : n;
}

bool network_is_tied(const Node *n)
{
    if (!node_is(n, "dense") || !n->in[1]->param)
        return false;
    const char *name = n->in[1]->param->name;
    const size_t owner = (size_t)(strrchr(name, '.') - name);
    return !n->name || strlen(n->name) != owner || strncmp(n->name, name, owner) != 0;
}

int network_inputs(const Node *n)
{
    if (python_recurrent(n))
        return network_meant(n)->nin;
    const bool layer = python_dropout2d(n) || python_prelu(n) ||
                       (network_is_layer(n) && !network_is_tied(n)) || network_is_norm(n) ||
                       node_is(n, "bias");
    return layer && n->nin ? 1 : n->nin;
}

/* The weights of a conv_transpose2d stand before its images. */
Node *network_input(const Node *n, int i)
{
    return network_meant(n)->in[node_is(n, "conv2d_dx") ? 1 : i];
}

void network_want(Py *p, const Node *n)
{
    p->uses[n->id]++;
    if (p->wanted[n->id])
        return;
    p->wanted[n->id] = true;
    for (int i = 0; i < network_inputs(n); i++)
        network_want(p, network_input(n, i));
}

bool network_writes(const Py *p, const Node *n)
{
    return p->wanted[n->id] && !n->param && n->op->leaf == LEAF_NONE;
}

const char *network_child(Py *p, const char *path, const Node *n)
{
    const size_t length = strlen(path);
    const char *block = node_block(n) ? node_block(n) : "";
    const char *rest = !length ? block
                       : strncmp(block, path, length) == 0 && block[length] == '.'
                           ? block + length + 1
                           : "";
    const char *dot = strchr(rest, '.');
    return !*rest ? NULL
                  : arena_strndup(p->a, block, (size_t)((dot ? dot : rest + strlen(rest)) - block));
}

bool network_below(const char *path, const Node *n)
{
    const size_t length = strlen(path);
    const char *block = node_block(n);
    return !length ||
           (block && strncmp(block, path, length) == 0 && (block[length] == '.' || !block[length]));
}

const BlockCall *network_call(const char *path, const Node *n)
{
    const BlockCall *found = NULL; /* a formula has the path of the block that calls it */
    for (const BlockCall *c = n->call; c; c = c->outer)
        if (strcmp(c->path, path) == 0)
            found = c;
    return found;
}

bool network_names_layer(const Node *n)
{
    return network_is_layer(n) || network_is_norm(n) || node_is(n, "bias") || python_prelu(n);
}
