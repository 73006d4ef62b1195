/* What blocks read to no effect: elements of tensors that some blocks of each launch read, each of which is
 * replaced in turn, and whether these blocks write other bytes then.
 *
 * Each of the blocks runs alone. What it changes is as it was before each of its runs, and of what other
 * blocks or launches would have written the tensors hold drawn numbers, all other memory zeros. */
#include "eval/sim/sim_launches.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"

enum {
    BLOCKS =
        4, /* of a launch, that read one of the tensors: the last one, the first one, and others */
    ATTEMPTS = 24, /* blocks that run to find these */
    EACH = 6,      /* elements of a tensor and a block */
    LEAST = 2,     /* and where that takes too long */
    VALUES = 4,
    LONG = 1 << 30, /* thread-instructions of a block */
    DOUBTS = 64
};

typedef struct {
    Device *d;
    const DeviceLaunch *l;
    DeviceIdle *out;
    Random r;
    uint64_t block;
    int again; /* the first and the last block have been looked at before */
    AccessTrace trace;
    Ranges read, changed;         /* read: of the tensor at hand */
    unsigned char *before, *base; /* what `changed` holds before a run, and behind the usual one */
    uint64_t bytes;               /* of it */
    double left;                  /* thread-instructions */
    int n_doubts;                 /* idle elements, which another block of the launch may use */
    struct {
        uint64_t address;
        int tensor;
    } doubt[DOUBTS];
} Idle;

/* ---- runs ---- */

static int only_one(void *of, const SimCounts *done, uint64_t *block)
{
    Idle *x = of;
    (void)done;
    *block = x->block;
    x->block = UINT64_MAX;
    return *block != UINT64_MAX;
}

/* 0: the block has ended. */
static int run_block(Idle *x, uint64_t block)
{
    Fault ignored = {0};
    Exec *e = &x->d->exec;
    x->block = block;
    int64_t before = e->budget = (int64_t)fmax(x->left, 0);
    e->block_budget = LONG;
    int rc = sim_run_blocks(x->d, x->l, only_one, x, &ignored);
    x->left -= (double)(before - e->budget);
    return rc;
}

/* Copies what the block changes to `kept`, or back. */
static void copy_changed(const Idle *x, unsigned char *kept, int back)
{
    DevMem *m = &x->d->mem;
    for (int64_t i = 0; i < x->changed.n; i++) {
        uint64_t lo = x->changed.of[i].lo, n = x->changed.of[i].hi - lo;
        unsigned char *at = devmem_host(m, lo);
        memcpy(back ? at : kept, back ? kept : at, n);
        kept += n;
    }
}

/* Is the changed number not finite? It tells nothing: zero times infinity is none either. */
static int is_wild(const unsigned char *at)
{
    float v;
    memcpy(&v, at, sizeof v);
    return !isfinite(v);
}

/* Do n bytes differ, other than by numbers that are not finite? */
static int differ(const unsigned char *now, const unsigned char *base, uint64_t n)
{
    uint64_t i = 0;
    for (; i + sizeof(float) <= n; i += sizeof(float))
        if (memcmp(now + i, base + i, sizeof(float)) && !is_wild(now + i)) return 1;
    return memcmp(now + i, base + i, n - i) != 0;
}

/* Runs the block where `before` is what it changes. Returns 1: it leaves something else than `base`. */
static int differs(Idle *x, uint64_t block)
{
    copy_changed(x, x->before, 1);
    if (run_block(x, block)) return 1;
    const unsigned char *base = x->base;
    int found = 0;
    for (int64_t i = 0; i < x->changed.n && !found; i++) {
        uint64_t lo = x->changed.of[i].lo, n = x->changed.of[i].hi - lo;
        found = differ(devmem_host(&x->d->mem, lo), base, n);
        base += n;
    }
    return found;
}

/* ---- elements ---- */

/* Other values of an element, one of which nearly every use shows; size: larger than all that is read. */
static float other(float was, double size, int which)
{
    return (float)(which == 0 ? size : which == 1 ? -size : which == 2 ? 0.0 : -2 * was - 1);
}

