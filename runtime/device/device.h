/* device.h -- a device with memory of its own in which a program's phases work: what the runtime asks of it.
 *
 * Addresses named `there` are the device's.  Everything happens in the order in which it is asked for; only `get` and `put` wait.
 * What fails ends the program with a message.
 */
#ifndef DEVICE_H
#define DEVICE_H
#include "rt.h"

struct RtDevice {
    const char *name;
    /* Finds one that can run the program; says what is missing.  local: which of those processes of this machine that each want one. */
    void  (*open)(const RtProgram *p, int local);
    /* From here on waiting is wait(), which asks done() until that is true: several ranks wait with a limit. */
    void  (*waits)(void (*wait)(bool (*done)(void)));
    void *(*memory)(int64_t bytes, const char *what); /* for good; its content is undefined */
    void  (*put)(void *there, const void *here, int64_t bytes);   /* `here` may change at once */
    void  (*get)(void *here, const void *there, int64_t bytes);
    /* What a launch of n steps begins with: index gets the samples of their batches, `batch` numbers a step, whose places lie `stride` bytes apart
     * there, and the bytes from `clear` on, whole ints, become 0. */
    void  (*begin)(uint32_t *index, const RtPlaces *places, int64_t stride, int batch, int n, int *clear, int64_t bytes);
    /* Beside all that (feed.h): memory here that `send` copies from; what is asked for behind `arrived` comes behind all that has been sent before it,
     * each piece behind the one before.  Nobody waits here.  room: bytes that samples may take, of those that are free. */
    int64_t (*room)(void);
    void *(*pinned)(int64_t bytes, const char *what); /* for good, as memory() */
    void  (*send)(void *there, const void *here, int64_t bytes);  /* `here` may not change before what needs it is done */
    void  (*arrived)(void);
    /* What is asked for between record and recorded, also of a link (link.h), is not done but kept; play does it, as often as it is wanted, at the price of one
     * launch.  Addresses are kept, what lies there is read anew. */
    void  (*record)(void);
    void *(*recorded)(void);
    void  (*play)(void *recording);
    const char *(*describe)(void);                    /* after open: "NVIDIA H200, sm_90, CUDA 13.0" */
};

#endif
