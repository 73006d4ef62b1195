/* The launches of a kernel need of each buffer what they asked for at the small size, times the growth of the
 * buffer. A buffer of fixed size, such as one of partial sums, does not grow, unless the plan moves much of
 * what it reads through such buffers. A block may keep what fits on chip, and need not ask for it again. What
 * a grid of fixed size reads many times over, each block for itself, need not grow either: two passes are
 * enough.
 *
 * Short rows make sums over a block costly, so that of flops what the task needs is enough; Winograd's
 * convolutions need 0.44 of it. */
#include "eval/sim/missing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* ---- what a launch does to each buffer: sums of the counts that each allocation has ---- */

static const double sector = 32;

static void add(BufferUse *b, const Alloc *a, double scale)
{
    b->size += (double)a->bytes;
    b->asked += (double)a->asked * scale;
    b->touched += (double)(a->read_sectors + a->written_sectors) * sector * scale;
    b->scratch = a->scratch;
}

void uses_note(LaunchUses *u, const DevMem *mem, double scale)
{
    BufferUse *variables = NULL;
    u->of = memory_array((size_t)mem->n_allocs + 1, sizeof *u->of);
    u->n = 0;
    for (int i = 0; i < mem->n_allocs; i++) {
        const Alloc *a = &mem->allocs[i];
        BufferUse *b = a->variable && variables ? variables : &u->of[u->n++];
        if (a->variable) variables = b;
        memcpy(b->label, a->variable ? "variables" : a->label, a->variable ? 10 : sizeof b->label);
        add(b, a, scale);
    }
}

void uses_release(LaunchUses *list, int n)
{
    for (int i = 0; list && i < n; i++) free(list[i].of);
    free(list);
}

/* Less of the scaled work than this is too little, and less of what the task itself needs. */
static const double LEAST_BYTES = 0.85, LEAST_FLOPS = 0.4, LEAST_OWN = 0.97;
/* The same where outputs are compared. Triangular products need a sixth of the flops. */
static const double LEAST_COMPARED_BYTES = 0.5, LEAST_COMPARED_FLOPS = 0.15;
/* The same where a few heavy blocks may be hidden from the sample. */
static const double LEAST_OPEN_BYTES = 0.85, LEAST_OPEN_FLOPS = 0.7;
/* A kernel with this share of all bytes must ask for so much of what tensors grow by. */
static const double LARGE_SHARE = 0.05, LEAST_KERNEL = 0.9;
/* A launch that reads a buffer more often than this reads it for each block. */
static const double MOST_PASSES = 4;
/* The registers of an SM, in bytes. */
static const double ON_CHIP = 256 << 10;
/* A buffer lags that grows so many times less than any tensor. Tiles that pad small tensors account for 4.
 * Such buffers with this share of the touched bytes hold more than partial results. */
static const double LAG = 4, COPIES = 0.25;

SequenceWork work_new(int n)
{
    size_t room = (size_t)n + 1;
    return (SequenceWork){.n = n,
                          .counts = memory_array(room, sizeof(SimCounts)),
                          .uses = memory_array(room, sizeof(LaunchUses))};
}

void work_release(SequenceWork *w)
{
    uses_release(w->uses, w->n);
    free(w->counts);
    memset(w, 0, sizeof *w);
}

int missing_find(const SequenceWork *small, const DeviceLaunch *l, int at)
{
    char name[sizeof small->counts->kernel];
    int found = -1;
    device_kernel_name(l->kernel, name, sizeof name);
    for (int i = 0; i < small->n; i++) {
        const SimCounts *c = &small->counts[i];
        if ((l->op_line ? c->op_line == l->op_line : !strcmp(c->kernel, name)) &&
            (found < 0 || i <= at))
            found = i;
    }
    return found;
}

/* A buffer, over the launches of a kernel. In bytes. */
typedef struct {
    char label[sizeof((BufferUse *)0)->label];
    double needed, once;   /* once: each byte that was touched at the small size */
    double asked, touched; /* at the timed size */
} Buffer;

typedef struct {
    const SequenceWork *small, *now;
    double most;          /* the growth that no buffer exceeds */
    double least;         /* of a tensor of the task */
    int copies;           /* scratch buffers that grow less count as growing like it */
    double wider, blocks; /* its threads over those at the small size; its blocks */
    int n;
    Buffer *buffers;
} Comparison;

typedef struct {
    double needed, done; /* bytes; done: at most what is needed of each buffer */
} Share;

