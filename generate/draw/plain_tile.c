/* Products by tiles: a block brings a square of each tensor to shared memory, and a thread makes the sums of
 * one column and of some rows. */
#include "generate/draw/plain_text.h"

#include <stdio.h>
#include <string.h>

enum { SIDE = 16, MOST_THREADS = 1024 };

/* load: the steps that read the left and the right factor. Axes: of the rows, the columns and the depth.
 * side, each: the tile has side x side threads, and a thread has so many rows. */
typedef struct {
    Plainer *x;
    int fold, load[2], row, column, depth;
    int side, each, async;
} TileText;

static int only_axis(const Kernel *k, unsigned mask)
{
    int n;
    mask = plain_loops(k, mask, &n);
    for (int i = 0; i < k->axes.n && n == 1; i++)
        if (mask >> i & 1) return i;
    return -1;
}

static int depends(const Kernel *k, int step, int axis)
{
    return kernel_loops(k, &k->step[step].at) >> axis & 1;
}

/* The factors of a sum of products of two tensors. */
static int find_factors(TileText *t)
{
    const Writer *w = &t->x->w;
    int body = writer_origin(w, w->k->step[t->fold].arg[0]);
    const Node *x = node_of(w, body);
    if (is_load(w, body) || x->kind != NODE_POINT || strcmp(x->text, "a * b") || x->arg[0] < 0 ||
        x->arg[1] < 0)
        return 0;
    for (int i = 0; i < 2; i++) {
        t->load[i] = writer_origin(w, w->k->step[body].arg[i]);
        if (!is_load(w, t->load[i]) || w->k->step[t->load[i]].inside) return 0;
    }
    return t->load[0] != t->load[1];
}

static int find_axes(TileText *t)
{
    const Kernel *k = t->x->w.k;
    int n, found = 0;
    const unsigned rows = plain_loops(k, k->rows, &n);
    t->depth = only_axis(k, k->step[t->fold].over);
    t->row = t->column = -1;
    for (int i = 0; i < k->axes.n && n == 2; i++) {
        if (!(rows >> i & 1)) continue;
        *(size_is(k->root[0].at.by[i], 1) ? &t->column : &t->row) = i;
    }
    if (t->depth < 0 || t->row < 0 || t->column < 0) return 0;
    for (int i = 0; i < 2; i++) {
        if (!depends(k, t->load[i], t->depth)) return 0;
        found |= 1 << depends(k, t->load[i], t->column);
        if (depends(k, t->load[i], t->column) == depends(k, t->load[i], t->row)) return 0;
    }
    if (found != 3) return 0;
    if (depends(k, t->load[0], t->column)) {
        const int right = t->load[0];
        t->load[0] = t->load[1];
        t->load[1] = right;
    }
    return 1;
}

static int find_tile(TileText *t)
{
    const Writer *w = &t->x->w;
    t->fold = -1;
    if (!w->k->has_folds || w->wide) return 0;
    for (int i = 0; i < w->k->n; i++) {
        if (!is_fold(w, i)) continue;
        if (t->fold >= 0 || node_of(w, i)->fold != FOLD_SUM) return 0;
        t->fold = i;
    }
    for (int r = 0; r < w->k->n_roots; r++)
        if (in_columns(w, w->k->root[r].step)) return 0;
    return t->fold >= 0 && find_factors(t) && find_axes(t);
}

static void choose(TileText *t)
{
    const Writer *w = &t->x->w;
    const int plain_loads = !strcmp(writer_ctype(w, t->load[0]), "float") &&
                            !strcmp(writer_ctype(w, t->load[1]), "float");
    t->each = t->async = 0;
    t->side = writer_choose(w, GENE_SIDE, SIDE, 1, 32);
    if (t->side == 1) return;
    t->each = writer_choose(w, GENE_ITEMS, 4, 1, 8);
    if (plain_loads) t->async = writer_choose(w, GENE_COPY, COPY_LOAD, COPY_LOAD, COPY_ASYNC);
}

/* The condition that two axes lie in the tensor, or a mistake. */
static void put_inside(TileText *t, int a, int b)
{
    Writer *w = &t->x->w;
    const Axes *x = &w->k->axes;
    if (plain_slips(plain_of(t->x), SLIP_GUARD))
        buffer_printf(&w->body, "%s < %s", x->name[a], writer_size(w, x->size[a]));
    else
        buffer_printf(&w->body, "%s < %s && %s < %s", x->name[a], writer_size(w, x->size[a]),
                      x->name[b], writer_size(w, x->size[b]));
}

/* An element of a factor to its place in shared memory. */
static void put_element(TileText *t, int side, const char *place, const char *indent)
{
    Writer *w = &t->x->w;
    const Step *s = &w->k->step[t->load[side]];
    const int across = side ? t->column : t->row;
    const char *name = kernel_tensor(w->k, s->node, 0);
    if (t->async) {
        buffer_printf(&w->body, "%s__pipeline_memcpy_async(&%s, %s + (", indent, place, name);
        buffer_puts(&w->body, "(");
        put_inside(t, across, t->depth);
        buffer_puts(&w->body, ") ? ");
        writer_index(w, &s->at);
        buffer_puts(&w->body, " : 0), 4, ");
        put_inside(t, across, t->depth);
        buffer_puts(&w->body, " ? 0 : 4);\n");
        return;
    }
    buffer_printf(&w->body, "%s%s = ", indent, place);
    put_inside(t, across, t->depth);
    buffer_printf(&w->body, " ? (float)%s[", name);
    writer_index(w, &s->at);
    buffer_puts(&w->body, "] : 0;\n");
}

