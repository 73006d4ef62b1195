/* The order of the picks is fixed, so that a prediction repeats bit for bit. */
#include "eval/sim/sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/sim/time/extrapolate.h"

void sample_begin(Sample *s, const DeviceLaunch *l)
{
    memset(s, 0, sizeof *s);
    s->blocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    memcpy(s->grid, l->grid, sizeof s->grid);
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

/* A block at the same distance from the end as `block` from the start, in each dimension. */
static uint64_t mirrored(const Sample *s, uint64_t block)
{
    return s->blocks - 1 - block;
}

/* The first block of a pair: the coordinates of each dimension are spread evenly. */
static uint64_t spread(const Sample *s)
{
    static const double steps[3] = {0.8191725133961645, 0.6710436067037893, 0.5497004779019703};
    uint64_t block = 0, stride = 1;
    for (int k = 0; k < 3; k++) {
        double at = 0.25 + (s->n / 2 - 1) * steps[k];
        block += (uint64_t)((at - floor(at)) * (double)s->grid[k]) * stride;
        stride *= s->grid[k];
    }
    return block;
}

/* The next block. There is one that was not picked. */
static uint64_t pick(const Sample *s)
{
    uint64_t b = s->blocks / 2;
    if (s->n == 0) return 0;
    if (s->n % 2 && !is_picked(s, mirrored(s, s->ids[s->n - 1])))
        return mirrored(s, s->ids[s->n - 1]);
    if (s->blocks > SAMPLE_BLOCKS) {
        b = spread(s);
        if (s->n == 8) b = 1;
        if (s->n == 10) b = s->grid[0] % s->blocks;
    }
    while (is_picked(s, b)) b = (b + 1) % s->blocks;
    return b;
}

static int is_enough(const Sample *s)
{
    if ((uint64_t)s->n == s->blocks || s->n == SAMPLE_BLOCKS) return 1;
    if (s->n < 2 || s->n % 2) return 0;
    if (s->insts + 2 * s->insts / (uint64_t)s->n > SAMPLE_INSTRUCTIONS) return 1;
    return s->blocks > SAMPLE_BLOCKS && s->n >= SAMPLE_ALIKE &&
           s->largest - s->least <= s->largest / 16;
}

int sample_next(void *sample, const SimCounts *done, uint64_t *block)
{
    Sample *s = sample;
    if (done) {
        s->done[s->n++] = *done;
        s->insts += done->thread_insts;
        s->atomics += done->global_atomic_requests;
        s->fences += done->fences;
        if (done->thread_insts > s->largest) s->largest = done->thread_insts;
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
