/* Plain kernels of convolutions. Depthwise ones in one and two dimensions are built as eager
 * PyTorch's: one thread an output in blocks of 1024, sizes that the kernel learns at run time, and
 * windows of 1 x 1, 3 x 3 and 5 x 5 unrolled with a test of each tap, others walked between bounds
 * found before. Others with few channels in a group have one thread an output too. Else the tiled
 * product of weights and inputs, the inputs gathered as they are brought into shared memory;
 * outputs of a transposed convolution that meet the same taps share a tile, so that no
 * multiplication is by a zero of the stride. Sizes are constants of the text. */
#include <stdio.h>
#include <string.h>

#include "base/embed.h"
#include "base/part.h"
#include "ops/op_convolution.h"
#include "ops/op_text.h"

EMBED(op_convolution_cu, "ops/op_convolution_text.cu")

typedef struct {
    char text[24];
} TextPlace;

enum { FEW_CHANNELS = 8, THREADS = 256, DEPTHWISE_THREADS = 1024 };

typedef struct {
    const Convolution *v;
    const OpCall *c;
    Buffer *b;
    const char *type;              /* of sums */
    char x[8], weight[8], bias[8]; /* operands */
    int first;                     /* the first dimension that is the call's own */
} Writer;

static int64_t x_stride(const Convolution *v, int d)
{
    return v->x->stride[v->x->rank - WINDOW_DIMS + d];
}

static int64_t weight_stride(const Convolution *v, int d)
{
    return v->weight->stride[v->weight->rank - WINDOW_DIMS + d];
}

static const char *wide(const OpTensor *t)
{
    return text_is_wide(t) ? "(long long)" : "";
}

/* The place in x of entry `n`, channel `channel` of all, and the inputs i0, i1, i2. */
static void x_place(Writer *t, const char *channel)
{
    const Convolution *v = t->v;
    const char *cast = wide(v->x);
    buffer_printf(t->b, "%s[%lld + %s%s * %lld", t->x, (long long)v->x->offset, cast, channel,
                  (long long)v->x->stride[v->x->rank - v->dims - 1]);
    if (v->batched) buffer_printf(t->b, " + %sn * %lld", cast, (long long)v->x->stride[0]);
    for (int d = t->first; d < WINDOW_DIMS; d++)
        buffer_printf(t->b, " + %si%d * %lld", cast, d, (long long)x_stride(v, d));
    buffer_puts(t->b, "]");
}

/* The place of the weight of channels `o` and `k` of the group g, and the taps u0, u1, u2. */
static void weight_place(Writer *t, const char *o, const char *k)
{
    const Convolution *v = t->v;
    const int64_t *stride = v->weight->stride;
    buffer_printf(t->b, "%s[%lld + (g * %lld + %s) * %lld + %s * %lld", t->weight,
                  (long long)v->weight->offset, (long long)(v->transposed ? v->in : v->out),
                  v->transposed ? k : o, (long long)stride[0], v->transposed ? o : k,
                  (long long)stride[1]);
    for (int d = t->first; d < WINDOW_DIMS; d++)
        buffer_printf(t->b, " + u%d * %lld", d, (long long)weight_stride(v, d));
    buffer_puts(t->b, "]");
}

/* y's element of entry n, channel `channel` of all, outputs o0, o1, o2 becomes `sum`, with the bias. */
static void store(Writer *t, const char *channel, const char *sum)
{
    const Convolution *v = t->v;
    const OpTensor *y = &t->c->result[0];
    const char *cast = wide(y);
    const int channels = y->rank - v->dims - 1;
    buffer_printf(t->b, "y0[%sn * %lld + %s%s * %lld", cast,
                  (long long)(channels ? y->stride[0] : 0), cast, channel,
                  (long long)y->stride[channels]);
    for (int d = t->first; d < WINDOW_DIMS; d++)
        buffer_printf(t->b, " + %so%d * %lld", cast, d,
                      (long long)y->stride[y->rank - WINDOW_DIMS + d]);
    buffer_printf(t->b, "] = (%s)(%s", dtype_ctype(y->dtype), sum);
    if (v->bias)
        buffer_printf(t->b, " + (%s)%s[%lld + %s * %lld]", t->type, t->bias,
                      (long long)v->bias->offset, channel, (long long)v->bias->stride[0]);
    buffer_puts(t->b, ");\n");
}

