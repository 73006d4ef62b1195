/* mma.sync of 16 x 8 x k, ldmatrix, stmatrix and movmatrix. Lane 4 g + t, with g below 8 and t below 4, holds
 * these elements in register i of a fragment, where e elements fit a register:
 *
 *     A: row g + 8 (i & 1), columns e t + 4 e (i >> 1) and following
 *     B: rows e t + 4 e i and following, column g
 *     C: row g + 8 (i >> 1), column 2 t + (i & 1)
 *
 * Sums are computed in double precision and rounded once. Those of doubles are chains of fma. */
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#include <math.h>

#include "eval/sim/exec/handlers.h"
#include "eval/sim/exec/warp_sync.h"
#include "eval/sim/machine/half.h"
#include "eval/sim/memory/proxy.h"
#include "eval/sim/memory/shadow.h"
#include "eval/sim/memory/traffic.h"
#include "eval/sim/memory/undefined.h"

enum { M = 16, COLUMNS = 8, MAX_K = 32, MMA_COST = 600, DOUBLES_COST = 1000, MATRIX_COST = 200 };

double mma_element(uint32_t v, int type, int j)
{
    switch (type) {
    case T_F16: return (double)f16_widen(v >> (16 * j) & 0xffff);
    case T_BF16: return (double)bf16_widen(v >> (16 * j) & 0xffff);
    case T_TF32: return (double)as_float(v & ~0x1fffu);
    case T_S8: return (int8_t)(v >> (8 * j));
    case T_E4M3:
    case T_E5M2: return (double)f16_widen(fp8_widen(v >> (8 * j) & 255, type));
    default: return (double)(v >> (8 * j) & 255);
    }
}

int mma_per_register(int type)
{
    if (type == T_F16 || type == T_BF16) return 2;
    return type == T_S8 || type == T_U8 || type == T_E4M3 || type == T_E5M2 ? 4 : 1;
}

static double accumulator(const Warp *w, const MmaOp *op, int i, int lane)
{
    if (op->acc_type == T_F16)
        return (double)f16_widen(row32(w, op->c[i / 2])[lane] >> (16 * (i & 1)) & 0xffff);
    uint32_t v = row32(w, op->c[i])[lane];
    return op->acc_type == T_S32 ? (double)(int32_t)v : (double)as_float(v);
}

uint32_t mma_sum(double v, int type, int saturate)
{
    if (type == T_S32) {
        if (saturate)
            return (uint32_t)(v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (int32_t)v);
        return (uint32_t)(int64_t)v;
    }
    if (type == T_F16) return f16_narrow(to_odd(v));
    float f = (float)v;
    return f != f ? 0x7fffffffu : float_bits(f);
}

/* The factors, and sums of products. */
typedef struct {
    _Alignas(32) double a[M][MAX_K], b[MAX_K][COLUMNS], sums[M][COLUMNS];
} Tile;

static void gather(const Warp *w, const MmaOp *op, Tile *t)
{
    for (int lane = 0; lane < LANES; lane++) {
        int g = lane >> 2, q = lane & 3, e = mma_per_register(op->a_type);
        for (int i = 0; i < op->n_a; i++)
            for (int j = 0; j < e; j++)
                t->a[g + 8 * (i & 1)][e * q + j + 4 * e * (i >> 1)] =
                    mma_element(row32(w, op->a[i])[lane], op->a_type, j);
        for (int i = 0; i < op->n_b; i++)
            for (int j = 0; j < e; j++)
                t->b[e * q + j + 4 * e * i][g] =
                    mma_element(row32(w, op->b[i])[lane], op->b_type, j);
    }
}

/* Factors in TF32, of which products of float32 in three parts have many. */
static void gather_tf32(const Warp *w, const MmaOp *op, Tile *t)
{
    for (int i = 0; i < op->n_a; i++) {
        const uint32_t *v = row32(w, op->a[i]);
        for (int g = 0; g < 8; g++)
            for (int q = 0; q < 4; q++)
                t->a[g + 8 * (i & 1)][q + 4 * (i >> 1)] = mma_element(v[4 * g + q], T_TF32, 0);
    }
    for (int i = 0; i < op->n_b; i++) {
        const uint32_t *v = row32(w, op->b[i]);
        for (int q = 0; q < 4; q++)
            for (int g = 0; g < 8; g++) t->b[q + 4 * i][g] = mma_element(v[4 * g + q], T_TF32, 0);
    }
}

