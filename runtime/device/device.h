/* device.h -- a device with memory of its own that runs a program's phases: what the runtime asks
 * of it.
 *
 * Addresses named `there` are the device's, `host` the host's.  Operations take effect in the order
 * of the calls; only `get` and `put` wait.  A failure ends the program with a message.
 */
#ifndef DEVICE_H
#define DEVICE_H
#include "rt.h"

struct RtDevice {
    const char *name;
    /* Opens a device that can run the program, or dies and says what is missing.  local: index of
     * this process among those of this machine, each of which takes a device. */
    void (*open)(const RtProgram *p, int local);
    /* From now on, the host waits by wait(), which calls done() until it is true.  With several
     * ranks, wait() has a time limit. */
    void (*waits)(void (*wait)(bool (*done)(void)));
    void *(*memory)(int64_t bytes, const char *what); /* never freed; its content is undefined */
    void (*put)(void *there, const void *host, int64_t bytes); /* `host` may change afterwards */
    void (*get)(void *host, const void *there, int64_t bytes);
    /* Begins a launch of n steps: writes the samples of their batches to index, `batch` numbers
     * for each step; the places of two steps lie `stride` bytes apart.  Also clears `bytes` bytes,
     * whole ints. */
    void (*begin)(uint32_t *index, const RtPlaces *places, int64_t stride, int batch, int n,
                  int *clear, int64_t bytes);
    /* Copies that overlap with launches (feed.h).  `send` copies from pinned memory of the host,
     * which must not change before the launch that needs it is done; copies run one after another.
     * Operations after `arrived` wait for all copies before it; the host does not wait.
     * room: free bytes that samples may take. */
    int64_t (*room)(void);
    void *(*pinned)(int64_t bytes, const char *what); /* never freed */
    void (*send)(void *there, const void *host, int64_t bytes);
    void (*arrived)(void);
    /* Operations between record and recorded, also those of a link (link.h), are stored instead
     * of executed; `play` executes them as one launch, any number of times.  Addresses are
     * stored; the memory at these addresses is read at each execution. */
    void (*record)(void);
    void *(*recorded)(void);
    void (*play)(void *recording);
    const char *(*describe)(void); /* after open: "NVIDIA H200, sm_90, CUDA 13.0" */
};

#endif
