/* Groups of an einsum's letters, and the blocked product in double precision. Every element is computed
 * by one thread in an order that follows from the depth alone, so results repeat bit for bit. */
#include "ops/op_product.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* The distinct letters in the order c, a, b: inner groups keep the order of c. */
static int letters_of(const Product *p, char *out)
{
    static const ProductOperand order[] = {PRODUCT_C, PRODUCT_A, PRODUCT_B};
    int n = 0;
    for (int i = 0; i < 3; i++)
        for (const char *s = p->side[order[i]].letters; *s; s++)
            if (!memchr(out, *s, (size_t)n)) out[n++] = *s;
    return n;
}

/* The size of a letter in an operand (1 where it lacks it) and how far the operand moves along it. */
static int64_t side_size(const ProductSide *s, char letter)
{
    int64_t size = 1;
    for (int d = 0; s->tensor && s->letters[d]; d++)
        if (s->letters[d] == letter) size = s->tensor->size[d];
    return size;
}

static int64_t side_step(const ProductSide *s, char letter, int logical)
{
    OpTensor dense;
    int64_t step = 0;
    if (!s->tensor) return 0;
    dense = *s->tensor;
    if (logical) op_contiguous(&dense);
    for (int d = 0; s->letters[d]; d++)
        if (s->letters[d] == letter && dense.size[d] != 1) step += dense.stride[d];
    return step;
}

static ProductGroup group_of(const Product *p, char letter)
{
    int a = strchr(p->side[PRODUCT_A].letters, letter) != NULL,
        b = strchr(p->side[PRODUCT_B].letters, letter) != NULL,
        c = strchr(p->side[PRODUCT_C].letters, letter) != NULL;
    return !c ? PRODUCT_DEPTH : a && b ? PRODUCT_BATCH : a ? PRODUCT_ROWS : PRODUCT_COLUMNS;
}

/* Makes one dimension of the last two of a group if every operand moves through both evenly. */
static void collapse(Product *p, int g)
{
    int last = p->rank[g] - 1;
    if (last < 1) return;
    for (int x = 0; x < PRODUCT_OPERANDS; x++)
        if (p->step[x][g][last - 1] != p->step[x][g][last] * p->size[g][last]) return;
    p->size[g][last - 1] *= p->size[g][last];
    for (int x = 0; x < PRODUCT_OPERANDS; x++) p->step[x][g][last - 1] = p->step[x][g][last];
    p->rank[g]--;
}

static void swap_sides(Product *p)
{
    const ProductSide *c = &p->side[PRODUCT_C];
    size_t n = strlen(c->letters);
    while (n && c->tensor->size[n - 1] == 1) n--;
    if (!n || group_of(p, c->letters[n - 1]) != PRODUCT_ROWS) return;
    int columns = 0;
    for (const char *s = c->letters; *s; s++) columns |= group_of(p, *s) == PRODUCT_COLUMNS;
    if (!columns) return;
    ProductSide a = p->side[PRODUCT_A];
    p->side[PRODUCT_A] = p->side[PRODUCT_B];
    p->side[PRODUCT_B] = a;
}

void product_groups(Product *p, int logical)
{
    char letter[PRODUCT_LETTERS];
    swap_sides(p);
    int n = letters_of(p, letter);
    for (int g = 0; g < PRODUCT_GROUPS; g++) p->rank[g] = 0, p->count[g] = 1;
    for (int i = 0; i < n; i++) {
        int g = group_of(p, letter[i]), at = p->rank[g];
        int64_t a = side_size(&p->side[PRODUCT_A], letter[i]),
                b = side_size(&p->side[PRODUCT_B], letter[i]), size = a == 1 ? b : a;
        p->count[g] *= size;
        if (size == 1) continue;
        p->size[g][at] = size;
        for (int x = 0; x < PRODUCT_OPERANDS; x++)
            p->step[x][g][at] = side_step(&p->side[x], letter[i], logical);
        p->rank[g]++;
        collapse(p, g);
    }
}

double product_flops(const Product *p)
{
    double n = 2;
    for (int g = 0; g < PRODUCT_GROUPS; g++) n *= (double)p->count[g];
    return n;
}

/* Where element i of a group lies in an operand. */
static int64_t place(const Product *p, int x, int g, int64_t i)
{
    int64_t at = 0;
    for (int d = p->rank[g] - 1; d >= 0; i /= p->size[g][d--])
        at += i % p->size[g][d] * p->step[x][g][d];
    return at;
}

static int64_t *places(const Product *p, int x, int g)
{
    int64_t *at = memory_array((size_t)p->count[g], sizeof *at);
    for (int64_t i = 0; i < p->count[g]; i++) at[i] = place(p, x, g, i);
    return at;
}

