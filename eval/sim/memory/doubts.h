/* Doubtful values: what a load gives that races or lies beyond shared memory, and what a shuffle
 * takes from a lane that does not take part. Such a value is a fault only where it matters.
 *
 * At first nobody follows such values: the run stops with a fault, and Exec.doubted says so. A
 * module that is loaded to follow them (Code.follow) has slots for the registers that may hold
 * them (decode/definedness.c), and a slot says which event made its value doubtful. Event 0 is a
 * variable without a value.
 *
 * A load of shared memory may race with a store that comes later in the run. Its value is tentative
 * until the next barrier: it becomes doubtful at such a store, unless it has mattered before. Then
 * the store is a fault. A value that depends on two tentative values counts as one that matters. */
#ifndef EVAL_SIM_MEMORY_DOUBTS_H
#define EVAL_SIM_MEMORY_DOUBTS_H

#include "eval/sim/memory/access.h"

enum {
    DOUBTS_MAX = 48,      /* events of a module; further ones are faults */
    DOUBT_TENTATIVE = 64, /* the lowest event of a tentative value */
    DOUBT_UNIT = 128,     /* a GPU rounds shared memory up to it; a read behind that is a fault */
    DOUBT_LOADS_MAX = 1 << 20 /* tentative values between two barriers */
};

typedef struct Doubts Doubts;

/* After exec_fail, for a value of some lanes that need not matter. Returns 0 when it is followed:
 * there is no fault then. Else -1. */
int doubt_load(Warp *w, const Inst *in, uint32_t lanes);
int doubt_shuffle(Warp *w, const Inst *in, uint32_t lanes);
/* The same for what a wgmma reads. Returns the event of what depends on it, or 0: the fault stays. */
uint32_t doubt_product(Warp *w, const Inst *in);
/* The same for some bytes of what a lane loads, a bit each. The first lane reports the fault of a load:
 * exec_fail is not called again when Warp.partial_load has a lane. */
int doubt_bytes(Warp *w, const Inst *in, int lane, uint32_t bytes);
/* Is what an unwritten place gives followed? */
int doubt_is_followed(const Warp *w, const Inst *load);
/* After exec_fail, for a store that races with a read of this word. As above. */
int doubt_read_before(Warp *w, uint64_t word);

/* A load, an atomic or a copy reads words of shared memory. */
void doubt_note_read(Warp *w, const Access *a);
void doubt_note_product(Warp *w, uint64_t at,
                        uint32_t bytes); /* the same for a wgmma, in whole words */

/* Is the value of an event as good as any other? */
int doubt_is_settled(const Exec *x, uint32_t event);
int doubt_is_tentative(const Exec *x, uint32_t event);
void doubt_matters(Exec *x, uint32_t event); /* of a tentative value */
/* The event that a fault is, which has been taken back; 0: nobody follows it. */
uint32_t doubt_of(Exec *x, const Fault *fault);
int doubt_is_race(const Exec *x, uint32_t event);
/* Makes the event the fault of the run. Returns -1. */
int doubt_report(Warp *w, const Inst *in, uint32_t event, const char *use);

Doubts *doubts_new(int doubted);
void doubts_free(Doubts *d);
void doubts_start_block(Exec *x);
void doubts_change_block(Exec *x); /* to another one of the cluster: tentative values are settled */
/* Event i, or NULL when there are fewer. */
const Fault *doubts_event(const Doubts *d, int i);

#endif