/* ---- one thread an output ---- */

static void direct(Writer *t)
{
    const Convolution *v = t->v;
    Buffer *b = t->b;
    int64_t inner = 1;
    for (int d = WINDOW_DIMS - 1; d >= t->first; inner *= v->w[d--].out)
        buffer_printf(b, "    const int o%d = i / %lld %% %lld;\n", d, (long long)inner,
                      (long long)v->w[d].out);
    part_fill(b, op_convolution_cu, "direct",
              "inner=%lld;channels=%lld;outputs=%lld;out=%lld;type=%s;in=%lld", (long long)inner,
              (long long)(v->out * v->groups), (long long)(inner * v->out * v->groups),
              (long long)v->out, t->type, (long long)v->in);
    for (int d = t->first; d < WINDOW_DIMS; d++) {
        const Window *w = &v->w[d];
        buffer_printf(b, "    for (int u%d = 0; u%d < %lld; u%d++) {\n", d, d, (long long)w->kernel,
                      d);
        if (v->transposed)
            buffer_printf(b,
                          "        const int s%d = o%d + %lld - u%d * %lld, i%d = s%d / %lld;\n"
                          "        if (s%d < 0 || s%d %% %lld || i%d >= %lld) continue;\n",
                          d, d, (long long)w->padding, d, (long long)w->dilation, d, d,
                          (long long)w->stride, d, d, (long long)w->stride, d, (long long)w->in);
        else
            buffer_printf(b,
                          "        const int i%d = o%d * %lld - %lld + u%d * %lld;\n"
                          "        if (i%d < 0 || i%d >= %lld) continue;\n",
                          d, d, (long long)w->stride, (long long)w->padding, d,
                          (long long)w->dilation, d, d, (long long)w->in);
    }
    buffer_printf(b, "        sum += (%s)", t->type);
    x_place(t, "(g * IN + c)");
    buffer_printf(b, " * (%s)", t->type);
    weight_place(t, "o", "c");
    buffer_puts(b, ";\n    ");
    for (int d = t->first; d < WINDOW_DIMS; d++) buffer_puts(b, "}");
    buffer_puts(b, "\n    ");
    store(t, "channel", "sum");
}

/* ---- depthwise ---- */

/* Eager's kernel of one and two dimensions, whose places are ints. */
static int is_flat_depthwise(const Convolution *v, const OpCall *c)
{
    int64_t reach = 0;
    for (int d = 0; d < WINDOW_DIMS; d++) {
        const Window *w = &v->w[d];
        int64_t last = w->out * w->stride + w->kernel * w->dilation + w->padding;
        if (last > reach) reach = last;
    }
    return convolution_depthwise(v) && v->dims < WINDOW_DIMS && reach < INT32_MAX &&
           op_elements(v->x) < INT32_MAX && op_elements(&c->result[0]) < INT32_MAX;
}

/* 1: the loops over the taps are unrolled. */
static int is_unrolled(const Convolution *v)
{
    int64_t k = v->w[1].kernel;
    return k == v->w[2].kernel && (k == 1 || k == 3 || k == 5);
}

/* The taps first to last of a dimension that meet the input. */
static void tap_bounds(Buffer *b, int d)
{
    part_fill(b, op_convolution_cu, "taps", "d=%d", d);
}

