/* Which folds are depthwise convolutions with a kernel of their own, and its text. The loop is in
 * depthwise.cu. */
#include "generate/depthwise.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/embed.h"
#include "base/memory.h"
#include "generate/convolve.h"
#include "ops/op_convolution.h"

/* Of depthwise.cu: filters of so many taps fit into a block's shared memory. */
enum { QUAD = 4, THREADS = 256, MOST_TAPS = 49, HEIGHT = 1, WIDTH = 2 };
static const double bytes_rate = 3.3e12, launch = 3e-6;

typedef struct {
    Convolution at[SIZE_BINDINGS];
} Bindings;

/* Each group has one channel and one filter, and taps and strides are numbers. */
static int read_bindings(const Nodes *n, int line, Bindings *b)
{
    const Window *first = b->at[0].w;
    for (int k = 0; k < SIZE_BINDINGS; k++) {
        Convolution *v = &b->at[k];
        if (!convolution_read(&n->sizes->bound[k]->calls[line].call, v) || v->transposed ||
            !v->batched || v->dims != 2 || v->in != 1 || v->out != 1 || v->x->dtype != DTYPE_F32 ||
            v->w[HEIGHT].kernel * v->w[WIDTH].kernel > MOST_TAPS)
            return 0;
        for (int d = HEIGHT; d <= WIDTH; d++) {
            const Window *w = &v->w[d];
            if (w->kernel != first[d].kernel || w->stride != first[d].stride ||
                w->padding != first[d].padding || w->dilation != first[d].dilation)
                return 0;
        }
    }
    return 1;
}

static Size along(const Bindings *b, int d, int out)
{
    Size s;
    for (int k = 0; k < SIZE_BINDINGS; k++) s.at[k] = out ? b->at[k].w[d].out : b->at[k].w[d].in;
    return s;
}

int depthwise_read(const Nodes *n, int node, MatrixProduct *out)
{
    const Node *x = &n->node[node];
    Bindings b;
    if (x->kind != NODE_KEPT || !x->depthwise || !read_bindings(n, x->line, &b)) return 0;
    *out = (MatrixProduct){.of = node,
                           .dtype = DTYPE_F32,
                           .convolution = DEPTHWISE,
                           .alpha = 1,
                           .beta = 1,
                           .parts = 1};
    const Convolution *v = &b.at[0];
    out->side[PRODUCT_A].node = n->kept[x->line][v->weight_index];
    out->side[PRODUCT_B].node = n->kept[x->line][v->x_index];
    out->side[PRODUCT_C].node = out->side[PRODUCT_D].node = -1;
    for (int k = 0; k < SIZE_BINDINGS; k++) {
        out->count[PRODUCT_BATCH].at[k] = b.at[k].batch;
        out->count[PRODUCT_ROWS].at[k] = b.at[k].groups;
    }
    out->count[PRODUCT_COLUMNS] = size_times(along(&b, HEIGHT, 1), along(&b, WIDTH, 1));
    out->count[PRODUCT_DEPTH] = size_number(v->w[HEIGHT].kernel * v->w[WIDTH].kernel);
    return 1;
}

/* Gives a line the nodes of its tensors: of the taps that the fold is over, and of the filters. The bias is
 * added later. */
static void keep(Nodes *n, const Node *fold, const Convolution *v)
{
    const int *of = n->node[fold->arg[0]].arg, line = fold->made,
              tensors = n->sizes->bound[0]->calls[line].call.n_tensors;
    int *in = n->kept[line] = memory_array((size_t)tensors + 1, sizeof *in),
        x = n->node[of[0]].arg[0];
    if (v->bias) in[v->bias_index] = -1;
    in[v->x_index] = n->node[x].kind == NODE_PAD && !n->node[x].stored ? n->node[x].arg[0] : x;
    in[v->weight_index] = n->node[of[1]].arg[0];
}

void depthwise_nodes(Nodes *n)
{
    for (int i = 0; i < n->n && n->sizes->task->tf32 & TF32_CUDNN; i++) {
        const Node fold = n->node[i];
        Bindings b;
        if (n->plain || fold.kind != NODE_FOLD || !fold.depthwise || n->kept[fold.made] ||
            !read_bindings(n, fold.made, &b))
            continue;
        keep(n, &fold, &b.at[0]);
        n->node[i].kind = NODE_KEPT, n->node[i].line = fold.made, n->node[i].arg[0] = -1;
        if (convolve_around(n, i, n->kept[fold.made][b.at[0].x_index])) continue;
        free(n->kept[fold.made]);
        n->kept[fold.made] = NULL;
        n->node[i] = fold;
    }
}

void depthwise_choose(const Nodes *n, const char *key, MatrixProduct *m)
{
    m->route = genes_choose(
        n->genes, key,
        &(GenePoint){.gene = GENE_ROUTE, .by_default = ROUTE_TENSOR, .most = ROUTE_TENSOR});
}

double depthwise_us(const Nodes *n, const MatrixProduct *m)
{
    const Node *x = &n->node[m->side[PRODUCT_B].node];
    const double result = (double)node_count(&n->node[m->of]).at[0],
                 input = (double)node_count(x).at[0];
    return 1e6 * (4 * (result + input * (x->packed ? 1 : 3)) / bytes_rate + launch);
}

/* ---- the text ---- */

