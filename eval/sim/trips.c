/* The blocks run in an order that spreads over the grid, and differ by instructions. */
#include "eval/sim/trips.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "eval/sim/coverage/control.h"
#include "eval/sim/memory/block_waits.h"

/* WORK_SHARE: all blocks may take the limit of a timed run divided by this, some 0.3 s (2026-12-01). No block
 * begins behind three quarters of that, so that one without an end is told from others. */
enum { WORK_SHARE = 11, LAST_SHARE = 4, MOST_BLOCKS = 1 << 20, WARP = 32 };
/* Blocks whose lengths differ by less than this factor are of one kind. */
static const double alike = 1.25;

/* Warp-instructions of the part, of a block; 0: it did not run. */
typedef struct {
    float work, path; /* path: of its slowest warp */
} Length;

typedef struct {
    uint64_t n, step, block, ran;
    const int64_t *left; /* thread-instructions */
    int64_t last;        /* of the block that begins last, at least */
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
    return s->ran<s->n && * s->left> s->last;
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

/* Runs the part of the kernel for the blocks. A block that has no end, or a fault, is the last one. */
static void run(Device *d, const DeviceLaunch *l, Code *code, Scan *s)
{
    Exec *x = &d->exec;
    Fault fault = {0};
    AccessTrace *trace = d->mem.trace;
    const int64_t all = d->limit / WORK_SHARE;
    const int assumed = d->mem.assumed, in_order = x->in_order;
    d->mem.trace = NULL;
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
    d->mem.trace = trace;
    d->mem.assumed = assumed;
    x->in_order = in_order;
}

/* ---- kinds ---- */

static int bucket(double v)
{
    return (int)floor(log(fmax(v, 1)) / log(alike));
}

/* The number of the kind, to which a block is added. */
static int kind_of(Census *to, const CensusKind *like)
{
    int k = 0;
    while (k < to->n && to->kinds[k].digest != like->digest) k++;
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
    Census to = {.blocks = c->blocks, .open = c->open};
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
        if (!s->of[b].work || was < 0 || to.n == UINT16_MAX - 1) continue;
        const CensusKind k = kind_with(&c->kinds[was], s->of[b], least, each);
        differ |= k.path > alike * c->kinds[was].path || k.cost > alike * c->kinds[was].cost;
        to.of[b] = (uint16_t)(1 + kind_of(&to, &k));
        to.known++;
    }
    log_debug("memory decides how long %llu blocks run: %d kinds", (unsigned long long)s->ran,
              to.n);
    if (!differ) {
        census_release(&to);
        return;
    }
    census_release(c);
    *c = to;
}

void trips_find(Device *d, const DeviceLaunch *l, uint64_t seed, Census *census)
{
    const PtxFunction *f = sim_kernel_of(l);
    Control part;
    Code code;
    Error why;
    if (!census->open || census->blocks > MOST_BLOCKS || l->cooperative || l->module->trusted)
        return;
    steady_find(&d->mem, l, &l->module->code.ptx, f);
    const int none = control_cut(&l->module->code.ptx, f, steady_params(&d->mem, l, f), &part);
    steady_forget(&d->mem);
    if (none) return;
    Scan s = {.n = census->blocks};
    s.step = s.n > 1 ? census_stride(s.n) : 0;
    s.block = seed % s.n;
    s.of = memory_array((size_t)s.n + 1, sizeof *s.of);
    if (!code_build(&part.module, 0, &code, &why)) {
        run(d, l, &code, &s);
        control_return(&code.ptx);
        code_release(&code);
    } else {
        log_debug("the part of the kernel that decides: %s", why.text);
    }
    divide(&s, part.dilution, census);
    free(s.of);
}
