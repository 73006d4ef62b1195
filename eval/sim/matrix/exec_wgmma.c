/* wgmma.mma_async: a warpgroup multiplies 64 x K by K x N. Warp w of it has rows 16 w and following, so
 * that each warp computes its own rows when it comes. Its fragments are those of mma.sync of 16 rows: lane
 * 4 g + t holds in register i of the accumulators row g + 8 (i / 2 mod 2), column 8 (i / 4) + 2 t + i mod 2.
 *
 * The result is in the registers at once: the assembler lets nobody see an accumulator before it waits
 * for the product. What the product reads of shared memory is followed until then (wgmma_reads.h).
 *
 * Sums are computed in double precision and rounded once. */
#include <stdint.h>

/* The layout of a factor of wgmma in shared memory, as its descriptor says. Tiles have 8 chunks by 1,
 * 2, 4 or 8: without a swizzle or with one of 32, 64 or 128 bytes. A swizzle exchanges the chunks of a
 * row by the row's number in the tile. Both are bits of the address, from bit 4 and from bit 7 on, so
 * that a tile is aligned to its size. */

typedef struct {
    uint32_t start, leading, stride; /* bytes */
    uint32_t wide;                   /* bytes of a row of a swizzled tile; 16: it is not swizzled */
    int base;                        /* base offset: 0, or the tile is not aligned */
} WgmmaLayout;

enum { CHUNK = 16, TILE_ROWS = 8 };

static uint32_t bytes_at(uint64_t descriptor, int bit)
{
    return (uint32_t)(descriptor >> bit & 0x3fff) << 4;
}

static WgmmaLayout wgmma_layout(uint64_t descriptor)
{
    static const uint8_t wide[] = {CHUNK, 128, 64, 32};
    return (WgmmaLayout){.start = bytes_at(descriptor, 0),
                         .leading = bytes_at(descriptor, 16),
                         .stride = bytes_at(descriptor, 32),
                         .wide = wide[descriptor >> 62],
                         .base = (int)(descriptor >> 49 & 7)};
}

/* The offset of a chunk of 16 bytes. Not transposed, that is elements along K: a is the row of A or the
 * column of B, and b 0 or 1. Transposed: a counts groups of 8 rows or columns, and b is the place along K. */
static uint32_t wgmma_place(const WgmmaLayout *l, int transposed, uint32_t a, uint32_t b)
{
    uint32_t at = l->start, chunks = l->wide / CHUNK;
    if (!transposed)
        at += a % TILE_ROWS * l->wide + a / TILE_ROWS * l->stride +
              b * (chunks > 1 ? CHUNK : l->leading);
    else if (chunks > 1)
        at += a % chunks * CHUNK + a / chunks * l->leading + b % TILE_ROWS * l->wide +
              b / TILE_ROWS * l->stride;
    else
        at += a * l->stride + b % TILE_ROWS * CHUNK + b / TILE_ROWS * l->leading;
    return at ^ (at >> 3 & (l->wide - CHUNK));
}

#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#include <immintrin.h>

#include "eval/sim/exec/handlers.h"
#include "eval/sim/exec/warp_sync.h"
#include "eval/sim/machine/half.h"
#include "eval/sim/memory/undefined.h"
#include "eval/sim/memory/undefined_memory.h"
#include "eval/sim/memory/wgmma_reads.h"

enum {
    GROUP = 8,        /* columns that are computed together */
    ISSUE_COST = 500, /* in thread-instructions */
    COLUMN_COST = 10, /* beside one for each of K */
    HALVES_COST = 26, /* of a column whose accumulators are halves */
    A_CHUNKS = 2 * WGMMA_ROWS
};

typedef double FirstFactor[WGMMA_ROWS][WGMMA_DEPTH_MAX];

/* ---- numbers ---- */

static int is_byte(int type)
{
    return mma_per_register(type) == 4;
}

/* The values of all bytes, for a type of 8 bits. */
static void fill_table(int type, float table[256])
{
    for (uint32_t v = 0; v < 256 && is_byte(type); v++) table[v] = (float)mma_element(v, type, 0);
}

/* The elements of n bytes. Returns their number. */
static int widen(const unsigned char *p, int n, int type, const float table[256], float *out)
{
    uint32_t v;
    uint16_t h;
    switch (type) {
    case T_F16:
        for (int i = 0; i < n / 2; i++) {
            memcpy(&h, p + 2 * i, 2);
            out[i] = _cvtsh_ss(h);
        }
        return n / 2;
    case T_BF16:
        for (int i = 0; i < n / 2; i++) {
            memcpy(&h, p + 2 * i, 2);
            out[i] = bf16_widen(h);
        }
        return n / 2;
    case T_TF32:
        for (int i = 0; i < n / 4; i++) {
            memcpy(&v, p + 4 * i, 4);
            out[i] = as_float(v & ~0x1fffu);
        }
        return n / 4;
    default:
        for (int i = 0; i < n; i++) out[i] = table[p[i]];
        return n;
    }
}

