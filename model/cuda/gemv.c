/* Launchers of gemv.cu. */
#include "model/cuda/decode.h"
#include "model/cuda/launch.h"

enum { CHUNK = 64, TILE = 64, STAGES = 4, TILE_BYTES = 8192, SIDES_MAX = 6, OLD_SIDES_MAX = 4 }; /* as in gemv.cu */
enum { PLACES = 132, SPLITS_MAX = 16, NARROW = 256, NARROW_SPLITS_MAX = 32 };

/* As in gemv.cu: number by number. */
typedef struct {
    int sides, deep, row_blocks, groups, items;
} Division;

static int least(int a, int b) { return a < b ? a : b; }

/* What the longest way of a block costs, in tiles of w that it reads; its rows of x (as if 64) count as one tile. */
static double cost(int tiles, int chunks, int splits, int sides)
{
    int rounds = (int)ceil_div((size_t)ceil_div((size_t)tiles, (size_t)sides) * (size_t)splits, PLACES);
    return (double)rounds * (double)ceil_div((size_t)chunks, (size_t)splits) * (sides + 1);
}

/* The cheapest for a large GPU. A split of a tile is written and read again: 4 tiles' worth. */
int cuda_product_splits(int n, int k)
{
    int tiles = (int)ceil_div((size_t)n, TILE), chunks = (int)ceil_div((size_t)k, CHUNK), best = 1;
    int most = least(chunks, n <= NARROW ? NARROW_SPLITS_MAX : SPLITS_MAX);
    double least_cost = 0;
    for (int s = 1; s <= most; s++)
        for (int sides = 1; sides <= SIDES_MAX; sides++) {
            double all = cost(tiles, chunks, s, sides) + (s > 1 ? 4.0 * s * tiles / PLACES : 0);
            if ((s == 1 && sides == 1) || all < least_cost) best = s, least_cost = all;
        }
    return best;
}

/* How wide blocks are changes no sum: what makes the longest way shortest, as far as shared memory reaches. */
static Division divide(const Product *p, int n)
{
    const CudaState *s = cuda_state();
    int tiles = (int)ceil_div((size_t)(p->gated ? 2 * p->n : p->n), TILE), best = 0;
    int chunks = (int)ceil_div((size_t)p->k, CHUNK) + p->r / CHUNK, long_split = (int)ceil_div((size_t)chunks, (size_t)p->splits);
    size_t rows = (size_t)n * CHUNK * 2;
    Division d = {.sides = 1, .row_blocks = (int)ceil_div((size_t)p->rows, (size_t)n)};
    int most = s->arch < 90 ? OLD_SIDES_MAX : SIDES_MAX;
    for (int sides = 1; sides <= most && STAGES * ((size_t)sides * TILE_BYTES + rows) <= s->shared_max; sides++) {
        int items = (int)ceil_div((size_t)tiles, (size_t)sides) * p->splits * d.row_blocks;
        int way = (int)ceil_div((size_t)items, (size_t)s->sms) * (8 * sides + n / 8);
        if (!best || way <= best) best = way, d.sides = sides;
    }
    d.groups = (int)ceil_div((size_t)tiles, (size_t)d.sides);
    d.items = d.groups * p->splits * d.row_blocks;
    d.deep = (int)(s->shared_max / (STAGES * ((size_t)d.sides * TILE_BYTES + rows)));
    d.deep = least(d.deep, (int)ceil_div((size_t)long_split, STAGES));
    if (d.deep < 1) d.deep = 1;
    return d;
}

void cuda_product(const Product *p)
{
    static const CudaKernel kernels[] = {KERNEL_product8, KERNEL_product16, KERNEL_product32, KERNEL_product64};
    int kind = p->rows <= 8 ? 0 : p->rows <= 16 ? 1 : p->rows <= 32 ? 2 : 3, n = 8 << kind;
    Division d = divide(p, n);
    size_t shared = STAGES * (size_t)d.deep * ((size_t)d.sides * TILE_BYTES + (size_t)n * CHUNK * 2);
    cuda_launch(kernels[kind], ((Dim3){(unsigned)least(d.items, cuda_state()->sms), 1, 1}),
                ((Dim3){(unsigned)d.sides * 128, 1, 1}), shared, (void *[]){(void *)(uintptr_t)p, &d});
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
           (size_t)r->n * (sizeof(float) + 2), (void *)(uintptr_t)r);
}
