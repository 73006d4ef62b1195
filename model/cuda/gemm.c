/* Matrix products by cuBLASLt. */
#include "gpu/cublaslt.h"
#include "model/cuda/launch_shape.h"
#include "model/cuda/table.h"

/* The workspace never moves, because captured graphs keep its address. */
static struct {
    Cublaslt *lt;
    void *workspace;
} gemm;

static int open_gemm(void)
{
    Error err;
    if (cuda_begin()) return -1;
    if (gemm.workspace) return 0;
    if (!gemm.lt && cublaslt_open(&gemm.lt, &err)) {
        cuda_fail_with(&err);
        return -1;
    }
    gemm.workspace = cuda_device_alloc(CUBLASLT_WORKSPACE);
    return gemm.workspace ? 0 : -1;
}

/* d = beta c + bias. */
static void spread_bias(const Gemm *g)
{
    int adds = g->beta != 0, m = g->a.rows, n = g->b.columns, ldd = g->ldd;
    int aligned = n % 8 == 0 && ldd % 8 == 0 && aligned16(g->d) && aligned16(g->bias) &&
                  (!adds || aligned16(g->c));
    Dim3 grid = {ceil_div((size_t)m, 32), ceil_div((size_t)n, 256), 1}, block = {256, 1, 1};
    if (g->wide)
        LAUNCH(KERNEL_spread_bias_wide, grid, block, 0, (void *)&g->d, (void *)&g->c,
               (void *)&g->bias, (void *)&g->beta, &adds, &m, &n, &ldd);
    else
        LAUNCH(KERNEL_spread_bias, grid, block, 0, (void *)&g->d, (void *)&g->c, (void *)&g->bias,
               (void *)&g->beta, &adds, &m, &n, &ldd, &aligned);
}

/* cuBLASLt adds one array to a product, so c and the bias are added first. For bf16 some of its
 * algorithms, and all that do not split k, round the product before the addition, and the sum
 * again. */
void cuda_gemm(const Gemm *g)
{
    Error err;
    int first = g->bias && g->a.rows > 0 && g->b.columns > 0;
    if (open_gemm()) return;
    if (first) spread_bias(g);
    const CublasltProduct p = {
        g->a.turned, g->b.turned, g->a.rows, g->b.columns, g->a.columns,        g->a.at,
        g->b.at,     g->a.ld,     g->b.ld,   g->alpha,     first ? 1 : g->beta, first ? g->d : g->c,
        g->d,        g->ldd,      g->wide,   g->ordered};
    if (!cuda_failed() && cublaslt_product(gemm.lt, &p, gemm.workspace, cuda_state()->stream, &err))
        cuda_fail_with(&err);
}
