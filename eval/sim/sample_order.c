/* Delays tell a chain of blocks: the longest ones of later blocks are longer. */
#include "eval/sim/sample_order.h"

#include <math.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "eval/sim/memory/block_waits.h"
#include "eval/sim/sim_launches.h"

enum {
    MOST_PARTS = 16,
    PART_BLOCKS = 1024,                     /* of a part, at most */
    PART_LEAST = 32,                        /* the same, at least; of a kind that begins one */
    MOST_PASSED = 10 * SAMPLE_INSTRUCTIONS, /* thread-instructions of all parts */
    SCOUTS = 2,
    FIRST = 32 /* blocks that scouts may wait for */
};

/* Does a block behind the first ones wait for what none of the blocks waits for that have run? */
static int differs_behind(const Sample *s)
{
    return s->must && s->vain && !waits_were_told(s->exec, s->vain);
}

/* The first block from `from` on that begins a kind of several blocks, or at which a sample in another order
 * ended; the number of blocks: there is none. *left: the blocks of all such kinds. */
static uint64_t next_part(const Sample *s, uint64_t from, uint64_t *left)
{
    const Census *c = s->census;
    uint8_t *seen = memory_alloc((size_t)c->n + 1);
    int must = s->must >= from && (!s->vain || differs_behind(s));
    uint64_t first = must ? s->must : s->blocks;
    *left = 0;
    for (uint64_t b = 0; b < s->blocks; b++) {
        int k = census_kind(c, b);
        if (k < 0 || seen[k]) continue;
        seen[k] = 1;
        if (b < from || c->kinds[k].blocks < PART_LEAST) continue;
        if (b < first) first = b;
        *left += c->kinds[k].blocks;
    }
    free(seen);
    return first;
}

int order_pass_on(Sample *s)
{
    while (s->ran >= s->until) {
        double each = ((double)s->insts + s->passed) / (double)s->ran,
               part = fmin(PART_BLOCKS, SAMPLE_INSTRUCTIONS / fmax(each, 1));
        uint64_t left, from = s->parts ? next_part(s, s->part + 1, &left) : s->ran,
                       end = from + (uint64_t)fmax(part, PART_LEAST);
        if (s->parts == MOST_PARTS || from >= s->blocks ||
            s->passed + each * ((double)end - (double)s->ran) > MOST_PASSED)
            return 0;
        s->part = from, s->parts++;
        s->until = end < s->blocks ? end : s->blocks;
    }
    return 1;
}

/* By how many cycles a block waits longer than the one before, from block `first` on: the longest delays of
 * both halves differ by a hop at least. */
static double growth_from(const Sample *s, uint64_t first)
{
    double most[2] = {0, 0};
    uint64_t n = (s->ran - first) / 2, from = s->ran - 2 * n;
    if (!s->in_order || !n) return 0;
    for (uint64_t i = 0; i < 2 * n; i++)
        most[i >= n] = fmax(most[i >= n], (double)s->delays[from + i]);
    return most[1] - most[0] < WAITS_HOP ? 0 : (most[1] - most[0]) / (double)n;
}

double order_waits(const Sample *s)
{
    double most = 0, growth = fmax(growth_from(s, s->parts > 1 ? s->part : 0), growth_from(s, 0));
    uint64_t left;
    for (int i = 0; i < s->n; i++) most = fmax(most, (double)s->done[i].delay_max);
    if (!s->in_order) return most;
    for (uint64_t b = 0; b < s->ran; b++) most = fmax(most, (double)s->delays[b]);
    if (growth > 0) return most + growth * (double)(s->blocks - s->ran);
    next_part(s, s->ran, &left);
    if (differs_behind(s) && s->ran <= s->must) left = s->blocks - s->ran;
    return most + (double)left * WAITS_HOP;
}

/* The first blocks, and some behind them. */
typedef struct {
    uint64_t seed, blocks, block; /* block: that runs */
    uint64_t first, insts;        /* first blocks, and thread-instructions of them */
    int n;                        /* others that have begun */
} Scouts;

static int next_scout(void *scouts, const SimCounts *done, uint64_t *block)
{
    Scouts *o = scouts;
    uint64_t of[2] = {o->seed, 2000 + (uint64_t)o->n}, behind = o->blocks - SAMPLE_BLOCKS;
    if (done && !o->n) o->insts += done->thread_insts;
    if (o->first < FIRST && o->insts < SAMPLE_INSTRUCTIONS) {
        *block = o->first++;
        return 1;
    }
    if (o->n++ == SCOUTS) return 0;
    o->block = *block =
        SAMPLE_BLOCKS + (uint64_t)(random_unit(random_hash(of, sizeof of)) * (double)behind);
    return 1;
}

void order_scout(Device *d, SampleOf *of)
{
    Exec *x = &d->exec;
    Fault fault = {0};
    Scouts o = {.seed = of->seed, .blocks = of->census->blocks};
    int assumed = d->mem.assumed;
    if (o.blocks <= 2 * SAMPLE_BLOCKS || of->launch->cooperative) return;
    x->budget = MOST_PASSED;
    x->block_budget = 0;
    x->in_order = 0;
    x->reserve = (ExecReserve){0};
    int r = sim_run_blocks(d, of->launch, next_scout, &o, &fault);
    if (!of->launch->module->trusted) d->total += MOST_PASSED - x->budget;
    waits_restore_counters(x);
    d->mem.assumed = assumed;
    if (r <= 0 || !o.n || x->block_floor != INT64_MAX) return;
    of->must = o.block;
    of->vain = x->vain;
    log_debug("block %llu waits in vain", (unsigned long long)o.block);
}
