/* network.c -- writes the network as classes of a Python framework: the model, and each distinct
 * block.
 *
 * Parameters keep Tenon's names, so a checkpoint needs no table of names.  The dialect (python.h)
 * has the templates of classes and operations.  The nodes of a block instance stand next to each
 * other; their block paths begin with the path of the instance.  The class of an instance is
 * written from its nodes; instances with the same text share a class.  A value with one reader is
 * written inside the expression of the reader.  Other values become variables, and so do values
 * with a name in the model file.  The variable has this name if the name is free.
 */
#include "scripts/network.h"
#include <string.h>

enum { LONG = 88 }; /* an expression of more characters becomes a variable */

/* ---- names and variables */

static const char *last_word(const char *name)
{
    const char *dot = name ? strrchr(name, '.') : NULL;
    return dot ? dot + 1 : name;
}

static bool has_variable(const PyValue *v, const char *name)
{
    for (int i = 0; i < v->nvar; i++)
        if (strcmp(v->var[i], name) == 0)
            return true;
    return false;
}

/* Adds the variables of `from` to those of v. */
static void add_variables(Py *p, PyValue *v, const PyValue *from)
{
    for (int i = 0; i < from->nvar; i++)
        if (!has_variable(v, from->var[i]))
            ARENA_PUSH(p->a, v->var, v->nvar, from->var[i]);
}

PyValue network_variable(Py *p, const char *name)
{
    PyValue v = {.s = name, .binds = PY_ATOM};
    ARENA_PUSH(p->a, v.var, v.nvar, name);
    return v;
}

/* Whether a value other than n contains the variable `name`, and a later line still reads this
 * value. */
static bool is_needed(const Py *p, const Scope *s, const Node *n, const char *name)
{
    for (int id = 0; id < p->g->next_id; id++)
        if (id != n->id && s->left[id] > 0 && has_variable(&s->value[id], name))
            return true;
    return false;
}

/* The variable for n: its name in the model file, or "h" without one; with a number, if another
 * value with this name is still needed. */
static const char *variable_for(Py *p, Scope *s, const Node *n, const char *name)
{
    const char *base = name && !python_reserved(name) ? name : "h", *word = base;
    for (int k = 2;; k++) {
        int i = 0;
        while (i < s->nvar && strcmp(s->var[i].name, word) != 0)
            i++;
        if (i == s->nvar)
            ARENA_PUSH(p->a, s->var, s->nvar, ((struct Var){word, n}));
        const Node *holds = s->var[i].holds;
        if (holds == n || (s->left[holds->id] <= 0 && !is_needed(p, s, n, word))) {
            s->var[i].holds = n;
            return word;
        }
        word = arena_printf(p->a, "%s%d", base, k);
    }
}

/* ---- a scope */

Scope network_scope(Py *p, const char *path)
{
    Scope s = {.path = path, .init = text_new(p->a), .body = text_new(p->a)};
    s.value = arena_alloc(p->a, sizeof *s.value * (size_t)p->g->next_id);
    s.left = arena_alloc(p->a, sizeof *s.left * (size_t)p->g->next_id);
    memcpy(s.left, p->uses, sizeof *s.left * (size_t)p->g->next_id);
    return s;
}

/* Adds self.name = constructor to __init__, once; `at` is the node that needs it. */
static void make_attribute(Py *p, Scope *s, const Node *at, const char *name,
                           const char *constructor)
{
    for (int i = 0; i < s->nlayer; i++)
        if (strcmp(s->layer[i], name) == 0)
            return;
    const bool keyword = python_keyword(name);
    if (keyword || python_has_word(p->dialect->taken, name)) {
        if (keyword)
            diag_error(p->d, at->span, "--to %s cannot write '%s', a keyword of Python",
                       p->dialect->to, name);
        else
            diag_error(p->d, at->span, "--to %s has another meaning for '%s' in a class",
                       p->dialect->to, name);
        diag_help(p->d, "give the layer or block another name in the model file");
    }
    ARENA_PUSH(p->a, s->layer, s->nlayer, name);
    text_printf(&s->init, "        self.%s = %s\n", name, constructor);
}

/* The attribute for the layer `name` ("conv1") in the class of the scope.  Reports, and returns
 * NULL, if another class has the layer. */
static const char *attribute_of(Py *p, Scope *s, const Node *n, const char *name)
{
    const size_t length = *s->path ? strlen(s->path) + 1 : 0;
    if (strlen(name) > length && strncmp(name, s->path, length ? length - 1 : 0) == 0 &&
        !strchr(name + length, '.'))
        return name + length;
    diag_error(p->d, n->span, "--to %s cannot share the layer %s between blocks", p->dialect->to,
               name);
    diag_help(p->d, "share it inside one block, or train with Tenon itself");
    return NULL;
}

