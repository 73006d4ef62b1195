/* Moves, predicate logic, special registers, address spaces, selections, and comparisons of
 * integers. */
#pragma GCC optimize("O3")
#include "eval/sim/exec/handlers.h"
#include "eval/sim/exec/setp.h"
#include "eval/sim/machine/rows.h"
#include "eval/sim/memory/access.h"
#include "eval/sim/memory/cluster.h"
#include "eval/sim/memory/unwritten.h"

/* ---- moves ---- */

PUBLIC32(h_mov32, ROWS_32_1, ra[i])
PUBLIC64(h_mov64, ROWS_64_1, ra[i])
PUBLIC32(h_pack32, ROWS_32_2, (ra[i] & 0xffff) | rb[i] << 16)
PUBLIC64(h_pack64, ROWS_32_2, ra[i] | (uint64_t)rb[i] << 32)

const Inst *h_mov_pred(Warp *w, const Inst *in)
{
    put_pred(w, in->d, exec_mask(w, in), w->p[in->a] ^ in->f);
    return in + 1;
}

const Inst *h_pred_logic(Warp *w, const Inst *in)
{
    uint32_t a = w->p[in->a] ^ in->e, b = w->p[in->b] ^ in->f, r;
    switch (in->k0) {
    case LOGIC_AND: r = a & b; break;
    case LOGIC_OR: r = a | b; break;
    case LOGIC_XOR: r = a ^ b; break;
    default: r = ~a;
    }
    put_pred(w, in->d, exec_mask(w, in), r);
    return in + 1;
}

const Inst *h_pack64_16(Warp *w, const Inst *in)
{
    const uint32_t *a = row32(w, in->a), *b = row32(w, in->b), *c = row32(w, in->c),
                   *e = row32(w, in->e);
    ROW_BODY(uint64_t, row64, blend64,
             (a[i] & 0xffff) | (uint64_t)(b[i] & 0xffff) << 16 | (uint64_t)(c[i] & 0xffff) << 32 |
                 (uint64_t)e[i] << 48)
}

/* Writes bits of v, from `shift` on, to a row that may be ROW_NONE. */
static void part(Warp *w, uint32_t row, const uint64_t *v, int shift, uint64_t keep, uint32_t m)
{
    if (row == ROW_NONE) return;
    uint32_t *d = row32(w, row);
    for (int i = 0; i < LANES; i++) d[i] = m >> i & 1 ? (uint32_t)(v[i] >> shift & keep) : d[i];
}

/* Unpacking copies the source first: a destination may be the same register. */
const Inst *h_unpack32(Warp *w, const Inst *in)
{
    uint64_t v[LANES];
    const uint32_t *a = row32(w, in->a);
    uint32_t m = exec_mask(w, in);
    for (int i = 0; i < LANES; i++) v[i] = a[i];
    part(w, in->d, v, 0, 0xffff, m);
    part(w, in->e, v, 16, 0xffff, m);
    return in + 1;
}

const Inst *h_unpack64(Warp *w, const Inst *in)
{
    uint64_t v[LANES];
    uint32_t m = exec_mask(w, in);
    memcpy(v, row64(w, in->a), sizeof v);
    part(w, in->d, v, 0, 0xffffffff, m);
    part(w, in->e, v, 32, 0xffffffff, m);
    return in + 1;
}

const Inst *h_unpack64_16(Warp *w, const Inst *in)
{
    uint64_t v[LANES];
    uint32_t m = exec_mask(w, in);
    memcpy(v, row64(w, in->a), sizeof v);
    part(w, in->d, v, 0, 0xffff, m);
    part(w, in->e, v, 16, 0xffff, m);
    part(w, in->b, v, 32, 0xffff, m);
    part(w, in->c, v, 48, 0xffff, m);
    return in + 1;
}

/* ---- special registers and addresses ---- */

/* Where the block is among the clusters, and in its own. A launch without clusters has clusters of
 * one block. */
