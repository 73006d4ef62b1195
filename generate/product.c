/* Which op lines are products of matrices with tiles, and the tensors that they read. */
#include "generate/convolve.h"
#include "generate/depthwise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/sim/library/library_time.h"

/* What takes how long: a kernel whose factors are split before does OWN flops a second where its tiles fill
 * the multiprocessors, and moves BYTES; splitting moves SPLIT, or less in few blocks (H200, 2026-11-29). One
 * that splits its factors does DIRECT (H200, 2026-11-30: 4096^3, 256 x 256 x 524288, 128 x 16384 x 16384).
 * enough: of the library's time, which the simulator's table has. split_gain: where twice as many parts are
 * worth it. */
static const double own_rate = 1.75e14, direct_rate = 6.3e13, bytes_rate = 3.5e12,
                    split_rate = 2.6e12, split_block = 1.5e10, split_across_block = 2e10,
                    rows_block = 5e10;
static const double launches = 8e-6, direct_launch = 4e-6, parts_launch = 3e-6, enough = 0.96,
                    rows_enough = 0.8, split_gain = 0.9;
enum { SMS = 132, SIDE = 128, TERMS = 64, ACROSS = 32, FEW_ROWS = 16, FEW_COLUMNS = 64 };
enum { LEAST_DEPTH = 512, LEAST_PART = 128, MOST_PARTS = 64 };
/* Of k3_28 (2026-12-01) 23 kernels, for five sizes, take 3.6 seconds of the compiler's CPU time, and 18, for
 * three of them, 2.5; it has ten. */
enum { MOST_SIZES = 8 };
static const double most_bytes = 1.6e9, most_own_bytes = 6e9; /* of a plan's buffers; on a GPU */
/* Of half types (2026-11-30, H200, 4096^3, 2048^3, 8192 x 4096 x 4096, 1000 x 1112 x 2056): the library's
 * rate; that of the kernel whose factors are copied by all threads or by tensor maps, by the columns of its
 * tiles, where the right factor's columns lie across and in one piece each; what a tile takes beside its
 * sums, and beside that where an epilogue follows; what a pass over the results moves; and what a launch
 * takes, or those of a split sum (256 x 256 x 131072, 16 x 256 x 65536, 64 x 4096 x 4096). half_turns:
 * where warp groups have tiles in turns (2026-12-01), which hide half of what else these take. */
static const double half_library_rate = 6.9e14,
                    half_rate[2][3][2] = {{{2.5e14, 2.4e14}, {4.7e14, 4.5e14}, {6.5e14, 6.3e14}},
                                          {{4.1e14, 4.1e14}, {6.5e14, 6.5e14}, {7.5e14, 7.4e14}}},
                    half_turns = 7.4e14, half_tile = 3e-6, half_follows = 2.5e-6,
                    passes_rate = 3.3e12, half_launches = 7e-6, half_parts = 10e-6, half_enough = 1;
/* Lines that are no multiples of 128 bytes begin within such pieces: what sums take then, the kernel's and
 * the library's (1000 x 1112 x 2056, where the kernel took 27, 29 and 34 us, the library 18, 24 and 44). */
static const double half_uneven = 1.45, library_uneven = 1.7;
enum { SHARED_FOR_STAGES = 196608 };

typedef struct {
    Product at[SIZE_BINDINGS];
} Bindings;

/* A group is one dimension, or none, at every binding. */
static int group_size(const Bindings *b, int group, Size *out)
{
    for (int k = 0; k < SIZE_BINDINGS; k++) {
        if (b->at[k].rank[group] != b->at[0].rank[group] || b->at[k].rank[group] > 1) return 0;
        out->at[k] = b->at[k].count[group];
    }
    return 1;
}

static void group_step(const Bindings *b, int side, int group, Size *out)
{
    for (int k = 0; k < SIZE_BINDINGS; k++)
        out->at[k] = b->at[k].rank[group] ? b->at[k].step[side][group][0] : 0;
}

/* The node whose memory an operand is. Its own strides are those of the call's tensor. */
static int memory_of(const Nodes *n, int node)
{
    const Node *x = &n->node[node];
    return x->kind == NODE_VIEW && !x->stored ? x->arg[0] : node;
}