static bool in_embedding(const Py *p, const Node *param)
{
    for (int i = 0; i < p->g->nnode; i++)
        if (node_is(p->g->node[i], "embedding") && p->g->node[i]->in[1] == param)
            return true;
    return false;
}

/* The value of weights that are read as a tensor: the table of an embedding, or of positions. */
static PyValue read_table(Py *p, Scope *s, const Node *n)
{
    const char *name = attribute_of(p, s, n, param_layer(p->a, n->param));
    const bool embedding = in_embedding(p, n);
    if (!name)
        return (PyValue){.s = ""};
    if (!p->dialect->table ||
        (!embedding && (n->shape.rank != 2 || strcmp(last_word(n->param->name), "weight") != 0))) {
        diag_error(p->d, n->span, "--to %s has no form for a table that is read as numbers: %s",
                   p->dialect->to, n->param->name);
        diag_help(p->d,
                  "op position, and an output layer with the table of an embedding, read a table "
                  "as numbers%s",
                  p->dialect->table ? "" : "; --to pytorch has a form for both");
        return (PyValue){.s = ""};
    }
    if (!embedding)
        make_attribute(p, s, n, name,
                       arena_printf(p->a, "Table(%s)",
                                    python_list(p->a, n->shape.dim, n->shape.rank, 0)));
    return (PyValue){
        .s = arena_printf(p->a, "self.%s.%s", name, embedding ? p->dialect->table : "weight")};
}

/* The value of n, as text for one reader. */
static PyValue read_value(Py *p, Scope *s, const Node *n)
{
    s->left[n->id]--;
    if (n->param)
        return read_table(p, s, n);
    if (n->op->leaf == LEAF_CONST)
        return (PyValue){.s = python_number(p->a, node_float(n, "value")),
                         .binds = node_float(n, "value") < 0 ? PY_SIGN : PY_ATOM};
    if (!s->value[n->id].s) { /* the value comes from outside of the scope */
        static const char *const usual[] = {"x", "y", "z"};
        const char *name = n->op->leaf == LEAF_INPUT && !s->shared
                               ? n->name
                               : usual[s->nargument < 2 ? s->nargument : 2];
        s->value[n->id] = network_variable(p, variable_for(p, s, n, name));
        ARENA_PUSH(p->a, s->argument, s->nargument, n);
        if (*s->path)
            /* readers outside of the scope are not counted, so the name stays in use */
            s->left[n->id] = 1 << 20;
    }
    return s->value[n->id];
}

/* Stores the expression v of n.  It becomes a variable if several nodes read n, or if n has a name
 * in the model file; else the reader contains the expression. */
static void keep_value(Py *p, Scope *s, const Node *n, PyValue v, bool result)
{
    const bool named = n->name && !network_names_layer(n) && strcmp(n->name, n->op->name) != 0;
    s->value[n->id] = v;
    if (result || (p->uses[n->id] <= 1 && !named && strlen(v.s) < LONG))
        return;
    const char *name = variable_for(p, s, n, named ? last_word(n->name) : NULL);
    text_printf(&s->body, "        %s = %s\n", name, v.s);
    s->value[n->id] = network_variable(p, name);
}

/* "self.h", or "self.h__reverse" for one direction of several: dots are not possible in an
 * attribute. */
static const char *recurrent_of(Py *p, Scope *s, const Node *n, const char *constructor)
{
    const char *path = network_meant(n)->name;
    const size_t length = *s->path ? strlen(s->path) + 1 : 0;
    Text name = text_new(p->a);
    for (const char *c = path + length; *c; c++)
        text_addn(&name, *c == '.' ? "__" : c, *c == '.' ? 2 : 1);
    make_attribute(p, s, n, name.s, constructor);
    return arena_printf(p->a, "self.%s", name.s);
}

/* Whether a layer or a block of the scope has this name in the model file. */
static bool is_taken(Py *p, const Scope *s, const char *name)
{
    const char *path = *s->path ? arena_printf(p->a, "%s.%s", s->path, name) : name;
    const size_t n = strlen(path);
    for (int i = 0; i < p->g->nparam; i++)
        if (strncmp(p->g->param[i]->name, path, n) == 0 && p->g->param[i]->name[n] == '.')
            return true;
    for (int i = 0; i < p->g->nnode; i++) {
        const Node *x = p->g->node[i];
        if ((node_block(x) && network_below(path, x)) ||
            (network_is_norm(x) && x->name && strcmp(x->name, path) == 0))
            return true;
    }
    return false;
}

