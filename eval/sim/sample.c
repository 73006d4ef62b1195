/* The order of the picks is fixed, so that a prediction repeats bit for bit. */
#include "eval/sim/sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/sim/time/extrapolate.h"

enum { SECTOR = 32, FARTHEST = 12 /* doublings of a distance in blocks */ };
static const double shared_enough = 0.5;

/* The reads of a buffer by a block that ran after its neighbour. */
struct SharedReads {
    uint64_t read, near; /* of the buffer, before that block */
    double share[2];     /* that both read, the largest found: next to it, and `apart` from it */
    uint64_t apart;
};

void sample_begin(Sample *s, const DeviceLaunch *l, const uint32_t cluster[3], const DevMem *mem)
{
    memset(s, 0, sizeof *s);
    s->blocks = s->cluster = 1;
    for (int i = 0; i < 3; i++) {
        uint32_t of = cluster[i] ? cluster[i] : 1;
        s->grid[i] = l->grid[i] / of;
        s->blocks *= s->grid[i];
        s->cluster *= of;
    }
    s->least = UINT64_MAX;
    s->done = memory_array(SAMPLE_BLOCKS, sizeof *s->done);
    s->mem = mem;
    s->shared = memory_array((size_t)mem->n_allocs + 1, sizeof *s->shared);
}

void sample_release(Sample *s)
{
    free(s->done);
    free(s->shared);
    s->done = NULL;
    s->shared = NULL;
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

/* Is there a buffer of which several blocks read the same sectors, none of them neighbours found so
 * far? */
static int is_shared_apart(const Sample *s)
{
    for (int i = 0; i < s->mem->n_allocs; i++) {
        const Alloc *a = &s->mem->allocs[i];
        const struct SharedReads *r = &s->shared[i];
        double all = (double)a->read_sectors / s->n * (double)s->blocks;
        if (all * SECTOR > 2 * (double)a->bytes && r->share[0] < shared_enough &&
            r->share[1] < shared_enough)
            return 1;
    }
    return 0;
}

/* Where block n of a large sample lies, counted from the block before, when it is there to tell what
 * both read; else 0. Next to it, and in the next row of the grid. Each comes twice: where data that
 * neighbours share end between the first two, they do not end between the second two, which lie
 * one further. In a grid of one row, blocks that share may lie a row of the tensor apart: the
 * distances double until some are found. */
static uint64_t distance(const Sample *s)
{
    int is_row = s->grid[1] == 1 && s->grid[2] == 1, doublings = (s->n - SAMPLE_ALIKE) / 2 + 1;
    if (s->blocks <= SAMPLE_BLOCKS || s->n < 8 || s->n % 2) return 0;
    if (s->n < SAMPLE_ALIKE) return s->n % 4 && !is_row ? s->grid[0] : 1;
    if (!is_row || doublings > FARTHEST || 1ull << doublings > s->blocks / 2) return 0;
    return is_shared_apart(s) ? 1ull << doublings : 0;
}

static void note_reads(const Sample *s)
{
    for (int i = 0; i < s->mem->n_allocs; i++) {
        s->shared[i].read = s->mem->allocs[i].read_sectors;
        s->shared[i].near = s->mem->allocs[i].near_sectors;
    }
}

/* Block n has run. */
static void note_shared(const Sample *s)
{
    uint64_t far = s->far;
    if (!far || s->ids[s->n] != s->ids[s->n - 1] + far) return;
    for (int i = 0; i < s->mem->n_allocs; i++) {
        struct SharedReads *r = &s->shared[i];
        double read = (double)(s->mem->allocs[i].read_sectors - r->read),
               near = (double)(s->mem->allocs[i].near_sectors - r->near);
        if (read <= 0 || near / read <= r->share[far > 1]) continue;
        r->share[far > 1] = near / read;
        if (far > 1) r->apart = far;
    }
}

/* The next block. There is one that was not picked. */
static uint64_t pick(const Sample *s)
{
    uint64_t b = s->blocks / 2;
    if (s->n == 0) return 0;
    if (s->n % 2 && !is_picked(s, mirrored(s, s->ids[s->n - 1])))
        return mirrored(s, s->ids[s->n - 1]);
    if (s->blocks > SAMPLE_BLOCKS) {
        b = s->far ? (s->ids[s->n - 1] + s->far) % s->blocks : spread(s);
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
           s->largest - s->least <= s->largest / 16 && !distance(s);
}

int sample_next(void *sample, const SimCounts *done, uint64_t *block)
{
    Sample *s = sample;
    if (done) {
        note_shared(s);
        s->done[s->n] = *done;
        s->done[s->n++].blocks = s->blocks;
        s->insts += done->thread_insts;
        s->atomics += done->global_atomic_requests;
        s->fences += done->fences;
        if (done->thread_insts > s->largest) s->largest = done->thread_insts;
        if (done->thread_insts < s->least) s->least = done->thread_insts;
    }
    if (is_enough(s)) return 0;
    s->far = distance(s);
    s->ids[s->n] = *block = pick(s);
    if (s->far) note_reads(s);
    return 1;
}

void sample_finish(const Sample *s, const Profile *p, double resident, SimCounts *out)
{
    const DevMem *mem = s->mem;
    BufferTraffic *t = memory_array((size_t)mem->n_allocs + 1, sizeof *t);
    int registers = out->registers;
    for (int i = 0; i < mem->n_allocs; i++)
        t[i] = (BufferTraffic){.read = (double)mem->allocs[i].read_sectors,
                               .written = (double)mem->allocs[i].written_sectors,
                               .size = (double)mem->allocs[i].bytes,
                               .shared = {s->shared[i].share[0], s->shared[i].share[1]},
                               .apart = (double)s->shared[i].apart};
    extrapolate_blocks(s->done, s->n, out);
    extrapolate_traffic(p, t, mem->n_allocs, resident / (double)s->cluster, out);
    out->registers = registers;
    out->blocks *= s->cluster;
    out->heavy_blocks *= s->cluster;
    free(t);
}

static double asked(const SimCounts *c)
{
    return (double)c->global_load_bytes + (double)c->global_store_bytes;
}

double sample_scale(const Sample *s, const SimCounts *out)
{
    double ran = 0;
    for (int i = 0; i < s->n; i++) ran += asked(&s->done[i]);
    return ran > 0 ? asked(out) / ran : 1;
}

/* ---- outputs ---- */

void sampled_outputs_note(SampledOutputs *o, const DeviceSample *s, DevMem *mem, int launch)
{
    for (int i = 0; i < o->n; i++) {
        const Alloc *a = devmem_at(mem, s->outputs[i]);
        if (!a || !a->written_sectors) continue;
        o->of[i].writers++;
        o->of[i].writer = launch;
        o->of[i].atomics |= a->atomics != 0;
    }
}

/* NULL: it is comparable. */
static const char *obstacle(const SampledOutputs *o, const SampledOutput *y)
{
    return o->guessed                       ? "library calls are not executed there"
           : !y->writers                    ? "no sampled block wrote them"
           : y->writers > 1                 ? "several launches write them"
           : y->atomics                     ? "blocks add to them by atomics"
           : y->writer >= o->complete_until ? "they depend on what other blocks write"
                                            : NULL;
}

int sampled_outputs_finish(const SampledOutputs *o, DeviceSample *s)
{
    int all = 1;
    s->why = NULL;
    for (int i = 0; i < o->n; i++) {
        const SampledOutput *y = &o->of[i];
        const char *why = obstacle(o, y);
        s->comparable[i] = !why;
        if (!s->why) s->why = why;
        all &= s->comparable[i];
    }
    return all;
}
