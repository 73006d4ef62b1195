/* Einsums of two tensors: as expressions, without a sum as products of elements and with one of few terms as
 * folds; and products of many small matrices, with the text of their kernels. */
#include "generate/small.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/embed.h"
#include "base/memory.h"
#include "generate/node_build.h"
#include "generate/product_text.h"

EMBED(generate_small, "generate/small.cu")

/* MOST: rows, columns and terms of a small matrix; MANY of them fill the GPU. Tiles have LEAST_ROWS or
 * LEAST_COLUMNS to MOST_TILE lines. */
enum { MOST = 256, MANY = 1024, LEAST_ROWS = 32, LEAST_COLUMNS = 16, MOST_TILE = 64 };
/* What moves, and what is multiplied, in a second (2026-11-30, predicted for an H200). */
static const double bytes_rate = 3.5e12, sums_rate = 2e13;

/* ---- letters ---- */

static int place_of(const ProductSide *s, char letter)
{
    const char *at = strchr(s->letters, letter);
    return at ? (int)(at - s->letters) : -1;
}

/* How far a tensor's elements are apart along a dimension, in C order. */
static int64_t step_of(const ProductSide *s, int dim)
{
    int64_t step = 1;
    for (int d = s->tensor->rank - 1; d > dim; d--) step *= s->tensor->size[d];
    return dim < 0 ? 0 : step;
}

static int is_plain(const Product *p)
{
    const ProductSide *s = p->side;
    if (!s[PRODUCT_A].tensor || !s[PRODUCT_B].tensor || s[PRODUCT_D].tensor) return 0;
    for (int x = 0; x <= PRODUCT_C; x++)
        for (const char *at = s[x].letters; *at; at++) {
            if (strchr(at + 1, *at)) return 0;
            for (int y = 0; y < x; y++) {
                const int d = place_of(&s[y], *at);
                if (d >= 0 && s[y].tensor->size[d] != s[x].tensor->size[at - s[x].letters])
                    return 0;
            }
        }
    return 1;
}

static int add_letter(const Product *p, char letter, Einsum *e)
{
    const int a = place_of(&p->side[PRODUCT_A], letter), b = place_of(&p->side[PRODUCT_B], letter);
    const int c = place_of(&p->side[PRODUCT_C], letter);
    if (e->n == OP_MAX_RANK || (c < 0 && (a < 0 || b < 0))) return 0;
    e->letter[e->n++].group = c < 0    ? PRODUCT_DEPTH
                              : a >= 0 ? (b >= 0 ? PRODUCT_BATCH : PRODUCT_ROWS)
                                       : PRODUCT_COLUMNS;
    return 1;
}

/* The letters of a call: those of the result, then those that only the factors have. */
static int find_letters(const Product *p, Einsum *e, char all[OP_MAX_RANK + 1])
{
    const char *result = p->side[PRODUCT_C].letters;
    snprintf(all, OP_MAX_RANK + 1, "%s", result);
    for (const char *at = result; *at; at++)
        if (!add_letter(p, *at, e)) return 0;
    e->n_result = e->n;
    for (const char *at = p->side[PRODUCT_A].letters; *at; at++) {
        if (strchr(result, *at)) continue;
        if (!add_letter(p, *at, e)) return 0;
        all[e->n - 1] = *at, all[e->n] = 0;
    }
    for (const char *at = p->side[PRODUCT_B].letters; *at; at++)
        if (!strchr(all, *at)) return 0;
    return 1;
}

static int is_einsum(const OpCall *c)
{
    return !strncmp(c->op->name, "aten.einsum", strlen("aten.einsum")) && c->n_tensors == 2;
}

int einsum_read(const OpCall *const *call, Einsum *out)
{
    char all[OP_MAX_RANK + 1], own[OP_MAX_RANK + 1];
    Product p;
    Einsum e;
    *out = (Einsum){.terms = 1, .depth = size_number(1)};
    for (int k = 0; k < SIZE_BINDINGS; k++) {
        e = (Einsum){0};
        if (!is_einsum(call[k]) || !product_of_call(call[k], &p) || !is_plain(&p) ||
            !find_letters(&p, k ? &e : out, k ? own : all) || (k && strcmp(own, all)))
            return 0;
        for (int i = 0; i < out->n; i++)
            for (int x = 0; x < 2; x++) {
                const int d = place_of(&p.side[x], all[i]);
                out->letter[i].step[x].at[k] = step_of(&p.side[x], d);
                out->letter[i].dim[x] = d;
                if (d >= 0) out->letter[i].size.at[k] = p.side[x].tensor->size[d];
            }
        for (int x = 0; x < 2; x++) out->tensor[x] = (int)(p.side[x].tensor - call[k]->tensor);
    }
    for (int i = out->n_result; i < out->n; i++)
        out->depth = size_times(out->depth, out->letter[i].size);
    out->terms = out->depth.at[0];
    return 1;
}