/* Four terms at a time: a row of acc is loaded and stored once for the four. */
void product_tile(const double *a, const double *b, double *acc, int m, int k)
{
    for (int i = 0; i < m; i++) {
        double *restrict to = acc + (size_t)i * TILE_N;
        const double *x = a + (size_t)i * TILE_K;
        int j = 0;
        for (; j + 4 <= k; j += 4) {
            const double *restrict b0 = b + (size_t)j * TILE_N, *restrict b1 = b0 + TILE_N,
                                   *restrict b2 = b1 + TILE_N, *restrict b3 = b2 + TILE_N;
            double x0 = x[j], x1 = x[j + 1], x2 = x[j + 2], x3 = x[j + 3];
#pragma omp simd
            for (int n = 0; n < TILE_N; n++)
                to[n] = to[n] + x0 * b0[n] + x1 * b1[n] + x2 * b2[n] + x3 * b3[n];
        }
        for (; j < k; j++) {
            const double *restrict b0 = b + (size_t)j * TILE_N;
#pragma omp simd
            for (int n = 0; n < TILE_N; n++) to[n] = to[n] + x[j] * b0[n];
        }
    }
}

/* Places of the rows, columns and depth in the operands that have them. */
typedef struct {
    int64_t *a_rows, *a_depth, *b_depth, *b_columns, *c_rows, *c_columns, *d_rows, *d_columns;
} Places;

typedef struct {
    const Product *p;
    double *c;
    Places at;
} Work;

static int least(int64_t left, int most)
{
    return left < most ? (int)left : most;
}

static const double *d_at(const Product *p, int64_t batch)
{
    if (p->beta == 0) return NULL;
    return p->side[PRODUCT_D].data + place(p, PRODUCT_D, PRODUCT_BATCH, batch);
}

/* The tile of c at (row, column) of a batch. buffer has room for acc, a tile of a and one of b. */
static void work_tile(const Work *w, int64_t batch, int64_t row, int64_t column, double *buffer)
{
    const Product *p = w->p;
    const Places *at = &w->at;
    double *acc = buffer, *pa = acc + TILE_M * TILE_N, *pb = pa + TILE_M * TILE_K;
    int m = least(p->count[PRODUCT_ROWS] - row, TILE_M),
        n = least(p->count[PRODUCT_COLUMNS] - column, TILE_N);
    const double *a = p->side[PRODUCT_A].data + place(p, PRODUCT_A, PRODUCT_BATCH, batch),
                 *b = p->side[PRODUCT_B].data + place(p, PRODUCT_B, PRODUCT_BATCH, batch);
    memset(acc, 0, (size_t)m * TILE_N * sizeof *acc);
    for (int64_t first = 0; first < p->count[PRODUCT_DEPTH]; first += TILE_K) {
        int k = least(p->count[PRODUCT_DEPTH] - first, TILE_K);
        for (int i = 0; i < m; i++)
            for (int j = 0; j < k; j++)
                pa[i * TILE_K + j] = a[at->a_rows[row + i] + at->a_depth[first + j]];
        for (int j = 0; j < k; j++)
            for (int i = 0; i < n; i++)
                pb[j * TILE_N + i] = b[at->b_depth[first + j] + at->b_columns[column + i]];
        product_tile(pa, pb, acc, m, k);
    }
    double *c = w->c + place(p, PRODUCT_C, PRODUCT_BATCH, batch);
    const double *d = d_at(p, batch);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double v = p->alpha * acc[i * TILE_N + j];
            if (d) v += p->beta * d[at->d_rows[row + i] + at->d_columns[column + j]];
            c[at->c_rows[row + i] + at->c_columns[column + j]] = v;
        }
}

void product_reference(const Product *p, double *c)
{
    Work w = {.p = p, .c = c};
    Places *at = &w.at;
    at->a_rows = places(p, PRODUCT_A, PRODUCT_ROWS);
    at->a_depth = places(p, PRODUCT_A, PRODUCT_DEPTH);
    at->b_depth = places(p, PRODUCT_B, PRODUCT_DEPTH);
    at->b_columns = places(p, PRODUCT_B, PRODUCT_COLUMNS);
    at->c_rows = places(p, PRODUCT_C, PRODUCT_ROWS);
    at->c_columns = places(p, PRODUCT_C, PRODUCT_COLUMNS);
    at->d_rows = places(p, PRODUCT_D, PRODUCT_ROWS);
    at->d_columns = places(p, PRODUCT_D, PRODUCT_COLUMNS);
    int64_t down = (p->count[PRODUCT_ROWS] + TILE_M - 1) / TILE_M,
            across = (p->count[PRODUCT_COLUMNS] + TILE_N - 1) / TILE_N,
            n = p->count[PRODUCT_BATCH] * down * across;
#pragma omp parallel if (n > 1)
    {
        double *buffer =
            memory_array(TILE_M * TILE_N + TILE_M * TILE_K + TILE_K * TILE_N, sizeof *buffer);
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < n; i++)
            work_tile(&w, i / (down * across), i / across % down * TILE_M, i % across * TILE_N,
                      buffer);
        free(buffer);
    }
    free(at->a_rows), free(at->a_depth), free(at->b_depth), free(at->b_columns);
    free(at->c_rows), free(at->c_columns), free(at->d_rows), free(at->d_columns);
}