/* "dropout1": a name for a layer without parameters. */
static const char *free_name(Py *p, Scope *s, const char *word)
{
    const char *name;
    do
        name = arena_printf(p->a, "%s%d", word, ++s->nameless);
    while (is_taken(p, s, name));
    return name;
}

/* "self.conv1", which __init__ sets; NULL: n is no layer. */
static const char *layer_of(Py *p, Scope *s, const Node *n, bool with_bias)
{
    const char *constructor =
        network_is_tied(n) ? NULL : python_layer(p->a, p->dialect, network_meant(n), with_bias);
    if (!constructor)
        return NULL;
    if (network_meant(n) != n)
        return recurrent_of(p, s, n, constructor);
    const char *name = python_prelu(n) ? param_layer(p->a, python_prelu(n)->param) : NULL;
    for (int i = node_is(n, "conv2d_dx") ? 0 : 1; i < n->nin && !name; i++)
        name = n->in[i]->param ? param_layer(p->a, n->in[i]->param) : NULL;
    if (!name && network_is_norm(n))
        name = n->name; /* the layer has neither scale nor shift */
    if (!name) {
        name = free_name(p, s, python_dropout2d(n) ? "spatial" : n->op->name);
        make_attribute(p, s, n, name, constructor);
        return arena_printf(p->a, "self.%s", name);
    }
    if (!(name = attribute_of(p, s, n, name)))
        return NULL;
    make_attribute(p, s, n, name, constructor);
    return arena_printf(p->a, "self.%s", name);
}

/* The bias node that belongs to the layer n, if nothing else reads n. */
static const Node *joined_bias(const Py *p, const Node *n)
{
    if (!network_is_layer(n) || node_is(n, "bias"))
        return NULL;
    for (int i = 0; i < p->g->nnode; i++) {
        const Node *b = p->g->node[i];
        if (node_is(b, "bias") && b->in[0] == n && p->uses[n->id] == 1 && b->name && n->name &&
            strcmp(b->name, n->name) == 0)
            return b;
    }
    return NULL;
}

/* Whether n depends on numbers of the model file alone, such as zeros(4) + 0.5. */
static bool is_constant(const Node *n)
{
    if (n->op->leaf != LEAF_NONE || n->param || n->nin == 0)
        return n->op->leaf == LEAF_CONST;
    for (int i = 0; i < n->nin; i++)
        if (!is_constant(n->in[i]))
            return false;
    return true;
}

/* Whether Python computes n from numbers as it does from tensors. */
static bool is_arithmetic(const Node *n)
{
    static const char *const word[] = {"add", "sub", "mul", "div", "neg", "pow"};
    for (size_t i = 0; i < sizeof word / sizeof *word; i++)
        if (node_is(n, word[i]))
            return true;
    return false;
}

/* Whether the constants that n reads can be numbers in the script, which have no shape: the shape
 * of the result must come from another operand.  Reports those that cannot. */
static bool has_shape(Py *p, const Node *n)
{
    const bool choice = node_is(n, "where_true") || node_is(n, "where_false"),
               elementwise = n->op->flags & OP_ELEMENTWISE && !(choice && is_constant(n->in[1]));
    bool shaped = is_constant(n) && is_arithmetic(n), constant = false;
    for (int i = 0; i < network_inputs(n); i++) {
        const Node *x = network_input(n, i);
        constant |= x->shape.rank > 0 && is_constant(x);
        shaped |= elementwise && !is_constant(x) && shape_same(&x->shape, &n->shape);
    }
    if (!constant || shaped)
        return true;
    diag_error(p->d, n->span, "--to %s cannot write %s of a value that depends on no input",
               p->dialect->to, op_written(p->a, n));
    diag_help(p->d, "the model can be trained with Tenon itself: tenon build");
    return false;
}

