/* Plain kernels of recurrent networks. For each cell, a product of the inputs of all steps gives its part
 * of the gates; then one launch a step and layer adds the state's part. There a warp takes a row of each gate
 * for up to eight entries of the batch, and the block's threads finish the elements. The state is
 * where the step before stored its result. */
#include <stdio.h>
#include <string.h>

#include "base/embed.h"
#include "base/part.h"
#include "ops/nn/op_recurrent.h"
#include "ops/op_product.h"
#include "ops/op_text.h"

EMBED(op_recurrent_cu, "ops/nn/op_recurrent_text.cu")

enum { WARPS = 8, ENTRIES = 8 };

/* Scratch memory: gates, the state c of an LSTM, outputs of two layers. Names as in a launch. */
typedef struct {
    const Recurrent *r;
    const OpCall *call;
    OpPlain *out;
    const char *type;
    Dtype sums;
    int gates[2], c[2], layer[2]; /* gates and c: of each direction */
} Writer;

/* Where a cell reads and writes: tensors [steps, batch, elements]. */
typedef struct {
    char from[8], to[8];
    OpTensor x, y;
} Flow;

/* The input and the result have the order of dimensions of the call. Between layers steps are first. */
static void time_first(OpTensor *t)
{
    int64_t size = t->size[0], stride = t->stride[0];
    t->size[0] = t->size[1], t->stride[0] = t->stride[1];
    t->size[1] = size, t->stride[1] = stride;
}

static Flow flow_of(const Writer *w, int layer)
{
    const Recurrent *r = w->r;
    Flow f = {.x = *r->x, .y = w->call->result[0]};
    OpTensor between = {
        .dtype = r->x->dtype, .rank = 3, .size = {r->steps, r->batch, r->hidden * r->directions}};
    op_contiguous(&between);
    snprintf(f.from, sizeof f.from, "x%d", r->x_index);
    snprintf(f.to, sizeof f.to, "y0");
    if (r->batch_first) time_first(&f.x), time_first(&f.y);
    if (layer) {
        f.x = between;
        snprintf(f.from, sizeof f.from, "t%d", w->layer[(layer - 1) % 2]);
    }
    if (layer < r->layers - 1) {
        f.y = between;
        snprintf(f.to, sizeof f.to, "t%d", w->layer[layer % 2]);
    }
    return f;
}

/* The input's part of the gates of all steps, with its bias. */
static int input_product(const Writer *w, int layer, int direction, const Flow *f, Error *err)
{
    const Recurrent *r = w->r;
    const OpTensor *tensor = w->call->tensor;
    const Cell cell = recurrent_cell(r, layer, direction);
    OpTensor gates = {
        .dtype = w->sums, .rank = 3, .size = {r->steps, r->batch, r->gates * r->hidden}};
    Product p = {.alpha = 1, .beta = r->biases};
    op_contiguous(&gates);
    p.side[PRODUCT_A] = (ProductSide){.tensor = &f->x, .letters = "tbk"};
    p.side[PRODUCT_B] = (ProductSide){.tensor = &tensor[cell.input], .letters = "nk"};
    p.side[PRODUCT_C] = (ProductSide){.tensor = &gates, .letters = "tbn"};
    snprintf(p.side[PRODUCT_A].name, 8, "%s", f->from);
    snprintf(p.side[PRODUCT_B].name, 8, "x%d", cell.input);
    snprintf(p.side[PRODUCT_C].name, 8, "t%d", w->gates[direction]);
    if (r->biases) {
        p.side[PRODUCT_D] = (ProductSide){.tensor = &tensor[cell.input_bias], .letters = "n"};
        snprintf(p.side[PRODUCT_D].name, 8, "x%d", cell.input_bias);
    }
    product_groups(&p, 0);
    return product_plain(&p, w->out, err);
}

