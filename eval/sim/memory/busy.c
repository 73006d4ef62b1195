/* The counts are of all blocks that run in turn: a block has the differences while it is the running one. */
#include "eval/sim/memory/busy.h"

#include <string.h>

static void count_memory(const Exec *x, double cycles[BUSY_MEMORY])
{
    memset(cycles, 0, BUSY_MEMORY * sizeof *cycles);
    if (x->rates.memory) x->rates.memory(x->rates.profile, &x->counts, cycles);
}

void busy_start_block(Exec *x)
{
    memset(x->cta.memory, 0, sizeof x->cta.memory);
    memset(x->cta.pipes, 0, sizeof x->cta.pipes);
    busy_return(x);
}

void busy_return(Exec *x)
{
    count_memory(x, x->cta.memory_at);
}

void busy_leave(const Exec *x, Cta *c)
{
    double now[BUSY_MEMORY];
    count_memory(x, now);
    for (int k = 0; k < BUSY_MEMORY; k++) c->memory[k] += now[k] - c->memory_at[k];
}

double busy_memory_cycles(const Exec *x)
{
    double now[BUSY_MEMORY], most = 0;
    count_memory(x, now);
    for (int k = 0; k < BUSY_MEMORY; k++) {
        const double cycles = x->cta.memory[k] + now[k] - x->cta.memory_at[k];
        if (cycles > most) most = cycles;
    }
    return most;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double cycles_of(const Exec *x, int scheduler)
{
    double most = 0;
    for (int p = 0; p < PIPE_COUNT; p++)
        most = larger(most, (double)x->cta.pipes[scheduler][p] * x->rates.pipe[p]);
    return most;
}

double busy_pipe_cycles(const Exec *x)
{
    double most = 0;
    for (int i = 0; i < SCHEDULERS; i++) most = larger(most, cycles_of(x, i));
    return most;
}

uint64_t busy_cycles_of_warp(const Warp *w)
{
    const double own = cycles_of(w->x, w->index % SCHEDULERS);
    return (uint64_t)(w->x->cooperative ? larger(own, busy_memory_cycles(w->x)) : own);
}

double busy_cycles(const Exec *x)
{
    return larger(busy_pipe_cycles(x), busy_memory_cycles(x));
}
