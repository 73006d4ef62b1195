/* Launchers of norm.cu. */
#include "model/cuda/norm.h"

#include "model/cuda/launch_shape.h"
#include "model/cuda/sums.h"
#include "model/cuda/table.h"

/* SMS: the SMs that grids are sized for; another GPU only takes longer. SM_THREADS: threads of a
 * gradient's blocks per SM. */
enum { TEAM_THREADS = 256, SMS = 132, SM_THREADS = 1024 };

NormShare cuda_norm_share(int n, int aligned)
{
    unsigned vectors = ceil_div((size_t)n, 8);
    int lanes = 1;
    if (!aligned) return (NormShare){0, 1, whole_warps(vectors)};
    if (vectors > 32 * 4) return (NormShare){0, 2, whole_warps(ceil_div(vectors, 2))};
    while (lanes < 32 && (unsigned)lanes < vectors) lanes *= 2;
    return (NormShare){lanes, vectors <= 32 ? 1 : 4, TEAM_THREADS};
}

int cuda_norm_too_long(int n, int aligned)
{
    int longest = aligned ? 16384 : 8192; /* 1024 threads of two vectors, or of one */
    if (n > longest)
        cuda_fail(CU_LAUNCH_RESOURCES,
                  "RMSNorm of rows of more than 16384 numbers (8192 where 8 do not divide them)");
    return n > longest;
}

/* Heads are short. Longer ones take the path without alignment. */
static int aligned_head(const void *a, const void *b, const Norm *v)
{
    return v->n <= 256 && v->n % 8 == 0 && v->ld % 8 == 0 && aligned16(a) && aligned16(b) &&
           aligned16(v->x) && aligned16(v->w);
}

static void norm(CudaKernel team, CudaKernel block, NormShare s, Num *y, const Norm *v)
{
    unsigned count = (unsigned)v->rows * (unsigned)v->groups;
    Norm a = *v;
    if (s.lanes) {
        /* Vectors of a block: four per team, or one. */
        unsigned each = TEAM_THREADS / (unsigned)s.lanes * (s.vectors == 1 ? 4 : 1);
        LAUNCH(team, ((Dim3){ceil_div(count, each), 1, 1}), ((Dim3){s.threads, 1, 1}), 0, &y, &a.x,
               &a.w, &count, &a.groups, &a.n, &a.ld, &a.eps, &s.lanes);
    } else {
        LAUNCH(block, ((Dim3){count, 1, 1}), ((Dim3){s.threads, 1, 1}), 0, &y, &a.x, &a.w,
               &a.groups, &a.n, &a.ld, &a.eps);
    }
}

void cuda_rmsnorm(Num *y, const Norm *v)
{
    int aligned = v->n % 8 == 0 && aligned16(y) && aligned16(v->x) && aligned16(v->w);
    if (cuda_norm_too_long(v->n, aligned)) return;
    NormShare s = cuda_norm_share(v->n, aligned);
    norm(s.vectors == 1 ? KERNEL_rmsnorm_team1 : KERNEL_rmsnorm_team4,
         aligned ? KERNEL_rmsnorm_block : KERNEL_rmsnorm_any, s, y, v);
}

void cuda_head_norm(Num *y, const Norm *v)
{
    int aligned = aligned_head(y, NULL, v);
    if (cuda_norm_too_long(v->n, 0)) return;
    norm(KERNEL_head_norm_team, KERNEL_head_norm_any, cuda_norm_share(v->n, aligned), y, v);
}

/* The gradient that is written, and the one that it follows from. */
typedef struct {
    Num *dx;
    int add;
    float *dw;
    const Num *dy;
} Gradient;

/* As many blocks as run at a time. Each writes a row of sums for dw. */
static void norm_grad(CudaKernel team, CudaKernel block, NormShare s, Gradient g, const Norm *v)
{
    if (v->rows < 1) return;
    unsigned count = (unsigned)v->rows * (unsigned)v->groups,
             teams = s.lanes ? s.threads / (unsigned)s.lanes : 1;
    unsigned max_blocks = SMS * (!s.lanes ? SM_THREADS / s.threads : s.vectors == 1 ? 5 : 2);
    unsigned each = ceil_div(ceil_div(count, max_blocks), teams) * teams,
             blocks = ceil_div(count, each);
    Norm a = *v;
    size_t n = (size_t)a.n;
    float *parts = g.dw ? cuda_scratch((size_t)blocks * n * sizeof *parts) : NULL;
    Dim3 grid = {blocks, 1, 1}, threads = {s.threads, 1, 1};
    if (s.lanes)
        LAUNCH(team, grid, threads, g.dw ? (size_t)teams * n * sizeof(float) : 0, &g.dx, &g.add,
               &parts, &g.dy, &a.x, &a.w, &count, &each, &a.groups, &a.n, &a.ld, &a.eps, &s.lanes);
    else
        LAUNCH(block, grid, threads, 0, &g.dx, &g.add, &parts, &g.dy, &a.x, &a.w, &count, &each,
               &a.groups, &a.n, &a.ld, &a.eps);
    if (g.dw) cuda_sum_parts(g.dw, parts, blocks, a.n);
}

void cuda_rmsnorm_grad(Num *dx, int add, float *dw, const Num *dy, const Norm *v)
{
    int aligned =
        v->n % 8 == 0 && aligned16(dx) && aligned16(dy) && aligned16(v->x) && aligned16(v->w);
    if (cuda_norm_too_long(v->n, aligned)) return;
    NormShare s = cuda_norm_share(v->n, aligned);
    norm_grad(s.vectors == 1 ? KERNEL_rmsnorm_grad_team1 : KERNEL_rmsnorm_grad_team4,
              aligned ? KERNEL_rmsnorm_grad_block : KERNEL_rmsnorm_grad_any, s,
              (Gradient){dx, add, dw, dy}, v);
}

void cuda_head_norm_grad(Num *dx, float *dw, const Num *dy, const Norm *v)
{
    int aligned = aligned_head(dx, dy, v);
    if (cuda_norm_too_long(v->n, 0)) return;
    norm_grad(KERNEL_head_norm_grad_team, KERNEL_head_norm_grad_any, cuda_norm_share(v->n, aligned),
              (Gradient){dx, 0, dw, dy}, v);
}