bool network_node(Py *p, Scope *s, const Node *n, bool result)
{
    PyValue in[64], v;
    if (!has_shape(p, n))
        return false;
    if (node_is(n, "bias") && joined_bias(p, n->in[0]) == n) {
        read_value(p, s, n->in[0]);
        keep_value(p, s, n, s->value[n->in[0]->id], result);
        return true;
    }
    if ((n->loop && network_meant(n) == n) || network_inputs(n) > 64) {
        diag_error(p->d, n->span,
                   n->loop ? "--to %s cannot write a scan yet"
                           : "--to %s takes at most 64 tensors in a call",
                   p->dialect->to);
        return false;
    }
    if (node_is(n, "embedding") && n->in[1]->param && n->in[1]->param->lazy) {
        diag_error(p->d, n->span, "--to %s cannot write an update that skips rows: lazy = true",
                   p->dialect->to);
        return false;
    }
    const bool biased = joined_bias(p, n) != NULL;
    const char *layer = layer_of(p, s, n, biased);
    for (int i = 0; i < network_inputs(n); i++)
        in[i] = read_value(p, s, network_input(n, i));
    if (diag_errors(p->d) || !python_value(p->a, p->dialect, n, in, layer, &v, p->d))
        return false;
    for (int i = 0; i < network_inputs(n); i++)
        add_variables(p, &v, &in[i]);
    if (biased)
        s->value[n->id] = v; /* the bias node gets the name */
    else
        keep_value(p, s, n, v, result);
    return true;
}

/* Writes how the model takes several inputs: it gets rows that hold all of them, and takes each one
 * from its columns. The variable of the rows stands for the output, which is written last. */
static void take_inputs(Py *p, Scope *s)
{
    const Node *y = p->g->output;
    const char *const rows = variable_for(p, s, y, "rows");
    const int left = s->left[y->id];
    int64_t at = 0;
    s->rows = rows;
    s->left[y->id] = 1; /* no input may take its name */
    for (int i = 0; i < p->g->ninput; i++) {
        const Node *x = p->g->inputs[i];
        const int64_t end = at + shape_count(&x->shape);
        const char *name = variable_for(p, s, x, x->name);
        text_printf(&s->body, "        %s = %s[:, %lld:%lld].reshape(-1, %s)%s\n", name, rows,
                    (long long)at, (long long)end,
                    python_list(p->a, x->shape.dim, x->shape.rank, 0),
                    x->dtype == DT_I32 ? ".long()" : "");
        s->value[x->id] = network_variable(p, name);
        at = end;
    }
    s->left[y->id] = left;
}

static bool write_block(Py *p, const char *path, int from, int to, const Node *result,
                        const char **class, Scope *s);

/* The node of an instance that later nodes read; the nodes of the instance are from .. to - 1. */
static const Node *result_of(Py *p, const char *path, int from, int to)
{
    const Node *result = NULL;
    for (int i = to; i < p->g->nnode; i++)
        for (int k = 0; k < network_inputs(p->g->node[i]); k++) {
            const Node *x = network_input(p->g->node[i], k);
            if (!network_writes(p, p->g->node[i]) || !network_writes(p, x) ||
                !network_below(path, x) || x == result)
                continue;
            bool inside = false;
            for (int m = from; m < to; m++)
                inside |= p->g->node[m] == x;
            if (inside && result) {
                diag_error(p->d, x->span,
                           "--to %s needs blocks with one result, and %s has several",
                           p->dialect->to, path);
                return NULL;
            }
            result = inside ? x : result;
        }
    for (int m = from; m < to; m++)
        if (p->g->node[m] == p->g->output)
            result = p->g->output;
    return result;
}

/* Whether the instance has several calls whose nodes are written. */
static bool has_calls(const Py *p, const char *path)
{
    const BlockCall *first = NULL;
    for (int i = 0; i < p->g->nnode; i++) {
        const Node *n = p->g->node[i];
        const BlockCall *c = network_writes(p, n) ? network_call(path, n) : NULL;
        if (c && first && c != first)
            return true;
        first = c ? c : first;
    }
    return false;
}

/* Keeps the class of an instance.  Reports a call that needs another class than an earlier one, for
 * example because its sequences have another length. */
static bool keep_class(Py *p, const char *path, const char *class, const Node *at)
{
    for (int i = 0; i < p->ninstance; i++) {
        if (strcmp(p->instance[i].path, path) != 0)
            continue;
        if (strcmp(p->instance[i].class, class) == 0)
            return true;
        diag_error(p->d, at->span, "--to %s cannot write the calls of %s as one class",
                   p->dialect->to, path);
        diag_help(p->d, "call it with tensors of one shape, and with another tensor for each "
                        "parameter, or train with Tenon itself");
        return false;
    }
    ARENA_PUSH(p->a, p->instance, p->ninstance, ((struct Instance){path, class}));
    return true;
}

/* Writes a call of the instance `path`, whose nodes begin at index `from`; returns the index after
 * its last node. */
