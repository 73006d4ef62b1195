/* Which op lines are recurrent layers that kernels can compute, and whether these are faster; the text of the
 * kernels and of their launches. The loops are in recurrence.cu. */
#include "generate/recurrence.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/embed.h"
#include "base/part.h"

/* Of recurrence.cu. ROUND: weights of a row that the lanes of a warp have four of. In clusters layers of
 * several gates with more than FEW_UNITS have twice the warps, and WIDE_HELD of the rounds of all gates in
 * registers. Shared memory has room for as many. */
enum { FEW_UNITS = 256, MOST_BLOCKS = 8, ROUND = 128, WARPS = 8, UNITS = 4, WIDE_HELD = 6 };
/* Of teams. HELD: rounds of a lane in registers; OF_MANY: with twice the warps; of FOUR units a warp has sums
 * for no more rounds. A GPU has TEAM_BLOCKS of them at once, one a multiprocessor.
 * The states of a block are STATE bytes at most, which needs no permission, and its weights STORED. */
enum {
    HELD = 32,
    OF_MANY = 16,
    FOUR = 6,
    TEAM_BLOCKS = 128,
    STATE = 48 << 10,
    STORED = 172 << 10,
    MOST_ROWS = 8,
    MOST_UNITS = 4096
};

static int is_known(const Recurrent *a, const Recurrent *b)
{
    return a->hidden == b->hidden && a->layers == b->layers && a->directions == b->directions;
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* Rounds of all gates of a unit. */
static int rounds_of(const Recurrence *r)
{
    return (int)r->call.gates * ((r->hidden + ROUND - 1) / ROUND);
}

static int blocks_of(const Recurrence *r, const RecurrenceShape *s)
{
    return (r->hidden + s->warps * s->units - 1) / (s->warps * s->units);
}

/* Bytes of shared memory for weights. */
static int stored_of(const Recurrence *r, const RecurrenceShape *s)
{
    return (rounds_of(r) - s->held) * s->units * s->warps * 32 * 16;
}

/* Groups of rows, one after another. */
static double rounds_of_rows(const Recurrence *r, const RecurrenceShape *s, int at_once)
{
    return ceil(ceil((double)r->batch.at[0] / s->rows) * (s->teams ? 1 : r->call.directions) /
                at_once);
}

/* Microseconds (2026-12-01, H200: layers of 256 to 1,024 units, 1 to 32 rows). A step takes a library
 * LIBRARY, and each direction WEIGHTS for each of its weights, by one row or several, and products at FLOPS
 * of a microsecond. A step of a cluster takes BARRIER, and ROW for each row and gate of 128 weights, WIDE_ROW
 * where some of these are in shared memory; a layer SETUP, until the weights are in registers, and INPUTS for
 * each product of the inputs. */
static const double library_us = 4, weights_us[2] = {0.5e-6, 4e-6}, flops = 2e7, barrier_us = 0.4,
                    row_us = 0.08, wide_row_us = 0.16, setup_us = 6, inputs_us = 4, enough = 0.65;
enum { CLUSTERS = 16 /* that a GPU runs at once */ };

/* Of teams. A step takes EXCHANGE, until all blocks have what the others gave, and its words come from L2 at
 * WORDS bytes of a microsecond. CLOCK: cycles of it. */
static const double exchange_us = 0.8, words = 4e6, clock_us = 1350;

static double step_of_team(const Recurrence *r, const RecurrenceShape *s)
{
    const double gates = r->call.gates, chunks = ceil((double)r->hidden / ROUND), warps = s->warps,
                 sums = s->rows * s->units * gates * warps, products = sums * chunks * 1.2,
                 loads = warps * 2 *
                         (s->rows * chunks +
                          (rounds_of(r) - s->held) * 2 * s->units * ceil(s->rows / 2.)),
                 all = (double)blocks_of(r, s) * s->teams * r->call.directions;
    return exchange_us + all * s->rows * r->hidden * 8 / words +
           (products + loads + sums) / clock_us;
}

static int cluster_of(const Recurrence *r, RecurrenceShape *s)
{
    const int wide = r->call.gates > 1 && r->hidden > FEW_UNITS;
    const int64_t all = r->call.directions * r->batch.at[0];
    *s = (RecurrenceShape){.warps = wide ? 2 * WARPS : WARPS,
                           .units = !wide && r->hidden > FEW_UNITS ? 2 * UNITS : UNITS,
                           .held = wide ? WIDE_HELD : rounds_of(r),
                           .rows = 1};
    if (blocks_of(r, s) > MOST_BLOCKS || rounds_of(r) > (wide ? 2 * WIDE_HELD : rounds_of(r)))
        return 0;
    while (!wide && s->rows < MOST_ROWS && s->rows * CLUSTERS < all) s->rows *= 2;
    s->us = rounds_of_rows(r, s, CLUSTERS) *
            (setup_us + (double)r->steps.at[0] *
                            (barrier_us + (wide ? wide_row_us : row_us) * s->rows * rounds_of(r)));
    return 1;
}

/* 0: the team has too many blocks, or these have no room. */
static int measure_team(const Recurrence *r, RecurrenceShape *s)
{
    const int blocks = blocks_of(r, s) * r->call.directions,
              width = (r->hidden + ROUND - 1) / ROUND * ROUND;
    const double groups = ceil((double)r->batch.at[0] / s->rows);
    s->held = smaller(rounds_of(r), (s->warps > WARPS ? OF_MANY : HELD) / s->units);
    if (s->units == UNITS && rounds_of(r) > (s->warps > WARPS ? 4 : FOUR)) return 0;
    if (blocks > TEAM_BLOCKS || 8 * s->rows * width > STATE || stored_of(r, s) > STORED) return 0;
    s->teams = TEAM_BLOCKS / blocks;
    if (s->teams > groups) s->teams = (int)groups;
    s->us = setup_us + rounds_of_rows(r, s, s->teams) * (double)r->steps.at[0] * step_of_team(r, s);
    return 1;
}

static int team_of(const Recurrence *r, RecurrenceShape *best)
{
    enum { WAYS = 2 * 3 * 4 };
    int found = 0;
    for (int i = 0; i < WAYS; i++) {
        RecurrenceShape s = {.warps = WARPS << i % 2, .units = 1 << i / 2 % 3, .rows = 1 << i / 6};
        if (!measure_team(r, &s) || (found && s.us >= best->us)) continue;
        *best = s;
        found = 1;
    }
    return found;
}

int recurrence_read(const Nodes *n, int node, Recurrence *out)
{
    const Node *x = &n->node[node];
    RecurrenceShape s;
    if (x->kind != NODE_KEPT || x->dtype != DTYPE_F32) return 0;
    *out = (Recurrence){.line = x->line};
    for (int k = 0; k < SIZE_BINDINGS; k++) {
        Recurrent at;
        if (!recurrent_of_call(&n->sizes->bound[k]->calls[x->line].call, &at)) return 0;
        if (!k) out->call = at;
        if (!is_known(&at, &out->call)) return 0;
        out->steps.at[k] = at.steps, out->batch.at[k] = at.batch;
    }
    if (out->call.hidden > MOST_UNITS) return 0;
    out->hidden = (int)out->call.hidden;
    return cluster_of(out, &s) || team_of(out, &s);
}

double recurrence_us(const Recurrence *r)
{
    return r->call.layers * r->shape.us;
}

static double library_time(const Recurrence *r)
{
    const Recurrent *c = &r->call;
    const double rows = (double)r->batch.at[0], weights = (double)c->gates * r->hidden * r->hidden,
                 each = weights * (weights_us[rows > 1] + 2 * rows / flops);
    return c->layers * (double)r->steps.at[0] * (library_us + c->directions * each);
}

int recurrence_choose(const Nodes *n, Recurrence *r)
{
    enum { LIBRARY, CLUSTERS_WAY, TEAMS_WAY };
    char key[GRAPH_NAME];
    RecurrenceShape cluster, team;
    const int clusters = cluster_of(r, &cluster), teams = team_of(r, &team),
              own = clusters && (!teams || cluster.us <= team.us) ? CLUSTERS_WAY : TEAMS_WAY;
    const double inputs = inputs_us * r->call.layers * r->call.directions,
                 us = (own == TEAMS_WAY ? team : cluster).us * r->call.layers + inputs;
    int node = 0;
    while (n->node[node].kind != NODE_KEPT || n->node[node].line != r->line) node++;
    node_key(n, node, key);
    const int way =
        genes_choose(n->genes, key,
                     &(GenePoint){.gene = GENE_LAYERS,
                                  .by_default = us < enough * library_time(r) ? own : LIBRARY,
                                  .most = teams ? TEAMS_WAY : CLUSTERS_WAY,
                                  .step = clusters ? 0 : TEAMS_WAY});
    r->shape = way == TEAMS_WAY ? team : cluster;
    return way;
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
    buffer_printf(b, "const float *h, %s%s%s%s%sint steps, int batch",
                  c->c ? "const float *c, " : "", yields & YIELDS_Y ? "float *y, " : "",
                  yields & YIELDS_H ? "float *last_h, " : "",
                  yields & YIELDS_C ? "float *last_c, " : "",
                  w->r->shape.teams ? "float2 *words, int number, " : "");
}

/* "direction ? bias_1 : bias_0" */
static void put_choice(const RecurrenceWriter *w, const char *name)
{
    if (w->r->call.directions > 1)
        buffer_printf(w->t->source, "direction ? %s_1 : %s_0, ", name, name);
    else
        buffer_printf(w->t->source, "%s_0, ", name);
}

static void put_way(const RecurrenceWriter *w, int yields)
{
    static const char *const kinds[] = {"CELL_TANH", "CELL_RELU", "CELL_GRU", "CELL_LSTM"};
    const Recurrence *r = w->r;
    const RecurrenceShape *s = &r->shape;
    const int pairs = s->rows > 1 ? 2 : 1;
    Buffer *b = w->t->source;
    buffer_printf(b, "    using Z = RecurrentSizes<%s, %d, %d, %d, %d, %d, %d>;\n",
                  kinds[r->call.kind], r->hidden, pairs, s->rows / pairs, s->warps, s->units,
                  s->held);
    if (s->teams)
        buffer_printf(b,
                      "    const RecurrentTeam<Z> way = {words + state, (long long)batch * %d, "
                      "(unsigned)number, batch, steps};\n",
                      r->hidden * r->call.directions);
    else
        buffer_puts(b, "    const RecurrentCluster<Z> way = {};\n");
    buffer_printf(b, "    recurrent<Z, %s, %d>(cell, layer, way, direction);\n}\n\n",
                  r->call.biases ? "true" : "false", yields);
}

static void put_kernel(const RecurrenceWriter *w, const char *name, int yields)
{
    const Recurrent *c = &w->r->call;
    const RecurrenceShape *s = &w->r->shape;
    Buffer *b = w->t->source;
    buffer_puts(b, "extern \"C\" __global__ void ");
    if (!s->teams) buffer_printf(b, "__cluster_dims__(%d, 1, 1) ", blocks_of(w->r, s));
    buffer_printf(b, "__launch_bounds__(%d) %s(", 32 * s->warps, name);
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
    buffer_printf(b, "%s};\n", c->batch_first ? "1, steps" : "batch, 1");
    put_way(w, yields);
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

static void put_grid(const RecurrenceWriter *w, const char *kernel)
{
    const RecurrenceShape *s = &w->r->shape;
    const int blocks = blocks_of(w->r, s), stored = stored_of(w->r, s);
    Buffer *p = w->t->plan;
    buffer_printf(p, "//@ launch %s%s<<<dim3(", s->teams ? "cooperative " : "", kernel);
    if (s->teams)
        buffer_printf(p, "%d", blocks * s->teams);
    else
        buffer_printf(p, "ceil_div(%s, %d) * %d", w->batch, s->rows, blocks);
    buffer_printf(p, ", %d), %d", w->r->call.directions, 32 * s->warps);
    if (stored) buffer_printf(p, ", %d", stored);
    buffer_puts(p, ">>>(");
}

static void put_launch(const RecurrenceWriter *w, const char *kernel, int layer, const char *y)
{
    const Recurrent *c = &w->r->call;
    const char *const *name = w->names->tensor, *const *result = w->names->result;
    const int yields = yields_of(w, layer);
    Buffer *p = w->t->plan;
    put_grid(w, kernel);
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
    if (w->r->shape.teams)
        buffer_printf(p, "recurrent_%d_words, %d * (%s), ", w->t->number, layer, w->steps);
    buffer_printf(p, "%s, %s)\n", w->steps, w->batch);
}

/* The words of teams, of two steps. */
static void put_words(const RecurrenceWriter *w)
{
    enum { THREADS = 256 };
    const int n = w->t->number, each = 2 * w->r->hidden * w->r->call.directions;
    if (!w->r->shape.teams) return;
    buffer_printf(w->t->source,
                  "extern \"C\" __global__ void recurrent_%d_clear(float2 *words, long long n)\n{\n"
                  "    recurrent_clear(words, n);\n}\n\n",
                  n);
    buffer_printf(
        w->t->plan,
        "//@ buffer float2 recurrent_%d_words[%d * (%s)]\n"
        "//@ launch recurrent_%d_clear<<<ceil_div(%d * (%s), %d), %d>>>(recurrent_%d_words, "
        "%d * (%s))\n",
        n, each, w->batch, n, each, w->batch, THREADS, THREADS, n, each, w->batch);
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
    put_words(w);
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
