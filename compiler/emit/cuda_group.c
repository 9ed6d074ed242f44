/* cuda_group.c -- a launch of several kernels.
 *
 * A launch takes 1.3 us even in a CUDA graph.  Calls that follow one another share one where the later reads nothing that another thread of the
 * earlier has written, and writes nothing that another reads: either they have nothing to do with each other, as a layer's two gradients, or
 * each thread goes on with its own numbers, as tanh behind a convolution, which goes through that one's results in its order
 * (runtime/cuda/results.cuh).  The kernel of such a launch calls the bodies of its members one after another, in as many blocks as the
 * largest takes.  What a library computes, and what names memory that the plan does not know, stands alone.
 */
#include "emit/cuda_group.h"
#include "ops/step_price.h"
#include <string.h>

enum { MEMBERS = 32, ARGUMENTS = 128 }; /* of one launch, at most */

static const char stage_word[] = "_stage(";

/* ------------------------------------------------------------------------------- members */

static Kernel *kernel_of(Writer *w, const char *call)
{
    const size_t len = (size_t)(strstr(call, stage_word) - call);
    for (int i = 0; i < w->nkernel; i++)
        if (!strncmp(w->kernel[i].name, call, len) && !w->kernel[i].name[len])
            return &w->kernel[i];
    return NULL;
}

static const char *arguments_of(Arena *a, const char *call)
{
    const char *open = strchr(call, '(') + 1;
    return arena_printf(a, "%.*s", (int)(strlen(open) - strlen(");")), open);
}

/* "real *y" is of type "real *" and named "y". */
static const char *name_in(const char *param)
{
    const char *name = param + strlen(param);
    while (name > param && name[-1] != ' ' && name[-1] != '*')
        name--;
    return name;
}

static bool is_pointer(const char *param)
{
    return strchr(param, '*') && strncmp(param, "const Rt *", 10) != 0;
}

/* Does it get an address that the plan knows nothing of? */
static bool has_unplanned(Writer *w, const Kernel *k, const char *call)
{
    const char *arg[STAGE_ARGUMENTS], *param[STAGE_ARGUMENTS];
    const int n = touch_split(w->arena, arguments_of(w->arena, call), arg), of = touch_split(w->arena, k->params, param);
    Touch t;

    if (n != of)
        return true;
    for (int i = 0; i < n; i++)
        if (is_pointer(param[i]) && !touch_of(w, arg[i], strlen(arg[i]), &t))
            return true;
    return false;
}

/* ------------------------------------------------------------------------------- the kernel of a launch */

/* Parameters of a group: equal arguments once. */
typedef struct Joined {
    const char *arg[ARGUMENTS], *type[ARGUMENTS], *name[ARGUMENTS];
    int n;
} Joined;

/* A name of its own: the member's, or the next letter. */
static const char *fresh_name(Arena *a, const Joined *j, const char *wish)
{
    static const char letters[] = "abcdefghijklmnopqsuvwx";
    bool used = !wish[1];
    for (int i = 0; i < j->n; i++)
        used |= !strcmp(j->name[i], wish);
    if (!used)
        return wish;
    const int k = j->n, all = (int)strlen(letters);
    return k < all ? arena_printf(a, "%c", letters[k]) : arena_printf(a, "%c%d", letters[k % all], k / all);
}

/* The parameter that a member's gets: without const where another member writes there. */
static const char *join_argument(Arena *a, Joined *j, const char *arg, const char *param)
{
    const char *name = name_in(param), *type = arena_strndup(a, param, (size_t)(name - param));
    const char *plain = strncmp(type, "const ", 6) ? type : type + 6;

    for (int i = 0; i < j->n; i++) {
        const char *its = strncmp(j->type[i], "const ", 6) ? j->type[i] : j->type[i] + 6;
        if (strcmp(j->arg[i], arg) != 0 || strcmp(its, plain) != 0)
            continue;
        if (is_pointer(param) && plain == type)
            j->type[i] = plain;
        return j->name[i];
    }
    j->arg[j->n] = arg, j->type[j->n] = type, j->name[j->n] = fresh_name(a, j, name);
    return j->name[j->n++];
}

static const char *joined_text(Arena *a, const Joined *j, bool params)
{
    Text t = text_new(a);
    for (int i = 0; i < j->n; i++)
        text_printf(&t, "%s%s%s", i ? ", " : "", params ? j->type[i] : "", params ? j->name[i] : j->arg[i]);
    return t.s;
}

