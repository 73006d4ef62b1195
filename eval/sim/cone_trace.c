/* Blocks of one launch may need each other, as those of a scan do: what they read is looked for in their own
 * launch, too. */
#include "eval/sim/cone.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/sim/coverage/slice_run.h"
#include "eval/sim/library/library_some.h"

enum {
    LEAST_WORK = 50, /* thread-instructions of a thread, where a block's work is not known */
    LONG_BLOCK = 64, /* a block that takes as many times what others took waits for another */
    WHOLE_SHARE = 4, /* a launch may run whole for the budget divided by this */
    MOST_BLOCKS = 1 << 16,
    ROUNDS = 8,
    SURE = 2,   /* blocks that are looked for may do less than those of the sample */
    AGAIN = 16, /* blocks differ by a part of what they have taken in an earlier cone */
    ROOM = 8,   /* parts of the budget, one of which what is surely taken may take */
    FRESH_SHARE =
        2, /* memory is new to the few blocks of a sample, and not to many: they may take less */
    SLICED =
        5000000, /* thread-instructions of blocks whose reads are looked for without running them */
    MOST_OF_THREADS = 1000000, /* thread-instructions of a block whose threads are told apart, */
    MOST_OF_WARPS = 10000000   /* or its warps */
};

/* ---- running blocks ---- */

typedef struct {
    const BlockSet *run;
    int64_t at;
} Feed;

static int feed_next(void *of, const SimCounts *done, uint64_t *block)
{
    Feed *f = of;
    (void)done;
    if (f->at == f->run->n) return 0;
    *block = f->run->id[f->at++];
    return 1;
}

static double work_of_block(const Cone *c, int i)
{
    const DeviceLaunch *l = &c->launches[i];
    double threads = (double)l->block[0] * l->block[1] * l->block[2];
    return fmax(c->d->sampled[i].work, LEAST_WORK * threads);
}

/* What a launch may take: what is traced runs again. */
static double allowance(const Cone *c)
{
    return c->tracing ? (c->left - c->again) / 2 : c->left;
}

/* The blocks from number `at` on surely take more than there is left. Those of an earlier cone have shown
 * what they take. */
static int is_hopeless(const Cone *c, int i, int64_t at)
{
    const double blocks = (double)(c->of[i].run.n - at), ran = c->d->sampled[i].ran;
    if (blocks > SURE && blocks * (ran - ran / AGAIN) > allowance(c)) return 1;
    return blocks > SURE && blocks * work_of_block(c, i) > SURE * allowance(c);
}

static int too_much(Cone *c, int i, int64_t blocks)
{
    return cone_stop(c, "an element needs %lld blocks of %.40s of about %.1e instructions each",
                     (long long)blocks, c->launches[i].kernel, work_of_block(c, i));
}

int cone_run(Cone *c, int i, int64_t *at, int *faulted)
{
    Exec *x = &c->d->exec;
    Feed f = {&c->of[i].run, *at};
    Fault local = {0};
    *faulted = 0;
    if (is_hopeless(c, i, *at)) return too_much(c, i, c->of[i].run.n);
    x->block_budget = (int64_t)(LONG_BLOCK * work_of_block(c, i));
    int64_t before = x->budget = (int64_t)fmax(allowance(c), 0);
    int rc = sim_run_blocks(c->d, &c->launches[i], feed_next, &f, &local);
    double used = (double)(before - x->budget);
    c->left -= used;
    if (c->tracing)
        c->again += used;
    else if (!rc && f.at > *at)
        c->d->sampled[i].ran = used / (double)(f.at - *at);
    *at = f.at;
    *faulted = rc > 0;
    if (rc < 0) c->fault->error = local.error;
    if (rc < 0) return -1;
    if (allowance(c) <= 0)
        return cone_stop(c, "an element takes over %.1e instructions, the most at %.40s",
                         c->out->budget, c->launches[i].kernel);
    if (rc > 0) {
        *c->fault = local;
        c->fault->launch = i;
    }
    return 0;
}

/* ---- which blocks ---- */

