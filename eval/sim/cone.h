/* The cone of some bytes of the outputs (DeviceCone): which blocks of which launches they need. From the last
 * launch back, the blocks that reach a byte that is needed (coverage/reaching.h) run to tell what they read,
 * on whatever memory holds; where they take long, the slices of their accesses tell it, if they can. Then all
 * of them run in order, from poisoned buffers. Where they read other bytes now, since addresses depend on
 * values, those are needed, too, and it begins again.
 *
 * Where the threads of a block, or its warps, share no memory, those alone count that write what is needed:
 * the others may read what is not complete. Where values decide whether a launch stores, all units count.
 * Where they decide where it stores, and some of them were not complete, all units count, and all that the
 * launch may read is needed. */
#ifndef EVAL_SIM_CONE_H
#define EVAL_SIM_CONE_H

#include "eval/sim/coverage/reaching.h"
#include "eval/sim/sim_launches.h"

/* What is known about a launch. */
typedef struct {
    BlockSet reach;       /* blocks that reach what is needed */
    BlockSet run;         /* they, or their clusters */
    int64_t looked;       /* of `reach`: those that are in `run` */
    int64_t traced;       /* of `run`: those that have run for their reads */
    int is_whole;         /* all blocks run: it is not known which ones are needed */
    int together;         /* values decide whether it stores: all units of its blocks count */
    int needs_all;        /* values decide where it stores: all that it may read is needed */
    AccessTrace trace;    /* of the blocks that have run */
    BlockSet units;       /* of the trace: those that count */
    Ranges reads, writes; /* of what counts; plain stores */
    Ranges asked;         /* of a library call: of its result */
} ConeLaunch;

typedef struct {
    Device *d;
    const DeviceLaunch *launches;
    int n;
    DeviceCone *out;
    ConeLaunch *of;  /* by launch */
    Ranges need;     /* behind the launch that is looked at */
    Ranges astray;   /* of the second pass: what only units that do not count have stored */
    uint8_t *wanted; /* by allocation */
    int64_t lanes;   /* what looking for blocks may take */
    double left;     /* thread-instructions */
    double again;    /* of those that are traced: what the second pass takes */
    int tracing;     /* the blocks are looked for */
    Fault *fault;
} Cone;

/* Functions return 0 to go on; 1: c->out->why is set; 2: c->fault is the candidate's; -1: an Error. */

/* cone.c */
int cone_stop(Cone *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* cone_trace.c: finds the blocks, from the last launch to the first. */
int cone_trace(Cone *c);
/* Sets reads and writes to those of the units that count. */
void cone_collect(ConeLaunch *k, const AccessTrace *t, Ranges *reads, Ranges *writes);
/* Runs blocks of launch i from number *at of its list on, up to the first fault; *at: behind it. */
int cone_run(Cone *c, int i, int64_t *at, int *faulted);

#endif
