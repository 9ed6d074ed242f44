/* records.h -- the records of a log (--log) and their fields, a row for each.
 *
 *   RECORD(event)          the name of a record, as a string
 *   FIELD(event, name)     the name of a field; a field without a row does not compile
 *
 * A row of a field: event, name, type, unit, programs or runs that have it ("": all), meaning.  A
 * name with METRIC stands for one name for each metric: train_METRIC for train_loss and so on.
 */
#ifndef RECORDS_H
#define RECORDS_H

#define RECORDS(ROW)                                                                               \
    ROW(start, "train", "Once, before the first step.")                                            \
    ROW(weights, "train", "Once, after `start`, if the run begins with weights of a file.")        \
    ROW(step, "train", "After every N-th step, with `--log-steps N`.")                             \
    ROW(epoch, "train", "After each epoch and its test.")                                          \
    ROW(best, "train", "Once, with `keep` in the recipe: the epoch whose weights are kept.")       \
    ROW(metrics, "train",                                                                          \
        "Once, before `end`: metrics that are not in `epoch`, of the weights that the run "        \
        "leaves.")                                                                                 \
    ROW(end, "train", "Once, after the last epoch.")                                               \
    ROW(test, "test", "Once.")                                                                     \
    ROW(bench, "bench", "Once.")                                                                   \
    ROW(simulate, "bench", "Once, with `--simulate`, instead of `bench`.")                         \
    ROW(comm, "bench", "For each size of a sum over ranks, with `--comm`.")                        \
    ROW(scale, "bench",                                                                            \
        "Once, with `--comm`: the step as measured and as the scale model "                        \
        "expects it.")                                                                             \
    ROW(layer, "bench",                                                                            \
        "For each call of a step and each kind of waiting, with `--layers` or "                    \
        "`--trace`. The times of all add up to the step.")                                         \
    ROW(layers, "bench", "Once, after the records `layer`.")                                       \
    ROW(message, "train, test and bench",                                                          \
        "For each note and error of the process, in a log "                                        \
        "with `%r` in its name.")