/* The buffer with the label, which is added where there is none. */
static Buffer *buffer_of(Comparison *c, const char *label)
{
    for (int i = 0; i < c->n; i++)
        if (!strcmp(c->buffers[i].label, label)) return &c->buffers[i];
    c->buffers = memory_grow(c->buffers, (size_t)c->n + 1, sizeof *c->buffers);
    Buffer *b = &c->buffers[c->n++];
    memset(b, 0, sizeof *b);
    memcpy(b->label, label, sizeof b->label);
    return b;
}

/* The size of the buffer at the timed size over that at the small one. */
static double growth_of(const SequenceWork *now, const BufferUse *was, double most)
{
    for (int i = 0; i < now->n; i++)
        for (int k = 0; k < now->uses[i].n; k++)
            if (!strcmp(now->uses[i].of[k].label, was->label))
                return fmin(now->uses[i].of[k].size / fmax(was->size, 1), most);
    return most;
}

/* least: the least growth of a tensor of the task. */
static int lags(const BufferUse *was, double growth, double least)
{
    return was->scratch && growth < least / LAG;
}

/* Do scratch buffers that lag behind the tensors have a large part in what small launches touch? */
static int find_copies(const SequenceWork *small, const SequenceWork *now, double least)
{
    double all = 0, lagging = 0;
    for (int i = 0; i < small->n; i++)
        for (int k = 0; k < small->uses[i].n; k++) {
            const BufferUse *u = &small->uses[i].of[k];
            all += u->touched;
            if (u->touched > 0 && lags(u, growth_of(now, u, least), least)) lagging += u->touched;
        }
    return lagging > COPIES * all;
}

static void add_done(Comparison *c, const LaunchUses *u)
{
    for (int i = 0; i < u->n; i++) {
        if (!u->of[i].asked) continue;
        Buffer *b = buffer_of(c, u->of[i].label);
        b->asked += u->of[i].asked;
        b->touched += u->of[i].touched;
    }
}

/* What a small launch asked for, grown, is needed. scaled: a launch does just that. */
static void add_needed(Comparison *c, const LaunchUses *u, int scaled)
{
    for (int i = 0; i < u->n; i++) {
        const BufferUse *was = &u->of[i];
        if (!was->asked) continue;
        Buffer *b = buffer_of(c, was->label);
        double growth = growth_of(c->now, was, c->most), touched = fmin(was->touched, was->asked),
               once = growth * touched, needed = growth * was->asked;
        if (c->copies && lags(was, growth, c->least))
            once = needed = c->least * touched;
        else if (was->asked > MOST_PASSES * was->touched)
            needed = fmax(fmin(2 * once, needed), was->asked * fmin(growth, c->wider));
        else if (b->touched <= ON_CHIP * c->blocks)
            needed = once;
        if (scaled) {
            b->asked += needed;
            b->touched += once;
        } else {
            b->once += once;
            b->needed += needed;
        }
    }
}

/* Reading the same sectors again is not reading all of them. */
static Share share_of(Comparison *c)
{
    Share sum = {0, 0};
    for (int i = 0; i < c->n; i++) {
        const Buffer *b = &c->buffers[i];
        sum.needed += b->needed;
        if (b->once > 0)
            sum.done += fmin(b->needed, fmin(b->asked, b->needed / b->once * b->touched));
    }
    free(c->buffers);
    return sum;
}

static int is_own(const DeviceLaunch *l)
{
    return !l->op_line && !l->library_args;
}

static int is_of(const SequenceWork *w, int i, const char *kernel)
{
    return w->uses[i].n && !w->counts[i].op_line && !strcmp(w->counts[i].kernel, kernel);
}

static double threads_of(const SequenceWork *w, const char *kernel)
{
    double sum = 0;
    for (int i = 0; i < w->n; i++) {
        const SimCounts *c = &w->counts[i];
        if (is_of(w, i, kernel)) sum += (double)c->blocks * c->block[0] * c->block[1] * c->block[2];
    }
    return sum;
}

/* Of the launches of a kernel, which are the plan's own. */
static Share kernel_share(Comparison c, const DeviceLaunch *launches, const char *kernel)
{
    c.wider = threads_of(c.now, kernel) / fmax(threads_of(c.small, kernel), 1);
    for (int i = 0; i < c.now->n; i++) {
        if (!is_own(&launches[i]) || !is_of(c.now, i, kernel)) continue;
        c.blocks += (double)c.now->counts[i].blocks;
        add_done(&c, &c.now->uses[i]);
    }
    for (int i = 0; i < c.small->n; i++)
        if (is_of(c.small, i, kernel)) add_needed(&c, &c.small->uses[i], 0);
    for (int i = 0; i < c.now->n; i++) {
        if (!is_own(&launches[i]) || !is_of(c.now, i, kernel) || !c.now->uses[i].scaled) continue;
        int was = missing_find(c.small, &launches[i], i);
        if (was >= 0) add_needed(&c, &c.small->uses[was], 1);
    }
    return share_of(&c);
}