/* "conv2d_tanh": the bases of its members, equal neighbours once, as long as that is a name. */
static const char *group_name(Writer *w, const Stages *s)
{
    enum { LONG = 40 };
    Text t = text_new(w->arena);
    const char *last = "";
    for (int i = 0; i < s->nmember; i++) {
        const char *base = kernel_of(w, s->member[i])->base;
        if (!strcmp(base, last))
            continue;
        if (t.len + strlen(base) > LONG) {
            text_add(&t, "_more");
            break;
        }
        text_printf(&t, "%s%s", t.len ? "_" : "", base);
        last = base;
    }
    return t.s;
}

static const char *group_launch(Writer *w, const Stages *s)
{
    Arena *a = w->arena;
    Joined j = {.n = 0};
    Text body = text_new(a), blocks = text_new(a);

    for (int i = 0; i < s->nmember; i++) {
        const char *arg[STAGE_ARGUMENTS], *param[STAGE_ARGUMENTS];
        Kernel *k = kernel_of(w, s->member[i]);
        const int n = touch_split(a, arguments_of(a, s->member[i]), arg);
        touch_split(a, k->params, param);
        k->joined = true;
        text_printf(&body, "    %s_body(", k->name);
        for (int p = 0; p < n; p++)
            text_printf(&body, "%s%s", p ? ", " : "", join_argument(a, &j, arg[p], param[p]));
        text_add(&body, ");\n");
        bool counted = false;
        for (int m = 0; m < i; m++)
            counted |= kernel_of(w, s->member[m]) == k;
        if (!counted)
            text_printf(&blocks, "%s%s_blocks", i ? ", " : "most(", k->name);
    }
    const char *params = joined_text(a, &j, true), *args = joined_text(a, &j, false);
    text_add(&blocks, ")");
    w->stages = NULL;
    const char *launch = kernel_launch(w, group_name(w, s), params, body.s, args, blocks.s);
    return launch;
}

static int arguments_so_far(Writer *w, const Stages *s)
{
    int n = 0;
    const char *arg[STAGE_ARGUMENTS];
    for (int i = 0; i < s->nmember; i++)
        n += touch_split(w->arena, arguments_of(w->arena, s->member[i]), arg);
    return n;
}

/* ------------------------------------------------------------------------------- as they are written */

/* "loss_stage(a);" of that with a comment behind it, which goes to *said; "": it has none. */
static const char *without_comment(Arena *a, const char *call, const char **said)
{
    const char *end = strstr(call, "); /*");
    *said = end ? end + 3 : "";
    return end ? arena_strndup(a, call, (size_t)(end - call) + 2) : call;
}

/* "conv2d_1_stage(y, a);" alone is launched itself. */
static const char *launch_alone(Writer *w, const char *call)
{
    Kernel *k = kernel_of(w, call);
    k->launched = true;
    return arena_printf(w->arena, "LAUNCH(%s, %s);", k->name, arguments_of(w->arena, call));
}

void group_settle(Writer *w)
{
    Stages *s = w->stages;

    if (!s || !s->groups || s->nmember == 0)
        return;
    const char *launch = s->nmember == 1 ? launch_alone(w, s->member[0]) : group_launch(w, s);
    w->stages = s;
    text_add(&w->body, s->comment.s);
    statement_wrapped(&w->body, launch, s->indent);
    w->launches += s->times * s->runs;
    s->nmember = s->ntouch = 0, s->comment = text_new(w->arena);
}

static void push_member(Writer *w, const char *comment, const char *call, const Touch *touch, int ntouch)
{
    Stages *s = w->stages;
    text_add(&s->comment, comment);
    stage_remember(w, touch, ntouch);
    ARENA_PUSH(w->arena, s->member, s->nmember, call);
}

/* Those whose values the launches before have made. */
static void tell_metrics(Writer *w, const char *indent)
{
    Stages *s = w->stages;

    for (int i = 0; i < w->g->nmetric; i++) {
        if (!((s->pending & ~s->told) >> i & 1))
            continue;
        Touch touch[STAGE_ARGUMENTS];
        const char *said, *call = without_comment(w->arena, cuda_metric(w, i), &said);
        s->told |= 1u << i;
        push_member(w, arena_printf(w->arena, "%s%s\n", indent, said), call, touch, touches_of(w, call, (Order){0}, (Order){0}, touch));
    }
}

