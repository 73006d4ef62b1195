/* wmma: matrix instructions whose fragments are opaque to the program. Lane 4 g + t, with g below 8
 * and t below 4, holds these elements in register i of a fragment, where e elements fit a register:
 *
 *     A:   row g + 8 (i mod M/8), columns e t + 4 e (i div M/8) and following
 *     B:   as A, with rows and columns exchanged and N for M
 *     C:   pair i: row g + 8 (i mod M/8), columns 2 t + 8 (i div M/8) and the next
 *
 * For M = 16 these are the fragments of mma.sync. Half-precision factors have eight registers in
 * every shape; registers beyond the fragment repeat it. */
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#include "eval/sim/exec/handlers.h"
#include "eval/sim/exec/warp_sync.h"
#include "eval/sim/machine/half.h"
#include "eval/sim/memory/access.h"
#include "eval/sim/memory/undefined.h"

enum { SIDE = 32, DEPTH = 16, WMMA_COST = 2000 };

/* The fragments of matrix A, B or C of an operation of m rows and n columns. */
typedef struct {
    char which; /* 'a', 'b', 'c' */
    int m, n;
    int elements; /* of a register */
} Fragment;

typedef struct {
    int row, column;
} Cell;

/* The place of element j of register i of a lane. */
static Cell place(Fragment f, int lane, int i, int j)
{
    int g = lane >> 2, t = lane & 3, e = f.elements;
    if (f.which == 'a') return (Cell){g + 8 * (i % (f.m / 8)), e * t + j + 4 * e * (i / (f.m / 8))};
    if (f.which == 'b') return (Cell){e * t + j + 4 * e * (i / (f.n / 8)), g + 8 * (i % (f.n / 8))};
    int pair = e == 2 ? i : i / 2, odd = e == 2 ? j : i % 2;
    return (Cell){g + 8 * (pair % (f.m / 8)), 2 * t + odd + 8 * (pair / (f.m / 8))};
}

const Inst *h_wmma_sync(Warp *w, const Inst *in)
{
    WarpSync s;
    return warp_sync_full(w, in, "works on matrices", &s) ? in + 1 : s.next;
}

/* A lane's row in memory starts at `offset` of the matrix. Returns 0, or -1 with a fault. */
static int check_row(Warp *w, const Inst *in, int lane, uint64_t offset)
{
    const WmmaPart *p = in->part;
    uint64_t base = access_lane_address(w, &p->base, lane);
    int is_shared = p->base.space == SPACE_SHARED ||
                    (p->base.space == SPACE_GENERIC && access_space(base) == SPACE_SHARED),
        unit = is_shared ? p->shared_unit : p->unit;
    if (!((base + offset) & (uint64_t)(unit - 1))) return 0;
    return exec_fail(
        w, in, lane, OUTCOME_OUT_OF_BOUNDS,
        "%s a fragment with a %s of the matrix at address 0x%llx, which is not a multiple "
        "of %d: wmma takes matrices that are aligned to 32 bytes, with strides of a "
        "multiple of 16 bytes",
        in->k1 ? "stores" : "loads", p->by_columns ? "column" : "row",
        (unsigned long long)(is_shared ? (uint32_t)(base + offset) : base + offset), unit);
}

const Inst *h_wmma_address(Warp *w, const Inst *in)
{
    const WmmaPart *p = in->part;
    const uint32_t *stride = row32(w, p->stride);
    uint64_t *d = row64(w, in->d);
    int e = mma_per_register(p->type), bytes = p->type == T_F64 ? 8 : 4 / e;
    Fragment f = {p->which, p->m, p->n, e};
    for (uint32_t m = exec_mask(w, in); m; m &= m - 1) {
        int lane = __builtin_ctz(m);
        Cell c = place(f, lane, p->reg, p->element);
        uint64_t row =
                     (uint64_t)(p->by_columns ? c.column : c.row) * stride[lane] * (uint64_t)bytes,
                 at = row + (uint64_t)(p->by_columns ? c.row : c.column) * (uint64_t)bytes;
        if (check_row(w, in, lane, row)) return NULL;
        d[lane] = access_lane_address(w, &p->base, lane) + at;
        if (w->x->undefined_shared && undefined_element(w, in, d[lane], lane)) return NULL;
    }
    return in + 1;
}

const Inst *h_wmma_pack(Warp *w, const Inst *in)
{
    const uint32_t *a = row32(w, in->a), *b = row32(w, in->b);
    uint32_t out[LANES];
    for (int i = 0; i < LANES; i++) out[i] = (a[i] & ((1u << in->k0) - 1)) | b[i] << in->k0;
    blend32(row32(w, in->d), out, exec_mask(w, in));
    return in + 1;
}

const Inst *h_wmma_unpack(Warp *w, const Inst *in)
{
    const uint32_t *a = row32(w, in->a);
    uint32_t out[LANES];
    for (int i = 0; i < LANES; i++) out[i] = a[i] >> (16 * in->k0) & 0xffff;
    blend32(row32(w, in->d), out, exec_mask(w, in));
    return in + 1;
}

static void gather(const Warp *w, const WmmaOp *op, double a[SIDE][DEPTH], double b[DEPTH][SIDE])
{
    int e = mma_per_register(op->type), n_a = op->m * op->k / (LANES * e),
        n_b = op->n * op->k / (LANES * e);
    Fragment fa = {'a', op->m, op->n, e}, fb = {'b', op->m, op->n, e};
    for (int lane = 0; lane < LANES; lane++)
        for (int j = 0; j < e; j++) {
            for (int i = 0; i < n_a; i++) {
                Cell c = place(fa, lane, i, j);
                a[c.row][c.column] = mma_element(row32(w, op->a[i])[lane], op->type, j);
            }
            for (int i = 0; i < n_b; i++) {
                Cell c = place(fb, lane, i, j);
                b[c.row][c.column] = mma_element(row32(w, op->b[i])[lane], op->type, j);
            }
        }
}

static double sum_of(const Warp *w, const WmmaOp *op, int i, int lane)
{
    if (op->from == T_F16) return mma_element(row32(w, op->c[i / 2])[lane], T_F16, i & 1);
    uint32_t v = row32(w, op->c[i])[lane];
    return op->from == T_S32 ? (double)(int32_t)v : (double)as_float(v);
}

const Inst *h_wmma(Warp *w, const Inst *in)
{
    const WmmaOp *op = in->wmma;
    double a[SIDE][DEPTH], b[DEPTH][SIDE], sums[SIDE][SIDE] = {{0}};
    uint32_t out[8][LANES];
    Fragment f = {'c', op->m, op->n, 1};
    WarpSync s;
    if (!warp_sync_full(w, in, "works on matrices", &s)) return s.next;
    exec_charge(w->x, WMMA_COST);
    gather(w, op, a, b);
    for (int row = 0; row < op->m; row++)
        for (int k = 0; k < op->k; k++)
            for (int column = 0; column < op->n; column++)
                sums[row][column] += a[row][k] * b[k][column];
    for (int lane = 0; lane < LANES; lane++)
        for (int i = 0; i < 8; i++) {
            Cell c = place(f, lane, i, 0);
            double sum = sums[c.row][c.column] + sum_of(w, op, i, lane);
            out[i][lane] = mma_sum(sum, op->to, op->saturate);
        }
    for (int lane = 0; lane < LANES; lane++)
        for (int i = 0; i < 8; i++)
            if (op->to != T_F16)
                row32(w, op->d[i])[lane] = out[i][lane];
            else if (i % 2)
                row32(w, op->d[i / 2])[lane] = out[i - 1][lane] | out[i][lane] << 16;
    return in + 1;
}
