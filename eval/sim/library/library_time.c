/* A first-order model and its correction by measured neighbours. */
#include "eval/sim/library/library_time.h"

#include <math.h>
#include <string.h>

#include "eval/sim/library/library_table.h"
#include "tasks/task.h"

enum { NEIGHBOURS = 6 };

/* ---- the model ---- */

/* The rates of tile sizes as shares of light, and overheads: fitted to all products of both tables
 * (docs/measurements/timemodel.md). */
typedef struct {
    double rate[7];              /* by the size of the tile */
    double start, launch, split; /* us: of the first wave, of the call, of adding up a split k */
    double dram;                 /* share of the profile's usable bandwidth */
} GemmModel;

static const GemmModel gemm_models[] = {
    {{0.77, 0.72, 0.65, 0.45, 0.38, 0.41, 0.41}, 3.61, 2.53, 1.96, 0.66}, /* float32 */
    {{0.71, 0.79, 0.60, 0.26, 0.18, 0.11, 0.08}, 0.05, 4.89, 2.87, 0.89}, /* half, and TF32 */
};

static const struct {
    int m, n, rate;
} tiles[] = {{256, 128, 0}, {128, 256, 0}, {128, 128, 1}, {128, 64, 2}, {64, 128, 2}, {64, 64, 3},
             {64, 32, 4},   {32, 64, 4},   {32, 32, 5},   {32, 16, 6},  {16, 32, 6}};

static double flops_per_us(const Profile *p, const LibraryShape *s)
{
    double per_cycle = s->tf32                 ? p->tensor_flops / 2.0
                       : s->dtype == DTYPE_F32 ? 2.0 * p->fp32_lanes
                                               : p->tensor_flops;
    return per_cycle * p->sm_count * p->clock_hz * 1e-6;
}

static double bytes_per_us(const Profile *p)
{
    return p->dram_bytes_per_s * p->dram_efficiency * 1e-6;
}

static double gemm_us(const Profile *p, const LibraryShape *s, const LibraryWork *w)
{
    const GemmModel *g = &gemm_models[s->tf32 || s->dtype != DTYPE_F32];
    double element = s->dtype == DTYPE_F32 ? 4 : 2, bandwidth = bytes_per_us(p), sms = p->sm_count;
    double memory = element * (w->in + w->weights + w->out) / (bandwidth * g->dram);
    double best = INFINITY;
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++) {
        double count = ceil(w->m / tiles[i].m) * ceil(w->n / tiles[i].n) * w->groups;
        for (int split = 1; split <= 32 && (split == 1 || w->groups == 1); split *= 2) {
            if (split > 1 && w->k / split < 64) break;
            double tile = 2.0 * tiles[i].m * tiles[i].n * fmax(w->k / split, 16) /
                          (flops_per_us(p, s) / sms * g->rate[tiles[i].rate]);
            double busy = ceil(count * split / sms) * tile + g->start;
            if (split > 1) busy += g->split + 8 * split * w->out / bandwidth;
            best = fmin(best, hypot(busy, memory));
        }
    }
    return best + g->launch;
}

static double model_us(const Profile *p, const LibraryShape *s)
{
    LibraryWork w = library_work(s);
    if (s->op == LIBRARY_GEMM) return gemm_us(p, s, &w);
    double element = s->dtype == DTYPE_F32 ? 4 : 2;
    return fmax(w.flops / flops_per_us(p, s),
                element * (w.in + w.weights + w.out) / bytes_per_us(p)) +
           4;
}

/* ---- the measured neighbours ---- */

/* Between shapes of one operation and dtype. The weights of a convolution are those that predict
 * each measured one best from the others. */
static double distance(const LibraryShape *a, const LibraryShape *b)
{
    double d = 0;
    if (a->op == LIBRARY_GEMM) {
        for (int i = 0; i < 4; i++) d += fabs(log2(a->size[i] / b->size[i]));
        return d + 0.5 * (a->size[4] != b->size[4]);
    }
    LibraryWork x = library_work(a), y = library_work(b);
    d += 0.7 * fabs(log2(x.groups / y.groups)) + 0.4 * fabs(log2(x.m / y.m)) +
         0.8 * fabs(log2(x.n / y.n)) + 0.6 * fabs(log2(x.k / y.k));
    d += fabs((double)(x.dims - y.dims)) + ((x.kernel > 1) != (y.kernel > 1)) +
         2 * ((x.groups > 1) != (y.groups > 1)) + 0.7 * fabs(a->size[9] - b->size[9]);
    return d;
}

static int same_sizes(const LibraryShape *a, const LibraryShape *b)
{
    if (a->out[0] > 0 || b->out[0] > 0) return 0;
    for (int i = 0; i < library_op_sizes(a->op); i++)
        if (a->size[i] != b->size[i]) return 0;
    return 1;
}

/* log of measured over modelled time, from the shape's own row or its neighbours. */
static double correction(const Profile *p, const LibraryShape *s)
{
    const int on_h200 = s->tf32 || library_op_last(s->op); /* these were measured there alone */
    const LibraryTable *t = library_table(on_h200 ? "h200" : p->name);
    const Profile *measured = profile_find(t->device, NULL);
    const LibraryRow *near[NEIGHBOURS];
    double far[NEIGHBOURS], sum = 0, weights = 0;
    int n = 0, kind = library_kind(s), first = t->first[s->op][kind];
    for (int i = first; i < first + t->count[s->op][kind]; i++) {
        const LibraryRow *r = &t->rows[i];
        if (same_sizes(s, &r->shape)) return log(r->us / model_us(measured, &r->shape));
        double d = distance(s, &r->shape);
        if (n == NEIGHBOURS && d >= far[n - 1]) continue;
        int at = n < NEIGHBOURS ? n++ : n - 1;
        for (; at > 0 && far[at - 1] > d; at--) far[at] = far[at - 1], near[at] = near[at - 1];
        far[at] = d;
        near[at] = r;
    }
    for (int i = 0; i < n; i++) {
        double weight = 1 / ((0.3 + far[i]) * (0.3 + far[i]));
        sum += weight * log(near[i]->us / model_us(measured, &near[i]->shape));
        weights += weight;
    }
    return weights > 0 ? sum / weights : 0;
}

double library_seconds(const Profile *p, const LibraryShape *s)
{
    return 1e-6 * model_us(p, s) * exp(correction(p, s));
}
