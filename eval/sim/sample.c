/* The order of the picks follows from the seed, so that a prediction repeats bit for bit. */
#include "eval/sim/sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "eval/sim/memory/block_waits.h"
#include "eval/sim/sample_order.h"
#include "eval/sim/time/extrapolate.h"

enum { WARP = 32, SECTOR = 32, FARTHEST = 12 /* doublings of a distance in blocks */ };
static const double shared_enough = 0.5;
/* Kinds of blocks with this share of the work have a block in the sample; blocks are added until the interval
 * is as narrow as this; costs whose logarithms differ by so much are about equal. */
static const double major_share = 0.02, narrow = 0.05, about = 0.05;

/* The reads of a buffer by a block that ran after its neighbour, and the blocks that read each part of it. */
struct SharedReads {
    uint64_t read, near; /* of the buffer, before that block */
    double share[2];     /* that both read, the largest found: next to it, and `apart` from it */
    uint64_t apart;
    struct {
        uint64_t least, beyond; /* numbers of blocks; 0 and 0: none */
    } readers[DEVMEM_PARTS];
};

/* ---- which blocks run first ---- */

/* In [0, 1), the same for all launches of a plan: where one launch's blocks have run, the next one's read. */
static double draw(const Sample *s, uint64_t which)
{
    const uint64_t of[2] = {s->seed, which};
    return random_unit(random_hash(of, sizeof of));
}

/* A block of the kind, by the seed. */
static uint64_t drawn_of_kind(const Sample *s, int kind, uint64_t which)
{
    uint64_t b = (uint64_t)(draw(s, which) * (double)s->blocks);
    for (uint64_t i = 0; i < s->blocks; i++, b = b + 1 < s->blocks ? b + 1 : 0)
        if (census_kind(s->census, b) == kind) break;
    return b;
}

static void lead(Sample *s, uint64_t block)
{
    for (int i = 0; i < s->n_lead; i++)
        if (s->leads[i] == block) return;
    if (s->n_lead < SAMPLE_LEADS) s->leads[s->n_lead++] = block;
}

static double total_cost(const Census *c)
{
    double sum = 0;
    for (int k = 0; k < c->n; k++) sum += (double)c->kinds[k].blocks * c->kinds[k].cost;
    return sum;
}

/* The kind with the largest share of the work; -1: no kind is known. */
static int largest_kind(const Census *c)
{
    int best = -1;
    double most = -1;
    for (int k = 0; k < c->n; k++) {
        double cost = (double)c->kinds[k].blocks * c->kinds[k].cost;
        if (cost > most) best = k, most = cost;
    }
    return best;
}

/* A block that takes so many times longer than the usual one, and is no small one, is not run: its kind has
 * the counts of others, in proportion. */
static int is_too_dear(const CensusKind *k, const CensusKind *usual)
{
    return k->cost > DEAR_BLOCK * usual->cost && k->cost * WARP > SAMPLE_INSTRUCTIONS;
}

/* The kind that has two blocks; a heavy one is measured by a lighter one. -1: no kind is known. */
static int usual_kind(const Census *c)
{
    int usual = largest_kind(c);
    double all = total_cost(c);
    for (int k = 0; k < c->n && usual >= 0; k++)
        if (is_too_dear(&c->kinds[usual], &c->kinds[k]) && c->kinds[k].blocks > 1 &&
            c->kinds[k].cost * (double)c->kinds[k].blocks > major_share * all)
            usual = k;
    return usual;
}

typedef struct {
    int kind;
    double cost, all; /* of a block; of all its blocks */
} Major;

static int by_cost(const void *a, const void *b)
{
    const Major *x = a, *y = b;
    return x->cost != y->cost ? (x->cost < y->cost ? -1 : 1) : x->kind - y->kind;
}

static void lead_kind(Sample *s, int kind)
{
    lead(s, drawn_of_kind(s, kind, (uint64_t)kind + 20));
}

/* Kinds at even steps of the work of n of them, in the order of their costs, from a drawn place on. */
static void lead_some(Sample *s, Major *of, int n, int steps)
{
    double all = 0, sum = 0, at = draw(s, 10);
    int k = 0;
    qsort(of, (size_t)n, sizeof *of, by_cost);
    for (int i = 0; i < n; i++) all += of[i].all;
    for (int i = 0; i < steps && n; i++) {
        double want = (i + at) / steps * all;
        while (k + 1 < n && sum + of[k].all < want) sum += of[k++].all;
        lead_kind(s, of[k].kind);
    }
}