static void first_of_registers(const Warp *w, const WgmmaOp *op, FirstFactor a)
{
    float table[256], v[4];
    int e = mma_per_register(op->a_type);
    fill_table(op->a_type, table);
    for (int i = 0; i < 4; i++)
        for (int lane = 0; lane < LANES; lane++) {
            widen((const unsigned char *)&row32(w, op->a[i])[lane], 4, op->a_type, table, v);
            for (int j = 0; j < e; j++)
                a[(lane >> 2) + 8 * (i & 1)][e * (lane & 3) + j + 4 * e * (i >> 1)] = (double)v[j];
        }
}

static void first_of_memory(const WgmmaOp *op, const WgmmaChunks *c, FirstFactor a)
{
    float table[256], v[16];
    fill_table(op->a_type, table);
    for (int i = 0; i < A_CHUNKS; i++) {
        int e = widen(c->bytes[i], WGMMA_CHUNK, op->a_type, table, v);
        for (int j = 0; j < e; j++)
            if (op->a_transposed)
                a[8 * (i / op->k) + j][i % op->k] = (double)v[j];
            else
                a[i / 2][i % 2 * e + j] = (double)v[j];
    }
}

/* The place of the factor that begins there; of another one, the longest kept, where it is not among them. */
static WgmmaFactor *place_of_factor(WgmmaReads *all, const WgmmaOp *op, uint32_t at)
{
    for (int i = 0; i < WGMMA_FACTORS; i++) {
        WgmmaFactor *f = &all->factors[i];
        if (f->at == at && f->columns == op->n && f->type == op->b_type &&
            f->transposed == op->b_transposed)
            return f;
    }
    WgmmaFactor *f = &all->factors[all->n_factors++ % WGMMA_FACTORS];
    f->columns = 0;
    return f;
}

/* The second factor, whose chunks come from index `first` on. */
static const WgmmaFactor *second(const Warp *w, const WgmmaOp *op, const WgmmaChunks *c, int first)
{
    WgmmaFactor *f = place_of_factor(w->x->wgmma, op, c->at[first]);
    size_t bytes = (size_t)(c->n - first) * WGMMA_CHUNK;
    float table[256], v[16];
    if (f->columns && !memcmp(f->bytes, c->bytes[first], bytes)) return f;
    f->at = c->at[first];
    f->columns = op->n;
    f->type = op->b_type;
    f->transposed = op->b_transposed;
    memcpy(f->bytes, c->bytes[first], bytes);
    fill_table(op->b_type, table);
    for (int i = 0; i < c->n - first; i++) {
        int e = widen(f->bytes[i], WGMMA_CHUNK, op->b_type, table, v), column = i / 2;
        if (op->b_transposed) memcpy(f->values + i * GROUP, v, sizeof *v * GROUP);
        for (int j = 0; j < e && !op->b_transposed; j++)
            f->values[(column / GROUP * op->k + i % 2 * e + j) * GROUP + column % GROUP] = v[j];
    }
    return f;
}

/* ---- the product ---- */

typedef struct {
    __m256d low, high; /* 4 columns each */
} Sums;

/* Four rows by 8 columns. */
static inline void four_rows(const FirstFactor a, int row, const __m256d b[][2], int k, Sums out[4])
{
    __m256d s[4][2];
    for (int r = 0; r < 4; r++) s[r][0] = s[r][1] = _mm256_setzero_pd();
    for (int i = 0; i < k; i++)
        for (int r = 0; r < 4; r++) {
            __m256d v = _mm256_broadcast_sd(&a[row + r][i]);
            s[r][0] = _mm256_fmadd_pd(v, b[i][0], s[r][0]);
            s[r][1] = _mm256_fmadd_pd(v, b[i][1], s[r][1]);
        }
    for (int r = 0; r < 4; r++) out[r] = (Sums){s[r][0], s[r][1]};
}

/* Adds to four floats in the form of registers, if `adds`. */
static inline void put_floats(uint32_t *d, __m256d sums, int adds)
{
    __m128 old = _mm_loadu_ps((const float *)(const void *)d);
    if (adds) sums = _mm256_add_pd(sums, _mm256_cvtps_pd(old));
    __m128 v = _mm256_cvtpd_ps(sums), nan = _mm_castsi128_ps(_mm_set1_epi32(0x7fffffff));
    v = _mm_blendv_ps(v, nan, _mm_cmpunord_ps(v, v));
    _mm_storeu_ps((float *)(void *)d, v);
}

