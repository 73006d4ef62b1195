/* Short rows make sums over a block costly, so that of flops what the task needs is enough. */
#include "eval/sim/missing.h"

#include <math.h>
#include <string.h>

/* Less of the scaled work than this is too little, and less of what the task itself needs. */
static const double LEAST_BYTES = 0.75, LEAST_FLOPS = 0.5, LEAST_OWN = 0.97;
/* A launch with this share of all bytes at the small size must ask for so much of what tensors grow by. */
static const double LARGE_SHARE = 0.25, LEAST_LAUNCH = 0.5;

typedef struct {
    double bytes, flops; /* bytes of global memory that threads ask for */
} Work;

const SimCounts *missing_find(const SimCounts *small, int n, const DeviceLaunch *l, int at)
{
    char name[sizeof small->kernel];
    const SimCounts *found = NULL;
    device_kernel_name(l->kernel, name, sizeof name);
    for (int i = 0; i < n; i++)
        if ((l->op_line ? small[i].op_line == l->op_line : !strcmp(small[i].kernel, name)) &&
            (!found || i <= at))
            found = &small[i];
    return found;
}

static double bytes_of(const SimCounts *c)
{
    return (double)c->global_load_bytes + (double)c->global_store_bytes;
}

/* launches NULL: c says which are op lines. At the small size a plain kernel may stand for a library's. */
static Work work_of(const SimCounts *c, const DeviceLaunch *launches, int n)
{
    Work w = {0, 0};
    for (int i = 0; i < n; i++) {
        if (launches ? launches[i].op_line : c[i].op_line) continue;
        w.bytes += bytes_of(&c[i]);
        w.flops += (double)c[i].fp32_flops + (double)c[i].fp16_flops + (double)c[i].fp64_flops +
                   (double)c[i].tensor_flops;
    }
    return w;
}

double missing_bytes(const SimCounts *small, int n_small, const SimCounts *now,
                     const DeviceLaunch *l, int at, const DeviceSample *s)
{
    const SimCounts *c = missing_find(small, n_small, l, at);
    if (!c || bytes_of(c) < LARGE_SHARE * work_of(small, NULL, n_small).bytes) return 0;
    double needed = s->tensor_growth * bytes_of(c);
    return bytes_of(now) < LEAST_LAUNCH * needed ? needed - bytes_of(now) : 0;
}

double missing_work(const SimCounts *small, int n_small, const SimCounts *now,
                    const DeviceLaunch *launches, int n, const DeviceSample *s)
{
    Work was = work_of(small, NULL, n_small), is = work_of(now, launches, n);
    double bytes = s->least_growth * was.bytes,
           flops = fmin(s->flops_growth * was.flops, s->own_flops), factor = 1;
    double own = fmin(bytes, s->own_bytes);
    if (is.bytes < LEAST_OWN * own) factor = own / fmax(is.bytes, 1);
    if (is.bytes < LEAST_BYTES * bytes) factor = bytes / fmax(is.bytes, 1);
    if (is.flops < LEAST_FLOPS * flops) factor = fmax(factor, flops / fmax(is.flops, 1));
    return factor;
}