/* The cluster of a block, or the block. */
static uint64_t unit_of(const DeviceLaunch *l, const PtxFunction *f, uint64_t block)
{
    uint64_t unit = 0, stride = 1;
    for (int k = 0; k < 3; k++) {
        uint64_t of = f->cluster[k] ? f->cluster[k] : 1;
        unit += block % l->grid[k] / of * stride;
        block /= l->grid[k];
        stride *= l->grid[k] / of;
    }
    return unit;
}

/* Has the launch a store or an atomic that may reach the allocation? It has a pointer to it. */
static int changes(Cone *c, const CoverageOf *of, int a)
{
    memset(c->wanted, 0, (size_t)c->d->mem.n_allocs);
    c->wanted[a] = 1;
    return coverage_has_access(of);
}

/* May the launch change a byte of the set? Notes the buffers that it is about. */
static int may_change(Cone *c, const CoverageOf *of, const Ranges *bytes)
{
    const int n = c->d->mem.n_allocs;
    uint8_t *found = memory_alloc((size_t)n + 1);
    int some = 0;
    for (int a = 0; a < n; a++) {
        const Alloc *m = &c->d->mem.allocs[a];
        found[a] = !m->read_only && ranges_meet(bytes, m->base, m->base + m->room) &&
                   (m->variable || (coverage_has_pointer(of, a) && changes(c, of, a)));
        some |= found[a];
    }
    memcpy(c->wanted, found, (size_t)n);
    free(found);
    return some;
}

/* The blocks that are needed are not known, or are too many. */
static int refuse(Cone *c, int i, const Coverage *found)
{
    const char *kernel = c->launches[i].kernel;
    if (!found->too_many) return cone_stop(c, "%.40s has %s", kernel, found->why);
    return cone_stop(c,
                     "an element needs over %lld blocks of %.40s of about %.1e instructions each",
                     (long long)c->of[i].reach.n - 1, kernel, work_of_block(c, i));
}

static int take_whole(Cone *c, int i, const Coverage *found)
{
    const DeviceLaunch *l = &c->launches[i];
    double blocks = (double)l->grid[0] * l->grid[1] * l->grid[2];
    ConeLaunch *k = &c->of[i];
    if (blocks > MOST_BLOCKS || blocks * work_of_block(c, i) > c->left / WHOLE_SHARE)
        return refuse(c, i, found);
    k->is_whole = 1;
    for (uint64_t b = 0; b < (uint64_t)blocks; b++) block_set_add(&k->reach, b);
    return 0;
}

/* Whose accesses can be told apart: those of threads that have nothing in common but global memory, which
 * they do not exchange behind barriers. */
static TraceBy tell_apart(const Cone *c, int i, const PtxFunction *f)
{
    static const char *const of_block[] = {"call",  "bar",   "barrier", "membar",
                                           "fence", "wgmma", "cp",      "mbarrier"},
                             *const of_warp[] = {"shfl",  "vote", "match", "redux",    "activemask",
                                                 "elect", "mma",  "wmma",  "ldmatrix", "movmatrix"};
    const DeviceLaunch *l = &c->launches[i];
    const Function *k = code_find_entry(&l->module->code, l->kernel);
    double work = work_of_block(c, i);
    TraceBy by = work <= MOST_OF_THREADS ? TRACE_THREADS : TRACE_WARPS;
    if (l->shared_bytes || !k || k->static_shared || work > MOST_OF_WARPS) return TRACE_BLOCKS;
    for (int n = 0; n < f->n_insts; n++) {
        const PtxInst *in = &f->insts[n];
        int is_warps = ptx_has_mod(in, "warp");
        for (size_t j = 0; j < sizeof of_block / sizeof *of_block; j++)
            if (!is_warps && !strcmp(in->op, of_block[j])) return TRACE_BLOCKS;
        for (size_t j = 0; j < sizeof of_warp / sizeof *of_warp; j++)
            if (is_warps || !strcmp(in->op, of_warp[j])) by = TRACE_WARPS;
    }
    return by;
}