/* The sum over the taps, whose inputs begin at low1, low2. */
static void depthwise_taps(Writer *t)
{
    int unrolled = is_unrolled(t->v);
    for (int d = 1; d < WINDOW_DIMS && !unrolled; d++) tap_bounds(t->b, d);
    for (int d = 1; d < WINDOW_DIMS; d++)
        if (unrolled)
            buffer_printf(t->b,
                          "#pragma unroll\n"
                          "        for (int u%d = 0; u%d < %d; u%d++)\n",
                          d, d, (int)t->v->w[d].kernel, d);
        else
            buffer_printf(t->b, "        for (int u%d = first%d; u%d < last%d; u%d++)\n", d, d, d,
                          d, d);
    buffer_puts(t->b,
                "        {\n"
                "            const int i1 = low1 + u1 * dilation1, i2 = low2 + u2 * dilation2;\n");
    if (unrolled)
        part_put(t->b, op_convolution_cu, "unrolled_tap");
    else
        buffer_puts(t->b, "            sum += (T)taps[u1 * kernel2 + u2] * "
                          "(T)from[plane + i1 * in2 + i2];\n        }\n");
}

/* The names of the memory that places are in, each once. */
static size_t depthwise_operands(const char *x, const char *weight, const char *bias, char *out,
                                 size_t size)
{
    const char *all[] = {x, weight, bias};
    size_t n = 0;
    for (int i = 0; i < 3; i++) {
        size_t len = strcspn(all[i], " ");
        int again = !len;
        for (int k = 0; k < i && !again; k++)
            again = strcspn(all[k], " ") == len && !strncmp(all[k], all[i], len);
        if (!again)
            n += (size_t)snprintf(out + n, size - n, "%s%.*s", n ? " " : "", (int)len, all[i]);
    }
    return n;
}

static int depthwise(Writer *t, OpPlain *out, Error *err)
{
    const Convolution *v = t->v;
    Buffer *b = t->b;
    const int64_t n = op_elements(&t->c->result[0]);
    char x[24], weight[24], bias[24] = "", names[420];
    if (text_dense(out, t->x, v->x, x, sizeof x, err) ||
        text_dense(out, t->weight, v->weight, weight, sizeof weight, err) ||
        (v->bias && text_dense(out, t->bias, v->bias, bias, sizeof bias, err)))
        return -1;
    size_t used = depthwise_operands(x, weight, bias, names, sizeof names);
    snprintf(names + used, sizeof names - used, " y0 n=%lld channels=%lld multiplier=%lld",
             (long long)n, (long long)(v->out * v->groups), (long long)v->out);
    for (int d = 1; d < WINDOW_DIMS; d++) {
        const Window *w = &v->w[d];
        used = strlen(names);
        snprintf(names + used, sizeof names - used,
                 " in%d=%lld out%d=%lld kernel%d=%lld stride%d=%lld pad%d=%lld dilation%d=%lld", d,
                 (long long)w->in, d, (long long)w->out, d, (long long)w->kernel, d,
                 (long long)w->stride, d, (long long)w->padding, d, (long long)w->dilation);
    }
    if (!text_begin(out,
                    &(TextHead){"depthwise", names, (n + DEPTHWISE_THREADS - 1) / DEPTHWISE_THREADS,
                                DEPTHWISE_THREADS},
                    err))
        return -1;
    part_fill(b, op_convolution_cu, "depthwise", "type=%s;weight_type=%s;weight=%s;x_type=%s;x=%s",
              t->type, dtype_ctype(v->weight->dtype), weight, dtype_ctype(v->x->dtype), x);
    buffer_printf(b, v->bias ? "(T)(%s)[channel];\n" : "0;\n", bias);
    depthwise_taps(t);
    buffer_printf(b, "        y0[i] = (%s)sum;\n    }\n", dtype_ctype(t->c->result[0].dtype));
    return text_end(out, err);
}

/* ---- the tiled product ---- */