/* The kinds beside the usual one, those that matter alone first: returns how many these are. *n: of all. */
static int other_kinds(const Sample *s, int usual, Major *of, int *n)
{
    const Census *c = s->census;
    double all = total_cost(c);
    int majors = 0;
    *n = 0;
    for (int k = 0; k < c->n; k++) {
        const CensusKind *kind = &c->kinds[k];
        Major m = {k, kind->cost, (double)kind->blocks * kind->cost};
        if (k == usual || is_too_dear(kind, &c->kinds[usual])) continue;
        of[(*n)++] = m;
        if (m.all < major_share * all) continue;
        of[*n - 1] = of[majors];
        of[majors++] = m;
    }
    return majors;
}

/* The kind whose blocks have the longest way, where it is longer than the usual one's: a launch takes as long
 * as its last block, whatever share of the work that has. -1: none. */
static int longest_kind(const Sample *s, int usual)
{
    const Census *c = s->census;
    double most = 1.25 * c->kinds[usual].path;
    int longest = -1;
    for (int k = 0; k < c->n; k++)
        if (c->kinds[k].path > most && !is_too_dear(&c->kinds[k], &c->kinds[usual]))
            longest = k, most = c->kinds[k].path;
    return longest;
}

/* Where memory decides loops that the usual blocks do not have, the census does not tell what they cost. */
static void lead_opens(Sample *s, int usual)
{
    enum { MOST = 4 };
    const CensusKind *kinds = s->census->kinds;
    uint64_t led[MOST + 1] = {kinds[usual].opens};
    for (int k = 0, n = 1; k < s->census->n && n <= MOST; k++) {
        int is_new = 1;
        for (int i = 0; i < n; i++) is_new &= kinds[k].opens != led[i];
        if (!is_new || is_too_dear(&kinds[k], &kinds[usual])) continue;
        led[n++] = kinds[k].opens;
        lead_kind(s, k);
    }
}

/* A block of each kind that matters, and of some of the small ones where these matter together; where the
 * blocks are dear, of some of all. */
static void lead_kinds(Sample *s, int usual)
{
    Major *of = memory_array((size_t)s->census->n + 1, sizeof *of);
    double all = total_cost(s->census), warps = 0, small = 0;
    int n, majors = other_kinds(s, usual, of, &n);
    for (int i = 0; i < majors; i++) warps += of[i].cost;
    for (int i = majors; i < n; i++) small += of[i].all;
    if (majors > SAMPLE_LEAST && warps * WARP > SAMPLE_INSTRUCTIONS)
        lead_some(s, of, n, SAMPLE_LEAST);
    else {
        for (int i = 0; i < majors; i++) lead_kind(s, of[i].kind);
        if (small >= major_share * all) lead_some(s, of + majors, n - majors, SAMPLE_LEAST);
    }
    free(of);
    const int longest = longest_kind(s, usual);
    if (longest >= 0) lead_kind(s, longest);
    lead_opens(s, usual);
}

/* Two blocks of the usual kind, the last block of the grid, one of each other kind that matters, and the
 * first block. */
static void choose_leads(Sample *s)
{
    const Census *c = s->census;
    int usual = usual_kind(c);
    uint64_t last = s->blocks - 1;
    if (usual >= 0) {
        lead(s, drawn_of_kind(s, usual, 0));
        if (census_kind(c, last) != usual && c->kinds[usual].blocks > 1)
            for (uint64_t i = 1; s->n_lead < 2 && i < 10; i++) lead(s, drawn_of_kind(s, usual, i));
    } else {
        lead(s, (uint64_t)(draw(s, 0) * (double)s->blocks));
    }
    lead(s, last);
    if (usual >= 0) lead_kinds(s, usual);
    s->n_least = s->n_lead;
    lead(s, 0);
}