/* Rounds to halves, in the register of their columns. */
static inline void put_halves(uint32_t *d, const double v[GROUP], int adds)
{
    uint32_t out[GROUP];
    for (int j = 0; j < GROUP; j++) {
        double old = (double)f16_widen(d[j / 2] >> (16 * (j & 1)) & 0xffff);
        out[j] = f16_narrow(to_odd(v[j] + (adds ? old : 0)));
    }
    for (int j = 0; j < GROUP; j += 2) d[j / 2] = out[j] | out[j + 1] << 16;
}

static inline void put_integers(uint32_t *d, const double *v, int adds, int saturate)
{
    for (int t = 0; t < GROUP / 2; t++) { /* every second column */
        double sum = v[2 * t] + (adds ? (double)(int32_t)d[t] : 0);
        if (saturate) sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
        d[t] = (uint32_t)(int64_t)sum;
    }
}

/* A row of a group of columns of the product. */
typedef struct {
    int group, row;
} GroupRow;

static void put_others(const Warp *w, const WgmmaOp *op, GroupRow at, const Sums *s, int adds)
{
    double v[GROUP];
    int half = at.row >> 3, lane = 4 * (at.row & 7);
    _mm256_storeu_pd(v, s->low);
    _mm256_storeu_pd(v + 4, s->high);
    if (op->acc_type == T_F16) {
        put_halves(row32(w, op->c[2 * at.group + half]) + lane, v, adds);
        return;
    }
    for (int odd = 0; odd < 2; odd++)
        put_integers(row32(w, op->c[4 * at.group + 2 * half + odd]) + lane, v + odd, adds,
                     op->saturate);
}

static void put(const Warp *w, const WgmmaOp *op, GroupRow at, const Sums *s, int adds)
{
    if (op->acc_type != T_F32) {
        put_others(w, op, at, s, adds);
        return;
    }
    enum { IN_ORDER = 0xd8 }; /* of parts 0 2 1 3 */
    __m256d even = _mm256_permute4x64_pd(_mm256_unpacklo_pd(s->low, s->high), IN_ORDER),
            odd = _mm256_permute4x64_pd(_mm256_unpackhi_pd(s->low, s->high), IN_ORDER);
    int i = 4 * at.group + 2 * (at.row >> 3), lane = 4 * (at.row & 7);
    put_floats(row32(w, op->c[i]) + lane, even, adds);
    put_floats(row32(w, op->c[i + 1]) + lane, odd, adds);
}

static void multiply(const Warp *w, const WgmmaOp *op, FirstFactor a, const float *b, int adds)
{
    __m256d wide[WGMMA_DEPTH_MAX][2];
    Sums s[4];
    for (int i = 0; i < WGMMA_ROWS * WGMMA_DEPTH_MAX && op->negated; i++)
        a[i / WGMMA_DEPTH_MAX][i % WGMMA_DEPTH_MAX] *= -1;
    for (int g = 0; g < op->n / GROUP; g++, b += op->k * GROUP) {
        for (int k = 0; k < op->k; k++)
            for (int h = 0; h < 2; h++)
                wide[k][h] = _mm256_cvtps_pd(_mm_loadu_ps(b + k * GROUP + 4 * h));
        for (int row = 0; row < WGMMA_ROWS; row += 4) {
            four_rows(a, row, wide, op->k, s);
            for (int r = 0; r < 4; r++) put(w, op, (GroupRow){g, row + r}, &s[r], adds);
        }
    }
}

/* ---- what is undefined ---- */

/* kinds: IN_MEMORY_* of each byte of chunk i */
static void note_undefined(Exec *x, const WgmmaOp *op, const unsigned char *kinds, int i, int first)
{
    WgmmaUndefined *u = &x->wgmma->undefined;
    int is_a = i < first, bytes = 4 / mma_per_register(is_a ? op->a_type : op->b_type), n = i;
    if (!is_a) n -= first;
    for (int j = 0; j < WGMMA_CHUNK; j++) {
        if (!kinds[j]) continue;
        int transposed = is_a ? op->a_transposed : op->b_transposed,
            at = transposed ? n / op->k * GROUP + j / bytes : n / 2;
        if (is_a)
            u->rows |= 1u << at;
        else
            u->columns[at / 32] |= 1u << at % 32;
        if (kinds[j] & IN_MEMORY_DOUBTFUL) u->event = x->event_in_memory;
    }
}