/* The state before the first step, h or c, of entry `b` and element `j`. */
static void first_state(Buffer *b, const OpTensor *t, int index, int cell, const char *element)
{
    buffer_printf(b, "x%d[%lldLL + b * %lldLL + %s * %lldLL]", index,
                  (long long)(t->offset + cell * t->stride[0]), (long long)t->stride[1], element,
                  (long long)t->stride[2]);
}

/* An element of the cell's result at step `t`, of entry `b`. */
static void stored(Buffer *b, const Flow *f, int64_t shift, const char *t, const char *element)
{
    buffer_printf(b, "%s[%lldLL + %s * %lldLL + b * %lldLL + %s * %lld]", f->to,
                  (long long)(f->y.offset + shift * f->y.stride[2]), t, (long long)f->y.stride[0],
                  (long long)f->y.stride[1], element, (long long)f->y.stride[2]);
}

/* The sums of weights and state: gate[g][n][warp]. */
static void sums(const Writer *w, const Cell *cell, const Flow *f, int number, int64_t shift)
{
    const Recurrent *r = w->r;
    const OpTensor *weight = &w->call->tensor[cell->hidden];
    Buffer *b = w->out->source;
    Buffer before;
    buffer_init(&before, PART_VALUE);
    stored(&before, f, shift, "before", "k");
    Buffer first;
    buffer_init(&first, PART_VALUE);
    first_state(&first, r->h, r->h_index, number, "k");
    part_fill(b, op_recurrent_cu, "sums",
              "weight=%d;offset=%lld;row=%lld;column=%lld;before=%s;first=%s", cell->hidden,
              (long long)weight->offset, (long long)weight->stride[0], (long long)weight->stride[1],
              before.data, first.data);
    buffer_release(&before);
    buffer_release(&first);
}

/* h from x[g] and s[g]: the gates' parts of the input and of the state. */
static void element(const Writer *w, const Flow *f, int number, int direction)
{
    const Recurrent *r = w->r;
    const int64_t shift = direction * r->hidden;
    Buffer *b = w->out->source;
    switch (r->kind) {
    case CELL_TANH: buffer_puts(b, "    const T h = tanh(x[0] + s[0]);\n"); break;
    case CELL_RELU: buffer_puts(b, "    const T h = x[0] + s[0] < 0 ? 0 : x[0] + s[0];\n"); break;
    case CELL_GRU:
        buffer_puts(b, "    const T last = t ? (T)");
        stored(b, f, shift, "before", "j");
        buffer_puts(b, " : (T)");
        first_state(b, r->h, r->h_index, number, "j");
        buffer_puts(b, ";\n");
        part_put(b, op_recurrent_cu, "gru");
        break;
    case CELL_LSTM:
        buffer_printf(b, "    T c = t ? t%d[b * H + j] : (T)", w->c[direction]);
        first_state(b, r->c, r->c_index, number, "j");
        buffer_puts(b, ";\n");
        part_fill(b, op_recurrent_cu, "lstm", "c=%d;last=%lld;offset=%lld;stored=%s",
                  w->c[direction], (long long)r->steps - 1,
                  (long long)(number * r->batch * r->hidden), dtype_ctype(r->x->dtype));
    }
}

static void finish(const Writer *w, const Cell *cell, const Flow *f, int number, int direction)
{
    const Recurrent *r = w->r;
    const int64_t shift = direction * r->hidden;
    const char *stored_type = dtype_ctype(r->x->dtype);
    Buffer *b = w->out->source;
    part_fill(b, op_recurrent_cu, "gates", "warps=%d;gates=%d", WARPS, w->gates[direction]);
    if (r->biases) {
        const OpTensor *bias = &w->call->tensor[cell->hidden_bias];
        buffer_printf(b, " + (T)x%d[%lldLL + (g * H + j) * %lldLL]", cell->hidden_bias,
                      (long long)bias->offset, (long long)bias->stride[0]);
    }
    buffer_puts(b, ";\n    }\n");
    element(w, f, number, direction);
    buffer_puts(b, "    ");
    stored(b, f, shift, "now", "j");
    buffer_printf(b,
                  " = (%s)h;\n"
                  "    if (t == %lld) y1[%lldLL + b * H + j] = (%s)h;\n",
                  stored_type, (long long)r->steps - 1, (long long)(number * r->batch * r->hidden),
                  stored_type);
}