/* The numbers that blocks draw from a counter. */
static void draw_tickets(const Sample *s)
{
    uint64_t others = s->blocks * s->cluster - 1;
    if (!s->exec) return;
    s->exec->in_order = s->in_order;
    s->exec->ticket_step = s->in_order || !others ? 1 : census_stride(others);
    s->exec->ticket = s->in_order ? 0 : (uint64_t)(draw(s, 11) * (double)others);
}

void sample_begin(Sample *s, const SampleOf *of)
{
    memset(s, 0, sizeof *s);
    s->blocks = s->cluster = 1;
    for (int i = 0; i < 3; i++) {
        uint32_t n = of->cluster[i] ? of->cluster[i] : 1;
        s->grid[i] = of->launch->grid[i] / n;
        s->blocks *= s->grid[i];
        s->cluster *= n;
    }
    s->seed = of->seed;
    s->census = of->census;
    s->exec = of->exec;
    s->in_order = of->in_order;
    s->must = of->must;
    s->vain = of->vain;
    s->done = memory_array(SAMPLE_BLOCKS, sizeof *s->done);
    s->delays = memory_array(s->in_order ? (size_t)s->blocks : 1, sizeof *s->delays);
    s->mem = of->mem;
    s->shared = memory_array((size_t)s->mem->n_allocs + 1, sizeof *s->shared);
    draw_tickets(s);
    if (!s->in_order) choose_leads(s);
}

void sample_release(Sample *s)
{
    free(s->done);
    free(s->shared);
    free(s->delays);
    s->delays = NULL;
    s->done = NULL;
    s->shared = NULL;
}

/* ---- the other blocks ---- */

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

/* Blocks that have run behind the leads, of which there is one pair at least. */
static int turn(const Sample *s)
{
    return s->n - s->n_lead + 2;
}