/* The class of the block, and of each dimension its outputs q, taps t, and where they meet. */
static void classes(Writer *t)
{
    const Convolution *v = t->v;
    for (int d = t->first; d < WINDOW_DIMS; d++) {
        const Window *w = &v->w[d];
        WindowClass k = window_class(w, 0);
        if (!v->transposed) {
            buffer_printf(t->b,
                          "    constexpr int r%d = 0, Q%d = %lld, F%d = 0, T%d = %lld;\n"
                          "    constexpr int shift%d = %lld;\n",
                          d, d, (long long)k.outputs, d, d, (long long)k.taps, d,
                          (long long)k.shift);
            continue;
        }
        int64_t n = window_classes(w);
        part_fill(t->b, op_convolution_cu, "classes",
                  "d=%d;n=%lld;step=%lld;padding=%lld;dilation=%lld;stride=%lld;kernel=%lld;less=%"
                  "lld;out=%lld;less_stride=%lld",
                  d, (long long)n, (long long)k.step, (long long)w->padding, (long long)w->dilation,
                  (long long)w->stride, (long long)w->kernel, (long long)(k.step - 1),
                  (long long)w->out, (long long)(w->stride - 1));
    }
    buffer_puts(t->b, "    const int taps = 1");
    for (int d = t->first; d < WINDOW_DIMS; d++) buffer_printf(t->b, " * T%d", d);
    buffer_printf(t->b, ", depth = %lld * taps;\n    const int outputs = 1", (long long)v->in);
    for (int d = t->first; d < WINDOW_DIMS; d++) buffer_printf(t->b, " * Q%d", d);
    buffer_printf(t->b, ", columns = %lld * outputs;\n", (long long)v->batch);
}

/* const int n, q0, q1, q2 from the column. */
static void column(Writer *t, const char *indent, const char *name)
{
    buffer_printf(t->b, "%sconst int n = %s / outputs;\n%sint q = %s %% outputs;\n", indent, name,
                  indent, name);
    for (int d = WINDOW_DIMS - 1; d >= t->first; d--)
        buffer_printf(t->b, "%sconst int q%d = q %% Q%d;\n%sq /= Q%d;\n", indent, d, d, indent, d);
}

/* int c, t0, t1, t2 from the term k, counted in taps. */
static void term(Writer *t)
{
    buffer_puts(t->b, "            const int c = k / taps;\n"
                      "            int tap = k % taps;\n");
    for (int d = WINDOW_DIMS - 1; d >= t->first; d--)
        buffer_printf(t->b, "            const int t%d = tap %% T%d;\n            tap /= T%d;\n", d,
                      d, d);
}

static void slices(Writer *t)
{
    const Convolution *v = t->v;
    Buffer *b = t->b;
    part_fill(b, op_convolution_cu, "slice_a", "out=%lld", (long long)v->out);
    term(t);
    for (int d = t->first; d < WINDOW_DIMS; d++)
        buffer_printf(b, "            const int u%d = F%d + t%d * %lld;\n", d, d, d,
                      (long long)window_class(&v->w[d], 0).step);
    buffer_printf(b, "            sa[in][at] = (%s)", t->type);
    weight_place(t, "o", "c");
    buffer_puts(b, ";\n        }\n");
    part_put(b, op_convolution_cu, "slice_b");
    term(t);
    for (int d = t->first; d < WINDOW_DIMS; d++)
        buffer_printf(b,
                      "            const int i%d = at%d + t%d * %lld;\n"
                      "            if (i%d < 0 || i%d >= %lld) continue;\n",
                      d, d, d, (long long)window_class(&v->w[d], 0).delta, d, d,
                      (long long)v->w[d].in);
    buffer_printf(b, "            sb[in][at] = (%s)", t->type);
    x_place(t, "(g * IN + c)");
    buffer_puts(b, ";\n        }\n");
}

static int64_t tile_count(int64_t n, int share)
{
    return (n + 16 * share - 1) / (16 * share);
}

