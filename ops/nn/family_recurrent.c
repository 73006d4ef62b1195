/* LSTM, GRU and plain recurrent networks. The reference computes the part of the gates that the inputs
 * give for all steps at once, then step by step the part that the state gives. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/nn/op_recurrent.h"
#include "ops/op_product.h"

enum { MAX_LAYERS = 64 };

static int64_t flag(const OpCall *c, const char *name)
{
    return c->arg[op_argument(c->op, name)].integer[0];
}

/* ---- shapes ---- */

Cell recurrent_cell(const Recurrent *r, int layer, int direction)
{
    int each = r->biases ? 4 : 2;
    const int64_t *p = &r->params->integer[(layer * r->directions + direction) * each];
    return (Cell){.in = layer ? r->hidden * r->directions : r->in,
                  .input = (int)p[0],
                  .hidden = (int)p[1],
                  .input_bias = r->biases ? (int)p[2] : -1,
                  .hidden_bias = r->biases ? (int)p[3] : -1};
}

static int has_size(const OpTensor *t, int rank, const int64_t *want, const char *what, Error *err)
{
    if (t->rank != rank)
        return error_set(err, ERROR_INVALID, "%s: expected %d dimensions, found %d", what, rank,
                         t->rank);
    for (int d = 0; d < rank; d++)
        if (t->size[d] != want[d])
            return error_set(err, ERROR_INVALID,
                             "%s: expected %lld elements in dimension %d, found %lld", what,
                             (long long)want[d], d, (long long)t->size[d]);
    return 0;
}

static int check_cells(const OpCall *c, const Recurrent *r, Error *err)
{
    int64_t rows = r->gates * r->hidden;
    for (int i = 0; i < r->layers * r->directions; i++) {
        Cell k = recurrent_cell(r, i / r->directions, i % r->directions);
        const int64_t input[] = {rows, k.in}, hidden[] = {rows, r->hidden};
        if (has_size(&c->tensor[k.input], 2, input, "params: an input's weight", err) ||
            has_size(&c->tensor[k.hidden], 2, hidden, "params: a state's weight", err))
            return -1;
        if (r->biases && (has_size(&c->tensor[k.input_bias], 1, input, "params: a bias", err) ||
                          has_size(&c->tensor[k.hidden_bias], 1, hidden, "params: a bias", err)))
            return -1;
    }
    return 0;
}

static int state_of(const OpCall *c, Recurrent *r, Error *err)
{
    const OpValue *v = &c->arg[1];
    if (v->kind == OP_TENSORS && v->n != 2)
        return error_set(err, ERROR_INVALID, "hx: expected two tensors, found %d", v->n);
    r->h_index = (int)v->integer[0];
    r->h = &c->tensor[r->h_index];
    if (r->kind == CELL_LSTM) {
        r->c_index = (int)v->integer[1];
        r->c = &c->tensor[r->c_index];
    }
    if (r->h->rank != 3)
        return error_set(err, ERROR_INVALID, "hx: expected 3 dimensions, found %d", r->h->rank);
    r->hidden = r->h->size[2];
    const int64_t want[] = {r->layers * r->directions, r->batch, r->hidden};
    if (has_size(r->h, 3, want, "hx", err)) return -1;
    if (r->c && has_size(r->c, 3, want, "hx", err)) return -1;
    return r->hidden ? 0 : error_set(err, ERROR_INVALID, "hx: a state has no elements");
}