/* ---- expressions ---- */

/* FEW terms take no longer than their factors take to be read. AGAIN: an operand whose elements are needed so
 * often is computed once. */
enum { FEW = 8, AGAIN = 8 };

/* The elements of an operand, a node with the tensor's shape, under the einsum's letters. */
static Node view_of(const Nodes *n, const Einsum *e, ProductOperand side, int in)
{
    Node x = node_blank(NODE_VIEW, n->node[in].dtype);
    x.arg[0] = in;
    x.rank = e->n;
    for (int d = 0; d < e->n; d++) {
        x.size[d] = e->letter[d].size;
        x.step[d] = e->letter[d].step[side];
    }
    return x;
}

/* What is computed at each of an operand's elements lies in memory, if it is needed often. */
static void store_computed(Nodes *n, const Einsum *e, ProductOperand side, int node)
{
    int64_t again = 1;
    for (int d = 0; d < e->n; d++)
        if (size_is(e->letter[d].step[side], 0)) again *= e->letter[d].size.at[0];
    while (n->node[node].kind == NODE_VIEW) node = n->node[node].arg[0];
    if (again >= AGAIN && n->node[node].kind == NODE_POINT) n->node[node].stored = 1;
}

static int operand(Nodes *n, const NodeCall *c, const Einsum *e, ProductOperand side)
{
    const int in = c->in[e->tensor[side]];
    const Node x = view_of(n, e, side, in);
    if (e->terms > 1) store_computed(n, e, side, in);
    return node_made(n, "a", node_add(n, &x), -1);
}

/* A gene of the line's first result. */
static int is_own(const Nodes *n, const Einsum *e)
{
    char key[GRAPH_NAME];
    if (!size_constant(e->depth) || e->terms > FEW) return 0;
    snprintf(key, sizeof key, "%.44s", n->graph->name[n->graph->first[n->line]]);
    return genes_choose(n->genes, key, &(GenePoint){.gene = GENE_OWN, .by_default = 1, .most = 1});
}

int node_einsum(Nodes *n, const NodeCall *c)
{
    Einsum e;
    if (!einsum_read(c->call, &e) || !is_own(n, &e)) return 1;
    int left = operand(n, c, &e, PRODUCT_A), right = operand(n, c, &e, PRODUCT_B);
    int y = node_made(n, "a * b", left, right);
    unsigned dims = 0;
    for (int d = e.n_result; d < e.n; d++) dims |= 1u << d;
    if (dims) y = node_fold(n, FOLD_SUM, y, dims);
    c->result[0] = node_cast(n, y, c->call[0]->result[0].dtype);
    return 0;
}

/* ---- one of many small products ---- */

/* A letter of the group; -1: it has none, -2: several. */
static int only_letter(const Einsum *e, ProductGroup g)
{
    int at = -1;
    for (int i = 0; i < e->n; i++)
        if (e->letter[i].group == g) at = at == -1 ? i : -2;
    return at;
}

static Size count_of(const Einsum *e, ProductGroup g)
{
    Size n = size_number(1);
    for (int i = 0; i < e->n; i++)
        if (e->letter[i].group == g) n = size_times(n, e->letter[i].size);
    return n;
}

static int is_small(const Einsum *e)
{
    for (ProductGroup g = PRODUCT_ROWS; g < PRODUCT_GROUPS; g++)
        if (only_letter(e, g) < 0) return 0;
    return 1;
}

static int is_worth_it(const Einsum *e)
{
    for (ProductGroup g = PRODUCT_ROWS; g < PRODUCT_GROUPS; g++)
        if (count_of(e, g).at[0] > MOST) return 0;
    return count_of(e, PRODUCT_BATCH).at[0] >= MANY;
}