static uint32_t cluster_value(const Warp *w, PtxSpecial which)
{
    const Exec *x = w->x;
    uint32_t of[3], at[3], is_explicit = 0;
    for (int i = 0; i < 3; i++) {
        uint32_t n = w->entry_frame.fn->ptx->cluster[i];
        is_explicit |= n > 0;
        of[i] = n ? n : 1;
        at[i] = x->cta.id[i] % of[i];
    }
    switch (which) {
    case SPECIAL_CLUSTERID_X: return x->cta.id[0] / of[0];
    case SPECIAL_CLUSTERID_Y: return x->cta.id[1] / of[1];
    case SPECIAL_CLUSTERID_Z: return x->cta.id[2] / of[2];
    case SPECIAL_NCLUSTERID_X: return x->grid[0] / of[0];
    case SPECIAL_NCLUSTERID_Y: return x->grid[1] / of[1];
    case SPECIAL_NCLUSTERID_Z: return x->grid[2] / of[2];
    case SPECIAL_CLUSTER_NCTAID_X: return of[0];
    case SPECIAL_CLUSTER_NCTAID_Y: return of[1];
    case SPECIAL_CLUSTER_NCTAID_Z: return of[2];
    case SPECIAL_CLUSTER_NCTARANK: return of[0] * of[1] * of[2];
    case SPECIAL_CLUSTER_CTAID_X: return at[0];
    case SPECIAL_IS_EXPLICIT_CLUSTER: return is_explicit;
    case SPECIAL_CLUSTER_CTAID_Y: return at[1];
    case SPECIAL_CLUSTER_CTAID_Z: return at[2];
    default: return at[0] + of[0] * (at[1] + of[1] * at[2]); /* %cluster_ctarank */
    }
}

/* The clock counts warp-instructions. */
static uint64_t special_value(const Warp *w, PtxSpecial which, int lane)
{
    const Exec *x = w->x;
    switch (which) {
    case SPECIAL_TID_X: return w->tid[0][lane];
    case SPECIAL_TID_Y: return w->tid[1][lane];
    case SPECIAL_TID_Z: return w->tid[2][lane];
    case SPECIAL_NTID_X: return x->block[0];
    case SPECIAL_NTID_Y: return x->block[1];
    case SPECIAL_NTID_Z: return x->block[2];
    case SPECIAL_CTAID_X: return x->cta.id[0];
    case SPECIAL_CTAID_Y: return x->cta.id[1];
    case SPECIAL_CTAID_Z: return x->cta.id[2];
    case SPECIAL_NCTAID_X: return x->grid[0];
    case SPECIAL_NCTAID_Y: return x->grid[1];
    case SPECIAL_NCTAID_Z: return x->grid[2];
    case SPECIAL_LANEID: return (uint64_t)lane;
    case SPECIAL_WARPID: return (uint64_t)w->index;
    case SPECIAL_NWARPID: return (x->block[0] * x->block[1] * x->block[2] + LANES - 1) / LANES;
    case SPECIAL_SMID: return x->cta.linear % x->sm_count;
    case SPECIAL_NSMID: return x->sm_count;
    case SPECIAL_RESERVED_BEGIN:
    case SPECIAL_RESERVED_0: return x->cta.reserved_at;
    case SPECIAL_RESERVED_1: return x->cta.reserved_at + RESERVED_SHARED / 2;
    case SPECIAL_RESERVED_END: return x->cta.reserved_at + RESERVED_SHARED;
    case SPECIAL_RESERVED_CAP: return RESERVED_SHARED;
    /* The address of the barrier of a grid, which cooperative launches have. */
    case SPECIAL_ENVREG1: return x->cooperative ? x->grid_barrier >> 32 : 0;
    case SPECIAL_ENVREG2: return x->cooperative ? x->grid_barrier & UINT32_MAX : 0;
    case SPECIAL_GRIDID: return x->grid_id;
    case SPECIAL_CLOCK:
    case SPECIAL_CLOCK64:
    case SPECIAL_GLOBALTIMER:
    case SPECIAL_GLOBALTIMER_LO: return x->clock;
    case SPECIAL_CLOCK_HI:
    case SPECIAL_GLOBALTIMER_HI: return x->clock >> 32;
    case SPECIAL_LANEMASK_EQ: return 1u << lane;
    case SPECIAL_LANEMASK_LE: return (2ull << lane) - 1;
    case SPECIAL_LANEMASK_LT: return (1u << lane) - 1;
    case SPECIAL_LANEMASK_GE: return FULL_MASK << lane;
    case SPECIAL_LANEMASK_GT: return FULL_MASK & ~((2ull << lane) - 1);
    case SPECIAL_DYNAMIC_SMEM_SIZE: return x->launch->shared_bytes;
    case SPECIAL_TOTAL_SMEM_SIZE: return x->cta.shared_size;
    case SPECIAL_AGGR_SMEM_SIZE: return x->cta.reserved_at + RESERVED_SHARED;
    default: return which >= SPECIAL_CLUSTERID_X ? cluster_value(w, which) : LANES;
    }
}