static void tiled(Writer *t, int r, int c, int64_t across, int64_t down)
{
    const Convolution *v = t->v;
    Buffer *b = t->b;
    part_fill(b, op_convolution_cu, "tiles",
              "rows_share=%d;columns_share=%d;type=%s;across=%lld;down=%lld;tiles=%lld;groups=%lld",
              r, c, t->type, (long long)across, (long long)down, (long long)(across * down),
              (long long)v->groups);
    classes(t);
    buffer_puts(b, "    if (column0 >= columns) return;\n"
                   "    const int at = threadIdx.x % (16 * C), column = column0 + at;\n");
    column(t, "    ", "column");
    for (int d = t->first; d < WINDOW_DIMS; d++)
        buffer_printf(b, "    const int at%d = q%d * %lld + shift%d;\n", d, d,
                      (long long)window_class(&v->w[d], 0).walk, d);
    buffer_printf(b,
                  "    %s acc[R][C] = {};\n"
                  "    for (int k0 = 0; k0 < depth; k0 += 16) {\n",
                  t->type);
    slices(t);
    part_put(b, op_convolution_cu, "sums");
    column(t, "        ", "to");
    for (int d = t->first; d < WINDOW_DIMS; d++)
        buffer_printf(b, "        const int o%d = r%d + q%d * %lld;\n", d, d, d,
                      (long long)window_class(&v->w[d], 0).apart);
    part_fill(b, op_convolution_cu, "store", "out=%lld", (long long)v->out);
    buffer_puts(b, "            ");
    char channel[48];
    snprintf(channel, sizeof channel, "(g * %lld + o)", (long long)v->out);
    store(t, channel, "acc[i][j]");
    buffer_puts(b, "        }\n    }\n");
}

static int tiled_kernel(Writer *t, const char *names, OpPlain *out, Error *err)
{
    const Convolution *v = t->v;
    int64_t largest = v->batch;
    double blocks = (double)v->groups;
    for (int d = 0; d < WINDOW_DIMS; d++) {
        largest *= window_max(&v->w[d]);
        blocks *= (double)window_classes(&v->w[d]);
    }
    int r = v->out > 48 ? 4 : v->out > 16 ? 2 : 1, c = largest > 48 ? 4 : largest > 16 ? 2 : 1;
    int64_t across = tile_count(largest, c), down = tile_count(v->out, r);
    blocks *= (double)across * (double)down;
    if (blocks >= INT32_MAX || largest >= INT32_MAX)
        return error_set(err, ERROR_LIMIT, "more than 2^31 blocks");
    if (!text_begin(out, &(TextHead){"convolution", names, (int64_t)blocks, THREADS}, err))
        return -1;
    buffer_printf(t->b, "    constexpr int IN = %lld;\n", (long long)v->in);
    tiled(t, r, c, across, down);
    return text_end(out, err);
}

int convolution_plain(const Convolution *v, const OpCall *c, OpPlain *out, Error *err)
{
    Writer t = {.v = v,
                .c = c,
                .b = out->source,
                .type = text_type(v->x->dtype),
                .first = WINDOW_DIMS - v->dims};
    char names[48];
    snprintf(t.x, sizeof t.x, "x%d", v->x_index);
    snprintf(t.weight, sizeof t.weight, "x%d", v->weight_index);
    snprintf(t.bias, sizeof t.bias, "x%d", v->bias_index);
    size_t n = (size_t)snprintf(names, sizeof names, "%s", t.x);
    if (v->weight_index != v->x_index)
        n += (size_t)snprintf(names + n, sizeof names - n, " %s", t.weight);
    if (v->bias && v->bias_index != v->x_index && v->bias_index != v->weight_index)
        n += (size_t)snprintf(names + n, sizeof names - n, " %s", t.bias);
    snprintf(names + n, sizeof names - n, " y0");
    if (v->in * v->w[0].kernel * v->w[1].kernel * v->w[2].kernel >= INT32_MAX)
        return error_set(err, ERROR_LIMIT, "an element is a sum of 2^31 terms");
    if (is_flat_depthwise(v, c)) return depthwise(&t, out, err);
    if (v->out >= FEW_CHANNELS) return tiled_kernel(&t, names, out, err);
    if (!text_each(out, "convolution", names, op_elements(&c->result[0]), err)) return -1;
    buffer_printf(t.b, "    constexpr int IN = %lld;\n", (long long)v->in);
    direct(&t);
    return text_each_end(out, err);
}