/* The memory of a factor, and how far its elements are apart there. */
static void find_memory(const Nodes *n, int in, int x, SmallProduct *s)
{
    const Node *v = &n->node[in];
    const int viewed = v->kind == NODE_VIEW && !v->stored;
    s->node[x] = viewed ? v->arg[0] : in;
    s->offset[x] = viewed ? v->offset : size_number(0);
    for (int i = 0; i < s->e.n; i++) {
        const int dim = s->e.letter[i].dim[x];
        s->step[x][i] = viewed && dim >= 0 ? v->step[dim] : s->e.letter[i].step[x];
    }
}

int small_read(const Nodes *n, int node, SmallProduct *out)
{
    const Node *x = &n->node[node];
    const OpCall *call[SIZE_BINDINGS];
    char key[GRAPH_NAME];
    if (x->kind != NODE_KEPT || x->dtype != DTYPE_F32 || n->plain) return 0;
    for (int k = 0; k < SIZE_BINDINGS; k++) call[k] = &n->sizes->bound[k]->calls[x->line].call;
    if (!einsum_read(call, &out->e) || !is_small(&out->e)) return 0;
    out->of = node;
    for (int i = 0; i < 2; i++) {
        const int in = n->kept[x->line][out->e.tensor[i]];
        if (in < 0 || n->node[in].dtype != DTYPE_F32 || n->node[in].last) return 0;
        find_memory(n, in, i, out);
    }
    node_key(n, node, key);
    return genes_choose(
        n->genes, key,
        &(GenePoint){.gene = GENE_OWN, .by_default = is_worth_it(&out->e), .most = 1});
}

double small_us(const SmallProduct *s)
{
    const Einsum *e = &s->e;
    const double batch = (double)count_of(e, PRODUCT_BATCH).at[0], depth = (double)e->terms,
                 rows = (double)count_of(e, PRODUCT_ROWS).at[0],
                 columns = (double)count_of(e, PRODUCT_COLUMNS).at[0];
    return 1e6 * batch *
           (4 * ((rows + columns) * depth + rows * columns) / bytes_rate +
            2 * rows * columns * depth / sums_rate);
}

/* ---- text ---- */

typedef struct {
    const SmallProduct *s;
    Kernel *k;
    Buffer body;
    Error *err;
    int failed, rows, columns; /* of a tile */
} SmallWriter;

static const char *size_of(SmallWriter *w, Size s)
{
    const char *name = kernel_size(w->k, s, w->err);
    if (!name) w->failed = 1;
    return name ? name : "0";
}

static int tile_lines(Size n, int least)
{
    while (least < MOST_TILE && least < n.at[0]) least *= 2;
    return least;
}

static Size result_step(const Einsum *e, int letter)
{
    Size step = size_number(1);
    for (int i = letter + 1; i < e->n_result; i++) step = size_times(step, e->letter[i].size);
    return step;
}

static Size step_at(const SmallProduct *s, int x, int letter)
{
    return x == PRODUCT_C ? result_step(&s->e, letter) : s->step[x][letter];
}

/* The places of a block's matrices. */
static void put_matrices(SmallWriter *w)
{
    static const char *const names[] = {"const float *a", "const float *b", "float *c"};
    const Einsum *e = &w->s->e;
    for (int i = e->n - 1; i >= 0; i--) {
        if (e->letter[i].group != PRODUCT_BATCH) continue;
        const char *n = size_of(w, e->letter[i].size);
        buffer_printf(&w->body, "    const long long i%d = rest %% %s;\n    rest /= %s;\n", i, n,
                      n);
    }
    for (int x = 0; x <= PRODUCT_C; x++) {
        buffer_printf(
            &w->body, "    %s = %s", names[x],
            kernel_tensor(w->k, x == PRODUCT_C ? w->s->of : w->s->node[x], x == PRODUCT_C));
        if (x < PRODUCT_C && !size_is(w->s->offset[x], 0))
            buffer_printf(&w->body, " + %s", size_of(w, w->s->offset[x]));
        for (int i = 0; i < e->n; i++)
            if (e->letter[i].group == PRODUCT_BATCH)
                buffer_printf(&w->body, " + i%d * %s", i, size_of(w, step_at(w->s, x, i)));
        buffer_puts(&w->body, ";\n");
    }
}

