/* Launchers of pointwise.cu. */
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
