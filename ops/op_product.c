/* Groups of an einsum's letters, and the blocked product in double precision. Every element is computed
 * by one thread in an order that follows from the depth alone, so results repeat bit for bit. */
#include "ops/op_product.h"

#include <math.h>
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

int product_is_each(const Product *p)
{
    return p->count[PRODUCT_DEPTH] == 1 && p->count[PRODUCT_BATCH] && p->count[PRODUCT_ROWS] &&
           p->count[PRODUCT_COLUMNS] && p->alpha == 1 && p->beta == 0;
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

/* c is dense: the coordinate along each of its dimensions follows from its step. */
int64_t product_place(const Product *p, ProductOperand x, int64_t i)
{
    int64_t at = 0;
    for (int g = PRODUCT_BATCH; g <= PRODUCT_COLUMNS; g++)
        for (int d = 0; d < p->rank[g]; d++)
            at += i / p->step[PRODUCT_C][g][d] % p->size[g][d] * p->step[x][g][d];
    return at;
}

int64_t product_depth(const Product *p, ProductOperand x, int64_t term)
{
    return x == PRODUCT_A || x == PRODUCT_B ? place(p, (int)x, PRODUCT_DEPTH, term) : 0;
}

/* a + x b with one rounding, which is one instruction. */
static inline double add(double a, double x, double b)
{
    return fma(x, b, a);
}

typedef double Lanes __attribute__((vector_size(32), aligned(8), may_alias));
enum { LANES = TILE_LANES, MAX_ROWS = 8, MAX_LANES = 3 };

static inline Lanes add_lanes(Lanes a, double x, Lanes b)
{
    for (int i = 0; i < LANES; i++) a[i] = add(a[i], x, b[i]);
    return a;
}

/* The first terms of four rows, turned: to[i] has term i of each. */
static inline void turn(const double *const row[LANES], int64_t at, Lanes to[LANES])
{
    Lanes r[LANES];
    for (int i = 0; i < LANES; i++) r[i] = *(const Lanes *)(row[i] + at);
    Lanes a = __builtin_shufflevector(r[0], r[1], 0, 4, 2, 6),
          b = __builtin_shufflevector(r[0], r[1], 1, 5, 3, 7),
          c = __builtin_shufflevector(r[2], r[3], 0, 4, 2, 6),
          d = __builtin_shufflevector(r[2], r[3], 1, 5, 3, 7);
    to[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
    to[1] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
    to[2] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
    to[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}

/* The last row stands for those that are missing. */
void product_rows(const double *a, int64_t terms, const double *b, int64_t b_step, int rows,
                  double *sum)
{
    enum { VECTORS = PRODUCT_TOGETHER / LANES };
    const double *row[PRODUCT_TOGETHER];
    Lanes s[VECTORS], v[VECTORS][LANES];
    int64_t j = 0;
    for (int i = 0; i < PRODUCT_TOGETHER; i++) {
        row[i] = b + (i < rows ? i : rows - 1) * b_step;
        s[i / LANES][i % LANES] = i < rows ? sum[i] : 0;
    }
    for (; j + LANES <= terms; j += LANES) {
        for (int k = 0; k < VECTORS; k++) turn(row + k * LANES, j, v[k]);
        for (int t = 0; t < LANES; t++)
            for (int k = 0; k < VECTORS; k++) s[k] = add_lanes(s[k], a[j + t], v[k][t]);
    }
    for (int i = 0; i < rows; i++) {
        sum[i] = s[i / LANES][i % LANES];
        for (int64_t t = j; t < terms; t++) sum[i] = add(sum[i], a[t], row[i][t]);
    }
}

/* Terms of some elements side by side, since those of one sum wait for each other. */
enum { TOGETHER = 4 };
typedef struct {
    const void *a[TOGETHER], *b[TOGETHER];
    int64_t a_step, b_step, n;
} Terms;

static inline double term(const void *p, int64_t i, int is_narrow)
{
    return is_narrow ? (double)((const float *)p)[i] : ((const double *)p)[i];
}

static inline __attribute__((always_inline)) void add_some(const Terms *t, double *sum,
                                                           const int narrow_a, const int narrow_b)
{
    double s[TOGETHER];
    for (int i = 0; i < TOGETHER; i++) s[i] = sum[i];
    for (int64_t j = 0; j < t->n; j++)
        for (int i = 0; i < TOGETHER; i++)
            s[i] = fma(term(t->a[i], j * t->a_step, narrow_a),
                       term(t->b[i], j * t->b_step, narrow_b), s[i]);
    for (int i = 0; i < TOGETHER; i++) sum[i] = s[i];
}

static void add_terms(const Terms *t, double *sum, int narrow_a, int narrow_b)
{
    if (narrow_a && narrow_b) add_some(t, sum, 1, 1);
    if (narrow_a && !narrow_b) add_some(t, sum, 1, 0);
    if (!narrow_a && narrow_b) add_some(t, sum, 0, 1);
    if (!narrow_a && !narrow_b) add_some(t, sum, 0, 0);
}

static const void *numbers_at(const ProductSide *s, int64_t at)
{
    return s->data ? (const void *)(s->data + at) : (const void *)(s->narrow + at);
}

/* The last element stands for those that are missing. */
static void add_elements(const Product *p, const int64_t *at, int n, double *sum)
{
    const int g = PRODUCT_DEPTH, last = p->rank[g] - 1;
    const ProductSide *a = &p->side[PRODUCT_A], *b = &p->side[PRODUCT_B];
    int64_t a_at[TOGETHER], b_at[TOGETHER];
    Terms t = {.a_step = last < 0 ? 0 : p->step[PRODUCT_A][g][last],
               .b_step = last < 0 ? 0 : p->step[PRODUCT_B][g][last],
               .n = last < 0 ? 1 : p->size[g][last]};
    for (int i = 0; i < TOGETHER; i++) {
        a_at[i] = product_place(p, PRODUCT_A, at[i < n ? i : n - 1]);
        b_at[i] = product_place(p, PRODUCT_B, at[i < n ? i : n - 1]);
    }
    for (int64_t k = 0; k < p->count[g]; k += t.n) {
        int64_t of_a = place(p, PRODUCT_A, g, k), of_b = place(p, PRODUCT_B, g, k);
        for (int i = 0; i < TOGETHER; i++) {
            t.a[i] = numbers_at(a, a_at[i] + of_a);
            t.b[i] = numbers_at(b, b_at[i] + of_b);
        }
        add_terms(&t, sum, !a->data, !b->data);
    }
}

/* How many of the elements, at most PRODUCT_TOGETHER, lie in one row of operand x. */
static int in_one_row(const Product *p, ProductOperand x, const int64_t *at, int64_t n)
{
    int some = 1;
    int64_t first = product_place(p, x, at[0]);
    while (some < PRODUCT_TOGETHER && some < n && product_place(p, x, at[some]) == first) some++;
    return some;
}

static void widen_terms(const ProductSide *s, int64_t at, int64_t n, double *to)
{
    if (s->data)
        memcpy(to, s->data + at, (size_t)n * sizeof *to);
    else
        dtype_to_double(DTYPE_F32, s->narrow + at, to, (size_t)n);
}

/* Elements of one row of operand x. The terms lie side by side. */
static void add_row(const Product *p, ProductOperand x, const int64_t *at, int n, double *sum)
{
    enum { PART = 256 };
    double one[PART], others[PRODUCT_TOGETHER][PART];
    const int g = PRODUCT_DEPTH;
    const ProductOperand y = x == PRODUCT_A ? PRODUCT_B : PRODUCT_A;
    int64_t line = p->size[g][p->rank[g] - 1], of_x = product_place(p, x, at[0]),
            of_y[PRODUCT_TOGETHER];
    for (int i = 0; i < n; i++) of_y[i] = product_place(p, y, at[i]);
    for (int64_t k = 0, some; k < p->count[g]; k += some) {
        int64_t rest = line - k % line, in_x = place(p, (int)x, g, k),
                in_y = place(p, (int)y, g, k);
        some = rest < PART ? rest : PART;
        widen_terms(&p->side[x], of_x + in_x, some, one);
        for (int i = 0; i < n; i++) widen_terms(&p->side[y], of_y[i] + in_y, some, others[i]);
        product_rows(one, some, others[0], PART, n, sum);
    }
}

static int has_dense_terms(const Product *p)
{
    int g = PRODUCT_DEPTH, last = p->rank[g] - 1;
    return last >= 0 && p->step[PRODUCT_A][g][last] == 1 && p->step[PRODUCT_B][g][last] == 1;
}

/* Adds the terms of the first of the elements. Returns of how many. */
static int add_first(const Product *p, const int64_t *at, int64_t n, double *sum)
{
    int is_dense = has_dense_terms(p), a = is_dense ? in_one_row(p, PRODUCT_A, at, n) : 0,
        b = is_dense ? in_one_row(p, PRODUCT_B, at, n) : 0, most = a > b ? a : b,
        some = n < TOGETHER ? (int)n : TOGETHER;
    if (most <= TOGETHER) {
        add_elements(p, at, some, sum);
        return some;
    }
    add_row(p, a >= b ? PRODUCT_A : PRODUCT_B, at, most, sum);
    return most;
}

void product_elements(const Product *p, const int64_t *at, int64_t n, double *y)
{
    const ProductSide *d = &p->side[PRODUCT_D];
    for (int64_t k = 0, some; k < n; k += some) {
        double sum[PRODUCT_TOGETHER] = {0};
        some = add_first(p, at + k, n - k, sum);
        for (int i = 0; i < some; i++) {
            y[k + i] = p->alpha * sum[i];
            if (p->beta == 0) continue;
            const void *addend = numbers_at(d, product_place(p, PRODUCT_D, at[k + i]));
            y[k + i] += p->beta * term(addend, 0, !d->data);
        }
    }
}

/* Some rows and columns, whose sums stay in registers for all terms. rows and lanes are constants. */
static inline __attribute__((always_inline)) void corner(const Tile *t, int row, const double *b,
                                                         double *acc, const int rows,
                                                         const int lanes)
{
    const double *a = t->a + row * t->a_step;
    Lanes s[MAX_ROWS][MAX_LANES], *to[MAX_ROWS];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
        to[r] = (Lanes *)(acc + (size_t)(row + r) * TILE_N);
#pragma GCC unroll 3
        for (int c = 0; c < lanes; c++) s[r][c] = to[r][c];
    }
    for (int j = 0; j < t->k; j++, b += t->b_step) {
        const Lanes *v = (const Lanes *)b;
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 3
            for (int c = 0; c < lanes; c++)
                s[r][c] = add_lanes(s[r][c], a[r * t->a_step + j], v[c]);
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 3
        for (int c = 0; c < lanes; c++) to[r][c] = s[r][c];
}

static int whole_lanes(int n)
{
    return (n + LANES - 1) / LANES * LANES;
}

/* Columns of some lanes: eight or four rows at a time, since the terms of one sum wait for each other,
 * then row by row. */
static inline __attribute__((always_inline)) void strip(const Tile *t, const double *b, double *acc,
                                                        const int lanes)
{
    int row = 0;
    for (; row + 8 <= t->m && lanes == 1; row += 8) corner(t, row, b, acc, 8, lanes);
    for (; row + 4 <= t->m; row += 4) corner(t, row, b, acc, 4, lanes);
    for (; row < t->m; row++) corner(t, row, b, acc, 1, lanes);
}

void product_tile(const Tile *t, const double *b, double *acc)
{
    int n = whole_lanes(t->n), column = 0;
    for (; column + 3 * LANES <= n; column += 3 * LANES) strip(t, b + column, acc + column, 3);
    for (; column + 2 * LANES <= n; column += 2 * LANES) strip(t, b + column, acc + column, 2);
    for (; column < n; column += LANES) strip(t, b + column, acc + column, 1);
}

void product_clear(int m, int n, double *acc)
{
    for (int i = 0; i < m; i++)
        memset(acc + (size_t)i * TILE_N, 0, (size_t)whole_lanes(n) * sizeof *acc);
}

Panel product_panel(int n, int64_t depth)
{
    enum { LINE = 8, MAX_TERMS = 1024 };
    int step = n <= LANES ? LANES : ((n + LINE - 1) / LINE | 1) * LINE,
        terms = PANEL_ELEMENTS / step;
    if (terms > MAX_TERMS) terms = MAX_TERMS;
    return (Panel){step, depth < terms ? (int)depth : terms};
}

void product_pad(const Panel *p, int n, double *b)
{
    for (int j = 0; j < p->terms; j++)
        for (int i = n; i < whole_lanes(n); i++) b[(size_t)j * p->step + i] = 0;
}

/* One factor: where its outer elements (rows or columns of c) and its depth lie. */
typedef struct {
    const double *data;
    int64_t *outer, *depth;
    ProductOperand operand;
    ProductGroup group;
    int dense; /* its depth has no gaps */
} Factor;

/* acc[left][right]: the left factor is read as it lies where it is dense, the right one is packed. */
typedef struct {
    const Product *p;
    double *c;
    Panel panel;
    Factor left, right;
    int64_t *c_left, *c_right, *d_left, *d_right;
} Work;

static int least(int64_t left, int limit)
{
    return left < limit ? (int)left : limit;
}

static const double *d_at(const Product *p, int64_t batch)
{
    if (p->beta == 0) return NULL;
    return p->side[PRODUCT_D].data + place(p, PRODUCT_D, PRODUCT_BATCH, batch);
}

/* Some outer elements of a factor in one batch, and memory for a part of the depth of them. */
typedef struct {
    const Factor *f;
    const double *data; /* of the batch */
    int64_t from;
    int n, step; /* elements; and from one to the next row of `pack` */
    double *pack;
} Slab;

/* The rows of a tile: as they lie where they are evenly apart, else packed. */
static void left_rows(const Slab *s, int64_t first, Tile *t)
{
    const int64_t *at = s->f->outer + s->from;
    int even = s->f->dense;
    for (int i = 2; i < t->m && even; i++) even = at[i] - at[i - 1] == at[1] - at[0];
    t->a = s->data + at[0] + first, t->a_step = t->m > 1 ? at[1] - at[0] : 0;
    if (even) return;
    for (int i = 0; i < t->m; i++)
        for (int j = 0; j < t->k; j++)
            s->pack[i * s->step + j] = s->data[at[i] + s->f->depth[first + j]];
    t->a = s->pack, t->a_step = s->step;
}

/* Blocks of the square of terms and columns, since either may be far apart in memory. */
static void pack_right(const Slab *s, int64_t first, int k)
{
    enum { BLOCK = 16 };
    const int64_t *depth = s->f->depth + first, *outer = s->f->outer + s->from;
    const double *data = s->data;
    double *pack = s->pack;
    const int n = s->n, step = s->step;
    for (int j0 = 0; j0 < k; j0 += BLOCK)
        for (int i0 = 0; i0 < n; i0 += BLOCK)
            for (int j = j0; j < k && j < j0 + BLOCK; j++)
                for (int i = i0; i < n && i < i0 + BLOCK; i++)
                    pack[j * step + i] = data[depth[j] + outer[i]];
}

/* A small product has small tiles. */
static double *work_buffer(const Work *w)
{
    const Panel *b = &w->panel;
    int m = least(w->p->count[w->left.group], TILE_M);
    return memory_grow(NULL, (size_t)(m * (TILE_N + b->terms) + b->terms * b->step + 1),
                       sizeof(double));
}

/* The tile of c at (row, column) of a batch, in the left and the right factor's elements. buffer has
 * room for acc, a tile of a and the panel. */
static void work_tile(const Work *w, int64_t batch, int64_t row, int64_t column, double *buffer)
{
    const Product *p = w->p;
    const Panel *panel = &w->panel;
    int limit = least(p->count[w->left.group], TILE_M);
    double *acc = buffer, *pa = acc + limit * TILE_N, *pb = pa + limit * panel->terms;
    int m = least(p->count[w->left.group] - row, TILE_M),
        n = least(p->count[w->right.group] - column, TILE_N);
    const double *a = w->left.data + place(p, (int)w->left.operand, PRODUCT_BATCH, batch),
                 *b = w->right.data + place(p, (int)w->right.operand, PRODUCT_BATCH, batch);
    const Slab left = {&w->left, a, row, m, panel->terms, pa},
               right = {&w->right, b, column, n, panel->step, pb};
    product_clear(m, n, acc);
    product_pad(panel, n, pb);
    for (int64_t first = 0; first < p->count[PRODUCT_DEPTH]; first += panel->terms) {
        int k = least(p->count[PRODUCT_DEPTH] - first, panel->terms);
        Tile t = {.m = m, .k = k, .n = n, .b_step = panel->step};
        left_rows(&left, first, &t);
        pack_right(&right, first, k);
        product_tile(&t, pb, acc);
    }
    double *c = w->c + place(p, PRODUCT_C, PRODUCT_BATCH, batch);
    const double *d = d_at(p, batch);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double v = p->alpha * acc[i * TILE_N + j];
            if (d) v += p->beta * d[w->d_left[row + i] + w->d_right[column + j]];
            c[w->c_left[row + i] + w->c_right[column + j]] = v;
        }
}

static Factor factor(const Product *p, ProductOperand x, ProductGroup outer)
{
    Factor f = {.data = p->side[x].data, .operand = x, .group = outer, .dense = 1};
    f.outer = places(p, (int)x, (int)outer);
    f.depth = places(p, (int)x, PRODUCT_DEPTH);
    for (int64_t i = 0; i < p->count[PRODUCT_DEPTH] && f.dense; i++) f.dense = f.depth[i] == i;
    return f;
}

/* The larger factor is left, where its depth lies dense: it need not be packed. Products are the same
 * either way. */
static void work_open(Work *w)
{
    const Product *p = w->p;
    Factor a = factor(p, PRODUCT_A, PRODUCT_ROWS), b = factor(p, PRODUCT_B, PRODUCT_COLUMNS);
    int swapped = b.dense && (!a.dense || p->count[PRODUCT_COLUMNS] > p->count[PRODUCT_ROWS]);
    w->left = swapped ? b : a;
    w->right = swapped ? a : b;
    w->c_left = places(p, PRODUCT_C, (int)w->left.group);
    w->c_right = places(p, PRODUCT_C, (int)w->right.group);
    w->d_left = places(p, PRODUCT_D, (int)w->left.group);
    w->d_right = places(p, PRODUCT_D, (int)w->right.group);
}

static void work_close(Work *w)
{
    free(w->left.outer), free(w->left.depth), free(w->right.outer), free(w->right.depth);
    free(w->c_left), free(w->c_right), free(w->d_left), free(w->d_right);
}

typedef struct {
    Work w;
    int64_t down, across, n; /* tiles, of all batches */
} Tiles;

static void tiles_at(const Tiles *t, int64_t i, double *buffer)
{
    work_tile(&t->w, i / (t->down * t->across), i / t->across % t->down * TILE_M,
              i % t->across * TILE_N, buffer);
}

void product_reference(const Product *p, double *c)
{
    Tiles t = {.w = {.p = p, .c = c}};
    work_open(&t.w);
    int64_t right = p->count[t.w.right.group];
    t.down = (p->count[t.w.left.group] + TILE_M - 1) / TILE_M;
    t.across = (right + TILE_N - 1) / TILE_N;
    t.n = p->count[PRODUCT_BATCH] * t.down * t.across;
    t.w.panel = product_panel(least(right, TILE_N), p->count[PRODUCT_DEPTH]);
    int64_t rows = p->count[PRODUCT_BATCH] * p->count[t.w.left.group];
    if (t.n < 2 || rows * right * p->count[PRODUCT_DEPTH] < PRODUCT_WORTH_THREADS) {
        double *buffer = t.n ? work_buffer(&t.w) : NULL;
        for (int64_t i = 0; i < t.n; i++) tiles_at(&t, i, buffer);
        free(buffer);
    } else {
#pragma omp parallel
        {
            double *buffer = work_buffer(&t.w);
#pragma omp for schedule(dynamic)
            for (int64_t i = 0; i < t.n; i++) tiles_at(&t, i, buffer);
            free(buffer);
        }
    }
    work_close(&t.w);
}