/* ---- the vendor's library ---- */

static int add_bias(const Convolution *v, const OpCall *c, OpPlain *out, Error *err)
{
    const OpTensor *y = &c->result[0];
    int64_t volume = convolution_last(v) ? 1 : v->w[0].out * v->w[1].out * v->w[2].out;
    char names[24];
    snprintf(names, sizeof names, "x%d y0", v->bias_index);
    if (!text_walk(out, "add_bias", names, op_elements(y), err)) return -1;
    buffer_printf(out->source,
                  "    y0[i] = (%s)((%s)y0[i] + (%s)x%d[%lld + i / %lld %% %lld * %lld]);\n",
                  dtype_ctype(y->dtype), text_type(y->dtype), text_type(y->dtype), v->bias_index,
                  (long long)v->bias->offset, (long long)volume, (long long)(v->out * v->groups),
                  (long long)v->bias->stride[0]);
    return text_each_end(out, err);
}

/* The sizes are those of a plain convolution, of which cuDNN computes the gradient for a transposed one.
 * "same" may pad the end alone, and output_padding may be above the stride. */
static int is_even(const Window *w)
{
    int64_t span = w->dilation * (w->kernel - 1) + 1, in = w->transposed ? w->out : w->in,
            out = w->transposed ? w->in : w->out;
    return in + 2 * w->padding >= span && out == (in + 2 * w->padding - span) / w->stride + 1;
}

int convolution_by_library(const Convolution *v)
{
    if (v->x->dtype > DTYPE_BF16 || convolution_depthwise(v)) return 0;
    for (int d = 0; d < WINDOW_DIMS; d++)
        if (!is_even(&v->w[d])) return 0;
    return 1;
}

/* The operand's elements in one piece, in the order of the call. */
static int dense_operand(const Convolution *v, const OpTensor *t, int index, OpPlain *out,
                         TextPlace *to, Error *err)
{
    OpTensor x = *t;
    int channels = t->rank - v->dims - 1;
    char name[8];
    snprintf(name, sizeof name, "x%d", index);
    for (int d = channels; d < x.rank && convolution_last(v); d++) {
        int from = d + 1 < x.rank ? d + 1 : channels;
        x.size[d] = t->size[from], x.stride[d] = t->stride[from];
    }
    return text_dense(out, name, &x, to->text, sizeof to->text, err);
}

int convolution_route(const Convolution *v, const OpCall *c, OpRoute *out, Error *err)
{
    const Window *w = v->w;
    TextPlace x, weight;
    size_t n = 0, size;
    if (!convolution_by_library(v)) return 0;
    if (op_elements(v->x) > INT32_MAX || op_elements(&c->result[0]) > INT32_MAX) return 0;
    if (dense_operand(v, v->x, v->x_index, out->kernels, &x, err) ||
        dense_operand(v, v->weight, v->weight_index, out->kernels, &weight, err))
        return -1;
    char *to = text_library(
        out, convolution_last(v) ? "cudnn.convolution_last" : "cudnn.convolution", &size, err);
    if (!to) return -1;
    n += (size_t)snprintf(to, size, "%s, %s, y0, %d, %d, %lld, %lld, %lld, %lld", x.text,
                          weight.text, v->transposed, (int)v->x->dtype, (long long)v->batch,
                          (long long)(v->in * v->groups), (long long)(v->out * v->groups),
                          (long long)v->groups);
    for (int d = 0; d < WINDOW_DIMS; d++)
        n += (size_t)snprintf(to + n, size - n, ", %lld, %lld, %lld, %lld, %lld, %lld",
                              (long long)w[d].in, (long long)w[d].kernel, (long long)w[d].out,
                              (long long)w[d].stride, (long long)w[d].padding,
                              (long long)w[d].dilation);
    return v->bias && add_bias(v, c, out->kernels, err) ? -1 : 1;
}
