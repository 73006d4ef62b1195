/* Runs of bytes are joined before they are marked: within a block, then over the blocks of its box. */
#include "eval/sim/coverage/coverage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/sim/coverage/slice_bases.h"
#include "eval/sim/coverage/slice_decode.h"
#include "eval/sim/coverage/slice_run.h"
#include "eval/sim/coverage/visits.h"

/* MANY_RUNS: from which on a sort by digits is quicker, 2026-11-30. MOST_STEP: bytes, within a buffer.
 * FEW_BLOCKS: so few run one by one, since dividing the grid runs one or two, too. */
enum { MANY_RUNS = 512, MOST_STEP = 1 << 20, FEW_BLOCKS = 4 };

static int by_place(const BlockRun *p, const BlockRun *q)
{
    for (int k = 0; k < BOX_DIMS; k++)
        if (p->d[k] != q->d[k]) return p->d[k] < q->d[k] ? -1 : 1;
    return (p->at > q->at) - (p->at < q->at);
}

/* Returns the end of the runs from `from` on that are in order. */
static int end_of_order(const BlockRun *runs, int from, int n)
{
    int i = from + 1;
    while (i < n && by_place(&runs[i - 1], &runs[i]) <= 0) i++;
    return i < n ? i : n;
}

/* Merges neighbours that are in order, [from, middle) and [middle, end), into *to. */
static void merge(const BlockRun *runs, int from, int middle, int end, BlockRun *to)
{
    for (int a = from, b = middle, n = from; n < end; n++)
        to[n] =
            b == end || (a < middle && by_place(&runs[a], &runs[b]) <= 0) ? runs[a++] : runs[b++];
}

/* Makes one of neighbours that are in order, touch and change alike. Returns how many runs are left. */
static int join_neighbours(BlockRun *runs, int n_runs)
{
    int n = 0;
    for (int i = 1; i < n_runs; i++) {
        BlockRun *last = &runs[n], *now = &runs[i];
        int64_t end = last->at + last->bytes;
        if (now->at > end || now->at < last->at || memcmp(now->d, last->d, sizeof now->d)) {
            runs[++n] = *now;
            continue;
        }
        if (now->at + now->bytes > end) last->bytes = now->at + now->bytes - last->at;
    }
    return n_runs ? n + 1 : 0;
}

/* The runs' places from the first one on, each with its number below. 0: they change in several ways, or
 * lie far apart. */
static uint64_t keys_of(const BlockRun *runs, int n, uint64_t *key)
{
    int64_t low = runs->at, high = low;
    int is_one = 1;
    for (int i = 0; i < n; i++) {
        low = runs[i].at < low ? runs[i].at : low;
        high = runs[i].at > high ? runs[i].at : high;
        is_one &= !memcmp(runs[i].d, runs->d, sizeof runs->d);
    }
    const uint64_t range = (uint64_t)high - (uint64_t)low + 1;
    if (!is_one || range > UINT32_MAX) return 0;
    for (int i = 0; i < n; i++) key[i] = (uint64_t)(runs[i].at - low) << 32 | (uint32_t)i;
    return range;
}

/* Sorts many runs that change alike by their places, from the lowest digits on. Returns 0 where they are not
 * of that kind. */
static int sort_by_digits(SliceRun *r)
{
    enum { BITS = 11, DIGITS = 1 << BITS };
    const int n = r->n_runs;
    uint64_t *key = memory_array(2 * (size_t)n, sizeof *key), *to = key + n, *all = key;
    const uint64_t range = keys_of(r->runs, n, key);
    for (int bit = 0; range >> bit; bit += BITS) {
        int end[DIGITS] = {0}, sum = 0;
        for (int i = 0; i < n; i++) end[key[i] >> (32 + bit) & (DIGITS - 1)]++;
        for (int k = 0; k < DIGITS; k++) {
            int count = end[k];
            end[k] = sum, sum += count;
        }
        for (int i = 0; i < n; i++) to[end[key[i] >> (32 + bit) & (DIGITS - 1)]++] = key[i];
        uint64_t *sorted = to;
        to = key, key = sorted;
    }
    if (range) {
        BlockRun *sorted = memory_grow(NULL, (size_t)n, sizeof *sorted);
        for (int i = 0; i < n; i++) sorted[i] = r->runs[(uint32_t)key[i]];
        memcpy(r->runs, sorted, (size_t)n * sizeof *sorted);
        free(sorted);
    }
    free(all);
    return range > 0;
}

