/* cudnn_plan.c -- the plan of a graph: an engine that keeps the rules, and its text; see
 * cudnn_plan.h. */
#include "cuda/cudnn_plan.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef cudnnBackendDescriptor_t Desc;

enum { CONFIGS = 128 }; /* of one heuristic mode; the most seen were 40 */

#define NOTE(name)     (1u << CUDNN_NUMERICAL_NOTE_##name)
#define BEHAVIOR(name) (1u << CUDNN_BEHAVIOR_NOTE_##name)

static unsigned forbidden(const CudnnRules *r)
{
    return NOTE(REDUCED_PRECISION_REDUCTION) | (r->any_order ? 0 : NOTE(NONDETERMINISTIC)) |
           (r->exact
                ? NOTE(TENSOR_CORE) | NOTE(DOWN_CONVERT_INPUTS) | NOTE(FFT) | NOTE(WINOGRAD) |
                      NOTE(WINOGRAD_TILE_4x4) | NOTE(WINOGRAD_TILE_6x6) | NOTE(WINOGRAD_TILE_13x13)
                : 0);
}

static bool make_descriptor(CudnnPlan *p, cudnnBackendDescriptorType_t type, Desc *d)
{
    *d = NULL;
    return !p->api->BackendCreateDescriptor(type, d);
}

static void drop_descriptor(CudnnPlan *p, Desc d)
{
    if (d)
        p->api->BackendDestroyDescriptor(d);
}

static bool set_desc(CudnnPlan *p, Desc d, cudnnBackendAttributeName_t name, Desc v)
{
    return !p->api->BackendSetAttribute(d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &v);
}

static bool refuse_plan(CudnnPlan *p, const char *what, cudnnStatus_t s)
{
    char more[200] = "";
    p->api->GetLastErrorString(more, sizeof more);
    snprintf(p->why, sizeof p->why, "%s: %s%s%s", what, p->api->GetErrorString(s),
             *more ? ": " : "", more);
    return false;
}

/* ---- an engine */

static void read_notes(CudnnPlan *p, Desc engine)
{
    cudnnBackendNumericalNote_t note[16];
    cudnnBackendBehaviorNote_t behavior[16];
    int64_t n = 0;
    p->notes = p->behavior = 0, p->engine = -1;
    p->api->BackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &n,
                                &p->engine);
    n = 0;
    p->api->BackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                16, &n, note);
    while (n-- > 0)
        p->notes |= 1u << note[n];
    n = 0;
    p->api->BackendGetAttribute(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                                16, &n, behavior);
    while (n-- > 0)
        p->behavior |= 1u << behavior[n];
}

/* Sets engine and notes from a configuration. */
static bool read_config(CudnnPlan *p, Desc config)
{
    Desc engine;
    int64_t n = 0;
    const bool ok = make_descriptor(p, CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine) &&
                    !p->api->BackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE,
                                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, &engine);
    if (ok)
        read_notes(p, engine);
    drop_descriptor(p, engine);
    return ok;
}

static bool read_workspace(CudnnPlan *p)
{
    return !p->api->BackendGetAttribute(p->plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                        CUDNN_TYPE_INT64, 1, NULL, &p->workspace);
}

static bool finalize(CudnnPlan *p, Desc config, const CudnnDevice *d)
{
    cudnnStatus_t s = CUDNN_STATUS_INTERNAL_ERROR;
    if (make_descriptor(p, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &p->plan) &&
        set_desc(p, p->plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config) &&
        set_desc(p, p->plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, d->descriptor) &&
        !(s = p->api->BackendFinalize(p->plan)) && read_workspace(p))
        return true;
    refuse_plan(p, "the last engine that keeps the rules", s);
    cudnn_plan_free(p);
    return false;
}

/* ---- the heuristics' list */

typedef struct List {
    Desc heuristics, config[CONFIGS];
    int64_t n;
} List;

static void list_free(CudnnPlan *p, List *l)
{
    for (int64_t i = 0; i < CONFIGS; i++)
        drop_descriptor(p, l->config[i]);
    drop_descriptor(p, l->heuristics);
}

static void list_fill(CudnnPlan *p, List *l, const CudnnGraph *g, const CudnnDevice *d,
                      cudnnBackendHeurMode_t mode)
{
    int64_t most = 0;
    *l = (List){0};
    if (!make_descriptor(p, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &l->heuristics) ||
        !set_desc(p, l->heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, g->graph) ||
        p->api->BackendSetAttribute(l->heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE,
                                    1, &mode) ||
        !set_desc(p, l->heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, d->descriptor) ||
        p->api->BackendFinalize(l->heuristics) ||
        p->api->BackendGetAttribute(l->heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                    CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &most, NULL))
        return;
    most = most < CONFIGS ? most : CONFIGS;
    for (int64_t i = 0; i < most; i++)
        if (!make_descriptor(p, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &l->config[i]))
            return;
    if (p->api->BackendGetAttribute(l->heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                    CUDNN_TYPE_BACKEND_DESCRIPTOR, most, &l->n, l->config))
        l->n = 0;
}

static bool choose_engine(CudnnPlan *p, const CudnnGraph *g, const CudnnDevice *d,
                          const CudnnRules *rules, cudnnBackendHeurMode_t mode, int *against)
{
    List l;
    bool found = false;
    list_fill(p, &l, g, d, mode);
    for (int64_t i = 0; i < l.n && !found; i++) {
        if (!read_config(p, l.config[i]))
            continue;
        if (p->notes & forbidden(rules))
            ++*against;
        else
            found = finalize(p, l.config[i], d);
    }
    list_free(p, &l);
    return found;
}