/* Adds the blocks of launch i that change one of the bytes. */
static int add_blocks(Cone *c, int i, Ranges *bytes)
{
    const DeviceLaunch *l = &c->launches[i];
    const PtxFunction *f = sim_kernel_of(l);
    ConeLaunch *k = &c->of[i];
    const CoverageOf of = sim_coverage_of(&c->d->mem, l, c->wanted, SLICE_CHANGES, 1);
    Coverage found;
    k->reach.blocks = k->run.blocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    ranges_join(bytes);
    if (k->is_whole || !f || !may_change(c, &of, bytes)) return 0;
    int64_t most = (int64_t)(FRESH_SHARE * c->left / work_of_block(c, i)) + 1;
    if (coverage_reaching(&of, bytes, most < MOST_BLOCKS ? most : MOST_BLOCKS, &c->lanes, &k->reach,
                          &found) &&
        take_whole(c, i, &found))
        return 1;
    for (; k->looked < k->reach.n; k->looked++)
        block_set_add(&k->run, unit_of(l, f, k->reach.id[k->looked]));
    return 0;
}

/* May launch i read what a launch has written? */
static int may_read(Cone *c, int i)
{
    const CoverageOf of = sim_coverage_of(&c->d->mem, &c->launches[i], c->wanted, SLICE_LOADS, 1);
    for (int a = 0; a < c->d->mem.n_allocs; a++) c->wanted[a] = !c->d->mem.allocs[a].read_only;
    return coverage_has_access(&of);
}

/* Do the blocks that have run and the next ones surely take more than is enough, both times? The budget has
 * room for what other launches take. */
static int is_dear(const Cone *c, const ConeLaunch *k, double work)
{
    double least = 2 * (c->again + (double)(k->run.n - k->traced) * work / SURE);
    return c->out->enough > 0 && least > c->out->enough && least < c->out->budget / ROOM;
}

/* Adds the bytes of each run that are in memory. */
static int see_access(void *to, SliceRun *r)
{
    Ranges *ranges = to;
    for (int i = 0; i < r->n_runs; i++)
        ranges_add(ranges, (uint64_t)r->runs[i].at, (uint64_t)(r->runs[i].at + r->runs[i].bytes));
    return ranges->overflowed;
}

/* Adds what the blocks that are not traced access in that way. Returns 0 where it is not known. */
static int slice_accesses(Cone *c, int i, SliceKind kind, Ranges *to)
{
    const DeviceLaunch *l = &c->launches[i];
    ConeLaunch *k = &c->of[i];
    CoverageOf of = {&c->d->mem, &l->module->code.ptx, sim_kernel_of(l), l, c->wanted, 1, kind};
    Coverage found = {0};
    memset(c->wanted, 1, (size_t)c->d->mem.n_allocs);
    of.either = kind == SLICE_LOADS;
    coverage_visit_some(&of, k->run.id + k->traced, k->run.n - k->traced, &c->lanes, see_access, to,
                        &found);
    return !found.why[0] && !to->overflowed;
}

/* Finds what costly blocks access without running them. Returns 0 where that is not known. */
static int trace_slices(Cone *c, int i)
{
    ConeLaunch *k = &c->of[i];
    Ranges reads = {0}, writes = {0};
    double work = (double)(k->run.n - k->traced) * work_of_block(c, i);
    int known = k->trace.by == TRACE_BLOCKS && work > SLICED &&
                slice_accesses(c, i, SLICE_LOADS, &reads) &&
                slice_accesses(c, i, SLICE_STORES, &writes);
    if (known) {
        ranges_add_all(&k->trace.reads, &reads);
        ranges_add_all(&k->trace.writes, &writes);
        k->traced = k->run.n;
        c->again += work;
    }
    ranges_release(&reads);
    ranges_release(&writes);
    return known;
}

/* Runs the blocks of launch i that have not run, for what they read. Their values are not right, and their
 * faults mean nothing. */
static int trace_blocks(Cone *c, int i)
{
    ConeLaunch *k = &c->of[i];
    DevMem *m = &c->d->mem;
    int rc = 0, faulted;
    if (k->run.n && !may_read(c, i)) k->traced = k->run.n;
    if (!k->traced && k->run.n && !k->needs_all && !k->together)
        k->trace.by = tell_apart(c, i, sim_kernel_of(&c->launches[i]));
    c->out->is_dear = is_dear(c, k, work_of_block(c, i));
    if (c->out->is_dear) return cone_stop(c, "too much work");
    if (k->traced < k->run.n && trace_slices(c, i) && c->again > SURE * c->left)
        return too_much(c, i, k->run.n);
    m->trace = &k->trace;
    while (!rc && k->traced < k->run.n) rc = cone_run(c, i, &k->traced, &faulted);
    m->trace = NULL;
    return !rc && k->trace.overflowed ? cone_stop(c, "too many accesses") : rc;
}