static void add_member(Writer *w, const Node *n, const char *comment, const char *call, const Touch *touch, int ntouch, const char *indent)
{
    enum { ROOM = ARGUMENTS - STAGE_ARGUMENTS };
    Stages *s = w->stages;
    const bool alone = has_unplanned(w, kernel_of(w, call), call);

    if (alone || s->alone || s->nmember == MEMBERS || arguments_so_far(w, s) > ROOM || stage_clashes(w, touch, ntouch))
        group_settle(w);
    s->alone = alone;
    s->runs = n ? (int64_t)node_steps(n) : 1;
    s->indent = indent;
    if (s->nmember == 0 && !alone && !(n && n->loop))
        tell_metrics(w, indent);
    push_member(w, comment, call, touch, ntouch);
}

/* What the host does: a library's call, under a condition or not; kernels in it are launches. */
static void write_host(Writer *w, const Node *n, const char *comment, const char *text, const char *indent)
{
    Text t = text_new(w->arena);

    group_settle(w);
    for (const char *at; (at = strstr(text, stage_word));) {
        const char *call = at;
        while (call > text && call[-1] != ' ')
            call--;
        const char *end = strchr(at, ';') + 1;
        text_addn(&t, text, (size_t)(call - text));
        text_add(&t, launch_alone(w, arena_strndup(w->arena, call, (size_t)(end - call))));
        text = end;
    }
    text_add(&t, text);
    text_add(&w->body, comment);
    statement_wrapped(&w->body, t.s, indent);
    w->launches += w->stages->times * (n ? (int64_t)node_steps(n) : 1);
}

/* A call of a kernel, and nothing else. */
static bool is_call(const char *part)
{
    const char *word = strstr(part, stage_word);
    return word && (size_t)(word - part) + strlen(stage_word) - 1 == strcspn(part, " (");
}

/* "A; B; C": one after the other, up to the last, which may have a comment behind it. */
static const char *next_part(Arena *a, const char **rest)
{
    const char *s = *rest, *end = strstr(s, "); ");
    if (end && !strncmp(end + 3, "/*", 2))
        end = NULL;
    *rest = end ? end + 3 : NULL;
    return end ? arena_strndup(a, s, (size_t)(end - s) + 2) : s;
}

void group_write(Writer *w, const Node *n, const char *comment, const char *statement, const char *indent)
{
    Stages *s = w->stages;
    const char *rest = statement;
    bool first = true;

    while (rest) {
        Touch touch[STAGE_ARGUMENTS];
        const char *part = next_part(w->arena, &rest), *about = first ? comment : "", *said;
        const bool whole = first && !rest; /* an order is told of one call */
        first = false;
        if (!is_call(part)) {
            write_host(w, n, about, part, indent);
            continue;
        }
        part = without_comment(w->arena, part, &said);
        if (*said)
            about = arena_printf(w->arena, "%s%s%s\n", about, indent, said);
        const int found = touches_of(w, part, whole ? s->order : (Order){0}, whole ? s->other : (Order){0}, touch);
        add_member(w, n, about, part, touch, found, indent);
    }
    stage_begin(w);
}

/* ------------------------------------------------------------------------------- calls of a phase */

/* In a loop over time an element of a sequence is fetched where it is read first: there it can follow the order of a product that has come between. */
static bool can_wait(const Node *n)
{
    return node_is(n, "scan_item") && n->loop && loop_outer(n->loop) == n->loop && !n->loop->inside && kernel_needed(n);
}

static bool reads(const Node *n, const Node *x)
{
    bool any = false;
    for (int i = 0; i < n->nin && !any; i++)
        any = n->in[i] == x || node_root(n->in[i]) == node_root(x) || (node_attr(n->in[i], "inline") && reads(n->in[i], x));
    return any;
}

static void write_call(Writer *w, const Node *n, int *line, const char *indent)
{
    stage_begin(w);
    statement_write(w, &w->body, n, line, indent);
    for (int i = 0; i < w->g->nmetric; i++)
        w->stages->pending |= (unsigned)(w->g->metric[i].node == n) << i;
}

void group_call(Writer *w, const Node *n, int *line, const char *indent)
{
    Stages *s = w->stages;
    int left = 0;

    if (can_wait(n)) {
        ARENA_PUSH(w->arena, s->held, s->nheld, n);
        return;
    }
    for (int i = 0; i < s->nheld; i++)
        if (kernel_needed(n) && reads(n, s->held[i]))
            write_call(w, s->held[i], line, indent);
        else
            s->held[left++] = s->held[i];
    s->nheld = left;
    write_call(w, n, line, indent);
}

void group_open(Writer *w, int64_t times)
{
    w->stages = arena_alloc(w->arena, sizeof *w->stages);
    *w->stages = (Stages){.groups = true, .times = times, .comment = text_new(w->arena), .functions = text_new(w->arena)};
}

void group_close(Writer *w)
{
    group_settle(w);
    w->stages = NULL;
}