static int recurrent_of(const OpCall *c, Recurrent *r, Error *err)
{
    static const int gates[] = {1, 1, 3, 4};
    *r = (Recurrent){.kind = *(const CellKind *)c->op->detail, .x = op_tensor(c, 0)};
    int64_t layers = flag(c, "num_layers");
    r->gates = gates[r->kind];
    r->directions = flag(c, "bidirectional") ? 2 : 1;
    r->biases = flag(c, "has_biases") != 0;
    r->batch_first = flag(c, "batch_first") != 0;
    r->params = &c->arg[2];
    r->x_index = (int)c->arg[0].integer[0];
    if (layers < 1 || layers > MAX_LAYERS)
        return error_set(err, ERROR_LIMIT, "num_layers: expected 1 to %d, found %lld", MAX_LAYERS,
                         (long long)layers);
    r->layers = (int)layers;
    int params = r->layers * r->directions * (r->biases ? 4 : 2);
    if (r->params->n != params)
        return error_set(err, ERROR_UNSUPPORTED,
                         "params: expected %d tensors (weights%s of each layer and direction, no "
                         "projections), found %d",
                         params, r->biases ? " and biases" : "", r->params->n);
    if (flag(c, "train") && c->arg[op_argument(c->op, "dropout")].number != 0 && layers > 1)
        return error_set(err, ERROR_UNSUPPORTED, "dropout between layers is not supported");
    if (r->x->rank != 3)
        return error_set(err, ERROR_INVALID, "input: expected 3 dimensions, found %d", r->x->rank);
    r->steps = r->x->size[r->batch_first];
    r->batch = r->x->size[!r->batch_first];
    r->in = r->x->size[2];
    if (r->steps < 1 || r->in < 1)
        return error_set(err, ERROR_INVALID, "input: expected a step and an element, found none");
    if (state_of(c, r, err)) return -1;
    return check_cells(c, r, err);
}

static int infer(OpCall *c, Error *err)
{
    Recurrent r;
    if (recurrent_of(c, &r, err)) return -1;
    for (int i = 0; i < c->n_tensors; i++)
        if (!dtype_is_float(r.x->dtype) || c->tensor[i].dtype != r.x->dtype)
            return error_set(err, ERROR_INVALID,
                             "expected one floating-point type, found %s and %s",
                             dtype_name(r.x->dtype), dtype_name(c->tensor[i].dtype));
    int64_t y[] = {r.x->size[0], r.x->size[1], r.hidden * r.directions};
    if (op_result(c, r.x->dtype, 3, y, err) || op_result(c, r.x->dtype, 3, r.h->size, err))
        return -1;
    return r.c ? op_result(c, r.x->dtype, 3, r.c->size, err) : 0;
}

int recurrent_of_call(const OpCall *c, Recurrent *out)
{
    return c->op->infer == infer && !recurrent_of(c, out, NULL);
}

/* ---- reference ---- */

/* A weight [n][k], or its panels [n][TILE_N], and a bias [n]; NULL: none. */
typedef struct {
    const double *weight, *bias;
    int64_t n, k;
} Affine;

/* c[m][n] = a[m][k] weight' + bias */
static void product(const Affine *of, const double *a, int64_t m, double *c)
{
    const int64_t n = of->n, k = of->k;
    const double *bias = of->bias;
    OpTensor ta = {.rank = 2, .size = {m, k}}, tb = {.rank = 2, .size = {n, k}},
             tc = {.rank = 2, .size = {m, n}}, td = {.rank = 1, .size = {n}};
    Product p = {.alpha = 1, .beta = bias ? 1 : 0};
    p.side[PRODUCT_A] = (ProductSide){"a", &ta, "mk", a};
    p.side[PRODUCT_B] = (ProductSide){"b", &tb, "nk", of->weight};
    p.side[PRODUCT_C] = (ProductSide){"c", &tc, "mn", NULL};
    if (bias) p.side[PRODUCT_D] = (ProductSide){"d", &td, "n", bias};
    product_groups(&p, 1);
    product_reference(&p, c);
}

/* A cell's weights of the state as panels [n][TILE_N], for all steps. */
static double *pack_state(const double *weight, int64_t rows, int64_t n)
{
    int64_t panels = (rows + TILE_N - 1) / TILE_N;
    double *to = memory_array((size_t)(panels * n * TILE_N) + 1, sizeof *to);
    enum { BLOCK = 16 }; /* rows that are written together: they lie side by side */
    for (int64_t first = 0; first < rows; first += BLOCK)
        for (int64_t k = 0; k < n; k++)
            for (int64_t row = first; row < rows && row < first + BLOCK; row++)
                to[(row / TILE_N * n + k) * TILE_N + row % TILE_N] = weight[row * n + k];
    return to;
}

