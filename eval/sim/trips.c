/* The blocks run in an order that spreads over the grid, and differ by instructions. */
#include "eval/sim/trips.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "eval/sim/coverage/control.h"

/* WORK_SHARE: all blocks may take the limit of a timed run divided by this, some 0.3 s (2026-12-01). No block
 * begins behind three quarters of that, so that one without an end is told from others. */
enum {
    WORK_SHARE = 11,
    LAST_SHARE = 4,
    MOST_BLOCKS = 1 << 20,
    MOST_KINDS = 2000,
    MOST_AGAIN = 50000000 /* of a launch */,
    WARP = 32,
    SHORT_SHARE = 4 /* of a block's work, one of which short branches may decide about */
};
/* Blocks whose lengths differ by less than this factor are of one kind. */
static const double alike = 1.25;

/* Warp-instructions of the part, of a block; 0: it did not run. */
typedef struct {
    float work, path; /* path: of its slowest warp */
} Length;

typedef struct {
    uint64_t n, step, first, block, ran;
    const int64_t *left; /* thread-instructions */
    int64_t last;        /* of the block that begins last, at least */
    int ended;           /* all blocks have come to their ends */
    Length *of;
} Scan;

static void note(Scan *s, const SimCounts *done)
{
    s->of[s->block] =
        (Length){(float)fmax(1, (double)done->warp_insts), (float)done->warp_insts_max};
    s->ran++;
}

static int next_block(void *scan, const SimCounts *done, uint64_t *block)
{
    Scan *s = scan;
    if (done) {
        note(s, done);
        s->block += s->block + s->step < s->n ? s->step : s->step - s->n;
    }
    *block = s->block;
    const int64_t left = *s->left;
    return s->ran < s->n && left > s->last;
}

/* The parameters through which nothing is stored, by what the launch passes: a bit each. */
static uint64_t steady_params(const DevMem *m, const DeviceLaunch *l, const PtxFunction *f)
{
    uint64_t steady = 0;
    for (int i = 0; i < f->n_params && i < 62; i++) {
        int is_steady = 1;
        for (uint64_t at = f->params[i]->offset;
             at + 8 <= f->params[i]->offset + f->params[i]->size; at += 8) {
            uint64_t address;
            memcpy(&address, l->params + at, sizeof address);
            int a = devmem_find(m, address);
            is_steady &= a < 0 || m->allocs[a].read_only || m->allocs[a].steady;
        }
        steady |= (uint64_t)is_steady << i;
    }
    return steady;
}

/* ---- what earlier launches write ---- */

/* Does a launch change no output, and nothing that it reads, so that it may run again? */
static int may_run_again(Device *d, const DeviceLaunch *l, const DeviceSample *of)
{
    const PtxFunction *f = sim_kernel_of(l);
    if (!f || l->cooperative) return 0;
    for (int i = 0; i < f->n_insts; i++)
        if (!strcmp(f->insts[i].op, "atom") || !strcmp(f->insts[i].op, "red")) return 0;
    uint8_t *wanted = memory_alloc((size_t)d->mem.n_allocs + 1);
    int may = 1;
    for (int a = 0; a < d->mem.n_allocs && may; a++) {
        int is_output = 0;
        if (!sim_has_pointer(&d->mem, l, a) || d->mem.allocs[a].read_only) continue;
        for (int i = 0; i < of->n_outputs; i++)
            is_output |= of->outputs[i] == d->mem.allocs[a].base;
        wanted[a] = 1;
        CoverageOf loads = sim_coverage_of(&d->mem, l, wanted, SLICE_LOADS, 1),
                   changes = sim_coverage_of(&d->mem, l, wanted, SLICE_CHANGES, 1);
        if (coverage_has_access(&changes)) may = !is_output && !coverage_has_access(&loads);
        wanted[a] = 0;
    }
    free(wanted);
    return may;
}

/* Runs the launches before launch i whole that take little. */
static void complete(Device *d, const TripsOf *of)
{
    Exec *x = &d->exec;
    Fault fault = {0};
    for (int k = 0; k < of->i; k++) {
        const DeviceLaunch *l = &of->launches[k];
        const int was = l->module ? missing_find(&d->predicted, l, k) : -1;
        if (was < 0 ||
            of->sample->growth * (double)d->predicted.counts[was].thread_insts > MOST_AGAIN ||
            !may_run_again(d, l, of->sample))
            continue;
        x->budget = MOST_AGAIN;
        x->block_budget = 0;
        x->reserve = (ExecReserve){0};
        const int r = sim_run_blocks(d, l, NULL, NULL, &fault);
        d->total += MOST_AGAIN - x->budget;
        log_debug("launch %d runs whole%s%s", k, r ? ": " : "", r ? fault.message : "");
    }
}

/* Runs the part of the kernel for the blocks. A block that has no end, or a fault, is the last one.
 * Returns 1 where a block has read what nobody has written. */