/* Sorts the runs, and makes one of those that touch and change alike. The lanes of a store are mostly in
 * order, so that there is little to merge; each pass leaves fewer. */
static void join_runs(SliceRun *r)
{
    BlockRun *other = NULL;
    int n = r->n_runs = join_neighbours(r->runs, r->n_runs);
    if (n > MANY_RUNS && end_of_order(r->runs, 0, n) < n && sort_by_digits(r))
        n = r->n_runs = join_neighbours(r->runs, n);
    while (end_of_order(r->runs, 0, n) < n) {
        if (!other) other = memory_grow(NULL, (size_t)n, sizeof *other);
        for (int from = 0, middle, end; from < n; from = end) {
            middle = end_of_order(r->runs, from, n);
            end = middle < n ? end_of_order(r->runs, middle, n) : n;
            merge(r->runs, from, middle, end, other);
        }
        memcpy(r->runs, other, (size_t)n * sizeof *other);
        n = r->n_runs = join_neighbours(r->runs, n);
    }
    free(other);
}

typedef struct {
    const DevMem *mem;
    Coverage *out;
} Marking;

/* As threads store to every second element, or to each row: runs alike, a constant distance apart. Returns
 * how many from `run` on, of at most `most`. */
static int row_of(const BlockRun *run, int most)
{
    const int64_t step = most > 1 ? run[1].at - run->at : 0;
    int n = 1;
    while (n < most && step <= MOST_STEP && run[n].at - run[n - 1].at == step &&
           run[n].bytes == run->bytes && !memcmp(run[n].d, run->d, sizeof run->d))
        n++;
    return n;
}

/* Marks a row of n runs. */
static void mark(const DevMem *mem, const SliceRun *r, const BlockRun *run, int n, Coverage *out)
{
    int a = devmem_find(mem, (uint64_t)run->at);
    WrittenRun w = {.at = run->at, .bytes = run->bytes};
    if (a < 0) return;
    if (n > 1) {
        w.stride[BOX_DIMS] = run[1].at - run->at;
        w.count[BOX_DIMS] = (uint64_t)n;
    }
    for (int k = 0; k < BOX_DIMS; k++) {
        w.at += run->d[k] * r->box.low[k];
        w.stride[k] = run->d[k];
        w.count[k] = (uint64_t)(r->box.high[k] - r->box.low[k] + 1);
    }
    w.at -= (int64_t)mem->allocs[a].base;
    written_mark(&out->of[a], w);
}

/* The blocks of the box are done. */
static void mark_blocks(const SliceRun *r, Written *done)
{
    WrittenRun w = {.at = slice_run_number(r), .bytes = 1};
    for (int k = 0; k < BOX_DIMS; k++) {
        w.stride[k] = slice_run_apart(r, k);
        w.at += r->box.low[k] * w.stride[k];
        w.count[k] = (uint64_t)(r->box.high[k] - r->box.low[k] + 1);
    }
    written_mark(done, w);
}

static uint64_t marked(const Coverage *c)
{
    uint64_t sum = 0;
    for (int i = 0; i < c->n; i++) sum += c->of[i].marked;
    return sum;
}

static int mark_runs(void *of, SliceRun *r)
{
    const Marking *m = of;
    uint64_t before = marked(m->out);
    for (int i = 0, n; i < r->n_runs; i += n) {
        n = row_of(&r->runs[i], r->n_runs - i);
        const int64_t last = r->runs[i + n - 1].at;
        if (devmem_find(m->mem, (uint64_t)last) != devmem_find(m->mem, (uint64_t)r->runs[i].at))
            n = 1;
        mark(m->mem, r, &r->runs[i], n, m->out);
    }
    r->budget -= 8 * (int64_t)(marked(m->out) - before);
    return 0;
}

static int run_block(SliceRun *r, VisitedLaunch *told, uint64_t b)
{
    const int64_t before = r->budget;
    if (visits_again(told, r, b)) return 0;
    const uint32_t *grid = r->launch->grid;
    const uint32_t block[3] = {(uint32_t)(b % grid[0]), (uint32_t)(b / grid[0] % grid[1]),
                               (uint32_t)(b / grid[0] / grid[1])};
    if (slice_run_block(r, block)) return -1;
    const int64_t took = before - r->budget;
    join_runs(r);
    visits_keep(told, r, b, took);
    return 0;
}