/* Writes v to the active lanes of the destination. */
static const Inst *write_all(Warp *w, const Inst *in, uint64_t v)
{
    if (in->k1) {
        ROW_BODY(uint64_t, row64, blend64, v)
    }
    uint32_t low = (uint32_t)v & in->f;
    ROW_BODY(uint32_t, row32, blend32, low)
}

/* Writes row ra, under the mask of the destination's size, to the active lanes. */
static const Inst *write_row(Warp *w, const Inst *in, const uint32_t *ra)
{
    if (in->k1) {
        ROW_BODY(uint64_t, row64, blend64, ra[i])
    }
    uint32_t keep = in->f;
    ROW_BODY(uint32_t, row32, blend32, ra[i] & keep)
}

const Inst *h_special(Warp *w, const Inst *in)
{
    uint32_t row[LANES];
    PtxSpecial which = in->k0;
    if (!ptx_differs_by_lane(which)) return write_all(w, in, special_value(w, which, 0));
    if (which == SPECIAL_TID_X) return write_row(w, in, w->tid[0]);
    for (int lane = 0; lane < LANES; lane++) row[lane] = (uint32_t)special_value(w, which, lane);
    return write_row(w, in, row);
}

const Inst *h_local_address(Warp *w, const Inst *in)
{
    uint64_t v = w->frame->local_base + in->imm;
    for (uint32_t m = exec_mask(w, in); m; m &= m - 1) {
        int lane = __builtin_ctz(m);
        if (in->k1)
            row64(w, in->d)[lane] = v;
        else
            row32(w, in->d)[lane] = (uint32_t)v;
    }
    return in + 1;
}

static uint64_t window_of(int space)
{
    return space == SPACE_SHARED  ? SHARED_WINDOW
           : space == SPACE_LOCAL ? LOCAL_WINDOW
           : space == SPACE_CONST ? CONST_WINDOW
           : space == SPACE_PARAM ? PARAM_WINDOW
                                  : 0;
}

const Inst *h_cvta(Warp *w, const Inst *in)
{
    uint64_t window = window_of(in->k0), add = in->k1 ? 0 - window : window;
    ROWS_64_1
    ROW_BODY(uint64_t, row64, blend64, ra[i] + add)
}

const Inst *h_mapa(Warp *w, const Inst *in)
{
    uint32_t m = exec_mask(w, in);
    const uint32_t *rank = row32(w, in->b);
    for (uint32_t rest = m; rest; rest &= rest - 1) {
        int lane = __builtin_ctz(rest);
        if (rank[lane])
            return exec_fault(w, in, lane, OUTCOME_OUT_OF_BOUNDS,
                              "maps an address to block %u of a cluster of one block", rank[lane]);
    }
    if (in->k1)
        blend64(row64(w, in->d), row64(w, in->a), m);
    else
        blend32(row32(w, in->d), row32(w, in->a), m);
    return in + 1;
}

/* The address of a block's shared memory that lies where another block has its own. */
const Inst *h_cluster_map(Warp *w, const Inst *in)
{
    const Cluster *k = w->x->cluster;
    const uint32_t *rank = row32(w, in->b);
    if (!k) return h_mapa(w, in);
    for (uint32_t m = exec_mask(w, in); m; m &= m - 1) {
        int lane = __builtin_ctz(m);
        uint64_t at = in->k1 ? row64(w, in->a)[lane] : row32(w, in->a)[lane];
        if (rank[lane] >= (uint32_t)k->n)
            return exec_fault(w, in, lane, OUTCOME_OUT_OF_BOUNDS,
                              "maps an address to block %u of a cluster of %d blocks", rank[lane],
                              k->n);
        if (in->k1 && access_space(at) != SPACE_SHARED)
            return exec_fault(w, in, lane, OUTCOME_OUT_OF_BOUNDS,
                              "maps an address that is not in shared memory");
        at = (at & (WINDOW_MASK | CLUSTER_OFFSET)) | ((uint64_t)rank[lane] + 1) << CLUSTER_SHIFT;
        if (in->k1)
            row64(w, in->d)[lane] = at;
        else
            row32(w, in->d)[lane] = (uint32_t)at;
    }
    return in + 1;
}