/* Does another value at the place change nothing? */
static int is_idle(Idle *x, uint64_t block, uint64_t address, double size)
{
    float was, now;
    unsigned char *at = devmem_host(&x->d->mem, address);
    int found = 0;
    memcpy(&was, at, sizeof was);
    for (int k = 0; k < VALUES && !found; k++) {
        now = other(was, size, k);
        memcpy(at, &now, sizeof now);
        found = differs(x, block);
        memcpy(at, &was, sizeof was);
    }
    return !found;
}

static uint64_t element_at(const Ranges *r, uint64_t number)
{
    for (int64_t i = 0; i < r->n; i++) {
        uint64_t n = (r->of[i].hi - r->of[i].lo) / sizeof(float);
        if (number < n) return r->of[i].lo + number * sizeof(float);
        number -= n;
    }
    return r->of[0].lo;
}

/* Looks at some elements of a tensor that the block has read. */
static void look_at(Idle *x, uint64_t block, int tensor, int each)
{
    uint64_t n = ranges_bytes(&x->read) / sizeof(float);
    for (int k = 0; k < each && n && x->left > 0; k++) {
        uint64_t at = element_at(&x->read, random_below(&x->r, n));
        double size = (double)n * (1 + random_uniform(&x->r));
        int idle = is_idle(x, block, at, size);
        if (x->left <= 0) return;
        x->out->of[tensor].tried++;
        x->out->of[tensor].idle += idle;
        if (!idle || x->n_doubts == DOUBTS) continue;
        x->doubt[x->n_doubts].address = at;
        x->doubt[x->n_doubts++].tensor = tensor;
    }
}

/* A block may have no use for what others use: at an image's border, where the first and the last block
 * lie, some taps of a filter meet nothing. What this block uses is not idle. */
static void look_again(Idle *x, uint64_t block, int tensor)
{
    const double size = 2. * (double)ranges_bytes(&x->read) / sizeof(float);
    for (int i = 0; i < x->n_doubts && x->left > 0; i++) {
        const uint64_t at = x->doubt[i].address;
        if (x->doubt[i].tensor != tensor || !ranges_meet(&x->read, at, at + sizeof(float)) ||
            is_idle(x, block, at, size))
            continue;
        x->out->of[tensor].idle--;
        x->doubt[i--] = x->doubt[--x->n_doubts];
    }
}

/* ---- a block ---- */

/* What the block reads of the tensor, in x->read. */
static void find_read(Idle *x, DevicePtr p)
{
    const Alloc *a = devmem_at(&x->d->mem, p);
    ranges_clear(&x->read);
    for (int64_t i = 0; a && i < x->trace.n; i++) {
        const TraceEntry *e = &x->trace.of[i];
        if (e->kind == TRACE_READ && e->lo >= a->base && e->lo < a->base + a->bytes)
            ranges_add(&x->read, e->lo, e->lo + e->bytes);
    }
    ranges_join(&x->read);
}

/* A tensor that launches write has drawn numbers where the block reads it. */
static void draw_read(Idle *x)
{
    for (int64_t i = 0; i < x->read.n; i++) {
        uint64_t lo = x->read.of[i].lo, hi = x->read.of[i].hi;
        devmem_mark_written(&x->d->mem, lo - ARENA_BASE, hi - ARENA_BASE);
        for (uint64_t at = lo; at + sizeof(float) <= hi; at += sizeof(float)) {
            float v = (float)(0.5 + random_uniform(&x->r));
            memcpy(devmem_host(&x->d->mem, at), &v, sizeof v);
        }
    }
}

static void find_changed(Idle *x)
{
    ranges_clear(&x->changed);
    for (int64_t i = 0; i < x->trace.n; i++) {
        const TraceEntry *e = &x->trace.of[i];
        if (e->kind != TRACE_READ) ranges_add(&x->changed, e->lo, e->lo + e->bytes);
    }
    ranges_join(&x->changed);
    x->bytes = ranges_bytes(&x->changed);
}