/* Finds the rows and columns that have no value. They must be followed. */
static int find_undefined(Warp *w, const Inst *in, const WgmmaChunks *c, int first)
{
    Exec *x = w->x;
    int found = c->event != 0;
    memset(&x->wgmma->undefined, 0, sizeof x->wgmma->undefined);
    for (int i = 0; i < c->n && x->undefined_shared; i++) {
        static const unsigned char none[WGMMA_CHUNK];
        const unsigned char *kinds = x->undefined_shared + c->at[i];
        if (!memcmp(kinds, none, WGMMA_CHUNK)) continue;
        note_undefined(x, in->wgmma, kinds, i, first);
        found = 1;
    }
    for (int i = 0; i < c->n && c->event; i++) {
        unsigned char kinds[WGMMA_CHUNK];
        memset(kinds, IN_MEMORY_UNDEFINED, sizeof kinds);
        if (c->doubtful[i]) note_undefined(x, in->wgmma, kinds, i, first);
    }
    if (c->event) x->wgmma->undefined.event = c->event;
    if (!found || in[1].fn == h_track) return 0;
    return exec_fail(w, in, 0, OUTCOME_UNINITIALISED,
                     "multiplies shared memory to which a value was stored that depends on a "
                     "variable without a value");
}

/* ---- the instructions ---- */

/* Rows of the first factor or columns of the second one in shared memory. */
typedef struct {
    uint32_t descriptor; /* row code */
    int transposed, begin, count;
} Part;

/* Adds the chunks of a part. Returns 0, or -1 with a fault. */
static int add_chunks(Warp *w, const Inst *in, Part p, WgmmaChunks *c)
{
    WgmmaLayout l = wgmma_layout(row64(w, p.descriptor)[0]);
    int along = p.transposed ? in->wgmma->k : 2, across = p.transposed ? GROUP : 1;
    if (l.base)
        return exec_fail(w, in, 0, OUTCOME_UNSUPPORTED,
                         "multiplies a matrix whose descriptor has a base offset: align its tiles");
    for (int a = p.begin / across; a < (p.begin + p.count) / across; a++)
        for (int b = 0; b < along; b++)
            c->at[c->n++] = wgmma_place(&l, p.transposed, (uint32_t)a, (uint32_t)b);
    return 0;
}

/* Does the warp belong to four whole ones? */
static int is_warpgroup(const Exec *x, int warp)
{
    int first = warp - warp % WGMMA_WARPS, all = first + WGMMA_WARPS <= x->cta.n_warps;
    for (int i = first; i < first + WGMMA_WARPS && all; i++) all &= x->warps[i].lanes == FULL_MASK;
    return all;
}

static void count_reads(Exec *x, const WgmmaOp *op)
{
    x->counts.shared_load_requests++;
    x->counts.shared_load_wavefronts += op->wavefronts;
    x->counts.shared_ideal_wavefronts += op->wavefronts;
    op->traffic->wavefronts += op->wavefronts;
    op->traffic->ideal += op->wavefronts;
}

const Inst *h_wgmma(Warp *w, const Inst *in)
{
    const WgmmaOp *op = in->wgmma;
    WarpSync s;
    FirstFactor a;
    if (!warp_sync_full(w, in, "multiplies matrices", &s)) return s.next;
    if (!is_warpgroup(w->x, w->index))
        return exec_fault(w, in, 0, OUTCOME_LAUNCH_ERROR,
                          "multiplies matrices in a warpgroup of fewer than 128 threads");
    WgmmaChunks *c = &wgmma_reads(w->x)->now;
    int column = COLUMN_COST + op->k + (op->acc_type == T_F16 ? HALVES_COST : 0);
    exec_charge(w->x, ISSUE_COST + op->n * column);
    c->n = 0;
    int row = w->index % WGMMA_WARPS * WGMMA_ROWS, first = op->a_in_registers ? 0 : A_CHUNKS;
    Part rows = {op->a[0], op->a_transposed, row, WGMMA_ROWS},
         columns = {op->b, op->b_transposed, 0, op->n};
    if ((!op->a_in_registers && add_chunks(w, in, rows, c)) || add_chunks(w, in, columns, c) ||
        wgmma_read(w, in, c) || find_undefined(w, in, c, first))
        return NULL;
    if (op->a_in_registers)
        first_of_registers(w, op, a);
    else
        first_of_memory(op, c, a);
    count_reads(w->x, op);
    multiply(w, op, a, second(w, op, c, first)->values, (w->p[op->adds] ^ op->adds_flip) & 1);
    return wgmma_hold(w, in, c) ? NULL : in + 1;
}

const Inst *h_wgmma_group(Warp *w, const Inst *in)
{
    if (!exec_mask(w, in)) return in + 1;
    if (in->k0) return wgmma_wait(w, in, (int64_t)in->imm) ? NULL : in + 1;
    wgmma_commit(w);
    return in + 1;
}

/* The assembler inserts a wait where an accumulator is used. */
const Inst *h_wgmma_used(Warp *w, const Inst *in)
{
    return exec_mask(w, in) && wgmma_wait(w, in, -1) ? NULL : in + 1;
}