/* The products are exact, so that a fused sum is the same. */
static void multiply(Tile *t, int k)
{
    typedef double Four __attribute__((vector_size(32)));
    for (int row = 0; row < M; row++) {
        Four low = {0}, high = {0};
        for (int i = 0; i < k; i++) {
            const Four *b = (const Four *)t->b[i];
            low += t->a[row][i] * b[0];
            high += t->a[row][i] * b[1];
        }
        *(Four *)&t->sums[row][0] = low;
        *(Four *)&t->sums[row][4] = high;
    }
}

const Inst *h_mma(Warp *w, const Inst *in)
{
    const MmaOp *op = in->mma;
    WarpSync s;
    Tile t;
    uint32_t out[4][LANES];
    if (!warp_sync_full(w, in, "multiplies matrices", &s)) return s.next;
    exec_charge(w->x, MMA_COST);
    if (op->a_type == T_TF32)
        gather_tf32(w, op, &t);
    else
        gather(w, op, &t);
    multiply(&t, op->k);
    for (int i = 0; i < 4; i++)
        for (int lane = 0; lane < LANES; lane++) {
            double sum = t.sums[(lane >> 2) + 8 * (i >> 1)][2 * (lane & 3) + (i & 1)];
            sum += accumulator(w, op, i, lane);
            out[i][lane] = mma_sum(sum, op->acc_type, op->saturate);
        }
    for (int lane = 0; lane < LANES; lane++)
        for (int i = 0; i < op->n_c; i++)
            row32(w, op->d[i])[lane] = op->acc_type == T_F16
                                           ? out[2 * i][lane] | out[2 * i + 1][lane] << 16
                                           : out[i][lane];
    return in + 1;
}

const Inst *h_mma_doubles(Warp *w, const Inst *in)
{
    const MmaOp *op = in->mma;
    WarpSync s;
    double a[M][16], b[16][COLUMNS];
    uint64_t out[4][LANES];
    if (!warp_sync_full(w, in, "multiplies matrices", &s)) return s.next;
    exec_charge(w->x, DOUBLES_COST);
    int per_row = op->n_c / 2; /* registers of A in the order of rows g and g + 8 */
    for (int lane = 0; lane < LANES; lane++) {
        int g = lane >> 2, t = lane & 3;
        for (int i = 0; i < op->n_a; i++)
            a[g + 8 * (i % per_row)][t + 4 * (i / per_row)] = as_double(row64(w, op->a[i])[lane]);
        for (int i = 0; i < op->n_b; i++) b[t + 4 * i][g] = as_double(row64(w, op->b[i])[lane]);
    }
    for (int lane = 0; lane < LANES; lane++)
        for (int i = 0; i < op->n_c; i++) {
            int row = (lane >> 2) + 8 * (i >> 1), column = 2 * (lane & 3) + (i & 1);
            double sum = as_double(row64(w, op->c[i])[lane]);
            for (int k = 0; k < op->k; k++) sum = fma(a[row][k], b[k][column], sum);
            out[i][lane] = double_bits(sum);
        }
    for (int i = 0; i < op->n_c; i++) memcpy(row64(w, op->d[i]), out[i], sizeof out[i]);
    return in + 1;
}

/* Lane 8 i + r holds the address of row r of matrix i. Lane 4 r + t receives two elements of row r,
 * or of column r when transposed. */