EMBED(generate_depthwise, "generate/depthwise.cu")

/* Q: of which blocks have most threads with channels; among equal ones the widest. */
static int block_quads(int64_t channels)
{
    const int64_t quads = (channels + QUAD - 1) / QUAD;
    int best = 32;
    for (int q = 32; q >= 8; q /= 2)
        if ((quads + q - 1) / q * q < (quads + best - 1) / best * best) best = q;
    return best;
}

/* R: neighbouring outputs of a thread. Where all taps fit its registers, those of strides are fewer. */
static int thread_outputs(const Bindings *b)
{
    const Window *w = b->at[0].w;
    return w[WIDTH].stride > 1 && w[HEIGHT].kernel <= 3 ? 2 : 4;
}

/* Results in C order. */
static void put_store(ProductWriter *w, const char *rows, const char *columns)
{
    buffer_printf(
        &w->body,
        "    const auto store = [&](long long batch, long long row, int place, float4 sums) {\n"
        "        const float sum[4] = {sums.x, sums.y, sums.z, sums.w};\n"
        "#pragma unroll\n        for (int i = 0; i < 4; i++)\n"
        "            if (row + i < %s)\n"
        "                %s[(batch * %s + row + i) * %s + place] = value(batch, row + i, "
        "place, sum[i]);\n    };\n",
        rows, w->out, rows, columns);
}

static void put_body(ProductWriter *w, const Bindings *b)
{
    const Window *h = &b->at[0].w[HEIGHT], *d = &b->at[0].w[WIDTH];
    char rows[32], columns[32];
    snprintf(rows, sizeof rows, "%s", product_size(w, w->m->count[PRODUCT_ROWS]));
    snprintf(columns, sizeof columns, "%s", product_size(w, w->m->count[PRODUCT_COLUMNS]));
    product_put_value(w, rows);
    if (w->m->packed)
        packing_put_store(w, rows, columns);
    else
        put_store(w, rows, columns);
    buffer_puts(&w->body, "    const Depthwise shape = {{");
    for (int i = 0; i < 4; i++)
        buffer_printf(&w->body, "%s%s",
                      i == 2 ? "}, {"
                      : i    ? ", "
                             : "",
                      product_size(w, along(b, i % 2 ? WIDTH : HEIGHT, i > 1)));
    buffer_printf(
        &w->body,
        "}, {%d, %d}, %s};\n    depthwise<%d, %d, %d, %d, %d, %d, %d, %d>(shape, filters, "
        "input, store);\n",
        (int)h->padding, (int)d->padding, rows, (int)h->kernel, (int)d->kernel, (int)d->stride,
        (int)h->stride, (int)d->dilation, (int)h->dilation,
        block_quads(w->m->count[PRODUCT_ROWS].at[0]), thread_outputs(b));
}

static int put_launch(ProductWriter *w, const Bindings *b, const PackingTexts *t)
{
    const int quads = block_quads(w->m->count[PRODUCT_ROWS].at[0]);
    char high[SIZE_TEXT], wide[SIZE_TEXT];
    SizeTable *sizes = w->k->nodes->sizes;
    Buffer types;
    if (size_text(sizes, along(b, HEIGHT, 1), high, w->err) ||
        size_text(sizes, along(b, WIDTH, 1), wide, w->err))
        return -1;
    buffer_init(&types, 1 << 16);
    kernel_put_parameters(w->k, 1, product_is_wide(w), &types);
    char *source =
        memory_printf("extern \"C\" __global__ void __launch_bounds__(%d, 2) kernel_@(%s, "
                      "const float *__restrict__ filters, const float *__restrict__ "
                      "input)\n{\n%s}\n\n",
                      THREADS, types.data, w->body.data);
    buffer_release(&types);
    w->number = kernel_put_source(w->t, source);
    free(source);
    buffer_printf(
        w->t->plan,
        "//@ launch kernel_%d<<<ceil_div(%s, %d) * (%s) * ceil_div(%s, 4) * ceil_div(%s, %d), "
        "%d>>>(",
        w->number, t->channels, QUAD * quads, t->images, high, wide,
        thread_outputs(b) * THREADS / 4 / quads, THREADS);
    if (kernel_put_arguments(w->k, w->t->plan, w->err)) return -1;
    buffer_printf(w->t->plan, ", %s, %s)\n", w->k->nodes->node[w->m->side[PRODUCT_A].node].name,
                  packing_input_name(w));
    return 0;
}

int depthwise_write(ProductWriter *w)
{
    const Nodes *n = w->k->nodes;
    PackingTexts t;
    Bindings b;
    if (!read_bindings(n, n->node[w->m->of].line, &b)) return -1;
    const Size places = size_times(along(&b, HEIGHT, 0), along(&b, WIDTH, 0));
    if (size_text(n->sizes, w->m->count[PRODUCT_ROWS], t.channels, w->err) ||
        size_text(n->sizes, w->m->count[PRODUCT_BATCH], t.images, w->err) ||
        size_text(n->sizes, places, t.places, w->err))
        return -1;
    packing_help(w->t);
    product_help(w->t, HELP_DEPTHWISE, generate_depthwise, "depthwise");
    put_body(w, &b);
    if (packing_put_input(w, &t) || put_launch(w, &b, &t)) w->failed = 1;
    return w->failed ? -1 : 0;
}