static int write_block_call(Py *p, Scope *s, const char *path, int from, const Node *own_result)
{
    const BlockCall *call = network_call(path, p->g->node[from]);
    int to = from;
    const char *class;
    while (to < p->g->nnode &&
           (!network_writes(p, p->g->node[to]) || network_call(path, p->g->node[to]) == call))
        to++;
    const Node *result = result_of(p, path, from, to);
    Scope inner = network_scope(p, path);
    inner.call = call;
    inner.shared = has_calls(p, path);
    if (!result || !write_block(p, path, from, to, result, &class, &inner) ||
        !keep_class(p, path, class, p->g->node[from]))
        return -1;
    const char *name = *s->path ? path + strlen(s->path) + 1 : path;
    make_attribute(p, s, result, name, arena_printf(p->a, "%s()", class));
    PyValue v = {0};
    Text t = text_new(p->a);
    text_printf(&t, "self.%s(", name);
    for (int i = 0; i < inner.nargument; i++) {
        const PyValue x = read_value(p, s, inner.argument[i]);
        text_printf(&t, "%s%s", i ? ", " : "", x.s);
        add_variables(p, &v, &x);
    }
    text_printf(&t, "%s)", p->dialect->passed);
    v.s = t.s;
    keep_value(p, s, result, v, result == own_result);
    return to;
}

static bool write_nodes(Py *p, Scope *s, int from, int to, const Node *result)
{
    for (int i = from; i < to;) {
        const Node *n = p->g->node[i];
        const char *inner = network_writes(p, n) ? network_child(p, s->path, n) : NULL;
        if (inner && (i = write_block_call(p, s, inner, i, result)) < 0)
            return false;
        if (inner)
            continue;
        if (network_writes(p, n) && !network_node(p, s, n, n == result))
            return false;
        i++;
    }
    return true;
}

static const char *write_class(Py *p, const char *name, const char *text)
{
    text_printf(p->out, "\n\nclass %s%s", name, text);
    return name;
}

static bool class_taken(const Py *p, const char *name)
{
    bool taken = strcmp(name, python_class(p->a, p->g->name)) == 0;
    for (int i = 0; !taken && i < p->nclass; i++)
        taken = strcmp(p->class[i].name, name) == 0;
    return taken;
}

/* The name of the class with the text of a block; a new class is written.  Its name is `kind`, with
 * a number if another block or the model has this name. */
static const char *class_of(Py *p, const char *kind, const char *text)
{
    const char *name = kind;
    for (int i = 0; i < p->nclass; i++)
        if (strcmp(p->class[i].text, text) == 0)
            return p->class[i].name;
    for (int k = 2; class_taken(p, name); k++)
        name = arena_printf(p->a, "%s%d", kind, k);
    ARENA_PUSH(p->a, p->class, p->nclass, ((Class){name, text}));
    return write_class(p, name, text);
}

static bool write_block(Py *p, const char *path, int from, int to, const Node *result,
                        const char **class, Scope *s)
{
    if (!write_nodes(p, s, from, to, result))
        return false;
    Text t = text_new(p->a);
    text_printf(&t, "(%s):\n", *path ? p->dialect->block : p->dialect->model);
    if (s->init.len)
        text_printf(&t, "    def __init__(self):\n        super().__init__()\n%s\n", s->init.s);
    text_printf(&t, "    def %s", p->dialect->call);
    if (s->rows)
        text_printf(&t, ", %s", s->rows);
    for (int i = 0; i < s->nargument; i++)
        text_printf(&t, ", %s", s->value[s->argument[i]->id].s);
    text_printf(&t, "%s):\n%s        return %s\n", p->dialect->more, s->body.s,
                s->value[result->id].s);
    *class = *path ? class_of(p, python_class(p->a, s->call->name), t.s)
                   : write_class(p, python_class(p->a, p->g->name), t.s);
    return true;
}

bool python_network(const Graph *g, const Dialect *dialect, Text *out, Diag *d)
{
    Arena *a = out->arena;
    const size_t ids = (size_t)g->next_id;
    Py p = {.a = a,
            .dialect = dialect,
            .g = g,
            .d = d,
            .out = out,
            .uses = arena_alloc(a, ids * sizeof *p.uses),
            .wanted = arena_alloc(a, ids * sizeof *p.wanted)};
    const char *class;
    network_want(&p, g->output);
    Scope s = network_scope(&p, "");
    if (g->ninput > 1)
        take_inputs(&p, &s);
    return write_block(&p, "", 0, g->nnode, g->output, &class, &s) && network_loss(&p) &&
           diag_errors(d) == 0;
}
