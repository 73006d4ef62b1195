/* Which op lines are recurrent layers that kernels can compute, and whether these are faster; the text of the
 * kernels and of their launches. The loops are in recurrence.cu. */
#include "generate/recurrence.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/embed.h"
#include "base/part.h"

/* Of recurrence.cu. ROUND: weights of a row that the lanes of a warp have four of. Of several gates with more
 * than FEW_UNITS a block has twice the threads, and HELD of the rounds of all gates in registers. Shared
 * memory has room for as many. */
enum { FEW_UNITS = 256, MOST_BLOCKS = 8, ROUND = 128, THREADS = 256, HELD = 6, UNITS = 4 };

static int is_known(const Recurrent *a, const Recurrent *b)
{
    return a->hidden == b->hidden && a->layers == b->layers && a->directions == b->directions;
}

static int is_wide(const Recurrence *r)
{
    return r->call.gates > 1 && r->hidden > FEW_UNITS;
}

static int threads_of(const Recurrence *r)
{
    return is_wide(r) ? 2 * THREADS : THREADS;
}

/* Rounds of all gates. */
static int rounds_of(const Recurrence *r)
{
    return (int)r->call.gates * ((r->hidden + ROUND - 1) / ROUND);
}

/* Bytes of shared memory for weights. */
static int stored_of(const Recurrence *r)
{
    return is_wide(r) ? (rounds_of(r) - HELD) * UNITS * threads_of(r) * 16 : 0;
}

int recurrence_units(const Recurrence *r)
{
    return r->hidden > FEW_UNITS ? 64 : 32;
}

int recurrence_read(const Nodes *n, int node, Recurrence *out)
{
    const Node *x = &n->node[node];
    if (x->kind != NODE_KEPT || x->dtype != DTYPE_F32) return 0;
    *out = (Recurrence){.line = x->line};
    for (int k = 0; k < SIZE_BINDINGS; k++) {
        Recurrent at;
        if (!recurrent_of_call(&n->sizes->bound[k]->calls[x->line].call, &at)) return 0;
        if (!k) out->call = at;
        if (!is_known(&at, &out->call)) return 0;
        out->steps.at[k] = at.steps, out->batch.at[k] = at.batch;
    }
    out->hidden = (int)out->call.hidden;
    return out->call.hidden <= MOST_BLOCKS * recurrence_units(out) &&
           (!is_wide(out) || rounds_of(out) <= 2 * HELD);
}

/* Microseconds (2026-11-29, H200 and sim:h100). A step of a cell takes a library's kernels LIBRARY, and its
 * products at FLOPS of a microsecond. A step of a cluster takes BARRIER, and ROW for each row and gate of 128
 * weights; a layer SETUP, until the weights are in registers, and INPUTS for each product of the inputs. */
static const double library_us = 5, flops = 1.5e7, barrier_us = 0.4, row_us = 0.08, setup_us = 6,
                    inputs_us = 4, enough = 0.6;
enum { CLUSTERS = 16 /* that a GPU runs at once */, MOST_ROWS = 8 };

/* Rows of the batch that a cluster has. */
int recurrence_rows(const Recurrence *r)
{
    const int64_t all = r->call.directions * r->batch.at[0];
    int rows = 1;
    if (is_wide(r)) return 1; /* registers have no room for more */
    while (rows < MOST_ROWS && rows * CLUSTERS < all) rows *= 2;
    return rows;
}

double recurrence_us(const Recurrence *r)
{
    const Recurrent *c = &r->call;
    const int rows = recurrence_rows(r);
    const double clusters = c->directions * ceil((double)r->batch.at[0] / rows),
                 step = barrier_us + row_us * rows * rounds_of(r);
    return ceil(clusters / CLUSTERS) * c->layers * (setup_us + (double)r->steps.at[0] * step);
}

static double library_time(const Recurrence *r)
{
    const Recurrent *c = &r->call;
    const double products = 2. * c->gates * r->hidden * r->hidden * (double)r->batch.at[0] / flops;
    return c->layers * c->directions * (double)r->steps.at[0] * (library_us + products);
}

int recurrence_choose(const Nodes *n, const Recurrence *r)
{
    char key[GRAPH_NAME];
    const double inputs = inputs_us * r->call.layers * r->call.directions,
                 own = recurrence_us(r) + inputs;
    int node = 0;
    while (n->node[node].kind != NODE_KEPT || n->node[node].line != r->line) node++;
    node_key(n, node, key);
    return genes_choose(
        n->genes, key,
        &(GenePoint){.gene = GENE_LAYERS, .by_default = own < enough * library_time(r), .most = 1});
}

