/* Most blocks have the runs of another one, moved: a shape. */
#include "eval/sim/coverage/visits.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* In all: launches, blocks that have told, some 9 MB, and runs of shapes, 10 MB. LISTS: of shapes of a launch
 * whose digests have the same low bits. */
enum { LAUNCHES = 8, MOST_BLOCKS = 1 << 17, MOST_RUNS = 1 << 18, LISTS = 1 << 10 };

typedef struct {
    int n, next;    /* next: 1 + the shape before it in its list; 0: none */
    BlockRun *runs; /* `at`: from the first one on */
} Shape;

typedef struct {
    Box box;
    int64_t at, took;
    int shape;
    int either; /* SliceRun's: an answer where both sides count is none where a condition has to be known */
} Told;

struct VisitedLaunch {
    VisitedLaunches *all;
    SliceInst *insts;
    SliceBlock *blocks;
    int n_insts, n_blocks, n_slots, n_lanes;
    uint32_t cluster[3];
    GridParts parts;
    int is_split;        /* parts: the grid was divided */
    DeviceLaunch launch; /* what it points to is not looked at */
    uint64_t grid;
    uint32_t *of_block; /* 1 + the place in `told` */
    Told *told;
    int n, cap;
    Shape *shapes;
    int n_shapes, cap_shapes;
    int list[LISTS]; /* 1 + the shape that was added to it last; 0: it is empty */
};

struct VisitedLaunches {
    VisitedLaunch *of[LAUNCHES];
    int n, n_told;
    int64_t n_runs;
};

VisitedLaunches *visits_new(void)
{
    return memory_alloc(sizeof(VisitedLaunches));
}

static void forget(VisitedLaunch *t)
{
    for (int i = 0; i < t->n_shapes; i++) free(t->shapes[i].runs);
    memory_sparse_free(t->of_block, t->grid, sizeof *t->of_block);
    free(t->shapes);
    free(t->told);
    free(t->insts);
    free(t->blocks);
    free(t);
}

static void forget_all(VisitedLaunches *all)
{
    for (int i = 0; i < all->n; i++) forget(all->of[i]);
    all->n = all->n_told = 0;
    all->n_runs = 0;
}

void visits_free(VisitedLaunches *all)
{
    if (all) forget_all(all);
    free(all);
}

/* Does the slice of *r do what that of t did, with the same parameters? */
static int is_same(const VisitedLaunch *t, const SliceRun *r)
{
    const Slice *s = r->slice;
    const DeviceLaunch *a = &t->launch, *b = r->launch;
    return t->n_insts == s->n_insts && t->n_blocks == s->n_blocks && t->n_slots == s->n_slots &&
           t->n_lanes == r->n_lanes && !memcmp(a->grid, b->grid, sizeof a->grid) &&
           !memcmp(a->block, b->block, sizeof a->block) && a->shared_bytes == b->shared_bytes &&
           a->n_maps == b->n_maps &&
           !memcmp(a->map_at, b->map_at, (size_t)a->n_maps * sizeof *a->map_at) &&
           !memcmp(a->params, b->params, sizeof a->params) &&
           !memcmp(t->cluster, s->f->cluster, sizeof t->cluster) &&
           !memcmp(t->insts, s->insts, (size_t)s->n_insts * sizeof *s->insts) &&
           !memcmp(t->blocks, s->blocks, (size_t)s->n_blocks * sizeof *s->blocks);
}

static void *copy_of(const void *from, size_t n, size_t size)
{
    void *to = memory_array(n + 1, size);
    if (n) memcpy(to, from, n * size);
    return to;
}