static void operands(const Writer *w, int layer, const Flow *f, TextOperands *o)
{
    const Recurrent *r = w->r;
    for (int d = 0; d < r->directions; d++) {
        Cell cell = recurrent_cell(r, layer, d);
        text_operand(o, 't', w->gates[d]);
        text_operand(o, 'x', cell.hidden);
        if (r->biases) text_operand(o, 'x', cell.hidden_bias);
        if (r->c) text_operand(o, 't', w->c[d]);
    }
    text_operand(o, 'x', r->h_index);
    if (r->c) text_operand(o, 'x', r->c_index);
    text_operand(o, *f->to, f->to[1] - '0');
    text_operand(o, 'y', 1);
    if (r->c) text_operand(o, 'y', 2);
    text_operand_named(o, "t");
}

/* A step of a layer: blockIdx.z is the direction. */
static int step(const Writer *w, int layer, const Flow *f, Error *err)
{
    const Recurrent *r = w->r;
    TextOperands names = {""};
    int64_t shares = (r->batch + ENTRIES - 1) / ENTRIES;
    int n = shares ? (int)((r->batch + shares - 1) / shares) : 0;
    operands(w, layer, f, &names);
    OpLaunch *l = text_begin(
        w->out,
        &(TextHead){"recurrent_step", names.text, (r->hidden + WARPS - 1) / WARPS, 32 * WARPS},
        err);
    if (!l) return -1;
    l->grid[1] = n ? (r->batch + n - 1) / n : 1;
    l->grid[2] = r->directions;
    l->repeat = r->steps;
    part_fill(w->out->source, op_recurrent_cu, "begin", "type=%s;g=%d;n=%d;b=%lld;h=%lld;warps=%d",
              w->type, r->gates, n, (long long)r->batch, (long long)r->hidden, WARPS);
    for (int d = 0; d < r->directions; d++) {
        Cell cell = recurrent_cell(r, layer, d);
        int number = layer * r->directions + d;
        buffer_printf(w->out->source, "  if (blockIdx.z == %d) {\n", d);
        if (d)
            buffer_printf(w->out->source, "    const int now = %lld - t, before = now + 1;\n",
                          (long long)r->steps - 1);
        else
            buffer_puts(w->out->source, "    const int now = t, before = now - 1;\n");
        sums(w, &cell, f, number, d * r->hidden);
        finish(w, &cell, f, number, d);
        buffer_puts(w->out->source, "  }\n");
    }
    return text_end(w->out, err);
}

int recurrent_plain(const Recurrent *r, const OpCall *c, OpPlain *out, Error *err)
{
    Writer w = {.r = r, .call = c, .out = out, .type = text_type(r->x->dtype)};
    int64_t entries = r->steps * r->batch;
    w.sums = r->x->dtype == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
    if (r->batch > 65535 * ENTRIES || r->hidden * r->gates > INT32_MAX)
        return error_set(err, ERROR_LIMIT, "the batch or the state is too large");
    for (int d = 0; d < r->directions; d++)
        if ((w.gates[d] = text_scratch(out, w.sums, entries * r->gates * r->hidden, err)) < 0 ||
            (r->c && (w.c[d] = text_scratch(out, w.sums, r->batch * r->hidden, err)) < 0))
            return -1;
    for (int i = 0; i < 2 && i < r->layers - 1; i++)
        if ((w.layer[i] =
                 text_scratch(out, r->x->dtype, entries * r->hidden * r->directions, err)) < 0)
            return -1;
    for (int l = 0; l < r->layers; l++) {
        Flow f = flow_of(&w, l);
        for (int d = 0; d < r->directions; d++)
            if (input_product(&w, l, d, &f, err)) return -1;
        if (step(&w, l, &f, err)) return -1;
    }
    return 0;
}