/* Is small launch i the first of its kernel? */
static int is_first(const SequenceWork *small, int i)
{
    if (!is_of(small, i, small->counts[i].kernel)) return 0;
    for (int k = 0; k < i; k++)
        if (is_of(small, k, small->counts[i].kernel)) return 0;
    return 1;
}

/* Of all kernels. */
static Share all_shares(const Comparison *c, const DeviceLaunch *launches)
{
    Share sum = {0, 0};
    for (int i = 0; i < c->small->n; i++) {
        if (!is_first(c->small, i)) continue;
        Share s = kernel_share(*c, launches, c->small->counts[i].kernel);
        sum.needed += s.needed, sum.done += s.done;
    }
    return sum;
}

/* The first launch of the kernel at the timed size, or else the first of the plan's own. */
static int launch_of(const SequenceWork *now, const DeviceLaunch *launches, const char *kernel)
{
    int first = -1;
    for (int i = 0; i < now->n; i++) {
        if (!is_own(&launches[i])) continue;
        if (is_of(now, i, kernel)) return i;
        if (first < 0) first = i;
    }
    return first;
}

static Comparison compare(const SequenceWork *small, const SequenceWork *now, double most,
                          double tensors)
{
    double least = fmin(most, tensors);
    return (Comparison){.small = small,
                        .now = now,
                        .most = most,
                        .least = least,
                        .copies = find_copies(small, now, least)};
}

typedef struct {
    double bytes, flops; /* bytes of global memory that threads ask for */
} Work;

/* launches NULL: the counts say which are op lines. At the small size a plain kernel may stand for a
 * library's. */
static Work work_of(const SequenceWork *of, const DeviceLaunch *launches)
{
    Work w = {0, 0};
    for (int i = 0; i < of->n; i++) {
        const SimCounts *c = &of->counts[i];
        if (launches ? launches[i].op_line : c->op_line) continue;
        w.bytes += (double)c->global_load_bytes + (double)c->global_store_bytes;
        w.flops += (double)c->fp32_flops + (double)c->fp16_flops + (double)c->fp64_flops +
                   (double)c->tensor_flops;
    }
    return w;
}

/* What the task needs of a plan's own launches, and at most what they did at the small size, grown. */
static Work needed_work(const SequenceWork *small, const DeviceSample *s)
{
    Work was = work_of(small, NULL);
    return (Work){.bytes = fmin(s->least_growth * was.bytes, s->own_bytes),
                  .flops = fmin(s->flops_growth * was.flops, s->own_flops)};
}

static double missing_factor(const Comparison *c, const DeviceLaunch *launches,
                             const DeviceSample *s)
{
    Work need = needed_work(c->small, s), is = work_of(c->now, launches);
    Share all = all_shares(c, launches);
    double factor = 1;
    if (is.bytes < LEAST_OWN * need.bytes) factor = need.bytes / fmax(is.bytes, 1);
    if (all.done < LEAST_BYTES * all.needed) factor = fmax(factor, all.needed / fmax(all.done, 1));
    if (is.flops < LEAST_FLOPS * need.flops) factor = fmax(factor, need.flops / fmax(is.flops, 1));
    return factor;
}

double missing_compared(const SequenceWork *small, const SequenceWork *now,
                        const DeviceLaunch *launches, const DeviceSample *s, int open)
{
    Work need = needed_work(small, s), is = work_of(now, launches);
    double bytes = (open ? LEAST_OPEN_BYTES : LEAST_COMPARED_BYTES) * need.bytes,
           flops = (open ? LEAST_OPEN_FLOPS : LEAST_COMPARED_FLOPS) * need.flops;
    return fmax(1, fmax(bytes / fmax(is.bytes, 1), flops / fmax(is.flops, 1)));
}

double missing_work(const SequenceWork *small, const SequenceWork *now,
                    const DeviceLaunch *launches, const DeviceSample *s, double *bytes)
{
    Comparison c = compare(small, now, s->tensor_growth, s->tensor_growth);
    double all = all_shares(&c, launches).needed;
    memset(bytes, 0, (size_t)now->n * sizeof *bytes);
    for (int i = 0; i < small->n; i++) {
        if (!is_first(small, i)) continue;
        const char *kernel = small->counts[i].kernel;
        Share k = kernel_share(c, launches, kernel);
        int at = launch_of(now, launches, kernel);
        if (at >= 0 && k.needed >= LARGE_SHARE * all && k.done < LEAST_KERNEL * k.needed)
            bytes[at] += k.needed - k.done;
    }
    c = compare(small, now, s->least_growth, s->tensor_growth);
    return missing_factor(&c, launches, s);
}