/* What is visited, and who sees it. id: of some blocks; NULL: all. */
typedef struct {
    const uint64_t *id;
    int64_t n;
    CoverageSee *see;
    void *to;
    VisitedLaunch *launch;
} Visit;

/* Runs blocks until each is done. */
static void run_blocks(SliceRun *r, const Visit *v, uint64_t *ran)
{
    const uint32_t *grid = r->launch->grid;
    Written done = {.bytes = (uint64_t)grid[0] * grid[1] * grid[2], .unit = 1};
    for (uint64_t b = 0; (b = written_next(&done, b)) < done.bytes; ++*ran) {
        uint64_t before = done.marked;
        if (run_block(r, v->launch, b) || v->see(v->to, r)) break;
        mark_blocks(r, &done);
        r->budget -= 8 * (int64_t)(done.marked - before);
    }
    written_release(&done);
}

/* What blocks that ran have told. */
typedef struct {
    Box box;
    uint32_t block[3];
    int64_t took;
    BlockRun *runs;
    int n;
} Telling;

enum { TELLINGS = 8 };

/* Where block b is in the box of one of them, *r is as if it had run. What that takes is charged: a budget
 * ends where it would. */
static int tell_again(SliceRun *r, const Telling *of, uint64_t b)
{
    const uint32_t *grid = r->launch->grid;
    const uint32_t block[3] = {(uint32_t)(b % grid[0]), (uint32_t)(b / grid[0] % grid[1]),
                               (uint32_t)(b / grid[0] / grid[1])};
    int64_t steps[BOX_DIMS];
    if (!of->runs || of->took >= r->budget ||
        !box_steps(&of->box, &r->parts, of->block, block, steps))
        return 0;
    memcpy(r->runs, of->runs, (size_t)of->n * sizeof *of->runs);
    for (int i = 0; i < of->n; i++)
        for (int k = 0; k < BOX_DIMS; k++) r->runs[i].at += of->runs[i].d[k] * steps[k];
    memcpy(r->block, block, sizeof block);
    r->n_runs = of->n;
    r->budget -= of->took;
    return 1;
}

static void keep_telling(const SliceRun *r, int64_t took, Telling *to)
{
    *to = (Telling){.box = r->box, .took = took, .n = r->n_runs, .runs = to->runs};
    memcpy(to->block, r->block, sizeof to->block);
    to->runs = memory_grow(to->runs, (size_t)to->n + 1, sizeof *to->runs);
    if (to->n) memcpy(to->runs, r->runs, (size_t)to->n * sizeof *to->runs);
}

static void run_some(SliceRun *r, const Visit *v, uint64_t *ran)
{
    Telling told[TELLINGS] = {{.n = 0}};
    for (int64_t i = 0, next = 0; i < v->n; i++, ++*ran) {
        const int64_t before = r->budget;
        int k = 0;
        while (k < TELLINGS && !tell_again(r, &told[k], v->id[i])) k++;
        if (k == TELLINGS) {
            if (run_block(r, v->launch, v->id[i])) break;
            if (v->n > FEW_BLOCKS) keep_telling(r, before - r->budget, &told[next++ % TELLINGS]);
        }
        memset(&r->box, 0, sizeof r->box);
        if (v->see(v->to, r)) break;
    }
    for (int k = 0; k < TELLINGS; k++) free(told[k].runs);
}

uint32_t coverage_unit(const PtxFunction *kernel)
{
    uint32_t least = 16;
    for (int i = 0; i < kernel->n_insts; i++) {
        const PtxInst *in = &kernel->insts[i];
        uint32_t n =
            slice_is(in, SLICE_STORES) || slice_is(in, SLICE_LOADS) ? slice_element(in) : 0;
        if (n && n < least) least = n;
    }
    return least;
}

/* Has the parameter an address in a wanted allocation, or in `only` where that is not negative? */
static int points(const CoverageOf *of, const PtxVar *param, int only)
{
    for (uint64_t at = (param->offset + 7) / 8 * 8; at + 8 <= param->offset + param->size;
         at += 8) {
        uint64_t address;
        if (at + 8 > KERNEL_MAX_PARAM_BYTES) return 1;
        memcpy(&address, of->launch->params + at, sizeof address);
        int a = devmem_find(of->mem, address);
        if (a >= 0 && (only >= 0 ? a == only : of->wanted[a])) return 1;
    }
    return 0;
}

