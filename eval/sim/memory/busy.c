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
    busy_return(x);
}

void busy_return(Exec *x)
{
    count_memory(x, x->cta.memory_at);
    x->cta.busy_at = UINT64_MAX;
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

static double pipe_cycles(const Exec *x)
{
    uint64_t of[SCHEDULERS][PIPE_COUNT] = {{0}};
    double most = 0;
    for (int i = 0; i < x->cta.n_warps; i++)
        for (int p = 0; p < PIPE_COUNT; p++) of[i % SCHEDULERS][p] += x->warps[i].pipes[p];
    for (int i = 0; i < SCHEDULERS; i++)
        for (int p = 0; p < PIPE_COUNT; p++) {
            const double cycles = (double)of[i][p] * x->rates.pipe[p];
            if (cycles > most) most = cycles;
        }
    return most;
}

double busy_cycles(Exec *x)
{
    Cta *c = &x->cta;
    if (c->busy_at == x->clock) return c->busy;
    const double pipes = pipe_cycles(x), memory = busy_memory_cycles(x);
    c->busy_at = x->clock;
    c->busy = pipes > memory ? pipes : memory;
    return c->busy;
}