const Inst *h_ldmatrix(Warp *w, const Inst *in)
{
    Access a;
    WarpSync s;
    uint32_t rows = in->k0 == 4 ? FULL_MASK : (1u << (8 * in->k0)) - 1;
    if (!warp_sync_full(w, in, "loads matrices", &s)) return s.next;
    if (access_resolve(w, in, rows, &a) != SPACE_SHARED)
        return exec_fault(w, in, 0, OUTCOME_OUT_OF_BOUNDS,
                          "loads a matrix from addresses that are not in shared memory");
    if (access_shared_bounds(w, &a, 0) || shared_check_load(w, &a)) return NULL;
    exec_charge(w->x, MATRIX_COST);
    w->x->counts.shared_load_requests++;
    w->x->counts.shared_load_wavefronts += a.p->wavefronts;
    traffic_count_shared(&w->x->counts, a.mo->traffic, a.p);
    for (int i = 0; i < in->k0; i++) {
        uint32_t *d = row32(w, in->mem->data[4 + i]);
        for (int lane = 0; lane < LANES; lane++) {
            int r = lane >> 2, t = lane & 3;
            uint16_t pair[2];
            for (int j = 0; j < 2; j++) {
                int row = in->k1 ? 2 * t + j : r, column = in->k1 ? r : 2 * t + j;
                memcpy(&pair[j], a.host + a.p->delta[8 * i + row] + 2 * column, 2);
            }
            d[lane] = pair[0] | (uint32_t)pair[1] << 16;
        }
    }
    return in + 1;
}

/* The rows of the matrices of a stmatrix, as ldmatrix would find them. */
static void gather_rows(const Warp *w, const Inst *in, uint16_t rows[LANES][8])
{
    for (int i = 0; i < in->k0; i++) {
        const uint32_t *v = row32(w, in->mem->data[4 + i]);
        for (int lane = 0; lane < LANES; lane++)
            for (int j = 0; j < 2; j++) {
                int r = lane >> 2, t = 2 * (lane & 3) + j;
                rows[8 * i + (in->k1 ? t : r)][in->k1 ? r : t] = (uint16_t)(v[lane] >> 16 * j);
            }
    }
}

const Inst *h_stmatrix(Warp *w, const Inst *in)
{
    Access a;
    WarpSync s;
    uint16_t rows[LANES][8];
    int n = 8 * in->k0;
    if (!warp_sync_full(w, in, "stores matrices", &s)) return s.next;
    if (access_resolve(w, in, n == LANES ? FULL_MASK : (1u << n) - 1, &a) != SPACE_SHARED)
        return exec_fault(w, in, 0, OUTCOME_OUT_OF_BOUNDS,
                          "stores a matrix to addresses that are not in shared memory");
    if (access_shared_bounds(w, &a, 1) || shared_check_store(w, &a, always_changes)) return NULL;
    if (w->x->proxy) proxy_note_write(w, &a);
    exec_charge(w->x, MATRIX_COST);
    w->x->counts.shared_store_requests++;
    w->x->counts.shared_store_wavefronts += a.p->wavefronts;
    gather_rows(w, in, rows);
    for (int i = 0; i < n; i++) {
        memcpy(a.host + a.p->delta[i], rows[i], sizeof rows[i]);
        undefined_overwrite(w->x, access_address(&a, i), sizeof rows[i]);
    }
    for (int i = 0; i < n; i++)
        if (memcmp(a.host + a.p->delta[i], rows[i], sizeof rows[i]))
            return exec_fault(w, in, i, OUTCOME_RACE,
                              "stores a row of a matrix where it also stores another row");
    return in + 1;
}

/* Transposes an 8 x 8 matrix of halves. Lane 4 r + t holds two elements of row r. */
const Inst *h_movmatrix(Warp *w, const Inst *in)
{
    WarpSync s;
    uint32_t out[LANES];
    if (!warp_sync_full(w, in, "moves a matrix", &s)) return s.next;
    const uint32_t *a = row32(w, in->a);
    for (int lane = 0; lane < LANES; lane++) {
        int r = lane >> 2, t = lane & 3, shift = 16 * (r & 1);
        out[lane] = (a[8 * t + r / 2] >> shift & 0xffff) | (a[8 * t + 4 + r / 2] >> shift & 0xffff)
                                                               << 16;
    }
    memcpy(row32(w, in->d), out, sizeof out);
    return in + 1;
}
