/* Launchers of sums.cu. */
#include "model/cuda/sums.h"

#include "model/cuda/launch_shape.h"
#include "model/cuda/table.h"

enum {
    TILE = 256,
    SQUARES = 256 * 16 * 4
}; /* TILE: columns of a block; SQUARES: numbers of a block; as in sums.cu */

void cuda_sum_parts(float *to, const float *parts, unsigned count, int n)
{
    LAUNCH(KERNEL_sum_parts, ((Dim3){ceil_div((size_t)n, 32), 1, 1}), ((Dim3){1024, 1, 1}), 0, &to,
           &parts, &count, &n);
}

/* At least 64 rows per part, and at most 128 parts. */
void cuda_bias_grad(float *db, const Num *dy, int rows, int n)
{
    if (rows < 1) return;
    int aligned = n % 8 == 0 && aligned16(dy), each = rows > 64 * 128 ? (rows + 127) / 128 : 64;
    unsigned count = ceil_div((size_t)rows, (size_t)each);
    float *parts = cuda_scratch((size_t)count * (size_t)n * sizeof *parts);
    LAUNCH(KERNEL_bias_columns, ((Dim3){ceil_div((size_t)n, TILE), count, 1}), ((Dim3){256, 1, 1}),
           0, &parts, &dy, &rows, &n, &each, &aligned);
    cuda_sum_parts(db, parts, count, n);
}

void cuda_embed_grad(float *dtable, const Num *dx, const BatchView *b, int n)
{
    int aligned = n % 8 == 0 && aligned16(dx);
    LAUNCH(KERNEL_embed_runs, ((Dim3){(unsigned)b->runs, ceil_div((size_t)n, TILE), 1}),
           ((Dim3){128, 1, 1}), 0, &dtable, &dx, (void *)&b->ids, (void *)&b->order,
           (void *)&b->run, &n, &aligned);
}

double cuda_sum_squares(const float *x, size_t n)
{
    int aligned = aligned16(x);
    unsigned count = ceil_div(n, SQUARES);
    double *parts = cuda_scratch((count + (size_t)1) * sizeof *parts), sum = 0;
    if (!parts) return 0;
    LAUNCH(KERNEL_squares, ((Dim3){count, 1, 1}), ((Dim3){256, 1, 1}), 0, &parts, &x, &n, &aligned);
    LAUNCH(KERNEL_sum_doubles, ((Dim3){1, 1, 1}), ((Dim3){1024, 1, 1}), 0, &parts, &count);
    cuda_download(&sum, parts + count, sizeof sum);
    return sum;
}
