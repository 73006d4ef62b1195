/* Images of another size: the nearest element, or sums of 2 or 4 neighbours along each dimension with
 * weights by distance. Tensors are [batch, channels, sizes...]. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/embed.h"
#include "base/part.h"
#include "ops/op_text.h"

EMBED(op_resize_cu, "ops/nn/family_resize.cu")

enum { RESIZE_DIMS = 3, MAX_TAPS = 4 };

typedef struct {
    int dims, taps, aligned; /* aligned: the corners of both images are at the same places */
    int64_t in[RESIZE_DIMS], out[RESIZE_DIMS];
    double scale[RESIZE_DIMS]; /* of a step of the result, in elements of the source */
} Resize;

typedef struct {
    int dims, taps;
} ResizeKind;

/* ATen has the scale of the nearest element in float32, whatever the elements are. */
static double scale_of(const OpCall *c, const Resize *r, int d)
{
    static const char *const names[RESIZE_DIMS][RESIZE_DIMS] = {
        {"scales"}, {"scales_h", "scales_w"}, {"scales_d", "scales_h", "scales_w"}};
    const OpValue *v = &c->arg[op_argument(c->op, names[r->dims - 1][d])];
    if (r->aligned) return r->out[d] > 1 ? (double)(r->in[d] - 1) / (double)(r->out[d] - 1) : 0;
    if (r->taps > 1)
        return v->kind != OP_NONE && v->number > 0 ? 1 / v->number
                                                   : (double)r->in[d] / (double)r->out[d];
    if (r->out[d] == r->in[d]) return 1;
    if (r->out[d] == 2 * r->in[d]) return 0.5;
    return v->kind != OP_NONE && v->number > 0 ? (double)(float)(1 / v->number)
                                               : (double)((float)r->in[d] / (float)r->out[d]);
}

static void resize_of(const OpCall *c, Resize *r)
{
    const ResizeKind *kind = c->op->detail;
    const OpTensor *x = op_tensor(c, 0);
    int corners = op_argument(c->op, "align_corners");
    *r = (Resize){.dims = kind->dims, .taps = kind->taps};
    r->aligned = corners >= 0 && c->arg[corners].integer[0];
    for (int d = 0; d < r->dims; d++) {
        r->in[d] = x->size[2 + d];
        r->out[d] = c->arg[1].integer[d];
        r->scale[d] = scale_of(c, r, d);
    }
}

static int infer(OpCall *c, Error *err)
{
    const ResizeKind *kind = c->op->detail;
    const OpTensor *x = op_tensor(c, 0);
    int64_t size[OP_MAX_RANK];
    if (x->rank != kind->dims + 2)
        return error_set(err, ERROR_INVALID, "expected %d dimensions, found %d", kind->dims + 2,
                         x->rank);
    if (c->arg[1].n != kind->dims)
        return error_set(err, ERROR_INVALID, "output_size: expected %d numbers, found %d",
                         kind->dims, c->arg[1].n);
    if (!dtype_is_float(x->dtype))
        return error_set(err, ERROR_UNSUPPORTED, "expected a floating-point type, found %s",
                         dtype_name(x->dtype));
    memcpy(size, x->size, sizeof size);
    for (int d = 0; d < kind->dims; d++) {
        size[2 + d] = c->arg[1].integer[d];
        if (size[2 + d] < 1 || x->size[2 + d] < 1 || x->size[2 + d] > INT32_MAX ||
            size[2 + d] > INT32_MAX)
            return error_set(err, ERROR_INVALID, "a size of %lld cannot become %lld",
                             (long long)x->size[2 + d], (long long)size[2 + d]);
    }
    return op_result(c, x->dtype, x->rank, size, err);
}

/* ---- reference ---- */

static double near_weight(double x)
{
    const double a = -0.75;
    return ((a + 2) * x - (a + 3)) * x * x + 1;
}

