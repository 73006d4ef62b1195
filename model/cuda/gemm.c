/* Matrix products, by cuBLASLt. */
#include "gpu/cublaslt.h"
#include "model/cuda/state.h"
#include "model/cuda/table.h"

/* A workspace of its own, which never moves: a captured graph keeps its address. */
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

void cuda_gemm(const Gemm *g)
{
    Error err;
    if (open_gemm()) return;
    /* The library adds a bias to its own kind of output; a wide one gets its bias first, as what is added to. */
    int first = g->wide && g->bias;
    if (first) {
        int adds = g->beta != 0;
        LAUNCH(KERNEL_spread_bias, ((Dim3){(unsigned)g->m, ((unsigned)g->n + 255) / 256, 1}), ((Dim3){256, 1, 1}), 0, (void *)&g->d,
               (void *)&g->c, (void *)&g->bias, (void *)&g->beta, &adds, (void *)&g->n, (void *)&g->ldd);
    }
    const CublasltProduct p = {g->ta, g->tb, g->m, g->n, g->k, g->a, g->b, g->lda, g->ldb, g->alpha, first ? 1 : g->beta,
                               first ? g->d : g->c, g->d, g->ldd, g->wide, first ? NULL : g->bias};
    if (!cuda_failed() && cublaslt_product(gemm.lt, &p, gemm.workspace, cuda_state()->stream, &err)) cuda_fail_with(&err);
}