VisitedLaunch *visits_of(VisitedLaunches *all, SliceRun *r, int split)
{
    const Slice *s = r->slice;
    const uint64_t grid = (uint64_t)r->launch->grid[0] * r->launch->grid[1] * r->launch->grid[2];
    for (int i = 0; all && i < all->n; i++)
        if (all->of[i]->is_split >= split && is_same(all->of[i], r)) {
            r->parts = all->of[i]->parts;
            return all->of[i];
        }
    if (split) slice_run_split(r);
    if (!all || r->passes || grid > UINT32_MAX) return NULL;
    if (all->n == LAUNCHES || all->n_told >= MOST_BLOCKS || all->n_runs >= MOST_RUNS)
        forget_all(all);
    VisitedLaunch *t = all->of[all->n++] = memory_alloc(sizeof *t);
    *t = (VisitedLaunch){.all = all,
                         .insts = copy_of(s->insts, (size_t)s->n_insts, sizeof *s->insts),
                         .blocks = copy_of(s->blocks, (size_t)s->n_blocks, sizeof *s->blocks),
                         .n_insts = s->n_insts,
                         .n_blocks = s->n_blocks,
                         .n_slots = s->n_slots,
                         .n_lanes = r->n_lanes,
                         .launch = *r->launch,
                         .parts = r->parts,
                         .is_split = split,
                         .grid = grid,
                         .of_block = memory_sparse(grid, sizeof *t->of_block)};
    memcpy(t->cluster, s->f->cluster, sizeof t->cluster);
    return t;
}

int visits_again(const VisitedLaunch *of, SliceRun *r, uint64_t b)
{
    const uint32_t *grid = r->launch->grid;
    if (!of || !of->of_block[b]) return 0;
    const Told *t = &of->told[of->of_block[b] - 1];
    const Shape *shape = &of->shapes[t->shape];
    if (t->took >= r->budget || t->either > r->either) return 0;
    r->budget -= t->took;
    r->block[0] = (uint32_t)(b % grid[0]);
    r->block[1] = (uint32_t)(b / grid[0] % grid[1]);
    r->block[2] = (uint32_t)(b / grid[0] / grid[1]);
    r->box = t->box;
    r->n_runs = shape->n;
    if (r->cap_runs < shape->n) {
        r->cap_runs = shape->n;
        r->runs = memory_grow(r->runs, (size_t)r->cap_runs, sizeof *r->runs);
    }
    for (int i = 0; i < shape->n; i++) {
        r->runs[i] = shape->runs[i];
        r->runs[i].at += t->at;
    }
    return 1;
}

static int has_shape(const Shape *shape, const SliceRun *r)
{
    if (shape->n != r->n_runs) return 0;
    for (int i = 0; i < shape->n; i++) {
        const BlockRun *a = &shape->runs[i], *b = &r->runs[i];
        if (a->at != b->at - r->runs->at || a->bytes != b->bytes || memcmp(a->d, b->d, sizeof a->d))
            return 0;
    }
    return 1;
}

static int list_of(const SliceRun *r)
{
    uint64_t h = (uint64_t)r->n_runs;
    for (int i = 0; i < r->n_runs; i++)
        h = (h ^ (uint64_t)(r->runs[i].at - r->runs->at) ^ (uint64_t)r->runs[i].bytes << 40) *
            UINT64_C(0x9e3779b97f4a7c15);
    return (int)(h >> 54);
}

/* The number of the shape of the runs, which is added. */
static int shape_of(VisitedLaunch *t, const SliceRun *r)
{
    int *list = &t->list[list_of(r)];
    for (int i = *list; i; i = t->shapes[i - 1].next)
        if (has_shape(&t->shapes[i - 1], r)) return i - 1;
    memory_room(t->shapes, t->n_shapes, t->cap_shapes, 16);
    Shape *shape = &t->shapes[t->n_shapes];
    *shape = (Shape){r->n_runs, *list, copy_of(r->runs, (size_t)r->n_runs, sizeof *r->runs)};
    for (int i = 0; i < shape->n; i++) shape->runs[i].at -= r->runs->at;
    t->all->n_runs += shape->n + 1;
    *list = ++t->n_shapes;
    return t->n_shapes - 1;
}

void visits_keep(VisitedLaunch *of, const SliceRun *r, uint64_t b, int64_t took)
{
    if (!of || of->all->n_told >= MOST_BLOCKS || of->all->n_runs >= MOST_RUNS) return;
    memory_room(of->told, of->n, of->cap, 64);
    of->told[of->n++] =
        (Told){r->box, r->n_runs ? r->runs->at : 0, took, shape_of(of, r), r->either};
    of->of_block[b] = (uint32_t)of->n;
    of->all->n_told++;
}
