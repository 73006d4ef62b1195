/* Launchers of gemv.cu. */
#include "model/cuda/decode.h"
#include "model/cuda/launch.h"

enum { CHUNK = 64, TILE = 32, SLICES = 2, STAGES = 2 }; /* as in gemv.cu */
enum { BLOCKS = 264, ENOUGH = 128, SPLITS_MAX = 9, NARROW = 256, NARROW_SPLITS_MAX = 32 };

/* Enough blocks of 128 outputs to fill a large GPU, each with some chunks of k to stream; few outputs may have more. */
int cuda_product_splits(int n, int k)
{
    int chunks = (k + CHUNK - 1) / CHUNK, splits = BLOCKS / ((n + 127) / 128), most = chunks >= 32 ? chunks / 8 : chunks / 4;
    if (splits > most) splits = most;
    if (splits > (n <= NARROW ? NARROW_SPLITS_MAX : SPLITS_MAX)) splits = n <= NARROW ? NARROW_SPLITS_MAX : SPLITS_MAX;
    return splits < 1 ? 1 : splits;
}

/* Warps side by side share the rows of x that they read: as many as leave blocks enough. */
void cuda_product(const Product *p)
{
    static const struct {
        CudaKernel kernel;
        int tiles, sides;          /* of 8 rows; side by side at most */
    } kinds[] = {{KERNEL_product8, 1, 1}, {KERNEL_product16, 2, 2}, {KERNEL_product32, 4, 4}, {KERNEL_product64, 8, 4}};
    int kind = p->rows <= 8 ? 0 : p->rows <= 16 ? 1 : p->rows <= 32 ? 2 : 3, tiles = kinds[kind].tiles, sides = kinds[kind].sides;
    unsigned row_blocks = ceil_div((size_t)p->rows, (size_t)(8 * tiles));
    int each = p->gated ? TILE / 2 : TILE;
    while (sides > 1 && ceil_div((size_t)p->n, (size_t)(each * sides)) * (unsigned)p->splits * row_blocks < ENOUGH) sides /= 2;
    Dim3 grid = {row_blocks, ceil_div((size_t)p->n, (size_t)(each * sides)), (unsigned)p->splits};
    size_t stage = (size_t)sides * SLICES * 4096 + (size_t)tiles * SLICES * 1024;
    cuda_launch(kinds[kind].kernel, grid, ((Dim3){(unsigned)(sides * SLICES * 32), 1, 1}), STAGES * stage,
                (void *[]){(void *)(uintptr_t)p});
}

void cuda_adapter_low(Num *low, const float *parts, int splits, int rows, int r, float scale)
{
    LAUNCH(KERNEL_adapter_low, ((Dim3){ceil_div((size_t)rows * (size_t)r, 256), 1, 1}), ((Dim3){256, 1, 1}), 0, &low, &parts,
           &splits, &rows, &r, &scale);
}

void cuda_adapter_up(Num *up, const Num *b, int first, int n, int rank, int r, int column)
{
    LAUNCH(KERNEL_adapter_up, ((Dim3){ceil_div((size_t)n * (size_t)rank, 256), 1, 1}), ((Dim3){256, 1, 1}), 0, &up, &b, &first,
           &n, &rank, &r, &column);
}

void cuda_residual_norm(const Residual *r)
{
    unsigned vectors = whole_warps((unsigned)r->n / 8);
    LAUNCH(KERNEL_residual_norm, ((Dim3){(unsigned)r->rows, 1, 1}), ((Dim3){vectors < 512 ? vectors : 512, 1, 1}),
           (size_t)r->n * sizeof(float), (void *)(uintptr_t)r);
}