static double far_weight(double x)
{
    const double a = -0.75;
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

/* The places and weights of coordinate o of dimension d. */
static void taps_of(const Resize *r, int d, int64_t o, int64_t *place, double *weight)
{
    int64_t last = r->in[d] - 1;
    if (r->taps == 1) {
        int64_t at = (int64_t)floorf((float)o * (float)r->scale[d]);
        place[0] = at < last ? at : last;
        weight[0] = 1;
        return;
    }
    double source = r->aligned ? r->scale[d] * (double)o : r->scale[d] * ((double)o + 0.5) - 0.5;
    if (r->taps == 2 && source < 0) source = 0;
    double at = floor(source), over = source - at;
    if (r->taps == 2) {
        weight[0] = 1 - over, weight[1] = over;
    } else {
        weight[0] = far_weight(over + 1), weight[1] = near_weight(over);
        weight[2] = near_weight(1 - over), weight[3] = far_weight(2 - over);
    }
    for (int k = 0; k < r->taps; k++) {
        int64_t p = (int64_t)at + k - (r->taps == 4);
        place[k] = p < 0 ? 0 : p > last ? last : p;
    }
}

/* The sum over all taps of the dimensions from d on. */
static double sum_of(const Resize *r, const double *x, int d, int64_t at, int64_t place[][MAX_TAPS],
                     double weight[][MAX_TAPS])
{
    double sum = 0;
    if (d == r->dims) return x[at];
    for (int k = 0; k < r->taps; k++) {
        double v = sum_of(r, x, d + 1, at * r->in[d] + place[d][k], place, weight);
        sum += r->taps == 1 ? v : weight[d][k] * v;
    }
    return sum;
}

static int reference(const OpCall *c, const double *const *in, double *const *out, Error *err)
{
    const double *x = in[c->arg[0].integer[0]];
    int64_t n = op_elements(&c->result[0]);
    Resize r;
    (void)err;
    resize_of(c, &r);
#pragma omp parallel for if (n >= 1 << 14)
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = i, place[RESIZE_DIMS][MAX_TAPS];
        double weight[RESIZE_DIMS][MAX_TAPS];
        for (int d = r.dims - 1; d >= 0; rest /= r.out[d--])
            taps_of(&r, d, rest % r.out[d], place[d], weight[d]);
        out[0][i] = sum_of(&r, x, 0, rest, place, weight);
    }
    return 0;
}

/* ---- kernel ---- */

/* Places p0[], p1[] and weights w0[], w1[] of dimension d, whose coordinate is `o`. */
static void taps_text(Buffer *b, const Resize *r, int d, int64_t inner)
{
    long long last = r->in[d] - 1;
    buffer_printf(b, "    const int o%d = (int)(i / %lld %% %lld);\n", d, (long long)inner,
                  (long long)r->out[d]);
    if (r->taps == 1) {
        buffer_printf(b, "    const int n%d = (int)floorf(o%d * (float)", d, d);
        text_number(b, r->scale[d]);
        buffer_printf(b, ");\n    const int p%d[1] = {n%d < %lld ? n%d : %lld};\n", d, d, last, d,
                      last);
        return;
    }
    buffer_printf(b, "    T s%d = (T)", d);
    text_number(b, r->scale[d]);
    buffer_printf(b, r->aligned ? " * (T)o%d;\n" : " * ((T)o%d + (T)0.5) - (T)0.5;\n", d);
    if (r->taps == 2) buffer_printf(b, "    if (s%d < 0) s%d = 0;\n", d, d);
    buffer_printf(b, "    const int f%d = (int)floor(s%d);\n    const T v%d = s%d - f%d;\n", d, d,
                  d, d, d);
    if (r->taps == 2)
        buffer_printf(b, "    const T w%d[2] = {1 - v%d, v%d};\n", d, d, d);
    else
        buffer_printf(b,
                      "    const T w%d[4] = {op_far(v%d + 1), op_near(v%d), op_near(1 - v%d), "
                      "op_far(2 - v%d)};\n",
                      d, d, d, d, d);
    buffer_printf(b,
                  "    int p%d[%d];\n"
                  "    for (int k = 0; k < %d; k++) {\n"
                  "        const int p = f%d + k - %d;\n"
                  "        p%d[k] = p < 0 ? 0 : p > %lld ? %lld : p;\n"
                  "    }\n",
                  d, r->taps, r->taps, d, r->taps == 4, d, last, last);
}

