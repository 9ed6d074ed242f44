/* step.h -- what the files of this room share: a step as its phases see it, metrics, and the
 * operations that differ between a program in the host's memory and a program in a device's.
 *
 * net_new chooses the operations once: on_host.c or on_device.c.  No other file of the room asks
 * where the memory is, except view.c for one field.
 */
#ifndef STEP_H
#define STEP_H
#include "step/net.h"

/* RtOpt in a program whose reals are double. */
typedef struct Opt64 {
    double lr, decay, momentum, rho, beta1, beta2, eps, bias1, bias2, clip_value, trust;
    bool nesterov;
} Opt64;

/* Rt with room for the `opt` of either type.  Only `opt`, at the end, has two sizes. */
typedef union View {
    Rt rt;
    char room[sizeof(Rt) + sizeof(Opt64)];
} View;

/* The step as shards first .. first + count - 1 see it. */
View net_view(const Net *n, const Batch *b, Hyper h, int first, int count);

/* Each operation does the work of the function net_... of the same name.  `map` makes room for
 * fixed, shard, thread and grad; `evaluate` leaves metrics in n->slot.  NULL: nothing is to be
 * done. */
struct NetOps {
    void (*map)(Net *n);
    bool (*step)(Net *n, const Batch *b, Hyper h);
    void (*settle)(Net *n);
    bool (*gradients)(Net *n, View *v, const Batch *b);
    void (*evaluate)(Net *n, View *v, const Batch *b, void *output);
    void (*load)(Net *n, View *v, const Batch *b); /* makes the batch readable for the phases */
    void (*changed)(Net *n);
    void (*fetch)(Net *n);
};
extern const struct NetOps net_on_host, net_on_device;

/* on_host.c: runs units first .. first + units - 1 of a phase, over the threads. */
void host_run(const Net *n, const Rt *r, const RtPhase *phase, int first, int units);

/* phases.c: which phases a step consists of.  A bucket's updates begin at phase_first_update, a
 * unit of phase_of_updates (NULL: updates are part of other phases). */
bool phase_in_step(const RtPhase *phase, const Rt *r); /* false: runs bucket by bucket */
int phase_units(const Net *n, const Rt *r, const RtPhase *phase);
const RtPhase *phase_of_sums(const RtProgram *p);
const RtPhase *phase_of_updates(const RtProgram *p);
int phase_first_update(const RtProgram *p, int bucket);

/* teams.c: how the threads compute the units of a slice phase with this number of regions. */
RtTeamPlan teams_plan(const RtPhase *phase, int units, int threads, int regions);

/* report.c: metrics of shards, and what ranks report to each other after a step. */
void report_open(Net *n);
void report_clear(Net *n);                     /* n->slot, before a step */
bool report_finite(const Net *n, const Rt *r); /* the loss of r's shards in n->slot */
/* One step: this rank posts its report.  report_wait returns when all reports have arrived, and
 * sets n->metric and n->all_stop. */
void report_post(Net *n);
void report_wait(Net *n);
/* A launch of several steps: report_write stores step i, report_exchange sends all `steps` and
 * returns how many of them have a finite loss on all ranks, report_read sets n->metric and
 * n->all_stop to those of step i. */
void report_write(Net *n, int i, int steps);
int report_exchange(Net *n);
void report_read(Net *n, int i);

#endif