void cone_collect(ConeLaunch *k, const AccessTrace *t, Ranges *reads, Ranges *writes)
{
    ranges_clear(reads), ranges_clear(writes);
    ranges_add_all(reads, &t->reads);
    ranges_add_all(writes, &t->writes);
    for (int64_t i = 0; i < t->n; i++) {
        const TraceEntry *e = &t->of[i];
        if (!block_set_has(&k->units, e->unit)) continue;
        ranges_add(e->kind == TRACE_WRITE ? writes : reads, e->lo, e->lo + e->bytes);
    }
}

/* Units that change one of the joined bytes count. */
static void count_units(ConeLaunch *k, const Ranges *bytes)
{
    k->units.blocks = k->run.blocks * TRACE_UNITS;
    for (int64_t i = 0; i < k->trace.n; i++) {
        const TraceEntry *e = &k->trace.of[i];
        if (e->kind != TRACE_READ && ranges_meet(bytes, e->lo, e->lo + e->bytes))
            block_set_add(&k->units, e->unit);
    }
    cone_collect(k, &k->trace, &k->reads, &k->writes);
}

/* Does the launch store to a buffer that it reads? */
static int reads_own(const Cone *c, ConeLaunch *k)
{
    const DevMem *m = &c->d->mem;
    ranges_join(&k->reads), ranges_join(&k->writes);
    for (int a = 0; a < m->n_allocs; a++) {
        uint64_t lo = m->allocs[a].base, hi = lo + m->allocs[a].room;
        if (!m->allocs[a].read_only && ranges_meet(&k->reads, lo, hi) &&
            (k->writes.n ? ranges_meet(&k->writes, lo, hi) : 1))
            return 1;
    }
    return 0;
}

/* Adds to what is needed, but for inputs. */
static void add_needed(Cone *c, const Ranges *reads)
{
    int at = -1;
    const DevMem *m = &c->d->mem;
    for (int64_t i = 0; i < reads->n; i++) {
        uint64_t lo = reads->of[i].lo;
        if (at < 0 || lo - m->allocs[at].base >= m->allocs[at].room) at = devmem_find(m, lo);
        if (at < 0 || !m->allocs[at].read_only) ranges_add(&c->need, lo, reads->of[i].hi);
    }
    c->need.overflowed |= reads->overflowed;
}

/* Does launch i load from what launches write to allocation a? */
static int loads(const Cone *c, int i, int a)
{
    const CoverageOf of = sim_coverage_of(&c->d->mem, &c->launches[i], c->wanted, SLICE_LOADS, 1);
    memset(c->wanted, 0, (size_t)c->d->mem.n_allocs);
    c->wanted[a] = !c->d->mem.allocs[a].read_only;
    return c->wanted[a] && coverage_has_access(&of);
}

/* Blocks of the launch are traced as a whole from now on. */
static void tell_no_more(ConeLaunch *k)
{
    if (k->trace.by == TRACE_BLOCKS) return;
    trace_release(&k->trace);
    k->trace = (AccessTrace){.by = TRACE_BLOCKS};
    k->traced = 0;
}

/* Adds all that the launch may read of what launches write. */
static void add_buffers(const Cone *c, int i, Ranges *reads)
{
    const DevMem *m = &c->d->mem;
    for (int a = 0; a < m->n_allocs; a++)
        if (!m->allocs[a].variable && loads(c, i, a))
            ranges_add(reads, m->allocs[a].base, m->allocs[a].base + m->allocs[a].bytes);
}

/* Adds what changes the bytes, and finds what that reads. */
static int trace_changes(Cone *c, int i, Ranges *bytes)
{
    int rc = add_blocks(c, i, bytes);
    if (c->of[i].needs_all || c->of[i].together) tell_no_more(&c->of[i]);
    if (!rc) rc = trace_blocks(c, i);
    if (!rc && c->of[i].run.n) count_units(&c->of[i], bytes);
    if (!rc && c->of[i].needs_all) add_buffers(c, i, &c->of[i].reads);
    return rc;
}