static int read_side(const Nodes *n, const Bindings *b, int line, int side, ProductTensor *out)
{
    const OpCall *c = &n->sizes->bound[0]->calls[line].call;
    const OpTensor *t = b->at[0].side[side].tensor;
    out->node = -1;
    if (!t) return 1;
    int in = n->kept[line][t - c->tensor];
    if (in < 0) return 0;
    out->node = memory_of(n, in);
    for (int k = 0; k < SIZE_BINDINGS; k++) out->offset.at[k] = b->at[k].side[side].tensor->offset;
    for (int g = 0; g < PRODUCT_GROUPS; g++) group_step(b, side, g, &out->step[g]);
    return 1;
}

/* Rows or columns whose elements lie in one piece along them or along the depth. */
static int is_dense(const ProductTensor *t, int group)
{
    return size_is(t->step[group], 1) || size_is(t->step[PRODUCT_DEPTH], 1);
}

static int is_in_order(const MatrixProduct *m)
{
    const Size *step = m->side[PRODUCT_C].step, columns = m->count[PRODUCT_COLUMNS],
               plane = size_times(columns, m->count[PRODUCT_ROWS]);
    return size_is(step[PRODUCT_COLUMNS], 1) && size_same(step[PRODUCT_ROWS], columns) &&
           (size_is(m->count[PRODUCT_BATCH], 1) || size_same(step[PRODUCT_BATCH], plane));
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* 1: its buffers are not too large. */
static int fits(const Nodes *n, const MatrixProduct *m)
{
    const double most = size_is_own(n->sizes->task) ? most_own_bytes : most_bytes;
    const Size lines = size_plus(m->count[PRODUCT_ROWS], m->count[PRODUCT_COLUMNS]);
    return 4. * (double)lines.at[0] * (double)m->count[PRODUCT_DEPTH].at[0] *
               (double)m->count[PRODUCT_BATCH].at[0] <
           most;
}

/* Seconds of the library's call, by what was measured of its products. */
static double library_time(const MatrixProduct *m)
{
    LibraryShape s = {.op = LIBRARY_GEMM, .dtype = (int)m->dtype, .result = (int)m->dtype};
    static const ProductGroup order[] = {PRODUCT_BATCH, PRODUCT_ROWS, PRODUCT_COLUMNS,
                                         PRODUCT_DEPTH};
    for (int i = 0; i < PRODUCT_GROUPS; i++) s.size[i] = (double)m->count[order[i]].at[0];
    s.size[PRODUCT_GROUPS] = size_is(m->side[PRODUCT_B].step[PRODUCT_DEPTH], 1);
    return library_seconds(profile_find("h200", NULL), &s);
}

/* Seconds in which the parts of sums are written and added up. */
static double parts_time(const MatrixProduct *m, double results)
{
    return m->parts > 1 ? 8 * m->parts * results / bytes_rate + parts_launch : 0;
}

/* Seconds in which a factor of so many lines is split. Few blocks do not fill the memory's bandwidth. */
static double split_time(const MatrixProduct *m, ProductOperand x)
{
    const int along = size_is(m->side[x].step[PRODUCT_DEPTH], 1);
    const double lines = (double)m->count[x == PRODUCT_A ? PRODUCT_ROWS : PRODUCT_COLUMNS].at[0],
                 depth = (double)m->count[PRODUCT_DEPTH].at[0],
                 batch = (double)m->count[PRODUCT_BATCH].at[0] * m->parts;
    double blocks = ceil(lines / (along ? 1 : ACROSS)) * batch;
    return 8 * lines * depth * batch / m->parts /
           fmin(split_rate, blocks * (along ? split_block : split_across_block));
}

/* Seconds of the kernels by ROUTE_TENSOR. */
static double own_time(const MatrixProduct *m)
{
    const double rows = (double)m->count[PRODUCT_ROWS].at[0],
                 columns = (double)m->count[PRODUCT_COLUMNS].at[0],
                 depth = ceil((double)m->count[PRODUCT_DEPTH].at[0] / m->parts / TERMS) * TERMS,
                 batch = (double)m->count[PRODUCT_BATCH].at[0];
    double tiles = ceil(rows / SIDE) * ceil(columns / SIDE) * batch * m->parts,
           padded = 2 * ceil(tiles / SMS) * SMS * SIDE * SIDE * depth,
           results = rows * columns * batch;
    if (m->copy == COPY_LOAD) {
        const double factors = (rows + columns) * (double)m->count[PRODUCT_DEPTH].at[0] * batch;
        return larger(padded / direct_rate, 4 * (results + factors) / bytes_rate) + direct_launch +
               parts_time(m, results);
    }
    return larger(padded / own_rate, 4 * results / bytes_rate) + split_time(m, PRODUCT_A) +
           split_time(m, PRODUCT_B) + launches + parts_time(m, results);
}

/* The right factor of few rows is read once for each group of them. */
static double rows_time(const MatrixProduct *m)
{
    const double groups = ceil((double)m->count[PRODUCT_ROWS].at[0] / FEW_ROWS),
                 columns = (double)m->count[PRODUCT_COLUMNS].at[0],
                 depth = (double)m->count[PRODUCT_DEPTH].at[0],
                 batch = (double)m->count[PRODUCT_BATCH].at[0];
    double blocks = groups * ceil(columns / FEW_COLUMNS) * batch * m->parts;
    return 4 * groups * columns * depth * batch / fmin(bytes_rate, blocks * rows_block) + 3e-6 +
           parts_time(m, (double)m->count[PRODUCT_ROWS].at[0] * columns * batch);
}

/* The number of parts by which a product by its route is fastest. Returns its seconds. */
static double float_parts(MatrixProduct *m)
{
    const int64_t most = m->count[PRODUCT_DEPTH].at[0] / LEAST_PART;
    double best = HUGE_VAL;
    int parts = 1;
    for (int n = 1; n <= MOST_PARTS && (n == 1 || n <= most); n *= 2) {
        m->parts = n;
        const double time = m->route == ROUTE_ROWS ? rows_time(m) : own_time(m);
        if (time >= best * (n > 1 ? split_gain : 1)) continue;
        best = time, parts = n;
    }
    m->parts = parts;
    return best;
}

/* Whether factors are split before or in the product's kernel. That one has all terms, zeros too. Returns the
 * seconds. */
static double float_copy(const Nodes *n, MatrixProduct *m)
{
    m->copy = COPY_ASYNC;
    const double packed = float_parts(m);
    if (!band_is_all(triangle_zeros(n, m->side[PRODUCT_A].node)) ||
        !band_is_all(triangle_zeros(n, m->side[PRODUCT_B].node)))
        return packed;
    m->copy = COPY_LOAD;
    const double direct = float_parts(m);
    if (direct < packed) return direct;
    m->copy = COPY_ASYNC;
    return float_parts(m);
}

/* ---- half types ---- */

/* Columns of a tile are multiples: of 64 where they lie across, else of the 16 that a warp makes of each
 * product. */
static int half_step(const MatrixProduct *m, int joined)
{
    if (!size_is(m->side[PRODUCT_B].step[PRODUCT_DEPTH], 1)) return joined > 1 ? 128 : 64;
    return joined > 1 ? 32 : 16;
}

/* Of tiles between those that were measured. */
static double half_rate_of(const MatrixProduct *m, int columns)
{
    const int along = size_is(m->side[PRODUCT_B].step[PRODUCT_DEPTH], 1), at = columns > 128;
    const double(*rate)[2] = half_rate[m->copy == COPY_TENSOR];
    const double least = 64 << at, part = (columns - least) / least;
    return rate[at][along] + (rate[at + 1][along] - rate[at][along]) * part;
}

/* Are the lines of the factors multiples of so many elements at the timed sizes? Tensor maps need 8. */
static int has_lines(const MatrixProduct *m, int64_t of)
{
    int64_t rest = 0;
    for (ProductOperand x = PRODUCT_A; x <= PRODUCT_B; x++)
        for (int g = 0; g < PRODUCT_GROUPS; g++) {
            const int64_t step = m->side[x].step[g].at[0];
            if (step != 1 && m->count[g].at[0] > 1) rest |= step;
        }
    return rest % of == 0;
}

/* Of one product alone both groups share a tile: 4096^3 with GELU takes 224 us, in turns 226, with a residual
 * 234 and 288, but two products with SiLU 425 and 417 (H200, 2026-12-01). */
static int in_turns(const MatrixProduct *m, int joined, int tile, int parts)
{
    return m->copy == COPY_TENSOR && joined > 1 && tile == SIDE && parts == 1;
}

int product_turns(const MatrixProduct *m, int joined)
{
    return in_turns(m, joined, m->tile, m->parts);
}

/* Seconds of a kernel with so many products at once, or with one that nothing follows: 0. */
static double half_time(const MatrixProduct *m, int joined, int tile, int parts)
{
    const double rows = (double)m->count[PRODUCT_ROWS].at[0],
                 columns = (double)m->count[PRODUCT_COLUMNS].at[0] * (joined ? joined : 1),
                 depth = (double)m->count[PRODUCT_DEPTH].at[0],
                 batch = (double)m->count[PRODUCT_BATCH].at[0], wide = tile;
    const int turns = in_turns(m, joined, tile, parts);
    double tiles = ceil(rows / SIDE) * ceil(columns / wide) * batch * parts,
           uneven = has_lines(m, 64) ? 1 : half_uneven,
           rate = turns ? half_turns : half_rate_of(m, tile),
           one = 2 * SIDE * wide * ceil(depth / parts / 64) * 64 / (rate / SMS),
           after = (half_tile + (joined ? half_follows * wide / 256 : 0)) /
                   (turns && tiles > SMS ? 2 : 1),
           sums = ceil(tiles / SMS) * (one * uneven + after),
           bytes = 2 * batch * ((rows + columns) * depth + rows * columns),
           partial = 8 * parts * rows * columns * batch / passes_rate + half_parts;
    return larger(sums, bytes / bytes_rate) + (parts > 1 ? partial : half_launches);
}

/* Seconds of the library's calls, and of a pass over their results. */
static double half_library_time(const MatrixProduct *m, int joined)
{
    const double rows = (double)m->count[PRODUCT_ROWS].at[0],
                 columns = (double)m->count[PRODUCT_COLUMNS].at[0],
                 depth = (double)m->count[PRODUCT_DEPTH].at[0],
                 batch = (double)m->count[PRODUCT_BATCH].at[0], results = rows * columns * batch;
    double flops =
               2 * results * depth / half_library_rate * (has_lines(m, 64) ? 1 : library_uneven),
           bytes = 2 * (batch * (rows + columns) * depth + results) / bytes_rate,
           pass = joined ? 2 * (joined + 1) * results / passes_rate + 3e-6 : 0;
    const double call = larger(larger(flops, bytes) + half_launches, library_time(m));
    return (joined ? joined : 1) * call + pass;
}

/* The most that the gene has. */
static int most_stages(int columns)
{
    const GeneRow *row = gene_row(GENE_STAGES);
    int i = row->n - 1;
    while (i && row->value[i] > SHARED_FOR_STAGES / (2 * (SIDE + columns) * 64)) i--;
    return row->value[i];
}

static GenePoint half_tiles(const MatrixProduct *m, int joined)
{
    return (GenePoint){.gene = GENE_TILE,
                       .by_default = m->tile,
                       .least = joined > 1 ? 128 : 64,
                       .most = 256,
                       .step = half_step(m, joined)};
}

/* The fastest tiles. Returns their seconds. */
static double half_choose(MatrixProduct *m, int joined)
{
    static const int parts[] = {1, 2, 4, 8, 16, 32, 64};
    const GeneRow *row = gene_row(GENE_TILE);
    const GenePoint tiles = half_tiles(m, joined);
    double best = HUGE_VAL;
    m->copy = has_lines(m, 8) ? COPY_TENSOR : COPY_ASYNC;
    for (int t = row->n - 1; t >= 0; t--)
        for (size_t i = 0; i < sizeof parts / sizeof *parts && genes_allow(&tiles, row->value[t]);
             i++) {
            if (parts[i] > 1 && m->count[PRODUCT_DEPTH].at[0] < 512 * parts[i]) continue;
            double us = half_time(m, joined, row->value[t], parts[i]);
            if (us >= best) continue;
            best = us;
            m->tile = row->value[t], m->parts = parts[i];
        }
    m->stages = most_stages(m->tile);
    return best;
}

double product_us(const Nodes *n, const ProductJoin *j)
{
    const MatrixProduct *m = &j->m[0];
    if (m->convolution == DEPTHWISE) return depthwise_us(n, m);
    if (m->convolution) return convolve_us(n, m);
    if (m->dtype == DTYPE_F32) return 1e6 * (m->route == ROUTE_ROWS ? rows_time(m) : own_time(m));
    return 1e6 * half_time(m, j->n, m->tile, m->parts);
}

int product_launches(const ProductJoin *j)
{
    const MatrixProduct *m = &j->m[0];
    const int packed = m->dtype == DTYPE_F32 && m->route == ROUTE_TENSOR && m->copy != COPY_LOAD;
    return (packed ? 3 : 1) + (m->parts > 1);
}

/* ---- a call ---- */

static int is_half(Dtype d)
{
    return d == DTYPE_F16 || d == DTYPE_BF16;
}

static int has_type(const Bindings *b, Dtype d)
{
    for (int x = 0; x < PRODUCT_OPERANDS; x++)
        if (b->at[0].side[x].tensor && b->at[0].side[x].tensor->dtype != d) return 0;
    return 1;
}

static int read_product(const Nodes *n, int line, MatrixProduct *out)
{
    Bindings b;
    for (int k = 0; k < SIZE_BINDINGS; k++)
        if (!product_of_call(&n->sizes->bound[k]->calls[line].call, &b.at[k])) return 0;
    for (int g = 0; g < PRODUCT_GROUPS; g++)
        if (!group_size(&b, g, &out->count[g])) return 0;
    out->alpha = b.at[0].alpha, out->beta = b.at[0].beta;
    for (int k = 1; k < SIZE_BINDINGS; k++)
        if (b.at[k].alpha != out->alpha || b.at[k].beta != out->beta) return 0;
    for (int g = 0; g < PRODUCT_GROUPS; g++)
        group_step(&b, PRODUCT_C, g, &out->side[PRODUCT_C].step[g]);
    if (out->beta == 0)
        for (int k = 0; k < SIZE_BINDINGS; k++) b.at[k].side[PRODUCT_D].tensor = NULL;
    return has_type(&b, out->dtype) && read_side(n, &b, line, PRODUCT_A, &out->side[PRODUCT_A]) &&
           read_side(n, &b, line, PRODUCT_B, &out->side[PRODUCT_B]) &&
           read_side(n, &b, line, PRODUCT_D, &out->side[PRODUCT_D]);
}

int product_read(const Nodes *n, int node, MatrixProduct *out)
{
    const Node *x = &n->node[node];
    if (depthwise_read(n, node, out) || convolve_read(n, node, out)) return 1;
    memset(out, 0, sizeof *out);
    if (x->kind != NODE_KEPT || !(x->dtype == DTYPE_F32 || is_half(x->dtype))) return 0;
    out->dtype = x->dtype, out->parts = 1;
    if (!read_product(n, x->line, out)) return 0;
    out->of = node;
    if (x->dtype == DTYPE_F32 && (n->sizes->task->tf32 & TF32_CUBLAS || !fits(n, out))) return 0;
    return is_dense(&out->side[PRODUCT_A], PRODUCT_ROWS) &&
           is_dense(&out->side[PRODUCT_B], PRODUCT_COLUMNS) && is_in_order(out);
}

/* Both factors' lines lie in one piece. */
static int is_along(const MatrixProduct *m)
{
    return size_is(m->side[PRODUCT_A].step[PRODUCT_DEPTH], 1) &&
           size_is(m->side[PRODUCT_B].step[PRODUCT_DEPTH], 1);
}

static int same_sizes(const MatrixProduct *a, const MatrixProduct *b)
{
    int same = a->dtype == b->dtype;
    for (int g = 0; g < PRODUCT_GROUPS; g++) same &= size_same(a->count[g], b->count[g]);
    return same;
}

/* Products of the graph before this one have so many sizes that the compiler has no time for kernels of its
 * size: the first ones get kernels. */
static int is_late(const Nodes *n, const MatrixProduct *m)
{
    MatrixProduct *seen = memory_array(MOST_SIZES, sizeof *seen);
    int count = 0;
    for (int i = 0; i < m->of && count < MOST_SIZES; i++) {
        MatrixProduct *x = &seen[count];
        int known = !product_read(n, i, x) || x->convolution || same_sizes(x, m);
        for (int k = 0; k < count && !known; k++) known = same_sizes(x, &seen[k]);
        count += !known;
    }
    free(seen);
    return count == MOST_SIZES;
}

static int default_route(const Nodes *n, MatrixProduct *m)
{
    if (is_late(n, m)) return ROUTE_LIBRARY;
    if (is_along(m) && m->count[PRODUCT_ROWS].at[0] <= FEW_ROWS) {
        m->route = ROUTE_ROWS;
        if (float_parts(m) < rows_enough * library_time(m)) return ROUTE_ROWS;
    }
    m->route = ROUTE_TENSOR;
    return m->count[PRODUCT_DEPTH].at[0] >= LEAST_DEPTH &&
                   float_copy(n, m) < enough * library_time(m)
               ? ROUTE_TENSOR
               : ROUTE_LIBRARY;
}

static int half_route(MatrixProduct *m, int joined)
{
    return half_choose(m, joined) < half_enough * half_library_time(m, joined) ? ROUTE_TENSOR
                                                                               : ROUTE_LIBRARY;
}

static void choose_tiles(const Nodes *n, const char *key, MatrixProduct *m, int joined)
{
    const GenePoint tiles = half_tiles(m, joined);
    m->tile = genes_choose(n->genes, key, &tiles);
    const int most = most_stages(m->tile);
    m->stages = genes_choose(
        n->genes, key,
        &(GenePoint){.gene = GENE_STAGES, .by_default = most, .least = 3, .most = most});
    m->parts = genes_choose(
        n->genes, key,
        &(GenePoint){.gene = GENE_SPLIT, .by_default = m->parts, .least = 1, .most = MOST_PARTS});
    m->copy = genes_choose(
        n->genes, key,
        &(GenePoint){
            .gene = GENE_COPY, .by_default = m->copy, .least = COPY_ASYNC, .most = COPY_TENSOR});
}

static void choose_parts(const Nodes *n, const char *key, MatrixProduct *m)
{
    if (m->route == ROUTE_TENSOR) {
        float_copy(n, m);
        m->copy = genes_choose(
            n->genes, key,
            &(GenePoint){.gene = GENE_COPY, .by_default = m->copy, .most = COPY_ASYNC});
    }
    float_parts(m);
    m->parts = genes_choose(
        n->genes, key,
        &(GenePoint){.gene = GENE_SPLIT, .by_default = m->parts, .least = 1, .most = MOST_PARTS});
}

void product_choose(const Nodes *n, MatrixProduct *m, int joined)
{
    char key[GRAPH_NAME];
    const int half = m->dtype != DTYPE_F32;
    node_key(n, m->of, key);
    if (m->convolution) {
        (m->convolution == DEPTHWISE ? depthwise_choose : convolve_choose)(n, key, m);
        return;
    }
    m->route =
        genes_choose(n->genes, key,
                     &(GenePoint){.gene = GENE_ROUTE,
                                  .by_default = half ? half_route(m, joined) : default_route(n, m),
                                  .most = !half && is_along(m) ? ROUTE_ROWS : ROUTE_TENSOR});
    if (m->route == ROUTE_LIBRARY) return;
    if (half)
        choose_tiles(n, key, m, joined);
    else
        choose_parts(n, key, m);
}

/* Rows and columns are axes of the kernel's. */
static int has_axes(const Kernel *k, const MatrixProduct *m)
{
    for (int i = 0; i < k->axes.n; i++) {
        const Size by = k->root[0].at.by[i], columns = m->count[PRODUCT_COLUMNS];
        if (!size_divides(columns, by) && !size_divides(size_times(by, k->axes.size[i]), columns))
            return 0;
    }
    return 1;
}

static int same_tensor(const ProductTensor *a, const ProductTensor *b)
{
    int same = a->node == b->node && size_same(a->offset, b->offset);
    for (int g = 0; g < PRODUCT_GROUPS; g++) same &= size_same(a->step[g], b->step[g]);
    return same;
}

/* One tile has sums of both. */
static int may_join(const MatrixProduct *a, const MatrixProduct *b)
{
    int same = a->dtype != DTYPE_F32 && b->dtype == a->dtype &&
               same_tensor(&a->side[PRODUCT_A], &b->side[PRODUCT_A]);
    for (int g = 0; g < PRODUCT_GROUPS; g++)
        same &= size_same(a->count[g], b->count[g]) &&
                size_same(a->side[PRODUCT_B].step[g], b->side[PRODUCT_B].step[g]);
    return same;
}

void product_join(const Kernel *k, ProductJoin *out)
{
    MatrixProduct m;
    out->n = 0;
    for (int i = 0; i < k->n && out->n < PRODUCT_JOINED && !k->has_folds; i++) {
        const Step *s = &k->step[i];
        if (k->nodes->node[s->node].kind != NODE_KEPT || s->arg[0] >= 0 ||
            !index_same(&s->at, &k->root[0].at) || !product_read(k->nodes, s->node, &m) ||
            !has_axes(k, &m) || (out->n && !may_join(&out->m[0], &m)))
            continue;
        out->step[out->n] = i;
        out->m[out->n++] = m;
    }
}

/* ---- triangles ---- */

static const Band all = {-BAND_FAR, BAND_FAR};

/* The zeros of a factor, columns beside rows, where its memory has two dimensions of these groups at the end,
 * in one order or the other. */
static Band factor_band(const Nodes *n, const ProductTensor *t, ProductGroup row,
                        ProductGroup column, const Size *count)
{
    const Node *x = &n->node[t->node];
    const Band b = triangle_zeros(n, t->node);
    if (band_is_all(b) || x->rank < 2 || !size_is(t->offset, 0)) return all;
    const Size wide = x->size[x->rank - 1], high = x->size[x->rank - 2];
    if (size_is(t->step[column], 1) && size_same(t->step[row], wide) &&
        size_same(count[column], wide) && size_same(count[row], high))
        return b;
    if (size_is(t->step[row], 1) && size_same(t->step[column], wide) &&
        size_same(count[row], wide) && size_same(count[column], high))
        return (Band){-b.most, -b.least};
    return all;
}

static Band sums_band(const Kernel *k, const MatrixProduct *m)
{
    const Node *x = &k->nodes->node[m->of];
    Band b;
    if (x->rank < 2 || !size_same(x->size[x->rank - 1], m->count[PRODUCT_COLUMNS]) ||
        !size_same(x->size[x->rank - 2], m->count[PRODUCT_ROWS]) ||
        !triangle_needed(k->nodes, k->root[0].node, m->of, &b))
        return all;
    return b;
}

static int is_whole(const ProductBands *b)
{
    return band_is_all(b->sums) && band_is_all(b->left) && band_is_all(b->right);
}

ProductBands product_bands(const Kernel *k, const ProductJoin *j)
{
    const MatrixProduct *m = &j->m[0];
    if (j->n != 1 || m->convolution || k->n_roots != 1) return (ProductBands){all, all, all};
    const ProductBands b = {
        sums_band(k, m),
        factor_band(k->nodes, &m->side[PRODUCT_A], PRODUCT_ROWS, PRODUCT_DEPTH, m->count),
        factor_band(k->nodes, &m->side[PRODUCT_B], PRODUCT_DEPTH, PRODUCT_COLUMNS, m->count)};
    if (is_whole(&b)) return b;
    char key[GRAPH_NAME];
    node_key(k->nodes, m->of, key);
    return genes_choose(k->nodes->genes, key,
                        &(GenePoint){.gene = GENE_LESS, .by_default = 1, .most = 1})
               ? b
               : (ProductBands){all, all, all};
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The terms of the sums of a tile. */
static int64_t terms_of(const ProductBands *b, int64_t top, int64_t left, int64_t depth)
{
    const int64_t down = top + SIDE - 1, across = left + SIDE - 1;
    const int64_t first = later(0, later(top + b->left.least, left - b->right.most)),
                  end = sooner(depth, sooner(down + b->left.most, across - b->right.least) + 1);
    const int needed = across - top >= b->sums.least && left - down <= b->sums.most;
    return needed && end > first ? end - first : 0;
}

double product_left(const Kernel *k, const ProductJoin *j)
{
    const ProductBands b = product_bands(k, j);
    const Size *count = j->m[0].count;
    const int64_t rows = count[PRODUCT_ROWS].at[0], columns = count[PRODUCT_COLUMNS].at[0],
                  depth = count[PRODUCT_DEPTH].at[0];
    double terms = 0, all_terms = 0;
    if (is_whole(&b)) return 1;
    for (int64_t top = 0; top < rows; top += SIDE)
        for (int64_t left = 0; left < columns; left += SIDE, all_terms += (double)depth)
            terms += (double)terms_of(&b, top, left, depth);
    return all_terms > 0 ? terms / all_terms : 1;
}
