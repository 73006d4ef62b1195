/* The order of the picks is fixed, so that a prediction repeats bit for bit. */
#include "eval/sim/sample.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/sim/time/extrapolate.h"

void sample_begin(Sample *s, const DeviceLaunch *l)
{
    memset(s, 0, sizeof *s);
    s->blocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    s->row = l->grid[0];
    s->least = UINT64_MAX;
    s->done = memory_array(SAMPLE_BLOCKS, sizeof *s->done);
}

void sample_release(Sample *s)
{
    free(s->done);
    s->done = NULL;
}

static int is_picked(const Sample *s, uint64_t block)
{
    for (int i = 0; i < s->n; i++)
        if (s->ids[i] == block) return 1;
    return 0;
}

/* The next block. There is one that was not picked. */
static uint64_t pick(const Sample *s)
{
    uint64_t inner = s->blocks - 2, b;
    if (s->n == 0) return 0;
    if (s->n == 1) return s->blocks - 1;
    if (s->blocks <= SAMPLE_BLOCKS) {
        for (b = s->blocks / 2; is_picked(s, b);) b = (b + 1) % s->blocks;
        return b;
    }
    if (s->n == 8 && !is_picked(s, 1)) return 1;
    if (s->n == 9 && !is_picked(s, s->row % s->blocks)) return s->row % s->blocks;
    double at = 0.5 + (s->n - 2) * 0.6180339887498949; /* the golden ratio spreads evenly */
    b = 1 + (uint64_t)((at - (double)(uint64_t)at) * (double)inner);
    while (is_picked(s, b)) b = (b + 1) % s->blocks;
    return b;
}

static int is_enough(const Sample *s)
{
    if ((uint64_t)s->n == s->blocks || s->n == SAMPLE_BLOCKS) return 1;
    if (s->n < 2) return 0;
    if (s->insts + s->insts / (uint64_t)s->n > SAMPLE_INSTRUCTIONS) return 1;
    return s->blocks > SAMPLE_BLOCKS && s->n >= SAMPLE_ALIKE && s->most - s->least <= s->most / 16;
}

int sample_next(void *sample, const SimCounts *done, uint64_t *block)
{
    Sample *s = sample;
    if (done) {
        s->done[s->n++] = *done;
        s->insts += done->thread_insts;
        s->atomics += done->global_atomic_requests;
        s->fences += done->fences;
        if (done->thread_insts > s->most) s->most = done->thread_insts;
        if (done->thread_insts < s->least) s->least = done->thread_insts;
    }
    if (is_enough(s)) return 0;
    s->ids[s->n] = *block = pick(s);
    return 1;
}

void sample_finish(const Sample *s, const Profile *p, const DevMem *mem, double resident,
                   SimCounts *out)
{
    BufferTraffic *t = memory_array((size_t)mem->n_allocs + 1, sizeof *t);
    int registers = out->registers;
    for (int i = 0; i < mem->n_allocs; i++)
        t[i] =
            (BufferTraffic){(double)mem->allocs[i].read_sectors,
                            (double)mem->allocs[i].written_sectors, (double)mem->allocs[i].bytes};
    extrapolate_blocks(s->done, s->n, out);
    extrapolate_traffic(p, t, mem->n_allocs, resident, out);
    out->registers = registers;
    free(t);
}