int coverage_has_pointer(const CoverageOf *of, int allocation)
{
    for (int i = 0; i < of->kernel->n_params; i++)
        if (points(of, of->kernel->params[i], allocation)) return 1;
    return 0;
}

static Slice *slice_of(const CoverageOf *of)
{
    uint64_t where = 0;
    for (int i = 0; i < of->kernel->n_params && i < BASE_PARAMS; i++)
        if (points(of, of->kernel->params[i], -1)) where |= 1ull << i;
    return slice_new(of->module, of->kernel, where, of->kind);
}

int coverage_has_access(const CoverageOf *of)
{
    Slice *s = slice_of(of);
    int found = s->why != NULL;
    for (int i = 0; i < s->n_insts; i++) found |= s->insts[i].op >= OP_STORE;
    slice_free(s);
    return found;
}

static void visit(const CoverageOf *of, int64_t *budget, Visit *v, Coverage *out)
{
    Slice *s = slice_of(of);
    const char *why = s->why;
    if (!why) {
        SliceRun r;
        slice_run_open(&r, s, of->launch, *budget);
        if (of->thin) slice_run_thin(&r);
        r.either = of->either;
        v->launch = visits_of(of->mem->visits, &r, !v->id || v->n > FEW_BLOCKS);
        if (v->id)
            run_some(&r, v, &out->ran);
        else
            run_blocks(&r, v, &out->ran);
        *budget = r.budget;
        why = r.why;
        if (why) out->line = of->kernel->insts[r.why_inst].line;
        slice_run_close(&r);
    }
    if (why) snprintf(out->why, sizeof out->why, "%s", why);
    slice_free(s);
}

void coverage_visit(const CoverageOf *of, int64_t *budget, CoverageSee *see, void *to,
                    Coverage *out)
{
    visit(of, budget, &(Visit){NULL, 0, see, to, NULL}, out);
}

void coverage_visit_some(const CoverageOf *of, const uint64_t *id, int64_t n, int64_t *budget,
                         CoverageSee *see, void *to, Coverage *out)
{
    visit(of, budget, &(Visit){id, n, see, to, NULL}, out);
}

void coverage_find(const CoverageOf *of, int64_t *budget, Coverage *out)
{
    Marking m = {of->mem, out};
    memset(out, 0, sizeof *out);
    out->n = of->mem->n_allocs;
    out->of = memory_array((size_t)out->n + 1, sizeof *out->of);
    for (int i = 0; i < out->n; i++)
        out->of[i] = (Written){.bytes = of->mem->allocs[i].bytes, .unit = of->unit};
    coverage_visit(of, budget, mark_runs, &m, out);
}

void coverage_release(Coverage *c)
{
    for (int i = 0; i < c->n && c->of; i++) written_release(&c->of[i]);
    free(c->of);
    memset(c, 0, sizeof *c);
}

/* ---- buffers that a launch stores nothing to ---- */

/* A bulk copy may add to global memory. */
static int has_bulk_copies(const PtxFunction *f)
{
    for (int i = 0; i < f->n_insts; i++)
        if (ptx_same(f->insts[i].op, "cp") && ptx_has_mod(&f->insts[i], "bulk")) return 1;
    return 0;
}

void steady_find(DevMem *m, const DeviceLaunch *l, const PtxModule *module, const PtxFunction *f)
{
    if (has_bulk_copies(f)) return;
    uint8_t *wanted = memory_alloc((size_t)m->n_allocs + 1);
    CoverageOf of = {m, module, f, l, wanted, 1, SLICE_CHANGES, 0};
    for (int a = 0; a < m->n_allocs; a++) {
        Alloc *x = &m->allocs[a];
        if (x->read_only || x->variable || !coverage_has_pointer(&of, a)) continue;
        wanted[a] = 1;
        x->steady = !coverage_has_access(&of);
        wanted[a] = 0;
    }
    free(wanted);
}

void steady_forget(DevMem *m)
{
    for (int a = 0; a < m->n_allocs; a++) m->allocs[a].steady = 0;
}
