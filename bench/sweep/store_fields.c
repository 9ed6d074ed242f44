/* store_fields.c -- the columns of the store's tables: their names in SQL and their places in C. */
#include "sweep/store.h"
#include <string.h>

#define TEXT(name)                                                                                 \
    {                                                                                              \
#name, FIELD_TEXT, offsetof(Run, name)                                                     \
    }
#define COUNT(name)                                                                                \
    {                                                                                              \
#name, FIELD_COUNT, offsetof(Run, name)                                                    \
    }
#define REAL(name)                                                                                 \
    {                                                                                              \
#name, FIELD_REAL, offsetof(Run, name)                                                     \
    }
const Field run_field[] = {TEXT(key),
                           TEXT(label),
                           TEXT(infrastructure),
                           TEXT(started),
                           TEXT(status),
                           TEXT(message),
                           TEXT(disturbed),
                           TEXT(framework),
                           TEXT(model),
                           TEXT(file),
                           TEXT(source),
                           TEXT(network),
                           TEXT(build),
                           TEXT(binary),
                           TEXT(info),
                           TEXT(target),
                           TEXT(cpu),
                           TEXT(comm),
                           TEXT(data),
                           TEXT(compiler),
                           TEXT(compiler_commit),
                           TEXT(machine),
                           TEXT(weights_hash),
                           COUNT(batch),
                           COUNT(threads),
                           COUNT(ranks),
                           COUNT(gpus),
                           COUNT(shards),
                           COUNT(epochs),
                           COUNT(steps),
                           COUNT(limit_samples),
                           COUNT(seed),
                           COUNT(repeat),
                           COUNT(attempt),
                           COUNT(samples),
                           COUNT(parameters),
                           COUNT(planned_bytes),
                           COUNT(peak_bytes),
                           REAL(seconds),
                           REAL(samples_per_s),
                           REAL(epoch_s),
                           REAL(accuracy),
                           REAL(loss),
                           REAL(train_accuracy),
                           REAL(train_loss),
                           REAL(compile_s),
                           REAL(first_step_ms),
                           REAL(step_ms),
                           REAL(flops_per_sample),
                           REAL(peak_before),
                           REAL(peak_after),
                           REAL(bandwidth),
                           REAL(others),
                           REAL(stolen),
                           REAL(user_s),
                           REAL(system_s),
                           REAL(mhz),
                           REAL(joules),
                           {0}};
#undef TEXT
#undef COUNT
#undef REAL

#define AT(name) offsetof(Epoch, name)
const Field epoch_field[] = {{"epoch", FIELD_COUNT, AT(epoch)},
                             {"samples", FIELD_COUNT, AT(samples)},
                             {"seconds", FIELD_REAL, AT(seconds)},
                             {"samples_per_s", FIELD_REAL, AT(samples_per_s)},
                             {"train_loss", FIELD_REAL, AT(train_loss)},
                             {"train_accuracy", FIELD_REAL, AT(train_accuracy)},
                             {"test_loss", FIELD_REAL, AT(test_loss)},
                             {"test_accuracy", FIELD_REAL, AT(test_accuracy)},
                             {"weights_hash", FIELD_TEXT, AT(weights_hash)},
                             {0}};
#undef AT

#define AT(name) offsetof(Layer, name)
const Field layer_field[] = {{"layer", FIELD_TEXT, AT(layer)},
                             {"kernel", FIELD_TEXT, AT(kernel)},
                             {"place", FIELD_TEXT, AT(place)},
                             {"algorithm", FIELD_TEXT, AT(algorithm)},
                             {"ms", FIELD_REAL, AT(ms)},
                             {"predicted_ms", FIELD_REAL, AT(predicted_ms)},
                             {"gflops", FIELD_REAL, AT(gflops)},
                             {"bytes", FIELD_REAL, AT(bytes)},
                             {0}};
#undef AT

int by_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "");
}

bool same_text(const char *a, const char *b)
{
    return by_text(a, b) == 0;
}