const Inst *h_cluster_rank(Warp *w, const Inst *in)
{
    const Cluster *k = w->x->cluster;
    for (uint32_t m = exec_mask(w, in); m; m &= m - 1) {
        int lane = __builtin_ctz(m);
        uint64_t at = in->k1 ? row64(w, in->a)[lane] : row32(w, in->a)[lane];
        int rank = k ? cluster_rank(k, at & UINT32_MAX) : 0;
        row32(w, in->d)[lane] = (uint32_t)(rank < 0 ? 0 : rank);
    }
    return in + 1;
}

const Inst *h_isspacep(Warp *w, const Inst *in)
{
    const uint64_t *a = row64(w, in->a);
    const Cluster *k = w->x->cluster;
    uint32_t r = 0;
    for (int i = 0; i < LANES; i++) {
        int of_other = in->k1 && k && cluster_rank(k, a[i] & UINT32_MAX) != k->actor;
        r |= (uint32_t)(access_space(a[i]) == in->k0 && !of_other) << i;
    }
    put_pred(w, in->d, exec_mask(w, in), r);
    return in + 1;
}

/* ---- selections ---- */

const Inst *h_selp32(Warp *w, const Inst *in)
{
    ROWS_32_2
    uint32_t p = w->p[in->c] ^ in->f;
    if (w->n_unwritten && unwritten_select(w, in, exec_mask(w, in), p)) return NULL;
    ROW_BODY(uint32_t, row32, blend32, p >> i & 1 ? ra[i] : rb[i])
}

const Inst *h_selp64(Warp *w, const Inst *in)
{
    ROWS_64_2
    uint32_t p = w->p[in->c] ^ in->f;
    if (w->n_unwritten && unwritten_select(w, in, exec_mask(w, in), p)) return NULL;
    ROW_BODY(uint64_t, row64, blend64, p >> i & 1 ? ra[i] : rb[i])
}

/* slct: a where c >= 0, which holds for -0 and not for NaN. */
#define SLCT_TEST(c) (in->k0 ? as_float(c) >= 0 : (int32_t)(c) >= 0)
PUBLIC32(h_slct32, ROWS_32_3, SLCT_TEST(rc[i]) ? ra[i] : rb[i])
PUBLIC64(h_slct64, ROWS_64_2 const uint32_t *rc = row32(w, in->c);
         , SLCT_TEST(rc[i]) ? ra[i] : rb[i])

const Inst *h_pred_to32(Warp *w, const Inst *in)
{
    uint32_t p = w->p[in->a], yes = in->k0 ? 0x3f800000u : FULL_MASK;
    ROW_BODY(uint32_t, row32, blend32, p >> i & 1 ? yes : 0)
}

/* ---- comparisons of integers ---- */

#define SETP_CASE(op, e)             \
    case op:                         \
        LOOP_LANES                   \
        {                            \
            r |= (uint32_t)(e) << i; \
        }                            \
        break;
#define SETP(name, rows, T)                          \
    static const Inst *name(Warp *w, const Inst *in) \
    {                                                \
        rows uint32_t r = 0;                         \
        switch (in->k0) {                            \
            SETP_CASE(CMP_EQ, (T)ra[i] == (T)rb[i])  \
            SETP_CASE(CMP_NE, (T)ra[i] != (T)rb[i])  \
            SETP_CASE(CMP_LT, (T)ra[i] < (T)rb[i])   \
            SETP_CASE(CMP_LE, (T)ra[i] <= (T)rb[i])  \
            SETP_CASE(CMP_GT, (T)ra[i] > (T)rb[i])   \
            SETP_CASE(CMP_GE, (T)ra[i] >= (T)rb[i])  \
        }                                            \
        return setp_result(w, in, r, ~r);            \
    }

SETP(setp_u16, ROWS_32_2, uint16_t)
SETP(setp_s16, ROWS_32_2, int16_t)
SETP(setp_u32, ROWS_32_2, uint32_t)
SETP(setp_s32, ROWS_32_2, int32_t)
SETP(setp_u64, ROWS_64_2, uint64_t)
SETP(setp_s64, ROWS_64_2, int64_t)

Handler *setp_handler(int bits, int is_signed)
{
    static Handler *const of[] = {setp_u16, setp_s16, setp_u32, setp_s32, setp_u64, setp_s64};
    return of[(bits == 16 ? 0 : bits == 32 ? 2 : 4) + is_signed];
}
