/* A block that only looks at a flag again and again leaves its turn to the next one. */
#include "eval/sim/memory/cooperative.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/sim/memory/doubts.h"

enum { QUIET_ROUNDS = 1024 };

void cooperative_prepare(Exec *x)
{
    Cooperative *c = x->cooperative = memory_alloc(sizeof *c);
    c->n = x->n_blocks;
    told_begin(&c->told, c->n);
    c->blocks = memory_array(c->n, sizeof *c->blocks);
    c->arrivals = memory_array(c->n, sizeof *c->arrivals);
}

void cooperative_select(Exec *x, uint64_t block)
{
    Cooperative *c = x->cooperative;
    if (block == c->current) return;
    block_save(x, &c->blocks[c->current]);
    block_restore(x, &c->blocks[block]);
    c->current = c->told.current = block;
    doubts_change_block(x);
}

void cooperative_release(Exec *x)
{
    Cooperative *c = x->cooperative;
    if (!c) return;
    for (uint64_t b = c->n - 1; b > 0; b--) {
        cooperative_select(x, b);
        block_release(x);
    }
    cooperative_select(x, 0);
    told_release(&c->told);
    free(c->blocks);
    free(c->arrivals);
    free(c);
    x->cooperative = NULL;
}

void cooperative_read_early(Exec *x, uint64_t lo, uint64_t hi)
{
    Cooperative *c = x->cooperative;
    if (!c) return;
    c->stopped = 1;
    if (c->hi) return;
    c->lo = lo;
    c->hi = hi;
}

void cooperative_go_on(Exec *x)
{
    Cooperative *c = x->cooperative;
    if (!x->faulted || !c->stopped) return;
    if (!c->early.outcome) c->early = *x->fault;
    c->stopped = 0;
    x->faulted = 0;
    x->cta.live_threads = 0;
    for (int i = 0; i < x->cta.n_warps; i++) x->warps[i].n_splits = 0;
}

void cooperative_end(Exec *x)
{
    const Cooperative *c = x->cooperative;
    if (!c->early.outcome || (x->faulted && x->fault->outcome == OUTCOME_RACE)) return;
    *x->fault = c->early;
    x->faulted = 1;
    if (!devmem_is_written(x->mem, c->lo, c->hi)) return;
    x->fault->outcome = OUTCOME_RACE;
    char *message = x->fault->message, *cause = strstr(message, " before anything was written");
    size_t at = cause ? (size_t)(cause - message) : strlen(message);
    snprintf(message + at, sizeof x->fault->message - at,
             ", which another block writes in the same launch with no order between: a barrier of "
             "the grid must come between them");
}

/* Reports the first thread that looks at what never changes. */
static void report(Exec *x)
{
    uint64_t waiting = 0, first = 0;
    for (uint64_t b = x->cooperative->n; b-- > 0;) {
        cooperative_select(x, b);
        if (!x->cta.live_threads) continue;
        waiting++;
        first = b;
    }
    cooperative_select(x, first);
    for (int i = 0; i < x->cta.n_warps; i++) {
        Warp *w = &x->warps[i];
        for (int s = 0; s < w->n_splits; s++) {
            if (w->splits[s].state != SPLIT_READY || !w->splits[s].n_last) continue;
            w->frame = w->splits[s].frame;
            exec_fault(w, w->splits[s].last[w->splits[s].n_last - 1],
                       __builtin_ctz(w->splits[s].mask), OUTCOME_RACE,
                       "waits for ever for other blocks: %llu of %llu blocks wait, the others have "
                       "ended; a barrier of the grid must be reached by all",
                       (unsigned long long)waiting, (unsigned long long)x->cooperative->n);
            return;
        }
    }
}

void cooperative_round(Exec *x, int busy)
{
    Cooperative *c = x->cooperative;
    c->quiet = busy ? 0 : c->quiet + 1;
    if (c->quiet > QUIET_ROUNDS && !x->faulted) report(x);
}
