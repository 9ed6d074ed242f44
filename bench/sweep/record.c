/* record.c -- the log that a program writes, read into a run. */
#include "sweep/record.h"
#include "sweep/stats.h"
#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

static double real(const cJSON *o, const char *name)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, name);
    return cJSON_IsNumber(v) ? v->valuedouble : NAN;
}

/* The number `name`; with several targets, the first one of NAME_TARGET. */
static double first_real(const cJSON *o, const char *name)
{
    const size_t n = strlen(name);
    const cJSON *v;
    cJSON_ArrayForEach(v, o)
    {
        if (strncmp(v->string, name, n) == 0 && (v->string[n] == '\0' || v->string[n] == '_'))
            return cJSON_IsNumber(v) ? v->valuedouble : NAN;
    }
    return NAN;
}

static int64_t count(const cJSON *o, const char *name)
{
    const double v = real(o, name);
    return isnan(v) ? 0 : (int64_t)v;
}

static const char *text(Arena *a, const cJSON *o, const char *name)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, name);
    return cJSON_IsString(v) ? arena_strdup(a, v->valuestring) : NULL;
}

static void keep_real(double *v, const cJSON *o, const char *name)
{
    const double x = real(o, name);
    *v = isnan(x) ? *v : x;
}

static void start(Arena *a, Run *r, const cJSON *o)
{
    r->network = text(a, o, "program");
    r->target = text(a, o, "target");
    r->cpu = text(a, o, "cpu");
    r->comm = text(a, o, "comm");
    r->batch = count(o, "batch");
    r->shards = count(o, "shards");
    r->seed = count(o, "seed");
    r->parameters = count(o, "parameters");
    r->planned_bytes = count(o, "planned_bytes");
    r->samples = count(o, "samples");
    r->flops_per_sample = real(o, "flops_per_sample");
}

static void epoch(Arena *a, Run *r, const cJSON *o)
{
    const Epoch e = {.epoch = count(o, "epoch"),
                     .samples = count(o, "samples"),
                     .seconds = real(o, "seconds"),
                     .samples_per_s = real(o, "samples_per_s"),
                     .train_loss = real(o, "train_loss"),
                     .train_accuracy = first_real(o, "train_accuracy"),
                     .test_loss = real(o, "test_loss"),
                     .test_accuracy = first_real(o, "test_accuracy"),
                     .weights_hash = text(a, o, "weights_hash")};
    ARENA_PUSH(a, r->epoch, r->nepoch, e);
    const int64_t bytes = count(o, "peak_bytes");
    r->peak_bytes = bytes > r->peak_bytes ? bytes : r->peak_bytes;
}

/* Reads the record of a `bench`: the warm-up or, with r->steps, the measurement itself. */
static void bench(Arena *a, Run *r, const cJSON *o)
{
    r->network = text(a, o, "program");
    r->cpu = text(a, o, "cpu");
    r->batch = count(o, "batch");
    keep_real(&r->first_step_ms, o, "first_step_ms");
    keep_real(&r->step_ms, o, "step_ms_median");
    if (r->steps) {
        r->samples_per_s = real(o, "samples_per_s");
        const double flops = 1e9 * real(o, "gflops") / r->samples_per_s;
        r->flops_per_sample = isfinite(flops) ? round(flops) : r->flops_per_sample;
    }
}

static void layer(Arena *a, Run *r, const cJSON *o)
{
    const Layer l = {.layer = text(a, o, "layer"),
                     .kernel = text(a, o, "kernel"),
                     .place = text(a, o, "place"),
                     .algorithm = text(a, o, "algorithm"),
                     .ms = real(o, "ms"),
                     .predicted_ms = real(o, "predicted_ms"),
                     .gflops = real(o, "gflops"),
                     .bytes = real(o, "bytes")};
    ARENA_PUSH(a, r->layer, r->nlayer, l);
}

static void record(Arena *a, Run *r, const cJSON *o)
{
    static const struct {
        const char *event;
        void (*read)(Arena *, Run *, const cJSON *);
    } table[] = {{"start", start}, {"epoch", epoch}, {"bench", bench}, {"layer", layer}};
    const char *event = text(a, o, "event");
    for (size_t i = 0; event && i < sizeof table / sizeof *table; i++)
        if (strcmp(event, table[i].event) == 0)
            table[i].read(a, r, o);
}

bool record_read(Arena *a, Run *r, const char *log)
{
    while (*log) {
        const char *end;
        cJSON *o = cJSON_ParseWithOpts(log, &end, 0);
        if (!o)
            break;
        record(a, r, o);
        cJSON_Delete(o);
        log = end + strspn(end, " \r\n");
    }
    return r->steps ? r->step_ms > 0 : r->nepoch > 0;
}

void record_summary(Run *r)
{
    enum { MOST = 1000 };
    double seconds[MOST], rate[MOST];
    int n = 0;
    if (r->nepoch == 0)
        return;
    for (int i = r->nepoch > 1; i < r->nepoch && n < MOST; i++, n++) {
        seconds[n] = r->epoch[i].seconds;
        rate[n] = r->epoch[i].samples_per_s;
    }
    const Epoch *last = &r->epoch[r->nepoch - 1];
    r->epoch_s = stats_median(seconds, n);
    r->samples_per_s = stats_median(rate, n);
    r->accuracy = last->test_accuracy;
    r->loss = last->test_loss;
    r->train_accuracy = last->train_accuracy;
    r->train_loss = last->train_loss;
    r->weights_hash = last->weights_hash;
}