/* The first block of a pair: the coordinates of each dimension are spread evenly, from a drawn place on. */
static uint64_t spread(const Sample *s)
{
    static const double steps[3] = {0.8191725133961645, 0.6710436067037893, 0.5497004779019703};
    uint64_t block = 0, stride = 1;
    for (int k = 0; k < 3; k++) {
        double at = draw(s, 1000 + (uint64_t)k) + (turn(s) / 2 - 1) * steps[k];
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
    int at = turn(s), is_row = s->grid[1] == 1 && s->grid[2] == 1,
        doublings = (at - SAMPLE_ALIKE) / 2 + 1;
    if (s->in_order || s->blocks <= SAMPLE_BLOCKS || at < 8 || at % 2) return 0;
    if (at < SAMPLE_ALIKE) return at % 4 && !is_row ? s->grid[0] : 1;
    if (!is_row || doublings > FARTHEST || 1ull << doublings > s->blocks / 2) return 0;
    return is_shared_apart(s) ? 1ull << doublings : 0;
}

/* A block has run. */
static void note_readers(const Sample *s)
{
    uint64_t id = s->in_order ? s->ran : s->ids[s->n];
    for (int i = 0; i < s->mem->n_allocs; i++)
        for (int k = 0; k < DEVMEM_PARTS; k++) {
            const struct AllocPart *part = &s->mem->allocs[i].part[k];
            if (!part->read || part->launch_id != s->mem->launch_id) continue;
            if (!s->shared[i].readers[k].beyond || id < s->shared[i].readers[k].least)
                s->shared[i].readers[k].least = id;
            if (id >= s->shared[i].readers[k].beyond) s->shared[i].readers[k].beyond = id + 1;
        }
}

/* Block n has run. */
static void note_near_lines(Sample *s, const SimCounts *done)
{
    if (s->far != 1 || s->ids[s->n] != s->ids[s->n - 1] + 1 || !done->atomic_lines) return;
    s->near_lines =
        fmax(s->near_lines, (double)done->atomic_near_lines / (double)done->atomic_lines);
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
    if (s->in_order) return (uint64_t)s->n;
    if (s->n < s->n_lead) return s->leads[s->n];
    if (turn(s) % 2 && !is_picked(s, mirrored(s, s->ids[s->n - 1])))
        return mirrored(s, s->ids[s->n - 1]);
    if (s->blocks > SAMPLE_BLOCKS) b = s->far ? (s->ids[s->n - 1] + s->far) % s->blocks : spread(s);
    while (is_picked(s, b)) b = (b + 1) % s->blocks;
    return b;
}

/* ---- what the sample stands for ---- */

/* Cycles that a block takes of an SM, about: what its counts differ by matters as it takes time. */
static double cycles_of(const SimCounts *c)
{
    double l2 = (double)(c->global_load_sectors - c->l1_hit_sectors) / 2;
    return (double)c->warp_insts / 4 + l2 + 2 * (double)c->global_store_sectors +
           (double)c->global_load_wavefronts +
           (double)(c->shared_load_wavefronts + c->shared_store_wavefronts) +
           (double)c->tensor_flops / 4096 + (double)c->global_atomic_serial;
}

/* Cycles of a block that runs alone, about: those of its slowest warp, and those for which it keeps its SM
 * busy. */
static double alone(const SimCounts *c)
{
    double warp = fmax((double)c->chain_cycles_max, 2 * (double)c->warp_insts_max) +
                  500 * (double)c->global_waits_max;
    return hypot(warp, fmax((double)c->busy_path_max, (double)c->heaviest_memory));
}

/* Blocks of one kind: those of the grid, and those that have run. */
typedef struct {
    double blocks, cost;
    int ran;
    double sum, squares; /* of the cycles of these */
} Stratum;

/* The strata of a sample: the kinds of the census, and two more. */
enum { UNKNOWN /* blocks without a kind */, EDGES /* of these the first and the last one */, MORE };

static int stratum_of(const Sample *s, int i)
{
    int kind = census_kind(s->census, s->ids[i]),
        is_edge = !s->ids[i] || s->ids[i] + 1 == s->blocks;
    if (kind >= 0) return kind;
    return s->census->n + (is_edge && s->blocks > 2 ? EDGES : UNKNOWN);
}

/* Blocks without a kind, of which few ran, count as those do that the census has drawn. */
static void count_as_drawn(const Census *c, Stratum *all)
{
    Stratum *unknown = &all[c->n + UNKNOWN];
    double drawn = 0;
    for (int k = 0; k < c->n; k++) drawn += (double)c->kinds[k].drawn;
    if (!drawn || unknown->ran >= SAMPLE_LEAST) return;
    for (int k = 0; k < c->n; k++)
        all[k].blocks += unknown->blocks * (double)c->kinds[k].drawn / drawn;
    unknown->blocks = 0;
}

/* Returns them, one a kind, and the others behind. */
static Stratum *strata_of(const Sample *s)
{
    const Census *c = s->census;
    Stratum *all = memory_array((size_t)c->n + MORE, sizeof *all);
    for (int k = 0; k < c->n; k++)
        all[k] = (Stratum){.blocks = (double)c->kinds[k].blocks, .cost = c->kinds[k].cost};
    all[c->n + UNKNOWN].blocks = (double)(s->blocks - c->known);
    for (int i = 0; i < s->n; i++) {
        int at = stratum_of(s, i);
        if (s->closing && i == s->closing) continue;
        double v = cycles_of(&s->done[i]);
        all[at].ran++, all[at].sum += v, all[at].squares += v * v;
        if (at != c->n + EDGES) continue;
        all[at].blocks++, all[c->n + UNKNOWN].blocks--;
    }
    count_as_drawn(c, all);
    return all;
}

/* Of the kinds that ran, the one of the nearest cost; -1: none has. */
static int nearest(const Stratum *all, int n, int kind)
{
    int best = -1;
    double least = INFINITY;
    for (int k = 0; k < n && kind < n; k++) {
        double by = fabs(log(fmax(all[k].cost, 1) / fmax(all[kind].cost, 1)));
        if (all[k].ran && by < least) best = k, least = by;
    }
    return best;
}

/* How far a kind's cost is from another's; INFINITY: no block of it ran, or it has `most` of the work. */
static double distance_of(const Stratum *of, const Stratum *from, double most)
{
    if (!of->ran || of->blocks * of->cost >= most) return INFINITY;
    return fabs(log(fmax(of->cost, 1) / fmax(from->cost, 1)));
}

/* Blocks of a kind of which none ran count as those of the kinds with about its cost, in equal parts: of
 * kinds with less work than `most`, where such ones ran. Returns 0 where no kind has run. */
static int share_kind(const Stratum *all, int n, int kind, double most, double *of_kind)
{
    double least = INFINITY, parts = 0, work = all[kind].blocks * all[kind].cost;
    for (int k = 0; k < n; k++) least = fmin(least, distance_of(&all[k], &all[kind], most));
    if (isinf(least)) return isinf(most) ? 0 : share_kind(all, n, kind, INFINITY, of_kind);
    for (int k = 0; k < n; k++) parts += distance_of(&all[k], &all[kind], most) <= least + about;
    for (int k = 0; k < n; k++)
        if (distance_of(&all[k], &all[kind], most) <= least + about)
            of_kind[k] += work / parts / fmax(all[k].cost, 1);
    return 1;
}

/* Of each block that ran, how many of the grid it stands for. */
static void find_weights(const Sample *s, double *weights)
{
    const Census *c = s->census;
    Stratum *all = strata_of(s);
    double *of_kind = memory_array((size_t)c->n + MORE, sizeof *of_kind), rest = 0, work = 0;
    for (int k = 0; k < c->n; k++) work += all[k].blocks * all[k].cost;
    for (int k = 0; k < c->n + MORE; k++) {
        int small = all[k].blocks * all[k].cost < major_share * work;
        if (all[k].ran)
            of_kind[k] += all[k].blocks;
        else if (k >= c->n ||
                 !share_kind(all, c->n, k, small ? major_share * work : INFINITY, of_kind))
            rest += all[k].blocks;
    }
    for (int i = 0; i < s->n; i++) {
        int at = stratum_of(s, i);
        weights[i] = of_kind[at] / fmax(all[at].ran, 1) + rest / s->n;
    }
    if (s->closing) weights[s->closing] = 1;
    free(of_kind);
    free(all);
}

/* Student's t of 95% by degrees of freedom. */
static double student(int degrees)
{
    static const double t[] = {12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365,
                               2.306, 2.262, 2.228, 2.201, 2.179, 2.16,  2.145};
    if (degrees < 1) return 0;
    return degrees <= 14 ? t[degrees - 1] : 2 + 1.9 / degrees;
}

/* The variance of the mean cost of blocks that count as those do which the census has drawn, over its square,
 * times their share of all. */
static double variance_of_drawn(const Sample *s, const Stratum *all, int *degrees)
{
    const Census *c = s->census;
    double n = 0, sum = 0, squares = 0, share = (double)(s->blocks - c->known) / (double)s->blocks;
    for (int k = 0; k < c->n; k++) {
        double drawn = (double)c->kinds[k].drawn, cost = c->kinds[k].cost;
        n += drawn, sum += drawn * cost, squares += drawn * cost * cost;
    }
    if (n < 2 || all[c->n + UNKNOWN].blocks > 0 || sum <= 0) return 0;
    *degrees += (int)fmin(n - 1, INT16_MAX);
    return share * share * fmax(0, squares * n / (sum * sum) - 1) / (n - 1);
}

double sample_interval(const Sample *s)
{
    Stratum *all = strata_of(s);
    double total = 0, variance = 0;
    int degrees = 0;
    for (int k = 0; k < s->census->n + MORE; k++) {
        const Stratum *of = &all[k];
        if (!of->ran) continue;
        double mean = of->sum / of->ran;
        total += mean * of->blocks;
        if (of->ran < 2) continue;
        double each = fmax(0, of->squares - mean * of->sum) / (of->ran - 1),
               left = fmax(0, 1 - of->ran / of->blocks);
        variance += of->blocks * of->blocks * each / of->ran * left;
        degrees += of->ran - 1;
    }
    variance += total * total * variance_of_drawn(s, all, &degrees);
    free(all);
    return total > 0 ? student(degrees) * sqrt(variance) / total : 0;
}

int sample_is_open(const Sample *s)
{
    return s->census->open || s->census->known < s->blocks;
}

double sample_least_work(const Sample *s)
{
    double sum = 0;
    for (int i = 0; i < s->n_least; i++) {
        int kind = census_kind(s->census, s->leads[i]);
        if (kind >= 0) sum += s->census->kinds[kind].cost;
    }
    return sum;
}

/* Blocks of one kind may differ. */
static int is_vague(const Sample *s)
{
    return sample_is_open(s) && !(s->census->settled && s->census->known == s->blocks);
}

/* A sample of dear blocks ends as soon as it may. */
static int is_enough(const Sample *s)
{
    if ((uint64_t)s->n == s->blocks || s->n == SAMPLE_BLOCKS) return 1;
    if (s->cluster > 1 && s->insts > DEAR_CLUSTER && s->census->n == 1 && !is_vague(s)) return 1;
    if (s->n < 2 || s->n < s->n_least) return 0;
    if (s->in_order) return s->n >= SAMPLE_LEAST && s->insts > SAMPLE_INSTRUCTIONS;
    int few = s->n < SAMPLE_LEAST && is_vague(s);
    if (s->insts + 2 * s->insts / (uint64_t)s->n > SAMPLE_INSTRUCTIONS)
        return !few && (s->insts > MOST_INSTRUCTIONS || sample_interval(s) <= narrow);
    return s->blocks > SAMPLE_BLOCKS && turn(s) >= SAMPLE_ALIKE && !(turn(s) % 2) &&
           sample_interval(s) <= narrow && !distance(s);
}

/* Blocks of one kind, of which the census leaves something open: eight run at least, or none counts. The
 * first two tell whether the limit is enough for all. */
static int is_too_dear_in_all(Sample *s)
{
    static const double nearly = 0.95; /* what the cheapest takes of another one, about */
    const Exec *x = s->exec;
    int64_t left = x->budget + x->reserve.left, took = s->begun - left;
    s->begun = left;
    if (!s->n) return 0;
    if (s->n == 1 || took < s->least) s->least = took;
    int must = (int)(s->blocks < SAMPLE_LEAST ? s->blocks : SAMPLE_LEAST);
    return s->is_limited && s->n > 1 && s->n < must && !s->in_order && s->census->n == 1 &&
           is_vague(s) && (must - s->n) * nearly * (double)s->least > (double)left;
}

/* Should one more block run, as the last of the grid to draw from a counter? Returns 0 where it has. */
static int begin_closing(Sample *s)
{
    if (s->closing || s->in_order || s->n == SAMPLE_BLOCKS || (uint64_t)s->n == s->blocks ||
        !waits_has_counter(s->exec))
        return 0;
    s->closing = s->n;
    s->exec->closing = 1;
    return 1;
}

static uint64_t closing_block(const Sample *s)
{
    uint64_t b = s->blocks - 1;
    while (is_picked(s, b)) b--;
    return b;
}

static double asked(const SimCounts *c)
{
    return (double)c->global_load_bytes + (double)c->global_store_bytes;
}

/* A block has run. */
static void note_block(Sample *s, const SimCounts *done)
{
    if (s->in_order) s->delays[s->ran] = done->delay_max;
    note_readers(s);
    s->ran++;
    if (s->parts) {
        s->passed += (double)done->thread_insts;
        s->passed_bytes += asked(done);
        return;
    }
    note_shared(s);
    note_near_lines(s, done);
    s->done[s->n] = *done;
    s->done[s->n++].blocks = s->blocks;
    s->insts += done->thread_insts;
    s->atomics += done->global_atomic_requests;
    s->fences += done->fences;
}

int sample_next(void *sample, const SimCounts *done, uint64_t *block)
{
    Sample *s = sample;
    if (done) note_block(s, done);
    s->too_dear = s->exec && is_too_dear_in_all(s);
    if (s->too_dear) return 0;
    if (s->in_order && (s->parts || is_enough(s))) {
        *block = s->ran;
        return order_pass_on(s);
    }
    if (s->closing || (is_enough(s) && !begin_closing(s))) return 0;
    s->far = s->closing ? 0 : distance(s);
    s->ids[s->n] = *block = s->closing ? closing_block(s) : pick(s);
    if (s->far) note_reads(s);
    return 1;
}

/* By how much the longest way of a block of the grid is longer than that of any block that has run. */
static double longer(const Sample *s, const Stratum *all)
{
    double most = 0, ran = 0;
    for (int k = 0; k < s->census->n; k++) {
        const double path = s->census->kinds[k].path;
        most = fmax(most, path);
        if (all[k].ran) ran = fmax(ran, path);
    }
    return ran > 0 ? most / ran : 1;
}

/* What the heaviest block of the grid takes longer than the one that stands for it. */
static double heavier(const Sample *s)
{
    Stratum *all = strata_of(s);
    int top = -1, by;
    double most = 0, factor = longer(s, all);
    for (int k = 0; k < s->census->n; k++)
        if (all[k].cost > most) top = k, most = all[k].cost;
    if (top >= 0 && !all[top].ran && (by = nearest(all, s->census->n, top)) >= 0)
        factor = fmax(factor, most / fmax(all[by].cost, 1));
    free(all);
    return fmax(factor, 1);
}

/* How many blocks of the grid are as heavy as the heaviest, within a sixteenth. 0: it is not known. */
static uint64_t heavy_blocks(const Census *c, uint64_t blocks)
{
    double most = 0;
    uint64_t sum = 0;
    for (int k = 0; k < c->n; k++) most = fmax(most, c->kinds[k].cost);
    for (int k = 0; k < c->n; k++)
        if (c->kinds[k].cost >= most * 15 / 16) sum += c->kinds[k].blocks;
    return c->known == blocks && !c->open ? sum : 0;
}

/* Cycles that the closing block takes beyond what others take. */
static double closing_cycles(const Sample *s)
{
    double usual = 0;
    if (!s->closing) return 0;
    for (int i = 0; i < s->closing; i++) usual = fmax(usual, alone(&s->done[i]));
    return fmax(0, alone(&s->done[s->closing]) - usual);
}

/* The parts of a buffer that half of the sampled blocks read, or more, over half of the grid: what the blocks
 * of a wave share. Blocks that are sampled beside one another read the same part of what the grid divides. */
static void find_common(const Sample *s, int alloc, BufferTraffic *t)
{
    enum { LEAST_SHARERS = 8 };
    const Alloc *a = &s->mem->allocs[alloc];
    const struct SharedReads *r = &s->shared[alloc];
    double sectors = ceil((double)a->bytes / SECTOR), part = (double)(1ull << a->part_shift);
    int all = (int)(s->ran * s->cluster);
    for (int k = 0; k < DEVMEM_PARTS && k * part < sectors; k++) {
        if (a->part[k].blocks < LEAST_SHARERS || (int)a->part[k].blocks * 2 < all) continue;
        if ((r->readers[k].beyond - r->readers[k].least) * 2 < s->blocks) continue;
        t->common += fmin(part, sectors - k * part);
        t->common_read += (double)a->part[k].read;
    }
}

void sample_finish(const Sample *s, const Profile *p, double resident, SimCounts *out)
{
    const DevMem *mem = s->mem;
    BufferTraffic *t = memory_array((size_t)mem->n_allocs + 1, sizeof *t);
    double weights[SAMPLE_BLOCKS];
    int registers = out->registers;
    for (int i = 0; i < mem->n_allocs; i++)
        t[i] = (BufferTraffic){.read = (double)mem->allocs[i].read_sectors,
                               .written = (double)mem->allocs[i].written_sectors,
                               .size = (double)mem->allocs[i].bytes,
                               .shared = {s->shared[i].share[0], s->shared[i].share[1]},
                               .apart = (double)s->shared[i].apart,
                               .waits = (double)mem->allocs[i].waits,
                               .atomics = mem->allocs[i].atomics != 0};
    for (int i = 0; i < mem->n_allocs; i++) find_common(s, i, &t[i]);
    find_weights(s, weights);
    const double closing = closing_cycles(s);
    if (s->closing) extrapolate_behind(s->done, s->closing, &s->done[s->closing]);
    extrapolate_blocks(s->done, weights, s->n, out);
    uint64_t heavy = heavy_blocks(s->census, s->blocks);
    if (heavy) out->heavy_blocks = heavy;
    extrapolate_heaviest(heavier(s), out);
    out->path_cycles = (uint64_t)(order_waits(s) + closing);
    out->atomic_near_lines = (uint64_t)(s->near_lines * (double)out->atomic_lines);
    out->copy_waits = mem->copy_waits;
    extrapolate_traffic(p, t, mem->n_allocs, resident / (double)s->cluster, out);
    out->registers = registers;
    out->blocks *= s->cluster;
    out->heavy_blocks *= s->cluster;
    out->heavy_memory_blocks *= s->cluster;
    free(t);
}

double sample_scale(const Sample *s, const SimCounts *out)
{
    double ran = s->passed_bytes;
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
