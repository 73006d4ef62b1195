/* Launchers of gemv.cu. */
#include "model/cuda/decode/step_kernels.h"
#include "model/cuda/launch_shape.h"

/* As in gemv.cu. */
enum { CHUNK = 64, TILE = 64, SIDES_MAX = 4, HOPPER_SIDES_MAX = 6, STAGES_MIN = 4 };

/* The layout in gemv.cu. */
typedef struct {
    int sides, tile, stages, deep, row_blocks, items;
} Division;

/* Selects the kernel: 8 << size rows of x per block. */
typedef struct {
    int size, narrow;
} Kind;

static unsigned chain_threads(int n)
{
    return n < 64 ? 512 : 384;
} /* as in gemv.cu */
static int max_sides(void)
{
    return cuda_state()->arch == 90 ? HOPPER_SIDES_MAX : SIDES_MAX;
}
static int min_int(int a, int b)
{
    return a < b ? a : b;
}
static double max_double(double a, double b)
{
    return a > b ? a : b;
}

static size_t chunk_bytes(const Division *d, int n)
{
    return (size_t)(d->sides * d->tile + n) * CHUNK * 2;
}

/* Bytes that wgmma reads after the last tile. */
static size_t bytes_after(const Division *d, int n)
{
    return (size_t)(d->tile + n < TILE ? TILE - d->tile - n : 0) * CHUNK * 2;
}

/* Prefer few and long stages: each ends with a barrier. */
static void divide_stages(Division *d, size_t shared, int n, int chunks)
{
    int places = (int)((shared - bytes_after(d, n)) / chunk_bytes(d, n));
    d->stages = places < 2 * STAGES_MIN ? places : STAGES_MIN;
    d->deep = min_int(places / d->stages, (int)ceil_div((size_t)chunks, (size_t)d->stages));
}

/* Estimate the cycles of a chunk in a block, on an H200: 37 bytes per cycle into the SM, the links
 * of the chain, and for a narrow product the shared memory that the warps read. */
static double chunk_cycles(const Division *d, int n, int rows, int narrow)
{
    int strips = (d->tile + 15) / 16, parts = min_int(strips == 1 ? 4 : strips == 2 ? 2 : 1, n / 8);
    double in = 3.5 * ((narrow ? d->tile : d->sides * (d->tile + 8 + n / 8)) + min_int(n, rows));
    double links = narrow ? max_double(132, 16 * strips * parts + strips * n) : 255;
    return max_double(in, links) + in / 8;
}

/* Choose the division of rows of w and x with the shortest time of a block. It does not change any
 * sum. */
static Division divide(const Product *p, Kind *kind)
{
    const CudaState *s = cuda_state();
    int by = p->gated ? 16 : 8;
    size_t outputs = (size_t)p->n * (p->gated ? 2 : 1);
    double best = 0;
    Division d = {0};
    for (int size = 0; size < 4 && (!size || 4 << size < p->rows); size++)
        for (int sides = 0; sides <= max_sides(); sides++) /* 0: narrow */
            for (int tile = by; tile <= TILE && !(p->gated && !sides); tile += by) {
                int m = 8 << size;
                Division c = {.sides = sides ? sides : 1,
                              .tile = tile,
                              .row_blocks = (int)ceil_div((size_t)p->rows, (size_t)m)};
                if (STAGES_MIN * chunk_bytes(&c, m) + bytes_after(&c, m) > s->shared_max) break;
                c.items = (int)ceil_div(outputs, (size_t)(c.sides * tile)) * c.row_blocks;
                double way = (double)ceil_div((size_t)c.items, (size_t)s->sms) *
                             chunk_cycles(&c, m, p->rows, !sides);
                if (best == 0 || way < best) best = way, d = c, *kind = (Kind){size, !sides};
            }
    divide_stages(&d, s->shared_max, 8 << kind->size,
                  (int)(ceil_div((size_t)p->k, CHUNK) + ceil_div((size_t)p->r, CHUNK)));
    return d;
}

void cuda_product(const Product *p)
{
    static const CudaKernel kernels[2][4] = {
        {KERNEL_product8, KERNEL_product16, KERNEL_product32, KERNEL_product64},
        {KERNEL_chain8, KERNEL_chain16, KERNEL_chain32, KERNEL_chain64}};
    Kind kind = {0};
    Division d = divide(p, &kind);
    int n = 8 << kind.size;
    size_t shared = (size_t)(d.stages * d.deep) * chunk_bytes(&d, n) + bytes_after(&d, n);
    /* A thread copies about 16 bytes of a chunk. */
    int groups = (int)ceil_div(chunk_bytes(&d, n), 128 * 16);
    groups = min_int(groups > d.sides ? groups : d.sides + 1, max_sides());
    cuda_launch(kernels[kind.narrow][kind.size],
                ((Dim3){(unsigned)min_int(d.items, cuda_state()->sms), 1, 1}),
                ((Dim3){kind.narrow ? chain_threads(n) : (unsigned)groups * 128, 1, 1}), shared,
                (void *[]){(void *)(uintptr_t)p, &d});
}

void cuda_adapter_up(Num *up, const Num *b, int first, int n, int rank, int r, int column)
{
    LAUNCH(KERNEL_adapter_up, ((Dim3){ceil_div((size_t)n * (size_t)rank, 256), 1, 1}),
           ((Dim3){256, 1, 1}), 0, &up, &b, &first, &n, &rank, &r, &column);
}
