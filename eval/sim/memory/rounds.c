/* All sums are by pipe, in its units: cycles are the time model's. */
#include "eval/sim/memory/rounds.h"

#include <string.h>

void rounds_start_block(Exec *x)
{
    memset(&x->cta.rounds, 0, sizeof x->cta.rounds);
}

/* The round ends. What its warps do next is behind it. */
static void end_round(Exec *x)
{
    Rounds *r = &x->cta.rounds;
    for (int p = 0; p < PIPE_COUNT; p++) {
        uint64_t most = 0;
        for (int s = 0; s < SCHEDULERS; s++)
            if (r->work[s][p] > most) most = r->work[s][p];
        r->busiest[p] += most;
        for (int s = 0; s < SCHEDULERS; s++) r->idle[s][p] += most - r->work[s][p];
    }
    memset(r->work, 0, sizeof r->work);
    for (uint32_t m = r->met; m; m &= m - 1) {
        const int i = __builtin_ctz(m);
        memcpy(x->warps[i].idle_before, r->idle[i % SCHEDULERS], sizeof r->idle[0]);
    }
    r->met = 0;
}

void rounds_meet(Exec *x, uint32_t warps)
{
    Rounds *r = &x->cta.rounds;
    if (warps & r->met) end_round(x);
    for (uint32_t m = warps; m; m &= m - 1) {
        const int i = __builtin_ctz(m);
        Warp *w = &x->warps[i];
        for (int p = 0; p < PIPE_COUNT; p++)
            r->work[i % SCHEDULERS][p] += w->pipes[p] - w->pipes_met[p];
        memcpy(w->pipes_met, w->pipes, sizeof w->pipes_met);
    }
    r->met |= warps;
}

/* The work of a warp since it met others last, beyond what it has done while its scheduler was idle. */
static uint64_t left_of(Exec *x, int warp, int pipe)
{
    const Warp *w = &x->warps[warp];
    uint64_t *idle = &x->cta.rounds.idle[warp % SCHEDULERS][pipe],
             left = w->pipes[pipe] - w->pipes_met[pipe],
             since = *idle > w->idle_before[pipe] ? *idle - w->idle_before[pipe] : 0,
             filled = left < since ? left : since;
    *idle -= filled;
    return left - filled;
}

void rounds_end_block(Exec *x)
{
    Rounds *r = &x->cta.rounds;
    end_round(x);
    for (int p = 0; p < PIPE_COUNT; p++) {
        uint64_t left[SCHEDULERS] = {0}, most = 0, all = 0;
        for (int i = 0; i < x->cta.n_warps; i++) {
            left[i % SCHEDULERS] += left_of(x, i, p);
            all += x->warps[i].pipes[p];
        }
        for (int s = 0; s < SCHEDULERS; s++)
            if (left[s] > most) most = left[s];
        x->counts.scheduled[p] += all;
        x->counts.busiest[p] += SCHEDULERS * (r->busiest[p] + most);
    }
}