int recurrence_multiplies(const Recurrence *r, int tensor)
{
    if (tensor == r->call.x_index) return 1;
    for (int i = 0; i < r->call.layers * r->call.directions; i++) {
        Cell c = recurrent_cell(&r->call, i / r->call.directions, i % r->call.directions);
        if (tensor == c.input || tensor == c.input_bias) return 1;
    }
    return 0;
}

/* ---- text ---- */

EMBED(generate_recurrence, "generate/recurrence.cu")

enum { HELP_RECURRENT = 31 };
enum { YIELDS_Y = 1, YIELDS_H = 2, YIELDS_C = 4 };

typedef struct {
    const Recurrence *r;
    const RecurrenceNames *names;
    KernelText *t;
    char steps[SIZE_TEXT], batch[SIZE_TEXT];
    int n_lines;
} RecurrenceWriter;

static int blocks_of(const Recurrence *r)
{
    return (r->hidden + recurrence_units(r) - 1) / recurrence_units(r);
}

/* What a layer writes. The last one's y may not be needed. */
static int yields_of(const RecurrenceWriter *w, int layer)
{
    const char *const *to = w->names->result;
    return (layer + 1 < w->r->call.layers || to[0] ? YIELDS_Y : 0) | (to[1] ? YIELDS_H : 0) |
           (w->r->call.c && to[2] ? YIELDS_C : 0);
}

/* ---- kernels ---- */

static void put_parameters(const RecurrenceWriter *w, int yields)
{
    const Recurrent *c = &w->r->call;
    Buffer *b = w->t->source;
    for (int d = 0; d < c->directions; d++) {
        buffer_printf(b, "const float *gates_%d, const float *weight_%d, ", d, d);
        if (c->biases) buffer_printf(b, "const float *bias_%d, ", d);
    }
    buffer_printf(b, "const float *h, %s%s%s%sint steps, int batch", c->c ? "const float *c, " : "",
                  yields & YIELDS_Y ? "float *y, " : "", yields & YIELDS_H ? "float *last_h, " : "",
                  yields & YIELDS_C ? "float *last_c, " : "");
}

/* "direction ? bias_1 : bias_0" */
static void put_choice(const RecurrenceWriter *w, const char *name)
{
    if (w->r->call.directions > 1)
        buffer_printf(w->t->source, "direction ? %s_1 : %s_0, ", name, name);
    else
        buffer_printf(w->t->source, "%s_0, ", name);
}

static void put_kernel(const RecurrenceWriter *w, const char *name, int yields)
{
    static const char *const kinds[] = {"CELL_TANH", "CELL_RELU", "CELL_GRU", "CELL_LSTM"};
    const Recurrent *c = &w->r->call;
    const int rows = recurrence_rows(w->r), blocks = blocks_of(w->r);
    Buffer *b = w->t->source;
    buffer_printf(
        b, "extern \"C\" __global__ void __cluster_dims__(%d, 1, 1) __launch_bounds__(%d) %s(",
        blocks, threads_of(w->r), name);
    put_parameters(w, yields);
    buffer_printf(b,
                  ")\n{\n    const int direction = %s;\n"
                  "    const long long state = (long long)direction * batch * %d;\n"
                  "    const RecurrentCell cell = {",
                  c->directions > 1 ? "blockIdx.y" : "0", w->r->hidden);
    put_choice(w, "gates");
    put_choice(w, "weight");
    if (c->biases)
        put_choice(w, "bias");
    else
        buffer_puts(b, "nullptr, ");
    buffer_printf(
        b, "h + state, %s};\n    const RecurrentLayer layer = {%s, %s, %s, steps, batch, %d, ",
        c->c ? "c + state" : "nullptr", yields & YIELDS_Y ? "y" : "nullptr",
        yields & YIELDS_H ? "last_h + state" : "nullptr",
        yields & YIELDS_C ? "last_c + state" : "nullptr", w->r->hidden * c->directions);
    buffer_printf(b,
                  "%s};\n    recurrent<%s, %d, %d, %d, %s, %d>(cell, layer, blockIdx.x / %d, "
                  "direction);\n}\n\n",
                  c->batch_first ? "1, steps" : "batch, 1", kinds[c->kind], w->r->hidden,
                  rows > 1 ? 2 : 1, rows > 1 ? rows / 2 : 1, c->biases ? "true" : "false", yields,
                  blocks);
}

/* ---- the plan ---- */

