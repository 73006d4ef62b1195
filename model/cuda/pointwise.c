/* Launchers of pointwise.cu, logprob.cu and optim.cu. */
#include <math.h>

#include "model/cuda/launch_shape.h"
#include "model/cuda/table.h"

enum { ADD_VECTORS = 4, GLU_VECTORS = 2, ROPE_HEADS = 4 }; /* per thread, as in pointwise.cu */

void cuda_add(Num *y, const Num *x, size_t n)
{
    int aligned = aligned16(y) && aligned16(x);
    LAUNCH(KERNEL_add, ((Dim3){ceil_div(n, 256 * ADD_VECTORS * 8), 1, 1}), ((Dim3){256, 1, 1}), 0,
           &y, &x, &n, &aligned);
}

void cuda_swiglu(Num *act, const Num *gate_up, int rows, int ff)
{
    int aligned = ff % 8 == 0 && aligned16(act) && aligned16(gate_up);
    unsigned pieces, threads;
    cut_row(ceil_div((size_t)ff, 8), GLU_VECTORS, &pieces, &threads);
    LAUNCH(KERNEL_swiglu, ((Dim3){(unsigned)rows, pieces, 1}), ((Dim3){threads, 1, 1}), 0, &act,
           &gate_up, &ff, &aligned);
}

void cuda_swiglu_grad(Num *dgate_up, const Num *dact, const Num *gate_up, int rows, int ff)
{
    int aligned = ff % 8 == 0 && aligned16(dgate_up) && aligned16(dact) && aligned16(gate_up);
    unsigned pieces, threads;
    cut_row(ceil_div((size_t)ff, 8), GLU_VECTORS, &pieces, &threads);
    LAUNCH(KERNEL_swiglu_grad, ((Dim3){(unsigned)rows, pieces, 1}), ((Dim3){threads, 1, 1}), 0,
           &dgate_up, &dact, &gate_up, &ff, &aligned);
}

/* Take the widest access that divides half a head. A head has an even dimension. */
void cuda_rope(Num *qkv, const Rotation *angles, HeadShape s, float sign)
{
    Rotation r = *angles;
    int heads = s.heads + s.kv_heads, ld = head_row(s), half = s.dim / 2;
    int width = half % 8 == 0 ? 8 : half % 4 == 0 ? 4 : 2;
    size_t threads = (size_t)(half / width) * ceil_div((size_t)heads, ROPE_HEADS);
    CudaKernel k = width == 8 ? KERNEL_rope8 : width == 4 ? KERNEL_rope4 : KERNEL_rope2;
    cuda_launch(
        k, (Dim3){ceil_div((size_t)r.rows * threads, 256), 1, 1}, (Dim3){256, 1, 1}, 0,
        (void *[]){&qkv, &r.pos, &r.cosines, &r.sines, &r.rows, &heads, &ld, &s.dim, &sign});
}

void cuda_embed(float *x, const Num *table, const int32_t *ids, int rows, int n)
{
    int aligned = n % 4 == 0 && aligned16(x) && aligned16(table);
    unsigned pieces, threads;
    cut_row(ceil_div((size_t)n, 4), 1, &pieces, &threads);
    LAUNCH(KERNEL_embed, ((Dim3){(unsigned)rows, pieces, 1}), ((Dim3){threads, 1, 1}), 0, &x,
           &table, &ids, &n, &aligned);
}

/* Threads of a row: four vectors of four logits per thread. */
static Dim3 row_threads(int vocab)
{
    unsigned threads = whole_warps(ceil_div((size_t)vocab, 16));
    return (Dim3){threads < 512 ? threads : 512, 1, 1};
}

void cuda_cross_entropy(float *logp, float *lse, const Logits *logits)
{
    Logits l = *logits;
    int aligned = l.vocab % 4 == 0 && aligned16(l.z);
    LAUNCH(KERNEL_cross_entropy, ((Dim3){(unsigned)l.rows, 1, 1}), row_threads(l.vocab), 0, &logp,
           &lse, &l.z, &l.target, &l.vocab, &aligned);
}

void cuda_cross_entropy_grad(Num *dlogits, const float *lse, const float *weight,
                             const Logits *logits)
{
    Logits l = *logits;
    int aligned = l.vocab % 4 == 0 && aligned16(l.z);
    LAUNCH(KERNEL_cross_entropy_grad, ((Dim3){(unsigned)l.rows, 1, 1}), row_threads(l.vocab), 0,
           &dlogits, &l.z, &lse, &l.target, &weight, &l.vocab, &aligned);
}

/* The layout in optim.cu. */
typedef struct {
    float beta1, beta2, rest1, rest2, scale, keep, rate, root, eps;
} Adam;

void cuda_adamw(const AdamSlice *slice, const AdamStep *s)
{
    AdamSlice x = *slice;
    Adam a = {(float)s->beta1,
              (float)s->beta2,
              (float)(1 - s->beta1),
              (float)(1 - s->beta2),
              (float)s->scale,
              (float)(1 - s->lr * s->decay),
              (float)(s->lr / s->correct1),
              (float)(1 / sqrt(s->correct2)),
              (float)s->eps};
    int aligned =
        aligned16(x.p) && aligned16(x.master) && aligned16(x.g) && aligned16(x.m) && aligned16(x.v);
    Dim3 grid = {ceil_div(x.n, 256 * 8), 1, 1}, block = {256, 1, 1};
    uint64_t seed = s->seed;
    if (s->lean)
        LAUNCH(KERNEL_adamw_lean, grid, block, 0, &x.p, &x.g, &x.m, &x.v, &x.n, &a, &seed,
               &aligned);
    else
        LAUNCH(KERNEL_adamw_master, grid, block, 0, &x.p, &x.master, &x.g, &x.m, &x.v, &x.n, &a,
               &aligned);
}