/* How many elements of each of n tensors may be looked at for a share of what is left; 0: too few. */
static int affordable(double left, double share, double work, int n)
{
    double each = left * share / (work + 1) / n;
    return each >= EACH ? EACH : each >= LEAST ? (int)each : 0;
}

/* Returns 1: it reads one of the tensors. */
static int look_at_block(Idle *x, uint64_t block, double share)
{
    DeviceIdle *out = x->out;
    DevMem *m = &x->d->mem;
    double before = x->left;
    x->trace = (AccessTrace){.by = TRACE_WARPS, .given = 1};
    m->trace = &x->trace;
    int rc = run_block(x, block), n = 0;
    m->trace = NULL;
    double work = before - x->left;
    if (!rc && !x->trace.overflowed) find_changed(x);
    for (int t = 0; t < out->n && !rc && x->changed.n; t++) {
        const Alloc *a = devmem_at(m, out->of[t].p);
        find_read(x, out->of[t].p);
        n += x->read.n > 0;
        if (a && !a->read_only) draw_read(x);
    }
    int each = n ? affordable(x->left, share, work, n) : 0;
    if (each) {
        x->before = memory_alloc(x->bytes + 1);
        x->base = memory_alloc(x->bytes + 1);
        copy_changed(x, x->before, 0);
        rc = run_block(x, block);
        copy_changed(x, x->base, 0);
        for (int t = 0; t < out->n && !rc; t++) {
            find_read(x, out->of[t].p);
            look_again(x, block, t);
            look_at(x, block, t, each);
        }
        copy_changed(x, x->before, 1);
        free(x->before);
        free(x->base);
    }
    ranges_clear(&x->changed);
    trace_release(&x->trace);
    return n > 0;
}

/* Blocks, or clusters, of a launch of which each takes `work`. */
static void look_at_launch(Idle *x, double work, int launches)
{
    const PtxFunction *f = sim_kernel_of(x->l);
    if (!affordable(x->left - work, 1.0 / launches, work, 1)) return;
    uint64_t units = 1;
    for (int k = 0; k < 3; k++) units *= x->l->grid[k] / (f->cluster[k] ? f->cluster[k] : 1);
    int left = units < BLOCKS ? (int)units : BLOCKS;
    x->n_doubts = 0;
    for (int i = 0; i < ATTEMPTS && left; i++) {
        const int from = x->again && units > BLOCKS ? i + 2 : i;
        uint64_t block = !from ? units - 1 : from == 1 ? 0 : random_below(&x->r, units);
        left -= look_at_block(x, block, 1.0 / launches / left);
    }
}

void sim_idle(Device *d, const DeviceLaunch *launches, int n, DeviceIdle *out)
{
    Idle x = {.d = d, .out = out, .left = out->budget};
    int own = 0;
    random_init(&x.r, out->seed, 0);
    for (int t = 0; t < out->n; t++) x.again |= out->of[t].tried > 0;
    d->exec.counted = d->exec.reversed = 0;
    for (int i = 0; i < n; i++)
        own += !launches[i].op_line && !launches[i].cooperative && sim_kernel_of(&launches[i]);
    devmem_assume(&d->mem, 1);
    for (int i = 0; i < n; i++) {
        x.l = &launches[i];
        for (int k = 0; k < x.l->n_fresh; k++)
            devmem_renew(&d->mem, x.l->fresh[k].p, x.l->fresh[k].bytes, x.l->fresh[k].label);
        if (x.l->op_line || x.l->cooperative || !sim_kernel_of(x.l)) continue;
        look_at_launch(&x, n == d->n_sampled ? d->sampled[i].work : 0, own--);
    }
    devmem_assume(&d->mem, 0);
    ranges_release(&x.read);
    ranges_release(&x.changed);
    for (int t = 0; t < out->n; t++)
        log_debug("of %d elements of tensor %d %d are idle", out->of[t].tried, t, out->of[t].idle);
    log_debug("idle reads were looked for with %.3g instructions", out->budget - x.left);
}