static void put_barrier(TileText *t)
{
    if (!plain_slips(plain_of(t->x), SLIP_BARRIER))
        buffer_puts(&t->x->w.body, "        __syncthreads();\n");
}

static void put_head(TileText *t)
{
    Writer *w = &t->x->w;
    const int s = t->side, rows = s * t->each;
    const char *column = w->k->axes.name[t->column];
    buffer_printf(&w->body, "    __shared__ float left[%d][%d], right[%d][%d];\n", rows, s, s, s);
    buffer_printf(&w->body,
                  "    int line = threadIdx.y, at = threadIdx.x, %s = blockIdx.x * %d + at;\n",
                  column, s);
    buffer_printf(&w->body, "    float sum[%d];\n", t->each);
    buffer_printf(&w->body, "    for (int u = 0; u < %d; u++) sum[u] = %s;\n", t->each,
                  plain_slips(plain_of(t->x), SLIP_IDENTITY) ? "1" : "0");
}

static void put_row(TileText *t, const char *more)
{
    buffer_printf(&t->x->w.body, "        %sint %s = blockIdx.y * %d + line + %d * u", more,
                  t->x->w.k->axes.name[t->row], t->side * t->each, t->side);
}

static void put_sums(TileText *t)
{
    Writer *w = &t->x->w;
    const int s = t->side;
    const char *depth = w->k->axes.name[t->depth];
    char place[60];
    buffer_printf(&w->body, "    for (int c = 0; c < %s; c += %d) {\n",
                  writer_size(w, w->k->axes.size[t->depth]), s);
    buffer_printf(&w->body, "        for (int u = 0; u < %d; u++) {\n", t->each);
    put_row(t, "    ");
    buffer_printf(&w->body, ", %s = c + at;\n", depth);
    snprintf(place, sizeof place, "left[line + %d * u][at]", s);
    put_element(t, 0, place, "            ");
    buffer_printf(&w->body, "        }\n        int %s = c + line;\n", depth);
    put_element(t, 1, "right[line][at]", "        ");
    if (t->async) {
        buffer_puts(&w->body, "        __pipeline_commit();\n");
        if (!plain_slips(plain_of(t->x), SLIP_WAIT))
            buffer_puts(&w->body, "        __pipeline_wait_prior(0);\n");
    }
    put_barrier(t);
    buffer_printf(&w->body,
                  "        for (int r = 0; r < %d; r++)\n"
                  "            for (int u = 0; u < %d; u++) sum[u] %s left[line + %d * u][r] * "
                  "right[r][at];\n",
                  s, t->each, plain_slips(plain_of(t->x), SLIP_PARTIAL) ? "=" : "+=", s);
    put_barrier(t);
    buffer_puts(&w->body, "    }\n");
}

static void put_sum_results(TileText *t)
{
    Writer *w = &t->x->w;
    buffer_printf(&w->body, "    for (int u = 0; u < %d; u++) {\n", t->each);
    put_row(t, "");
    buffer_puts(&w->body, ";\n        if (");
    put_inside(t, t->row, t->column);
    buffer_printf(&w->body, ") {\n    float %s = sum[u];\n", w->name[t->fold]);
    w->defined[t->fold] = 1;
    writer_row_steps(w, 1);
    plain_results(t->x, "");
    buffer_puts(&w->body, "        }\n    }\n");
}

static int put_tile_launch(TileText *t)
{
    Writer *w = &t->x->w;
    char across[SIZE_TEXT], down[SIZE_TEXT];
    SizeTable *sizes = w->k->nodes->sizes;
    if (size_text(sizes, w->k->axes.size[t->column], across, w->err) ||
        size_text(sizes, w->k->axes.size[t->row], down, w->err))
        return -1;
    const char *format = plain_slips(plain_of(t->x), SLIP_BLOCKS)
                             ? "//@ launch kernel_%d<<<dim3((%s) / %d, (%s) / %d), dim3(%d, %d)>>>("
                             : "//@ launch kernel_%d<<<dim3(ceil_div(%s, %d), ceil_div(%s, %d)), "
                               "dim3(%d, %d)>>>(";
    buffer_printf(w->t->plan, format, w->number, across, t->side, down, t->side * t->each, t->side,
                  t->side);
    if (kernel_put_arguments(w->k, w->t->plan, w->err)) return -1;
    buffer_puts(w->t->plan, ")\n");
    return 0;
}

int plain_tile(Plainer *x)
{
    TileText t = {.x = x};
    if (!find_tile(&t)) return 0;
    choose(&t);
    if (t.side == 1) return 0;
    x->w.strip = -1;
    put_head(&t);
    put_sums(&t);
    put_sum_results(&t);
    if (!x->w.failed) writer_source(&x->w, t.side * t.side);
    if (!x->w.failed && put_tile_launch(&t)) x->w.failed = 1;
    return 1;
}