bool cudnn_plan_make(CudnnPlan *p, const CudnnGraph *g, const CudnnDevice *d,
                     const CudnnRules *rules)
{
    int against = 0;
    *p = (CudnnPlan){.api = g->api, .key = cudnn_key(d)};
    if (choose_engine(p, g, d, rules, CUDNN_HEUR_MODE_A, &against) ||
        choose_engine(p, g, d, rules, CUDNN_HEUR_MODE_FALLBACK, &against)) {
        *p->why = 0;
        return true;
    }
    if (!*p->why)
        snprintf(p->why, sizeof p->why,
                 against ? "%d configurations break the rules for %s, and there is no other"
                         : "no engine knows this graph",
                 against, rules->exact ? "exact f32" : "sums in a fixed order");
    return false;
}

void cudnn_plan_free(CudnnPlan *p)
{
    drop_descriptor(p, p->plan);
    p->plan = NULL;
}

/* ---- the text */

CudnnKey cudnn_key(const CudnnDevice *d)
{
    return (CudnnKey){.cudnn = (int)d->api->version,
                      .arch = d->arch,
                      .sms = d->sms,
                      .driver = d->driver};
}

static bool cudnn_key_same(const CudnnKey *a, const CudnnKey *b)
{
    return a->cudnn == b->cudnn && a->arch == b->arch && a->sms == b->sms && a->driver == b->driver;
}

void cudnn_key_text(const CudnnKey *k, char to[128])
{
    snprintf(to, 128, "sm_%d with %d multiprocessors, driver API %d.%d, cuDNN %d.%d.%d",
             k->arch / 10, k->sms, k->driver / 1000, k->driver % 1000 / 10, k->cudnn / 10000,
             k->cudnn / 100 % 100, k->cudnn % 100);
}

void cudnn_plan_notes(const CudnnPlan *p, char to[128])
{
    static const char *const names[] = {"tensor-cores", "rounded-inputs", "half-sums", "fft",
                                        "any-order",    "winograd",       "4x4",       "6x6",
                                        "13x13"};
    int n = 0;
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (p->notes & 1u << i)
            n += snprintf(to + n, (size_t)(128 - n), "%s%s", n ? "," : "", names[i]);
    if (p->behavior & BEHAVIOR(RUNTIME_COMPILATION))
        n += snprintf(to + n, (size_t)(128 - n), "%scompiled", n ? "," : "");
    if (n == 0)
        snprintf(to, 128, "-");
}

static const char head[] = "tenon-plan 1 cudnn %d arch %d sms %d driver %d engine %lld notes %u "
                           "behavior %u workspace %lld\n";

bool cudnn_plan_head(CudnnPlan *p, const char *text, size_t n)
{
    char line[256];
    long long engine, workspace;
    const size_t len = n < sizeof line - 1 ? n : sizeof line - 1;
    memcpy(line, text, len);
    line[len] = 0;
    *p = (CudnnPlan){0};
    if (sscanf(line, head, &p->key.cudnn, &p->key.arch, &p->key.sms, &p->key.driver, &engine,
               &p->notes, &p->behavior, &workspace) != 8)
        return false;
    p->engine = engine, p->workspace = workspace;
    return true;
}

char *cudnn_plan_text(CudnnPlan *p, const char *graph, size_t *n)
{
    const CudnnKey *k = &p->key;
    int64_t len = 0;
    cudnnStatus_t s =
        p->api->BackendGetAttribute(p->plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                                    CUDNN_TYPE_CHAR, 0, &len, NULL);
    const size_t room = strlen(graph) + 512;
    char *text = s ? NULL : malloc((size_t)len + room);
    if (!text)
        return refuse_plan(p, "the plan has no text", s), NULL;
    size_t at =
        (size_t)snprintf(text, room, head, k->cudnn, k->arch, k->sms, k->driver,
                         (long long)p->engine, p->notes, p->behavior, (long long)p->workspace);
    at += (size_t)snprintf(text + at, room - at, "%s\n", graph);
    s = p->api->BackendGetAttribute(p->plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                                    CUDNN_TYPE_CHAR, len, &len, text + at);
    if (s) {
        free(text);
        return refuse_plan(p, "the plan has no text", s), NULL;
    }
    *n = at + (size_t)len;
    while (*n > at && text[*n - 1] == 0)
        --*n;
    return text;
}

static bool refuse_key(CudnnPlan *p, const CudnnKey *here)
{
    char planned[128], found[128];
    cudnn_key_text(&p->key, planned);
    cudnn_key_text(here, found);
    snprintf(p->why, sizeof p->why, "the plan is for %s; here is %s", planned, found);
    return false;
}

/* The JSON begins after the second line. */
bool cudnn_plan_load(CudnnPlan *p, const CudnnDevice *d, const char *text, size_t n)
{
    const CudnnKey here = cudnn_key(d);
    const char *json = cudnn_plan_head(p, text, n) ? memchr(text, '\n', n) : NULL;
    p->api = d->api;
    json = json ? memchr(json + 1, '\n', n - (size_t)(json + 1 - text)) : NULL;
    if (!json) {
        snprintf(p->why, sizeof p->why, "this is not a plan of Tenon");
        return false;
    }
    if (!cudnn_key_same(&p->key, &here))
        return refuse_key(p, &here);
    json++;
    cudnnStatus_t s = CUDNN_STATUS_INTERNAL_ERROR;
    if (make_descriptor(p, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &p->plan) &&
        set_desc(p, p->plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, d->descriptor) &&
        !(s = d->api->BackendSetAttribute(p->plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                                          CUDNN_TYPE_CHAR, (int64_t)(n - (size_t)(json - text)),
                                          json)) &&
        !(s = d->api->BackendFinalize(p->plan)) && read_workspace(p))
        return true;
    refuse_plan(p, "the plan cannot be loaded", s);
    cudnn_plan_free(p);
    return false;
}
