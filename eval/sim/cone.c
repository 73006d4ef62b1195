/* The second pass: the blocks run in order, and what the outputs have then is complete. */
#include "eval/sim/cone.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "eval/sim/coverage/slice_decode.h"
#include "eval/sim/library/library_some.h"

enum { PASSES = 4, VARIABLES = 16 << 20 /* bytes that are kept */ };

/* The budget of the search for blocks: about a second. */
static const int64_t most_lanes = 1200000000;

int cone_stop(Cone *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(c->out->why, sizeof c->out->why, fmt, ap);
    va_end(ap);
    return 1;
}

/* ---- memory ---- */

/* Is it a buffer that a launch has a pointer to? */
static int is_used(const Cone *c, int a)
{
    for (int i = 0; i < c->n; i++)
        if (sim_has_pointer(&c->d->mem, &c->launches[i], a)) return 1;
    return 0;
}

static size_t variable_bytes(const DevMem *m)
{
    size_t sum = 0;
    for (int a = 0; a < m->n_allocs; a++)
        if (m->allocs[a].variable) sum += m->allocs[a].bytes;
    return sum;
}

/* Copies the module's variables to `kept`, or back. */
static void copy_variables(const DevMem *m, unsigned char *kept, int back)
{
    for (int a = 0; a < m->n_allocs; a++) {
        const Alloc *v = &m->allocs[a];
        if (!v->variable) continue;
        unsigned char *at = devmem_host(m, v->base);
        memcpy(back ? at : kept, back ? kept : at, v->bytes);
        kept += v->bytes;
    }
}

static void poison_all(Cone *c)
{
    DevMem *m = &c->d->mem;
    for (int a = 0; a < m->n_allocs; a++)
        if (!m->allocs[a].read_only && !m->allocs[a].variable && is_used(c, a))
            devmem_poison(m, &m->allocs[a]);
}

/* Before blocks are looked for, each slot has all of its room. */
static void widen_fresh(Cone *c)
{
    for (int i = 0; i < c->n; i++)
        for (int k = 0; k < c->launches[i].n_fresh; k++) {
            Alloc *a = devmem_at(&c->d->mem, c->launches[i].fresh[k].p);
            if (a) devmem_reset(&c->d->mem, a);
        }
}

/* ---- the second pass ---- */

