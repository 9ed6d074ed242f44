/* cuda_stage.h -- what the files of many steps in one launch share: the stages that have been written, and where blocks last met. */
#ifndef CUDA_STAGE_H
#define CUDA_STAGE_H
#include "emit/cuda_steps.h"
#include "emit/cuda_touch.h"
#include "ir/gpu.h"
#include "runtime/constants.h"

enum { CLUSTER = 16 }; /* blocks of the largest cluster */

typedef struct Stages {
    Touch *touch;                                     /* since blocks met */
    int ntouch;
    bool must;                                        /* they meet before the next stage */
    int cluster;                                      /* blocks; 0: all that fit */
    int stages, meetings;                             /* of a step, as they are executed */
    double all, few;                                  /* seconds of work, by all of the GPU and by one cluster */
    double apart;                                     /* seconds of work of a step as launches of their own */
    Order order, other;                               /* of the statement at hand: what it writes, and what it reads in another order */
    const Node *node, *decided;                       /* its node; the one whose order has been decided */
    const char *pool;                                 /* of a pooling's gradient that is decided: what stage_pool returned */
    unsigned told, pending;                           /* metrics whose stage is written, whose value is there: a bit each */
    Touch extra[2];                                   /* of the statement at hand, that its text does not say */
    int nextra;
    bool *done;                                       /* by id: the stage of a node is written */
    bool *joined, joins;                              /* of the step's sums: its update stands inside of its product; of the node that is decided */
    const char **order_of;                            /* of the gradient of each of the step's sums: as the text of an Order, or NULL */
    Text functions;                                   /* of the phases of a step */
    /* Where no step is one launch with others: those of a launch (cuda_group.c). */
    bool groups, alone;                               /* it is so; the last member can have none beside it */
    const char **member, *indent;                     /* their calls, "tanh_3_stage(y, a)"; where the launch stands */
    int nmember;
    const Node **held;                                /* elements of sequences, which are fetched where they are read first */
    int nheld;
    int64_t times, runs;                              /* of a step: of the function, of the launch in it */
    Text comment;                                     /* above the launch */
} Stages;

/* cuda_stage.c.  What is known of the node that is at hand from here on; its statement, whose order has been told, is about to be written:
 * blocks meet before it where they have to. */
void stage_begin(Writer *w);
void stage_before(Writer *w, const char *statement, const char *indent);
/* The same of these touches alone; what they are is remembered until blocks meet. */
void stage_before_touches(Writer *w, const Touch *touch, int n, const char *indent);
void stage_remember(Writer *w, const Touch *touch, int n);
bool stage_clashes(const Writer *w, const Touch *touch, int n);       /* would they have to meet before? */
bool stage_free(Writer *w, const Node *n);                    /* not before a value is read */
void stage_metric(Writer *w, int i, const char *indent);      /* tells it */
int64_t stage_numbers(const Writer *w, const Node *n);        /* of a value, of all samples that a stage takes */
void stage_cost(const Writer *w, const Touch *touch, int n);  /* counts it: of the node that is at hand, if there is one */
/* A stage of so many operations and bytes, in parts that as many multiprocessors can take; what one takes by `most` of them. */
void stage_work(const Writer *w, double flops, double bytes, double parts, double times);
double stage_seconds(const Gpu *g, double flops, double bytes, double parts, double most);

/* cuda_own.c: parameters that the threads which sum their gradients update, and keep on the chip. */
void own_note(Writer *w, const Node *n);                      /* n's stage is about to be written */
/* The statement of a gradient whose update can stand inside of the product that makes it; NULL: it cannot. */
const char *own_join(Writer *w, const Node *n, const char *fn, const char *size);
void own_stages(Writer *w);                                   /* their update, at the end of a step */
int  own_rest(Writer *w, Touch **touch);                      /* how much the update of all others touches, and what; 0: there are none */
void own_finish(Writer *w, Stages *s, Text *t);               /* what the kernel of many steps wants to know of them */
const char *own_said(const Writer *w, const Stages *s, int cluster);

#endif