/* The inputs' part of the gates, of all steps. */
static void put_products(RecurrenceWriter *w, int layer, const char *x)
{
    const Recurrent *c = &w->r->call;
    for (int d = 0; d < c->directions; d++) {
        Cell cell = recurrent_cell(c, layer, d);
        buffer_printf(w->t->plan, "//@ op recurrent_%d_gates_%d_%d = aten.linear(%s, %s, %s)\n",
                      w->t->number, layer, d, x, w->names->tensor[cell.input],
                      c->biases ? w->names->tensor[cell.input_bias] : "None");
        w->n_lines++;
    }
}

/* A layer's part of a state, which has all of them one after another. */
static void put_state(const RecurrenceWriter *w, const char *name, int layer)
{
    const int first = layer * w->r->call.directions * w->r->hidden;
    buffer_printf(w->t->plan, "%s", name);
    if (first) buffer_printf(w->t->plan, " + %d * (%s)", first, w->batch);
    buffer_puts(w->t->plan, ", ");
}

static void put_launch(const RecurrenceWriter *w, const char *kernel, int layer, const char *y)
{
    const Recurrent *c = &w->r->call;
    const char *const *name = w->names->tensor, *const *result = w->names->result;
    const int yields = yields_of(w, layer), blocks = blocks_of(w->r);
    Buffer *p = w->t->plan;
    buffer_printf(p, "//@ launch %s<<<dim3(ceil_div(%s, %d) * %d, %d), %d", kernel, w->batch,
                  recurrence_rows(w->r), blocks, c->directions, threads_of(w->r));
    if (stored_of(w->r)) buffer_printf(p, ", %d", stored_of(w->r));
    buffer_puts(p, ">>>(");
    for (int d = 0; d < c->directions; d++) {
        Cell cell = recurrent_cell(c, layer, d);
        buffer_printf(p, "recurrent_%d_gates_%d_%d, %s, ", w->t->number, layer, d,
                      name[cell.hidden]);
        if (c->biases) buffer_printf(p, "%s, ", name[cell.hidden_bias]);
    }
    put_state(w, name[c->h_index], layer);
    if (c->c) put_state(w, name[c->c_index], layer);
    if (yields & YIELDS_Y) buffer_printf(p, "%s, ", y);
    if (yields & YIELDS_H) put_state(w, result[1], layer);
    if (yields & YIELDS_C) put_state(w, result[2], layer);
    buffer_printf(p, "%s, %s)\n", w->steps, w->batch);
}

static void put_layers(RecurrenceWriter *w)
{
    const Recurrent *c = &w->r->call;
    const int n = w->t->number, last = c->layers - 1, across = w->r->hidden * c->directions;
    char kernel[2][48], y[64] = "", x[64] = "";
    snprintf(kernel[0], sizeof kernel[0], "recurrent_%d", n);
    snprintf(kernel[1], sizeof kernel[1], "recurrent_%d_last", n);
    const int two = last && yields_of(w, 0) != yields_of(w, last);
    put_kernel(w, kernel[0], yields_of(w, 0));
    if (two) put_kernel(w, kernel[1], yields_of(w, last));
    for (int layer = 0; layer <= last; layer++) {
        put_products(w, layer, layer ? x : w->names->tensor[c->x_index]);
        snprintf(y, sizeof y, "recurrent_%d_y_%d", n, layer);
        if (layer < last)
            buffer_printf(w->t->plan, "//@ buffer float %s[(%s) * (%s) * %d]\n", y, w->batch,
                          w->steps, across);
        put_launch(w, kernel[two && layer == last], layer, layer < last ? y : w->names->result[0]);
        if (layer == last) break;
        snprintf(x, sizeof x, "recurrent_%d_x_%d", n, layer + 1);
        buffer_printf(w->t->plan, "//@ op %s = aten.view(%s, [%s, %s, %d])\n", x, y,
                      c->batch_first ? w->batch : w->steps, c->batch_first ? w->steps : w->batch,
                      across);
        w->n_lines++;
    }
}

int recurrence_write(const Recurrence *r, const RecurrenceNames *names, SizeTable *sizes,
                     KernelText *t, int *n_lines, Error *err)
{
    RecurrenceWriter w = {.r = r, .names = names, .t = t};
    if (size_text(sizes, r->steps, w.steps, err) || size_text(sizes, r->batch, w.batch, err))
        return -1;
    if (!(t->helpers >> HELP_RECURRENT & 1)) part_put(t->source, generate_recurrence, "recurrent");
    t->helpers |= 1u << HELP_RECURRENT;
    put_layers(&w);
    *n_lines += w.n_lines;
    return 0;
}