#define FIELDS(ROW)                                                                                \
    ROW(start, model, "text", "", "", "name of the model")                                         \
    ROW(start, program, "text", "", "",                                                            \
        "hash of network, recipe, batch, shards and number "                                       \
        "type: 16 hexadecimal digits")                                                             \
    ROW(start, target, "text", "", "", "`cpu` or `cuda`")                                          \
    ROW(start, cpu, "text", "", "", "instruction set, as of `tenon build --cpu`")                  \
    ROW(start, batch, "count", "samples", "", "samples of a step, over all ranks")                 \
    ROW(start, shards, "count", "", "", "shards of a batch")                                       \
    ROW(start, ranks, "count", "", "", "number of ranks")                                          \
    ROW(start, rank, "count", "", "log with `%r`", "number of this rank, from 0")                  \
    ROW(start, host, "text", "", "log with `%r`", "host of this rank")                             \
    ROW(start, comm, "text", "", "", "library between ranks, `none` with one rank")                \
    ROW(start, wire, "text", "", "", "value of `--wire`")                                          \
    ROW(start, reduce, "text", "", "", "value of `--reduce`")                                      \
    ROW(start, groups, "count", "", "", "value of `--groups`")                                     \
    ROW(start, threads, "count", "", "", "threads of this process")                                \
    ROW(start, cores, "count", "", "", "cores in the affinity mask of this process")               \
    ROW(start, limit, "text", "", "",                                                              \
        "what limits the threads: `option`, `quota`, `ranks`, `affinity` or `none`")               \
    ROW(start, pin, "text", "", "", "`cores`: each thread stays on one processor; or `none`")      \
    ROW(start, parameters, "count", "", "", "numbers in a file of weights")                        \
    ROW(start, flops_per_sample, "real", "FLOP", "",                                               \
        "textbook operations forward and "                                                         \
        "backward, two a multiply-add")                                                            \
    ROW(start, planned_bytes, "count", "bytes", "", "planned memory of this process")              \
    ROW(start, samples, "count", "samples", "", "training samples")                                \
    ROW(start, average, "text", "", "`average` in the recipe",                                     \
        "`ema` or `swa`: evaluations and `weights_hash` are of the averaged weights")              \
    ROW(start, seed, "count", "", "", "seed of the run")                                           \
    ROW(start, epochs, "count", "epochs", "", "epochs of the run")                                 \
    ROW(start, epoch, "count", "epochs", "",                                                       \
        "epochs that are done: 0, or more after "                                                  \
        "`--resume`")                                                                              \
    ROW(start, step, "count", "steps", "", "steps of the current epoch that are done")             \
    ROW(start, loss_scale, "real", "", "`--dtype f16`", "loss scale of the next step")             \
    ROW(start, skipped_steps, "count", "steps", "`--dtype f16`",                                   \
        "steps that were left out so "                                                             \
        "far")                                                                                     \
    ROW(weights, file, "text", "", "", "the file")                                                 \
    ROW(weights, loaded, "count", "", "", "parameters that are loaded")                            \
    ROW(weights, initial, "count", "", "", "parameters that begin with initial values")            \
    ROW(weights, unused, "count", "", "", "tensors of the file that the network does not have")    \
    ROW(weights, loaded_names, "text", "", "",                                                     \
        "their names with commas; `conv1.*` is a whole layer; at most 12, then the number of "     \
        "others")                                                                                  \
    ROW(weights, initial_names, "text", "", "", "likewise")                                        \
    ROW(weights, unused_names, "text", "", "", "likewise")                                         \
    ROW(step, step, "count", "steps", "", "steps of the run that are done")                        \
    ROW(step, samples, "count", "samples", "", "samples of this step")                             \
    ROW(step, train_METRIC, "real", "", "",                                                        \
        "mean over this batch, before its update: loss, accuracy; of numbers mae, rmse, r2; "      \
        "of masks iou, dice")                                                                      \
    ROW(step, train_perplexity, "real", "", "texts", "exponential of `train_loss`")                \
    ROW(step, loss_scale, "real", "", "`--dtype f16`", "loss scale of the next step")              \
    ROW(step, skipped_steps, "count", "steps", "`--dtype f16`",                                    \
        "steps that were left out so "                                                             \
        "far")                                                                                     \
    ROW(epoch, epoch, "count", "epochs", "", "epochs that are done")                               \
    ROW(epoch, samples, "count", "samples", "", "distinct samples that were visited")              \
    ROW(epoch, seconds, "real", "s", "",                                                           \
        "time of the epoch's training, with input, without "                                       \
        "the test")                                                                                \
    ROW(epoch, samples_per_s, "real", "samples/s", "", "`samples` / `seconds`")                    \
    ROW(epoch, comm_seconds, "real", "s", "several ranks", "time of communication")                \
    ROW(epoch, comm_wait_seconds, "real", "s", "several ranks",                                    \
        "time that the step waited for "                                                           \
        "communication")                                                                           \
    ROW(epoch, lr, "real", "", "", "learning rate of the epoch's last step")                       \
    ROW(epoch, train_METRIC, "real", "", "",                                                       \
        "mean over the epoch, each sample once: loss, accuracy; of numbers mae, rmse, r2; "        \
        "of masks iou, dice")                                                                      \
    ROW(epoch, train_perplexity, "real", "", "texts", "exponential of `train_loss`")               \
    ROW(epoch, validation_METRIC, "real", "", "data with a validation split",                      \
        "mean over the validation split, as `test_METRIC`")                                        \
    ROW(epoch, validation_auc, "real", "", "two classes, one output, a validation split",          \
        "area under the ROC curve over the validation split")                                      \
    ROW(epoch, test_METRIC, "real", "", "",                                                        \
        "mean over the test set: loss, accuracy; of numbers mae, rmse, r2; of masks "              \
        "iou, dice; metrics of the recipe")                                                        \
    ROW(epoch, test_auc, "real", "", "two classes, one output",                                    \
        "area under the ROC curve over the test set")                                              \
    ROW(epoch, test_perplexity, "real", "", "texts", "exponential of `test_loss`")                 \
    ROW(epoch, loss_scale, "real", "", "`--dtype f16`", "loss scale of the next step")             \
    ROW(epoch, skipped_steps, "count", "steps", "`--dtype f16`",                                   \
        "steps that were left out so "                                                             \
        "far")                                                                                     \
    ROW(epoch, best_epoch, "count", "epochs", "`keep` or `stop`",                                  \
        "the best epoch so far, by the result of `keep`, else of `stop`")                          \
    ROW(epoch, waited_epochs, "count", "epochs", "`stop`",                                         \
        "epochs since the best value of the result of `stop`")                                     \
    ROW(epoch, peak_bytes, "count", "bytes", "", "largest memory of the process so far")           \
    ROW(epoch, weights_hash, "text", "", "",                                                       \
        "hash of all parameters and running statistics: "                                          \
        "16 hexadecimal digits")                                                                   \
    ROW(best, epoch, "count", "epochs", "", "the best epoch")                                      \
    ROW(best, result, "text", "", "", "the result of `keep`, such as `validation_loss`")           \
    ROW(best, value, "real", "", "", "its best value")                                             \
    ROW(best, validation_METRIC, "real", "", "",                                                   \
        "of the kept weights: mean over the validation split, as `test_METRIC`")                   \
    ROW(best, validation_auc, "real", "", "two classes, one output",                               \
        "area under the ROC curve over the validation split")                                      \
    ROW(best, test_METRIC, "real", "", "", "of the kept weights: mean over the test set")          \
    ROW(best, test_auc, "real", "", "two classes, one output",                                     \
        "area under the ROC curve over the test set")                                              \
    ROW(metrics, test_METRIC, "real", "", "",                                                      \
        "as in `test`, over the test set: top5, precision, recall, f1, auc, iou, dice, iou_CLASS") \
    ROW(end, seconds, "real", "s", "", "time since the process began")                             \
    ROW(end, epochs, "count", "epochs", "", "epochs that are done")                                \
    ROW(end, stopped, "text", "", "runs that end before their last epoch",                         \
        "`patience`, by `stop` of the recipe, or `stop-at`")                                       \
    ROW(end, weights_hash, "text", "", "",                                                         \
        "as in `epoch`, of the weights that the run leaves: with `keep`, of the best epoch")       \
    ROW(test, model, "text", "", "", "name of the model")                                          \
    ROW(test, samples, "count", "samples", "", "test samples")                                     \
    ROW(test, seconds, "real", "s", "", "time of the test, without loading")                       \
    ROW(test, nan_samples, "count", "samples", "outputs with a NaN",                               \
        "samples whose output has a NaN: it predicts no class, and counts as wrong")               \
    ROW(test, test_METRIC, "real", "", "",                                                         \
        "mean over the test set: loss, accuracy; of numbers mae, rmse, r2; of masks "              \
        "iou, dice; metrics of the recipe")                                                        \
    ROW(test, test_auc, "real", "", "two classes, or several labels",                              \
        "area under the ROC curve over the test set; of several labels the mean")                  \
    ROW(test, test_perplexity, "real", "", "texts", "exponential of `test_loss`")                  \
    ROW(test, test_top5, "real", "", "ten classes or more",                                        \
        "share of the labels whose class is one of the five most probable")                        \
    ROW(test, test_precision, "real", "", "classes, truths",                                       \
        "right predictions of class 1 / all of them; of more classes the mean")                    \
    ROW(test, test_recall, "real", "", "classes, truths",                                          \
        "right predictions of class 1 / its labels; likewise")                                     \
    ROW(test, test_f1, "real", "", "classes, several labels",                                      \
        "2 x right predictions / (predictions + labels); likewise")                                \
    ROW(test, test_iou, "real", "", "a class for each pixel",                                      \
        "overlap / union of the pixels of a class and those predicted; mean")                      \
    ROW(test, test_dice, "real", "", "a class for each pixel",                                     \
        "2 x overlap / (overlap + union); mean over the classes")                                  \
    ROW(test, test_iou_CLASS, "real", "", "a class for each pixel",                                \
        "of one class: 0 for class 0 and so on, of up to 32 classes")                              \
    ROW(bench, model, "text", "", "", "name of the model")                                         \
    ROW(bench, program, "text", "", "", "as in `start`")                                           \
    ROW(bench, cpu, "text", "", "", "as in `start`")                                               \
    ROW(bench, batch, "count", "samples", "", "samples of a step, over all ranks")                 \
    ROW(bench, threads, "count", "", "", "threads of this process")                                \
    ROW(bench, cores, "count", "", "", "as in `start`")                                            \
    ROW(bench, limit, "text", "", "", "as in `start`")                                             \
    ROW(bench, pin, "text", "", "", "as in `start`")                                               \
    ROW(bench, steps, "count", "steps", "", "measured steps")                                      \
    ROW(bench, step_ms_mean, "real", "ms", "", "mean time of a step")                              \
    ROW(bench, step_ms_median, "real", "ms", "", "median")                                         \
    ROW(bench, step_ms_low, "real", "ms", "at least 6 launches",                                   \
        "the true median is at least this, with a probability of 97.5 %")                          \
    ROW(bench, step_ms_high, "real", "ms", "at least 6 launches",                                  \
        "it is at most this, with the same probability")                                           \
    ROW(bench, step_ms_min, "real", "ms", "", "shortest")                                          \
    ROW(bench, first_step_ms, "real", "ms", "",                                                    \
        "from the start of the process to the end of "                                             \
        "the first step")                                                                          \
    ROW(bench, samples_per_s, "real", "samples/s", "", "`batch` / median step")                    \
    ROW(bench, gflops, "real", "GFLOP/s", "", "textbook operations a second")                      \
    ROW(bench, fma_peak_gflops, "real", "GFLOP/s", "on the processor",                             \
        "peak of the "                                                                             \
        "processors, measured in the same run")                                                    \
    ROW(bench, share_of_peak, "real", "", "on the processor", "`gflops` / `fma_peak_gflops`")      \
    ROW(bench, ranks, "count", "", "several ranks", "number of ranks")                             \
    ROW(bench, comm_ms, "real", "ms", "several ranks", "communication of a step")                  \
    ROW(bench, comm_wait_ms, "real", "ms", "several ranks",                                        \
        "time that a step waits for "                                                              \
        "communication")                                                                           \
    ROW(simulate, model, "text", "", "", "name of the model")                                      \
    ROW(simulate, program, "text", "", "", "as in `start`")                                        \
    ROW(simulate, batch, "count", "samples", "", "samples of a step")                              \
    ROW(simulate, threads, "count", "", "", "simulated threads")                                   \
    ROW(simulate, machine, "text", "", "", "name of the simulated machine")                        \
    ROW(simulate, step_ms, "real", "ms", "", "a step on that machine with all threads")            \
    ROW(simulate, step_ms_one, "real", "ms", "", "the same with one thread")                       \
    ROW(simulate, samples_per_s, "real", "samples/s", "", "`batch` / `step_ms`")                   \
    ROW(simulate, efficiency, "real", "", "", "`step_ms_one` / (`threads` x `step_ms`)")           \
    ROW(simulate, barriers, "count", "", "", "consecutive barriers of a step")                     \
    ROW(simulate, units_min, "count", "threads", "",                                               \
        "fewest threads with work in a phase of at least 1 % of the step")                         \
    ROW(simulate, fma_peak_gflops, "real", "GFLOP/s", "", "peak of a core of this machine")        \
    ROW(simulate, work_ms, "real", "ms", "", "computing, a thread's share of the step")            \
    ROW(simulate, barrier_ms, "real", "ms", "", "barriers, in the same unit")                      \
    ROW(simulate, idle_ms, "real", "ms", "", "threads without work, in the same unit")             \
    ROW(simulate, memory_ms, "real", "ms", "", "waiting for memory, in the same unit")             \
    ROW(simulate, alone_ms, "real", "ms", "", "between phases: one thread works")                  \
    ROW(comm, ranks, "count", "", "", "number of ranks")                                           \
    ROW(comm, bytes, "count", "bytes", "", "size of the summed vector")                            \
    ROW(comm, seconds, "real", "s", "", "measured time of the sum")                                \
    ROW(comm, model_seconds, "real", "s", "", "time that the fitted model expects")                \
    ROW(scale, ranks, "count", "", "", "number of ranks")                                          \
    ROW(scale, gradient_bytes, "count", "bytes", "", "bytes of all gradients")                     \
    ROW(scale, buckets, "count", "", "", "buckets in which gradients are added")                   \
    ROW(scale, message_us, "real", "us", "", "time of a message in the fitted model")              \
    ROW(scale, bytes_per_s, "real", "bytes/s", "", "throughput in the fitted model")               \
    ROW(scale, step_ms, "real", "ms", "", "measured step")                                         \
    ROW(scale, not_hidden_ms, "real", "ms", "",                                                    \
        "communication of it that no computation "                                                 \
        "overlaps")                                                                                \
    ROW(scale, not_hidden_percent, "real", "%", "", "the same as a share of all communication")    \
    ROW(scale, model_step_ms, "real", "ms", "", "step that the model expects")                     \
    ROW(scale, model_not_hidden_ms, "real", "ms", "",                                              \
        "communication of it that no computation "                                                 \
        "overlaps")                                                                                \
    ROW(scale, model_not_hidden_percent, "real", "%", "",                                          \
        "the same as a share of all "                                                              \
        "communication")                                                                           \
    ROW(layer, layer, "text", "", "", "name of the layer, or of a kind of waiting")                \
    ROW(layer, ms, "real", "ms", "", "time of a step, mean over the threads")                      \
    ROW(layer, kernel, "text", "", "calls", "kernel that computes it")                             \
    ROW(layer, place, "text", "", "calls", "model file and line")                                  \
    ROW(layer, algorithm, "text", "", "calls", "algorithm; empty where there is only one")         \
    ROW(layer, predicted_ms, "real", "ms", "calls",                                                \
        "time that the compiler predicts, scaled "                                                 \
        "to this machine's peak")                                                                  \
    ROW(layer, gflops, "real", "GFLOP/s", "calls", "textbook operations a second")                 \
    ROW(layer, bytes, "real", "bytes", "calls",                                                    \
        "bytes that the call reads and writes in a "                                               \
        "step")                                                                                    \
    ROW(layers, threads, "count", "", "", "threads of this process")                               \
    ROW(layers, steps, "count", "steps", "", "measured steps")                                     \
    ROW(layers, ms, "real", "ms", "", "time of a step")                                            \
    ROW(message, kind, "text", "", "", "`note` or `error`")                                        \
    ROW(message, text, "text", "", "", "the message")

#define RECORD_NUMBER(event, commands, text)               RECORD_##event,
#define FIELD_NUMBER(event, name, type, unit, where, text) FIELD_##event##_##name,
enum { RECORDS(RECORD_NUMBER) RECORD_COUNT };
enum { FIELDS(FIELD_NUMBER) FIELD_COUNT };
#undef RECORD_NUMBER
#undef FIELD_NUMBER

#define RECORD(event)      (&#event[0 * RECORD_##event])
#define FIELD(event, name) (&#name[0 * FIELD_##event##_##name])

#endif
