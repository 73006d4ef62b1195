/* Counters of requests to global memory: sectors, first touches, hits of a small L1. */
#ifndef EVAL_SIM_MEMORY_TRAFFIC_H
#define EVAL_SIM_MEMORY_TRAFFIC_H

#include "eval/sim/memory/access.h"

/* Decides where the waits of the code block that ends have waited: as many of them as there were
 * requests that left L1, those to DRAM first. waits: those of the next code block. */
static inline void traffic_settle_waits(Warp *w, uint32_t waits)
{
    if (w->dram_requests | w->l2_requests) {
        uint32_t dram = w->dram_requests < w->open_waits ? w->dram_requests : w->open_waits,
                 left = w->open_waits - dram;
        w->dram_waits += dram;
        if (w->dram_buffer < 0)
            w->x->mem->copy_waits += dram;
        else if (dram)
            w->x->mem->allocs[w->dram_buffer].waits += dram;
        w->l2_waits += w->l2_requests < left ? w->l2_requests : left;
        w->dram_requests = w->l2_requests = 0;
    }
    w->open_waits = waits;
}

/* A request to shared memory: its ideal wavefronts, and its instruction's counts. */
static inline void traffic_count_shared(SimCounts *n, InstTraffic *t, const Pattern *p)
{
    n->shared_ideal_wavefronts += p->ideal;
    if (!t) return;
    t->wavefronts += p->wavefronts;
    t->ideal += p->ideal;
}

/* A load of constants by an index; and a block that is the first of its SM, which has none of them. */
void traffic_count_constants(Warp *w, const Access *a);
void traffic_start_block(Exec *x);

/* kind: MEM_LOAD, MEM_STORE, MEM_ATOM. Counts nothing in a run whose time is not predicted. */
void traffic_count(Warp *w, const Access *a, int kind);

/* As traffic_count, of a copy between global and shared memory. */
static inline void traffic_count_copy(Warp *w, const Access *a, int kind)
{
    const uint32_t before = w->dram_requests;
    traffic_count(w, a, kind);
    if (w->dram_requests != before) w->dram_buffer = -1;
}

#endif