static void put_body(SmallWriter *w)
{
    const SmallProduct *s = w->s;
    const int row = only_letter(&s->e, PRODUCT_ROWS), column = only_letter(&s->e, PRODUCT_COLUMNS),
              depth = only_letter(&s->e, PRODUCT_DEPTH);
    char rows[32], columns[32];
    snprintf(rows, sizeof rows, "%s", size_of(w, s->e.letter[row].size));
    snprintf(columns, sizeof columns, "%s", size_of(w, s->e.letter[column].size));
    buffer_printf(&w->body,
                  "    const int tiles = ((%s + %d) / %d) * ((%s + %d) / %d);\n"
                  "    long long rest = blockIdx.x / (unsigned)tiles;\n",
                  rows, w->rows - 1, w->rows, columns, w->columns - 1, w->columns);
    put_matrices(w);
    buffer_printf(&w->body, "    const Small small = {(int)%s, (int)%s", rows, columns);
    buffer_printf(&w->body, ", %s", size_of(w, s->e.letter[depth].size));
    const struct {
        int x, letter;
    } step[] = {{PRODUCT_A, row},   {PRODUCT_A, depth}, {PRODUCT_B, column},
                {PRODUCT_B, depth}, {PRODUCT_C, row},   {PRODUCT_C, column}};
    for (size_t i = 0; i < sizeof step / sizeof *step; i++)
        buffer_printf(&w->body, ", %s", size_of(w, step_at(s, step[i].x, step[i].letter)));
    buffer_printf(&w->body,
                  "};\n    small_product<%d, %d, %d, %d>(a, b, c, small, blockIdx.x %% "
                  "(unsigned)tiles);\n",
                  size_is(s->step[PRODUCT_A][depth], 1), size_is(s->step[PRODUCT_B][depth], 1),
                  w->rows, w->columns);
}

static int put_launch(const SmallWriter *w, KernelText *t)
{
    const Einsum *e = &w->s->e;
    SizeTable *sizes = w->k->nodes->sizes;
    char rows[SIZE_TEXT], columns[SIZE_TEXT], batch[SIZE_TEXT];
    if (size_text(sizes, count_of(e, PRODUCT_ROWS), rows, w->err) ||
        size_text(sizes, count_of(e, PRODUCT_COLUMNS), columns, w->err) ||
        size_text(sizes, count_of(e, PRODUCT_BATCH), batch, w->err))
        return -1;
    buffer_printf(t->plan,
                  "//@ launch kernel_%d<<<ceil_div(%s, %d) * ceil_div(%s, %d) * (%s), %d>>>(",
                  t->number, rows, w->rows, columns, w->columns, batch, w->rows * w->columns / 16);
    if (kernel_put_arguments(w->k, t->plan, w->err)) return -1;
    buffer_puts(t->plan, ")\n");
    return 0;
}

int small_write(const SmallProduct *s, Nodes *n, KernelText *t, Error *err)
{
    Kernel *k = memory_alloc(sizeof *k);
    *k = (Kernel){.nodes = n};
    SmallWriter w = {.s = s, .k = k, .err = err};
    Buffer types;
    int wide = node_count(&n->node[s->of]).at[0] >= 1 << 30;
    for (int x = 0; x < 2; x++) wide |= node_count(&n->node[s->node[x]]).at[0] >= 1 << 30;
    w.rows = tile_lines(count_of(&s->e, PRODUCT_ROWS), LEAST_ROWS);
    w.columns = tile_lines(count_of(&s->e, PRODUCT_COLUMNS), LEAST_COLUMNS);
    buffer_init(&w.body, 1 << 16);
    buffer_init(&types, 1 << 16);
    product_help(t, HELP_SMALL, generate_small, "small");
    put_body(&w);
    kernel_put_parameters(k, 1, wide, &types);
    int rc = w.failed || put_launch(&w, t) ? -1 : 0;
    buffer_printf(t->source,
                  "extern \"C\" __global__ void __launch_bounds__(%d) kernel_%d(%s)\n{\n%s}\n\n",
                  w.rows * w.columns / 16, t->number, types.data, w.body.data);
    buffer_release(&types);
    buffer_release(&w.body);
    free(k);
    return rc;
}
