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

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static void memory_of_block(const Exec *x, double cycles[BUSY_MEMORY])
{
    count_memory(x, cycles);
    for (int k = 0; k < BUSY_MEMORY; k++) cycles[k] += x->cta.memory[k] - x->cta.memory_at[k];
}

double busy_memory_cycles(const Exec *x)
{
    double cycles[BUSY_MEMORY], most = 0;
    memory_of_block(x, cycles);
    for (int k = 0; k < BUSY_MEMORY; k++) most = larger(most, cycles[k]);
    return most;
}

void busy_add_memory(const Exec *x, uint64_t sums[BUSY_MEMORY])
{
    double cycles[BUSY_MEMORY];
    memory_of_block(x, cycles);
    for (int k = 0; k < BUSY_MEMORY; k++) sums[k] += (uint64_t)cycles[k];
}

double busy_cycles(const Exec *x)
{
    double most = busy_memory_cycles(x);
    for (int i = 0; i < SCHEDULERS; i++)
        for (int p = 0; p < PIPE_COUNT; p++)
            most = larger(most, (double)x->cta.pipes[i][p] * x->rates.pipe[p]);
    return most;
}

uint64_t busy_path_cycles(const Exec *x, const WarpPath *path)
{
    double most = 0;
    for (int p = 0; p < PIPE_COUNT; p++)
        most = larger(most, (double)path->part[PATH_PIPES + p] * x->rates.pipe[p]);
    for (int k = 0; k < BUSY_MEMORY; k++) most = larger(most, (double)path->part[PATH_MEMORY + k]);
    return (uint64_t)most;
}