static int run(Device *d, const DeviceLaunch *l, Code *code, Scan *s)
{
    Exec *x = &d->exec;
    Fault fault = {0};
    AccessTrace *trace = d->mem.trace;
    const int64_t all = d->limit / WORK_SHARE;
    const int assumed = d->mem.assumed, in_order = x->in_order;
    d->mem.trace = NULL;
    d->mem.assumed = 0;
    d->mem.l1_sets = 1;
    x->code = code;
    x->entry = code_find_entry(code, l->kernel);
    x->fault = &fault;
    x->budget = all;
    s->last = all / LAST_SHARE;
    s->left = &x->budget;
    x->block_budget = 0;
    x->in_order = 0;
    x->reserve = (ExecReserve){0};
    x->clock = l->module->clock;
    const int r = exec_launch_some(x, l, next_block, s);
    if (r > 0 && fault.outcome == OUTCOME_TIMEOUT)
        note(s, &(SimCounts){.warp_insts = (uint64_t)s->last / WARP,
                             .warp_insts_max = (uint64_t)s->last / WARP});
    if (r > 0) log_debug("the part of the kernel that decides: %s", fault.message);
    d->total += all - x->budget;
    s->ended = !r && s->ran == s->n;
    const int unwritten = d->mem.assumed;
    d->mem.trace = trace;
    d->mem.assumed = assumed;
    x->in_order = in_order;
    return unwritten;
}

/* ---- kinds ---- */

static int bucket(double v)
{
    return (int)floor(log(fmax(v, 1)) / log(alike));
}

/* The number of the kind, to which a block is added; -1: there are too many. */
static int kind_of(Census *to, const CensusKind *like)
{
    int k = 0;
    while (k < to->n && to->kinds[k].digest != like->digest) k++;
    if (k == MOST_KINDS) return -1;
    if (k == to->n) {
        to->kinds = memory_grow(to->kinds, (size_t)to->n + 1, sizeof *to->kinds);
        to->kinds[to->n] = *like;
        to->kinds[to->n++].blocks = 0;
        to->kinds[k].drawn = 0;
    }
    to->kinds[k].blocks++;
    to->kinds[k].drawn++;
    return k;
}

/* The kind of a block that the part has run for. each: instructions of the kernel for one of the part. */
static CensusKind kind_with(const CensusKind *was, Length of, Length least, double each)
{
    CensusKind k = *was;
    k.cost += each * (of.work - least.work);
    k.path += each * (of.path - least.path);
    const uint64_t parts[3] = {was->digest, (uint64_t)bucket(k.cost), (uint64_t)bucket(k.path)};
    k.digest = random_hash(parts, sizeof parts);
    return k;
}

static void divide(const Scan *s, double each, Census *c)
{
    Census to = {.blocks = c->blocks, .open = c->open, .open_at = c->open_at};
    Length least = {INFINITY, INFINITY};
    int differ = 0;
    to.of = memory_array(c->blocks + 1, sizeof *to.of);
    for (uint64_t b = 0; b < s->n; b++) {
        if (!s->of[b].work) continue;
        least.work = fminf(least.work, s->of[b].work);
        least.path = fminf(least.path, s->of[b].path);
    }
    for (uint64_t b = 0; b < s->n; b++) {
        const int was = census_kind(c, b);
        if (!s->of[b].work || was < 0) continue;
        const CensusKind k = kind_with(&c->kinds[was], s->of[b], least, each);
        differ |= k.path > alike * c->kinds[was].path || k.cost > alike * c->kinds[was].cost;
        const int at = kind_of(&to, &k);
        to.of[b] = (uint16_t)(1 + at);
        to.known += at >= 0;
    }
    log_debug("memory decides how long %llu blocks run: %d kinds", (unsigned long long)s->ran,
              to.n);
    if (!differ) {
        to.open_at = NULL;
        census_release(&to);
        return;
    }
    c->open_at = NULL;
    census_release(c);
    *c = to;
}

/* Runs the part for the blocks in turn, from a drawn one on. */
static int scan(Device *d, const DeviceLaunch *l, Code *code, Scan *s)
{
    s->ran = 0;
    s->block = s->first;
    memset(s->of, 0, (size_t)s->n * sizeof *s->of);
    return run(d, l, code, s);
}

/* Do all blocks do the same but for what short branches decide? */
static int is_settled(const Census *c, const DeviceLaunch *l, const Control *part)
{
    const double warps = ceil((double)l->block[0] * l->block[1] * l->block[2] / WARP);
    int settled = part->is_settled;
    for (int k = 0; k < c->n; k++)
        settled &= part->left_out * warps <= c->kinds[k].cost / SHORT_SHARE;
    return settled;
}

void trips_find(Device *d, const TripsOf *of, Census *census)
{
    const DeviceLaunch *l = &of->launches[of->i];
    const PtxFunction *f = sim_kernel_of(l);
    Control part;
    Code code;
    Error why;
    if (!census->open || census->blocks > MOST_BLOCKS || l->cooperative || l->module->trusted)
        return;
    steady_find(&d->mem, l, &l->module->code.ptx, f);
    const int none =
        control_cut(&l->module->code.ptx, f, steady_params(&d->mem, l, f), census->open_at, &part);
    steady_forget(&d->mem);
    census->settled = none && is_settled(census, l, &part);
    if (none) return;
    Scan s = {.n = census->blocks, .first = of->sample->seed % census->blocks};
    s.step = s.n > 1 ? census_stride(s.n) : 0;
    s.of = memory_array((size_t)s.n + 1, sizeof *s.of);
    if (!code_build(&part.module, 0, &code, &why)) {
        if (scan(d, l, &code, &s)) {
            complete(d, of);
            scan(d, l, &code, &s);
        }
        control_return(&code.ptx);
        code_release(&code);
    } else {
        log_debug("the part of the kernel that decides: %s", why.text);
    }
    divide(&s, part.dilution, census);
    census->settled = s.ended && is_settled(census, l, &part);
    free(s.of);
}