/* state[m][n] = h[m][k] weight' + bias of panels, with the bits of product(). */
static void state_product(const Affine *of, const double *h, int64_t m, double *state)
{
    enum { TERMS = 128 };
    const int64_t rows = of->n, n = of->k;
    const double *panels = of->weight, *bias = of->bias;
    int64_t across = (rows + TILE_N - 1) / TILE_N, down = (m + TILE_M - 1) / TILE_M;
#pragma omp parallel for if (m * rows * n >= 1 << 18)
    for (int64_t i = 0; i < across * down; i++) {
        int64_t row = i / across * TILE_M, column = i % across * TILE_N;
        double acc[TILE_M * TILE_N];
        Tile t = {h + row * n,
                  n,
                  (int)(m - row < TILE_M ? m - row : TILE_M),
                  0,
                  (int)(rows - column < TILE_N ? rows - column : TILE_N),
                  TILE_N};
        product_clear(t.m, t.n, acc);
        for (int64_t first = 0; first < n; first += TERMS, t.a += TERMS) {
            t.k = (int)(n - first < TERMS ? n - first : TERMS);
            product_tile(&t, panels + (column * n + first * TILE_N), acc);
        }
        for (int r = 0; r < t.m; r++)
            for (int k = 0; k < t.n; k++)
                state[(row + r) * rows + column + k] =
                    acc[r * TILE_N + k] + (bias ? bias[column + k] : 0);
    }
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* One element: x and s are the gates' parts of the input and of the state, `apart` from each other. */
static double element(const Recurrent *r, const double *x, const double *s, double h, double *c)
{
    int64_t n = r->hidden;
    if (r->kind == CELL_TANH) return tanh(x[0] + s[0]);
    if (r->kind == CELL_RELU) return x[0] + s[0] < 0 ? 0 : x[0] + s[0];
    double first = sigmoid(x[0] + s[0]), second = sigmoid(x[n] + s[n]);
    if (r->kind == CELL_GRU) {
        double now = tanh(x[2 * n] + first * s[2 * n]);
        return now + second * (h - now);
    }
    *c = second * *c + first * tanh(x[2 * n] + s[2 * n]);
    return sigmoid(x[3 * n] + s[3 * n]) * tanh(*c);
}

/* x [steps, batch, in] of a cell becomes y [steps, batch, directions * hidden]; h and c are the state, before
 * and after. */
typedef struct {
    const double *x;
    double *y, *h, *c;
} Flow;

static void run_cell(const Recurrent *r, const Cell *cell, int direction, const double *const *in,
                     const Flow *f)
{
    double *h = f->h, *c = f->c;
    int64_t n = r->hidden, rows = r->gates * n, across = r->directions * n;
    double *gates = memory_array((size_t)(r->steps * r->batch * rows) + 1, sizeof *gates),
           *state = memory_array((size_t)(r->batch * rows) + 1, sizeof *state),
           *panels = pack_state(in[cell->hidden], rows, n);
    const double *bias = r->biases ? in[cell->input_bias] : NULL,
                 *state_bias = r->biases ? in[cell->hidden_bias] : NULL;
    const Affine input = {in[cell->input], bias, rows, cell->in},
                 hidden = {panels, state_bias, rows, n};
    product(&input, f->x, r->steps * r->batch, gates);
    for (int64_t i = 0; i < r->steps; i++) {
        int64_t t = direction ? r->steps - 1 - i : i;
        state_product(&hidden, h, r->batch, state);
        for (int64_t b = 0; b < r->batch; b++)
            for (int64_t j = 0; j < n; j++) {
                int64_t at = b * n + j;
                h[at] = element(r, gates + (t * r->batch + b) * rows + j, state + b * rows + j,
                                h[at], c ? &c[at] : NULL);
                f->y[(t * r->batch + b) * across + direction * n + j] = h[at];
            }
    }
    free(gates), free(state), free(panels);
}

/* Copies [a][b][n] to [b][a][n]. */
static void exchange(const double *from, double *to, int64_t a, int64_t b, int64_t n)
{
    for (int64_t i = 0; i < a; i++)
        for (int64_t j = 0; j < b; j++)
            memcpy(to + (j * a + i) * n, from + (i * b + j) * n, (size_t)n * sizeof *to);
}

static int reference(const OpCall *c, const double *const *in, double *const *out, Error *err)
{
    Recurrent r;
    if (recurrent_of(c, &r, err)) return -1;
    int64_t across = r.hidden * r.directions, state = r.batch * r.hidden, largest = r.in;
    if (across > largest) largest = across;
    size_t n = (size_t)(r.steps * r.batch * largest) + 1;
    double *x = memory_array(n, sizeof *x), *y = memory_array(n, sizeof *y);
    if (r.batch_first)
        exchange(in[r.x_index], x, r.batch, r.steps, r.in);
    else
        memcpy(x, in[r.x_index], (size_t)(r.steps * r.batch * r.in) * sizeof *x);
    size_t all = (size_t)(r.layers * r.directions * state) * sizeof *x;
    memcpy(out[1], in[r.h_index], all);
    if (r.c) memcpy(out[2], in[r.c_index], all);
    for (int l = 0; l < r.layers; l++) {
        for (int d = 0; d < r.directions; d++) {
            Cell cell = recurrent_cell(&r, l, d);
            int64_t at = (l * r.directions + d) * state;
            run_cell(&r, &cell, d, in, &(Flow){x, y, out[1] + at, r.c ? out[2] + at : NULL});
        }
        double *free_one = x;
        x = y, y = free_one;
    }
    if (r.batch_first)
        exchange(x, out[0], r.steps, r.batch, across);
    else
        memcpy(out[0], x, (size_t)(r.steps * r.batch * across) * sizeof *x);
    free(x), free(y);
    return 0;
}

/* ---- the rest ---- */

static int plain(const OpCall *c, OpPlain *out, Error *err)
{
    Recurrent r;
    return recurrent_of(c, &r, err) ? -1 : recurrent_plain(&r, c, out, err);
}

static void cost(const OpCall *c, OpCost *out)
{
    Recurrent r;
    if (recurrent_of(c, &r, NULL)) return;
    double entries = (double)r.steps * (double)r.batch, rows = (double)(r.gates * r.hidden);
    for (int i = 0; i < r.layers * r.directions; i++) {
        Cell k = recurrent_cell(&r, i / r.directions, i % r.directions);
        out->flops += 2 * entries * rows * (double)(k.in + r.hidden);
    }
}

#define SCHEMA(state)                                                        \
    "Tensor input, " state                                                   \
    " hx, Tensor[] params, bool has_biases, int num_layers, float dropout, " \
    "bool train, bool bidirectional, bool batch_first"
#define ROW(aten, state, kind)                                                                 \
    {                                                                                          \
        .name = "aten." aten, .schema = SCHEMA(state), .infer = infer, .reference = reference, \
        .plain = plain, .cost = cost, .flags = OP_CUDNN, .detail = &kinds[kind],               \
    }

static const CellKind kinds[] = {CELL_TANH, CELL_RELU, CELL_GRU, CELL_LSTM};

static const Op table[] = {
    ROW("rnn_tanh.input", "Tensor", CELL_TANH),
    ROW("rnn_relu.input", "Tensor", CELL_RELU),
    ROW("gru.input", "Tensor", CELL_GRU),
    ROW("lstm.input", "Tensor[]", CELL_LSTM),
};

const OpFamily recurrent_family = {"recurrent", table, sizeof table / sizeof *table};