static int plain(const OpCall *c, OpPlain *out, Error *err)
{
    const OpTensor *x = op_tensor(c, 0), *y = &c->result[0];
    Buffer *b = out->source;
    int64_t inner = 1;
    Resize r;
    resize_of(c, &r);
    part_put(b, op_resize_cu, "weights");
    if (!text_each(out, "resize", NULL, op_elements(y), err)) return -1;
    buffer_printf(b, "    typedef %s T;\n", text_type(y->dtype));
    for (int d = r.dims - 1; d >= 0; inner *= r.out[d--]) taps_text(b, &r, d, inner);
    buffer_printf(b, "    const long long first = %lldLL + ", (long long)x->offset);
    char image[48];
    snprintf(image, sizeof image, "(i / %lld)", (long long)inner);
    text_strided(b, &(Strided){0, 2, x->size, x->stride}, image);
    buffer_puts(b, ";\n    T sum = 0;\n");
    for (int d = 0; d < r.dims; d++)
        buffer_printf(b, "    for (int k%d = 0; k%d < %d; k%d++)\n", d, d, r.taps, d);
    buffer_puts(b, "        sum += ");
    for (int d = 0; d < r.dims && r.taps > 1; d++) buffer_printf(b, "w%d[k%d] * ", d, d);
    buffer_printf(b, "(T)%sx%lld[first", text_cast(x->dtype, DTYPE_F32),
                  (long long)c->arg[0].integer[0]);
    for (int d = 0; d < r.dims; d++)
        buffer_printf(b, " + p%d[k%d] * %lldLL", d, d, (long long)x->stride[2 + d]);
    buffer_printf(b, "];\n    y0[i] = (%s)sum;\n", dtype_ctype(y->dtype));
    return text_each_end(out, err);
}

/* The nearest elements are no more than the result has. */
static void cost(const OpCall *c, OpCost *out)
{
    double x = op_bytes(op_tensor(c, 0)), y = op_bytes(&c->result[0]);
    Resize r;
    resize_of(c, &r);
    if (r.taps == 1 && y < x) out->bytes += y - x;
    if (r.taps > 1) out->flops = 2 * pow(r.taps, r.dims) * (double)op_elements(&c->result[0]);
}

#define ROW(aten, text, dims, taps)                                                               \
    {                                                                                             \
        "aten.upsample_" aten ".default", "Tensor self, " text, infer, reference, plain, cost, 0, \
            &(const ResizeKind)                                                                   \
        {                                                                                         \
            dims, taps                                                                            \
        }                                                                                         \
    }
#define ONE "float? scales=None"
#define TWO "float? scales_h=None, float? scales_w=None"
#define CORNERS ", bool align_corners, "

static const Op table[] = {
    ROW("nearest1d", "int[1] output_size, " ONE, 1, 1),
    ROW("nearest2d", "int[2] output_size, " TWO, 2, 1),
    ROW("nearest3d", "int[3] output_size, float? scales_d=None, " TWO, 3, 1),
    ROW("linear1d", "int[1] output_size" CORNERS ONE, 1, 2),
    ROW("bilinear2d", "int[2] output_size" CORNERS TWO, 2, 2),
    ROW("trilinear3d", "int[3] output_size" CORNERS "float? scales_d=None, " TWO, 3, 2),
    ROW("bicubic2d", "int[2] output_size" CORNERS TWO, 2, 4),
};

const OpFamily resize_family = {"resize", table, sizeof table / sizeof *table};