/* Is a byte needed that a block reaches, and that nothing has changed without the right values? A condition
 * on these may keep its unit from doing so. */
static int misses(Cone *c, int i)
{
    const DeviceLaunch *l = &c->launches[i];
    const CoverageOf of = sim_coverage_of(&c->d->mem, l, c->wanted, SLICE_CHANGES, 1);
    ConeLaunch *k = &c->of[i];
    Ranges left = {0}, changed = {0};
    BlockSet some = {.blocks = k->run.blocks};
    Coverage found;
    int missing = 0;
    if (k->trace.by == TRACE_BLOCKS || k->is_whole || !k->run.n) return 0;
    ranges_add_all(&changed, &k->trace.writes);
    for (int64_t n = 0; n < k->trace.n; n++)
        if (k->trace.of[n].kind != TRACE_READ)
            ranges_add(&changed, k->trace.of[n].lo, k->trace.of[n].lo + k->trace.of[n].bytes);
    ranges_add_all(&left, &c->need);
    ranges_remove(&left, &changed);
    ranges_join(&left);
    if (left.n && may_change(c, &of, &left))
        missing = coverage_reaching(&of, &left, 1, &c->lanes, &some, &found) || some.n;
    block_set_release(&some);
    ranges_release(&left);
    ranges_release(&changed);
    return missing;
}

static int trace_kernel(Cone *c, int i)
{
    ConeLaunch *k = &c->of[i];
    int rc = trace_changes(c, i, &c->need);
    for (int round = 0; !rc && k->run.n && reads_own(c, k); round++) {
        int64_t blocks = k->run.n, units = k->units.n;
        Ranges own = {0};
        ranges_add_all(&own, &k->reads);
        rc = trace_changes(c, i, &own);
        ranges_release(&own);
        if (k->run.n == blocks && k->units.n == units) break;
        if (!rc && round == ROUNDS) return cone_stop(c, "blocks that wait for one another");
    }
    if (!rc && misses(c, i)) {
        k->together = 1;
        rc = trace_changes(c, i, &c->need);
    }
    if (!rc && k->run.n) {
        ranges_remove(&c->need, &k->writes);
        add_needed(c, &k->reads);
    }
    return rc;
}

/* A library call computes the elements of its result that are needed. */
static int trace_call(Cone *c, int i)
{
    ConeLaunch *k = &c->of[i];
    double cost;
    ranges_join(&c->need);
    ranges_clear(&k->reads);
    int rc = library_needs(&c->launches[i], &c->need, c->left, &k->asked, &k->reads, &cost,
                           &c->fault->error);
    if (rc > 0) return cone_stop(c, "a library call that takes too long");
    if (rc) return -1;
    c->left -= cost;
    ranges_remove(&c->need, &k->asked);
    add_needed(c, &k->reads);
    return 0;
}

/* What a launch begins has no contents before it. */
static void forget_fresh(Cone *c, const DeviceLaunch *l)
{
    Ranges fresh = {0};
    for (int k = 0; k < l->n_fresh; k++) {
        const Alloc *a = devmem_at(&c->d->mem, l->fresh[k].p);
        if (a) ranges_add(&fresh, a->base, a->base + a->room);
    }
    ranges_remove(&c->need, &fresh);
    ranges_release(&fresh);
}

int cone_trace(Cone *c)
{
    int rc = 0;
    ranges_clear(&c->need);
    for (int k = 0; k < c->out->n_spans; k++) {
        const DeviceSpan *s = &c->out->spans[k];
        ranges_add(&c->need, s->p + s->from, s->p + s->from + s->bytes);
    }
    c->tracing = 1;
    for (int i = c->n - 1; i >= 0 && !rc; i--) {
        const DeviceLaunch *l = &c->launches[i];
        if (l->library_args)
            rc = trace_call(c, i);
        else
            rc = trace_kernel(c, i);
        if (!rc && c->need.overflowed) rc = cone_stop(c, "too many bytes that are needed");
        if (!rc && l->n_fresh) forget_fresh(c, l);
    }
    c->tracing = 0;
    return rc;
}
