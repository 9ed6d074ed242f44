/* recurrence.h -- loops over time that one launch computes. */
#ifndef CUDA_RECURRENCE_H
#define CUDA_RECURRENCE_H
#include "cuda/call.h"

/* A value of one time step, in the shared memory of a block. */
typedef struct RecurrenceValue {
    const Node *root;
    const char *pointer;  /* its text: "LOCAL(real, H_H)" */
    int64_t size, at;     /* numbers of a sample; the first number in shared memory */
    bool fetched, stored; /* copied from memory before the loop; to memory after it */
} RecurrenceValue;

/* The product of a call: Weights in runtime/cuda/recurrence.cuh. */
typedef struct RecurrenceProduct {
    const CudaCall *call;
    int64_t outputs, k, parts, chains, held;
    int64_t at, parts_at; /* in shared memory: its weights; the parts of its sums, -1: none */
    bool adjacent;        /* the weights of adjacent steps are neighbours */
    bool pads;
} RecurrenceProduct;

/* The copy of an element.  It starts in region `region`; ahead: it copies the element of the next
 * step.  A thread waits for its copies before the call `reader`, which reads what the same thread
 * has copied.  If reader is NULL, other threads read the element, and a thread waits at the end of
 * region `ready`. */
typedef struct RecurrenceItem {
    CudaCall *call;
    int64_t size, steps;
    int region, ready;
    bool ahead;
    const CudaCall *reader;
} RecurrenceItem;

typedef struct Recurrence {
    const Loop *loop;
    int64_t samples, each; /* of all blocks; of a block */
    int64_t numbers;       /* of the shared memory of a block */
    RecurrenceValue *value;
    RecurrenceProduct *product;
    RecurrenceItem *item;
    int nvalue, nproduct, nitem;
    int regions;                        /* of a step: barriers of the block separate them */
    bool barrier_before, barrier_after; /* before the first step; after each step */
} Recurrence;

/* Finds the loops of CudaState.list.  Sets CudaCall.recurrence of their calls, and of the lines
 * around these calls. */
void recurrence_find(Writer *w);
int64_t recurrence_blocks(const Recurrence *r);
/* The index of the product of a call, or of the product whose parts the call joins; -1: none. */
int recurrence_product(const Recurrence *r, const CudaCall *c);
/* Whether the operand stays in shared memory. */
bool recurrence_keeps(const Recurrence *r, const Operand *o);

#endif
