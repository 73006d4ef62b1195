/* A launch needs of each buffer what it asked for at the small size, times the growth of the buffer. A buffer
 * of fixed size, such as one of partial sums, does not grow. What a grid of fixed size reads many times over,
 * each block for itself, need not grow either: then each byte is needed once.
 *
 * Short rows make sums over a block costly, so that of flops what the task needs is enough. */
#include "eval/sim/missing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Less of the scaled work than this is too little, and less of what the task itself needs. */
static const double LEAST_BYTES = 0.75, LEAST_FLOPS = 0.5, LEAST_OWN = 0.97;
/* A launch with this share of all bytes must ask for so much of what tensors grow by. */
static const double LARGE_SHARE = 0.25, LEAST_LAUNCH = 0.5;
/* A launch that reads a buffer more often than this reads it for each block. */
static const double MOST_PASSES = 4;

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

/* A buffer, over the launches that are compared. In bytes. */
typedef struct {
    char label[sizeof((BufferUse *)0)->label];
    double size;           /* at the timed size; 0: not known */
    double needed, once;   /* once: each byte that was touched at the small size */
    double asked, touched; /* at the timed size */
} Buffer;

typedef struct {
    const SequenceWork *small, *now;
    double most; /* the growth that no buffer exceeds */
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

static double growth_of(const Comparison *c, const Buffer *b, const BufferUse *was)
{
    return b->size > 0 ? fmin(b->size / fmax(was->size, 1), c->most) : c->most;
}

static double threads_of(const SequenceWork *w, const char *kernel)
{
    double sum = 0;
    for (int i = 0; i < w->n; i++) {
        const SimCounts *c = &w->counts[i];
        if (!strcmp(c->kernel, kernel))
            sum += (double)c->blocks * c->block[0] * c->block[1] * c->block[2];
    }
    return sum;
}

static void add_done(Comparison *c, const LaunchUses *u)
{
    for (int i = 0; i < u->n; i++) {
        Buffer *b = buffer_of(c, u->of[i].label);
        b->size = u->of[i].size;
        b->asked += u->of[i].asked;
        b->touched += u->of[i].touched;
    }
}

/* What small launch `at` asked for, grown, is needed. scaled: a launch does just that. */
static void add_needed(Comparison *c, int at, int scaled)
{
    const LaunchUses *u = &c->small->uses[at];
    const char *kernel = c->small->counts[at].kernel;
    double wider = threads_of(c->now, kernel) / fmax(threads_of(c->small, kernel), 1);
    for (int i = 0; i < u->n; i++) {
        const BufferUse *was = &u->of[i];
        if (!was->asked) continue;
        Buffer *b = buffer_of(c, was->label);
        double growth = growth_of(c, b, was), once = growth * fmin(was->touched, was->asked),
               needed = growth * was->asked;
        if (was->asked > MOST_PASSES * was->touched)
            needed = fmax(once, was->asked * fmin(growth, wider));
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

/* Launch i of the timed size, or all own launches with i -1. */
static Share share(const SequenceWork *small, const SequenceWork *now, const DeviceLaunch *launches,
                   int i, double most)
{
    Comparison c = {.small = small, .now = now, .most = most};
    int from = i < 0 ? 0 : i, end = i < 0 ? now->n : i + 1;
    for (int k = from; k < end; k++)
        if (is_own(&launches[k])) add_done(&c, &now->uses[k]);
    for (int k = 0; i < 0 && k < small->n; k++)
        if (!small->counts[k].op_line) add_needed(&c, k, 0);
    for (int k = from; k < end; k++) {
        int was = is_own(&launches[k]) ? missing_find(small, &launches[k], k) : -1;
        if (was < 0) continue;
        if (i >= 0) add_needed(&c, was, 0);
        if (now->uses[k].scaled) add_needed(&c, was, 1);
    }
    return share_of(&c);
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

static double missing_factor(const SequenceWork *small, const SequenceWork *now,
                             const DeviceLaunch *launches, const DeviceSample *s)
{
    Work was = work_of(small, NULL), is = work_of(now, launches);
    Share all = share(small, now, launches, -1, s->least_growth);
    double flops = fmin(s->flops_growth * was.flops, s->own_flops), factor = 1,
           own = fmin(s->least_growth * was.bytes, s->own_bytes);
    if (is.bytes < LEAST_OWN * own) factor = own / fmax(is.bytes, 1);
    if (all.done < LEAST_BYTES * all.needed) factor = all.needed / fmax(all.done, 1);
    if (is.flops < LEAST_FLOPS * flops) factor = fmax(factor, flops / fmax(is.flops, 1));
    return factor;
}

double missing_work(const SequenceWork *small, const SequenceWork *now,
                    const DeviceLaunch *launches, const DeviceSample *s, double *bytes)
{
    double all = share(small, now, launches, -1, s->tensor_growth).needed;
    for (int i = 0; i < now->n; i++) {
        bytes[i] = 0;
        if (!is_own(&launches[i])) continue;
        Share l = share(small, now, launches, i, s->tensor_growth);
        if (l.needed >= LARGE_SHARE * all && l.done < LEAST_LAUNCH * l.needed)
            bytes[i] = l.needed - l.done;
    }
    return missing_factor(small, now, launches, s);
}