static int by_id(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Has all that units read which are told apart been written? */
static int are_complete(const Cone *c, ConeLaunch *k)
{
    const DevMem *m = &c->d->mem;
    ranges_join(&k->reads);
    for (int64_t i = 0; i < k->reads.n; i++)
        if (!devmem_is_written(m, k->reads.of[i].lo - ARENA_BASE, k->reads.of[i].hi - ARENA_BASE))
            return 0;
    return 1;
}

/* What a launch did in the second pass. */
typedef struct {
    int same; /* it read and wrote where it did before */
    int faulted,
        assumed; /* assumed: what counts has read what nothing has written; others may have */
    int others;
} Second;

/* Notes what units that do not count store now, where the launch has stored nothing before: without the right
 * values of what they read, they did not tell that they store it. */
static void note_astray(Cone *c, const ConeLaunch *k, const AccessTrace *now)
{
    Ranges before = {0};
    for (int64_t i = 0; i < k->trace.n; i++)
        if (k->trace.of[i].kind != TRACE_READ)
            ranges_add(&before, k->trace.of[i].lo, k->trace.of[i].lo + k->trace.of[i].bytes);
    ranges_join(&before);
    for (int64_t i = 0; i < now->n; i++) {
        const TraceEntry *e = &now->of[i];
        if (e->kind != TRACE_READ && !block_set_has(&k->units, e->unit) &&
            !ranges_meet(&before, e->lo, e->lo + e->bytes))
            ranges_add(&c->astray, e->lo, e->lo + e->bytes);
    }
    ranges_release(&before);
}

/* Does what counts read that? */
static int reads_astray(Cone *c, const Ranges *reads)
{
    int some = 0;
    ranges_join(&c->astray);
    for (int64_t i = 0; i < reads->n && !some; i++)
        some = ranges_meet(&c->astray, reads->of[i].lo, reads->of[i].hi);
    return some;
}

/* Keeps the other trace: a later pass begins with it. */
static void note_difference(ConeLaunch *k, AccessTrace *now, Second *out)
{
    Ranges reads = {0}, writes = {0};
    cone_collect(k, now, &reads, &writes);
    out->same &= ranges_have(&k->reads, &reads) && ranges_have(&writes, &k->writes);
    if (now->by == TRACE_BLOCKS) ranges_add_all(&now->reads, &k->trace.reads);
    trace_release(&k->trace);
    k->trace = *now;
    ranges_release(&reads);
    ranges_release(&k->writes);
    k->writes = writes;
}

/* Runs the blocks of launch i. */
static int run_launch(Cone *c, int i, Second *out)
{
    ConeLaunch *k = &c->of[i];
    DevMem *m = &c->d->mem;
    AccessTrace now = {.by = k->trace.by};
    int64_t at = 0;
    if (now.by != TRACE_BLOCKS) out->assumed |= !are_complete(c, k);
    out->same &= !reads_astray(c, &k->reads);
    qsort(k->run.id, (size_t)k->run.n, sizeof *k->run.id, by_id);
    m->trace = &now;
    m->assumed = 0;
    int rc = cone_run(c, i, &at, &out->faulted);
    m->trace = NULL;
    if (now.by == TRACE_BLOCKS)
        out->assumed |= m->assumed;
    else
        out->others |= m->assumed;
    int is_open = k->is_whole && now.by != TRACE_BLOCKS && m->assumed;
    if (now.by != TRACE_BLOCKS) note_astray(c, k, &now);
    note_difference(k, &now, out);
    if (is_open) k->needs_all = 1, out->same = 0;
    return rc;
}

/* Gives a value to what the call reads: inputs are drawn. */
static int supply(Cone *c, const Ranges *reads)
{
    DevMem *m = &c->d->mem;
    for (int64_t i = 0; i < reads->n; i++) {
        uint64_t lo = reads->of[i].lo - ARENA_BASE, hi = reads->of[i].hi - ARENA_BASE;
        int at = devmem_find(m, reads->of[i].lo);
        if (at < 0 || reads->of[i].hi - m->allocs[at].base > m->allocs[at].bytes)
            return cone_stop(c, "a library call on other memory");
        if (devmem_hold(m, &m->allocs[at], lo, hi))
            return cone_stop(c, "reads of memory that nothing has written");
    }
    return 0;
}

static int run_call(Cone *c, int i, Second *out)
{
    c->d->mem.assumed = 0;
    int rc = supply(c, &c->of[i].reads);
    out->assumed |= c->d->mem.assumed;
    out->same &= !reads_astray(c, &c->of[i].reads);
    if (rc) return rc;
    return library_run_some(&c->d->mem, &c->launches[i], &c->of[i].asked, &c->fault->error);
}

/* Runs all launches. A fault where all values are right is the candidate's. */
static int run_cone(Cone *c, int *same)
{
    DevMem *m = &c->d->mem;
    Second s = {.same = 1};
    int rc = 0;
    double before = c->left;
    ranges_clear(&c->astray);
    poison_all(c);
    devmem_assume(m, 1);
    for (int i = 0; i < c->n && !rc && !s.faulted; i++) {
        rc = sim_renew(c->d, &c->launches[i], &c->fault->error);
        if (!rc && c->of[i].asked.n) rc = run_call(c, i, &s);
        if (!rc && c->of[i].run.n) rc = run_launch(c, i, &s);
    }
    devmem_assume(m, 0);
    c->again = before - c->left;
    *same = s.same;
    if (rc || !s.same) return rc;
    if (s.assumed) return cone_stop(c, "reads of memory that nothing has written");
    if (s.faulted && (s.others || c->fault->outcome == OUTCOME_TIMEOUT))
        return cone_stop(c, "blocks that wait for one another");
    return s.faulted ? 2 : 0;
}

/* ---- what is complete ---- */

/* 1 as well: a library call may have them. */
static int has_atomics(const DeviceLaunch *l)
{
    const PtxFunction *f = sim_kernel_of(l);
    for (int i = 0; f && i < f->n_insts; i++)
        if (slice_is(&f->insts[i], SLICE_CHANGES) && !slice_is(&f->insts[i], SLICE_STORES))
            return 1;
    return !f;
}

/* Adds what the last launch that has a pointer to the buffer has stored there: no launch changes it again,
 * nor, without atomics, another block. */
static void add_last(Cone *c, int a, Ranges *to)
{
    const Alloc *y = &c->d->mem.allocs[a];
    for (int i = c->n - 1; i >= 0; i--) {
        const DeviceLaunch *l = &c->launches[i];
        if (!l->library_args && !sim_has_pointer(&c->d->mem, l, a)) continue;
        if (has_atomics(l)) return;
        Ranges *stored = &c->of[i].writes;
        ranges_join(stored);
        for (int64_t k = ranges_find(stored, y->base);
             k < stored->n && stored->of[k].hi <= y->base + y->bytes; k++)
            ranges_add(to, stored->of[k].lo, stored->of[k].hi);
        return;
    }
}

/* Marks the bytes of an output that are complete, and no others, as written. */
static void mark_complete(Cone *c, int a)
{
    DevMem *m = &c->d->mem;
    Alloc *y = &m->allocs[a];
    Ranges complete = {0};
    for (int k = 0; k < c->out->n_spans; k++) {
        const DeviceSpan *s = &c->out->spans[k];
        uint64_t lo = s->p + s->from;
        if (s->p == y->base && devmem_is_written(m, lo - ARENA_BASE, lo - ARENA_BASE + s->bytes))
            ranges_add(&complete, lo, lo + s->bytes);
    }
    add_last(c, a, &complete);
    ranges_join(&complete);
    devmem_unmark(m, y);
    for (int64_t i = 0; i < complete.n; i++)
        devmem_mark_written(m, complete.of[i].lo - ARENA_BASE, complete.of[i].hi - ARENA_BASE);
    ranges_release(&complete);
}

static void complete_outputs(Cone *c)
{
    for (int a = 0; a < c->d->mem.n_allocs; a++) {
        int is_output = 0;
        for (int k = 0; k < c->out->n_spans; k++)
            is_output |= c->out->spans[k].p == c->d->mem.allocs[a].base;
        if (is_output) mark_complete(c, a);
    }
}

/* ---- all of it ---- */

static int find_cone(Cone *c)
{
    size_t bytes = variable_bytes(&c->d->mem);
    if (bytes > VARIABLES) return cone_stop(c, "large variables");
    unsigned char *kept = memory_alloc(bytes + 1);
    int rc = 0, same = 0;
    copy_variables(&c->d->mem, kept, 0);
    for (int pass = 0; pass < PASSES && !rc && !same; pass++) {
        widen_fresh(c);
        devmem_assume(&c->d->mem, 1);
        rc = cone_trace(c);
        devmem_assume(&c->d->mem, 0);
        copy_variables(&c->d->mem, kept, 1);
        if (!rc) rc = run_cone(c, &same);
        if (!same) copy_variables(&c->d->mem, kept, 1);
    }
    if (!rc && !same) rc = cone_stop(c, "addresses that depend on values");
    free(kept);
    return rc;
}

static void release(Cone *c)
{
    for (int i = 0; i < c->n; i++) {
        block_set_release(&c->of[i].reach);
        block_set_release(&c->of[i].run);
        block_set_release(&c->of[i].units);
        trace_release(&c->of[i].trace);
        ranges_release(&c->of[i].reads);
        ranges_release(&c->of[i].writes);
        ranges_release(&c->of[i].asked);
    }
    ranges_release(&c->need);
    ranges_release(&c->astray);
    free(c->of);
    free(c->wanted);
}

/* Blocks that wait for each other run together or not at all. */
static int any_cooperative(const DeviceLaunch *launches, int n)
{
    for (int i = 0; i < n; i++)
        if (launches[i].cooperative) return 1;
    return 0;
}

int sim_cone(Device *d, const DeviceLaunch *launches, int n, DeviceCone *out, Fault *fault)
{
    Cone c = {.d = d,
              .launches = launches,
              .n = n,
              .out = out,
              .of = memory_array((size_t)n + 1, sizeof *c.of),
              .wanted = memory_alloc((size_t)d->mem.n_allocs + 1),
              .lanes = most_lanes,
              .left = out->budget,
              .fault = fault};
    out->why[0] = 0;
    out->is_dear = 0;
    memset(fault, 0, sizeof *fault);
    d->exec.counted = d->exec.reversed = 0;
    int rc = any_cooperative(launches, n) ? cone_stop(&c, "a cooperative launch")
             : n == d->n_sampled          ? find_cone(&c)
                                          : cone_stop(&c, "launches that were not sampled");
    if (!rc) complete_outputs(&c);
    out->used = out->budget - c.left;
    log_debug("the cone of %d spans takes %.3g instructions%s%s", out->n_spans, out->used,
              out->why[0] ? ", but it has " : "", out->why);
    release(&c);
    return rc == 2 ? 1 : rc < 0 ? -1 : 0;
}
