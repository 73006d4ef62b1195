/* Images sampled at places that another tensor gives: the nearest element, or the weighted sum of the four
 * around. x is [batch, channels, h, w], the grid [batch, h', w', 2] with columns first, from -1 to 1. A
 * thread has one place of all channels. */
#include <math.h>
#include <stdio.h>

#include "base/embed.h"
#include "base/part.h"
#include "ops/op_text.h"

EMBED(op_grid_cu, "ops/nn/family_grid.cu")

enum { BILINEAR, NEAREST, GRID_THREADS = 256 };

typedef struct {
    const OpTensor *x, *grid;
    int nearest, border, aligned;
} Grid;

static int grid_of(const OpCall *c, Grid *g, Error *err)
{
    int64_t mode = c->arg[2].integer[0], padding = c->arg[3].integer[0];
    *g = (Grid){.x = op_tensor(c, 0), .grid = op_tensor(c, 1), .nearest = mode == NEAREST};
    g->border = padding == 1;
    g->aligned = c->arg[4].integer[0] != 0;
    if (mode != BILINEAR && mode != NEAREST)
        return error_set(err, ERROR_UNSUPPORTED, "the mode bicubic, which Quern does not know");
    if (padding != 0 && padding != 1)
        return error_set(err, ERROR_UNSUPPORTED,
                         "the padding mode reflection, which Quern does not know");
    if (g->x->rank != 4 || g->grid->rank != 4)
        return error_set(err, ERROR_UNSUPPORTED, "expected 4 dimensions, found %d and %d",
                         g->x->rank, g->grid->rank);
    if (g->grid->size[0] != g->x->size[0] || g->grid->size[3] != 2)
        return error_set(err, ERROR_INVALID, "expected a grid [%lld, height, width, 2]",
                         (long long)g->x->size[0]);
    if (!dtype_is_float(g->x->dtype) || g->grid->dtype != g->x->dtype)
        return error_set(err, ERROR_INVALID, "expected one floating-point type of both tensors");
    for (int d = 0; d < 4; d++)
        if (g->x->size[d] < 1 || g->x->size[d] > INT32_MAX / 2)
            return error_set(err, ERROR_INVALID, "a dimension has %lld elements",
                             (long long)g->x->size[d]);
    return 0;
}

static int infer(OpCall *c, Error *err)
{
    Grid g;
    if (grid_of(c, &g, err)) return -1;
    int64_t size[] = {g.x->size[0], g.x->size[1], g.grid->size[1], g.grid->size[2]};
    return op_result(c, g.x->dtype, 4, size, err);
}

/* ---- reference ---- */

/* The place among n elements. Where the nearest one is chosen it jumps, so it is of the kernel's type. */
static double place(const Grid *g, double at, int64_t n)
{
    double p = g->aligned ? (at + 1) / 2 * (double)(n - 1) : ((at + 1) * (double)n - 1) / 2;
    if (g->nearest && g->x->dtype != DTYPE_F64) {
        float one = (float)at + 1;
        p = g->aligned ? one / 2 * (float)(n - 1) : fmaf(one, (float)n, -1) / 2;
    }
    if (g->border) p = fmin((double)(n - 1), fmax(p, 0));
    return p > -2 && p < (double)n + 1 ? p : -100;
}

static double element(const Grid *g, const double *image, double h, double w)
{
    int64_t height = g->x->size[2], width = g->x->size[3];
    if (h < 0 || w < 0 || h >= (double)height || w >= (double)width) return 0;
    return image[(int64_t)h * width + (int64_t)w];
}

static double sample(const Grid *g, const double *image, double h, double w)
{
    if (g->nearest) return element(g, image, nearbyint(h), nearbyint(w));
    double h0 = floor(h), w0 = floor(w), v = h - h0, u = w - w0;
    return element(g, image, h0, w0) * (1 - v) * (1 - u) +
           element(g, image, h0, w0 + 1) * (1 - v) * u +
           element(g, image, h0 + 1, w0) * v * (1 - u) + element(g, image, h0 + 1, w0 + 1) * v * u;
}

static int reference(const OpCall *c, const double *const *in, double *const *out, Error *err)
{
    const double *x = in[c->arg[0].integer[0]], *at = in[c->arg[1].integer[0]];
    int64_t n = op_elements(&c->result[0]);
    Grid g;
    if (grid_of(c, &g, err)) return -1;
    int64_t height = g.x->size[2], width = g.x->size[3], channels = g.x->size[1],
            places = g.grid->size[1] * g.grid->size[2];
#pragma omp parallel for if (n >= 1 << 14)
    for (int64_t i = 0; i < n; i++) {
        const double *own = at + 2 * (i / places / channels * places + i % places);
        out[0][i] = sample(&g, x + i / places * height * width, place(&g, own[1], height),
                           place(&g, own[0], width));
    }
    return 0;
}

/* Which elements of x are read follows from the grid's values. */
static void cost(const OpCall *c, OpCost *out)
{
    out->bytes -= op_bytes(op_tensor(c, 0));
    out->flops = (double)op_elements(&c->result[0]);
}

/* ---- kernel ---- */

static void place_text(Buffer *b, const Grid *g, const char *name, int d)
{
    buffer_printf(b, "    A %s = (A)%sx[at + %lldLL];\n", name, text_cast(g->x->dtype, DTYPE_F32),
                  d == 2 ? (long long)g->grid->stride[3] : 0);
    if (g->aligned)
        buffer_printf(b, "    %s = (%s + 1) / 2 * (in%d - 1);\n", name, name, d);
    else
        buffer_printf(b, "    %s = ((%s + 1) * in%d - 1) / 2;\n", name, name, d);
    if (g->border) buffer_printf(b, "    %s = min((A)(in%d - 1), max(%s, (A)0));\n", name, d, name);
    buffer_printf(b, "    if (!(%s > -2 && %s < in%d + 1)) %s = -100;\n", name, name, d, name);
}

/* One element with its weight, where it is in the image. */
static void tap_text(Buffer *b, const Grid *g, const char *h, const char *w, const char *weight)
{
    const OpTensor *x = g->x;
    buffer_printf(b,
                  "        if (%s >= 0 && %s < in2 && %s >= 0 && %s < in3)\n"
                  "            sum += (A)%simage[%s * %lldLL + %s * %lldLL]%s;\n",
                  h, h, w, w, text_cast(x->dtype, DTYPE_F32), h, (long long)x->stride[2], w,
                  (long long)x->stride[3], weight);
}

static int plain(const OpCall *c, OpPlain *out, Error *err)
{
    static const char *const taps[4][3] = {{"h0", "w0", " * ((1 - u) * (1 - v))"},
                                           {"h0", "w1", " * (u * (1 - v))"},
                                           {"h1", "w0", " * ((1 - u) * v)"},
                                           {"h1", "w1", " * (u * v)"}};
    Buffer *b = out->source;
    char operands[200];
    Grid g;
    if (grid_of(c, &g, err)) return -1;
    int64_t n = g.grid->size[0] * g.grid->size[1] * g.grid->size[2];
    snprintf(operands, sizeof operands,
             "x%lld x%lld y0 n:%lld channels=%lld in2=%lld in3=%lld out2=%lld out3=%lld",
             (long long)c->arg[0].integer[0], (long long)c->arg[1].integer[0], (long long)n,
             (long long)g.x->size[1], (long long)g.x->size[2], (long long)g.x->size[3],
             (long long)g.grid->size[1], (long long)g.grid->size[2]);
    if (!text_begin(out,
                    &(TextHead){"grid_sampler", operands, (n + GRID_THREADS - 1) / GRID_THREADS,
                                GRID_THREADS},
                    err))
        return -1;
    part_fill(b, op_grid_cu, "begin", "type=%s;offset=%lld;batch=%lld;line=%lld;column=%lld",
              text_type(g.x->dtype), (long long)g.grid->offset, (long long)g.grid->stride[0],
              (long long)g.grid->stride[1], (long long)g.grid->stride[2]);
    buffer_printf(b, "    const %s *x = x%lld;\n", dtype_ctype(g.grid->dtype),
                  (long long)c->arg[1].integer[0]);
    place_text(b, &g, "column", 3);
    place_text(b, &g, "line", 2);
    buffer_printf(b, g.nearest ? "    const int h0 = (int)rint(line), w0 = (int)rint(column);\n"
                               : "    const int h0 = (int)floor(line), w0 = (int)floor(column);\n"
                                 "    const int h1 = h0 + 1, w1 = w0 + 1;\n"
                                 "    const A v = line - h0, u = column - w0;\n");
    buffer_printf(b,
                  "    for (int k = 0; k < channels; k++) {\n"
                  "        const %s *image = x%lld + %lldLL + batch * %lldLL + k * %lldLL;\n"
                  "        A sum = 0;\n",
                  dtype_ctype(g.x->dtype), (long long)c->arg[0].integer[0], (long long)g.x->offset,
                  (long long)g.x->stride[0], (long long)g.x->stride[1]);
    for (int k = 0; k < (g.nearest ? 1 : 4); k++)
        tap_text(b, &g, taps[k][0], taps[k][1], g.nearest ? "" : taps[k][2]);
    buffer_printf(b,
                  "        y0[((batch * channels + k) * out2 + h) * out3 + w] = (%s)sum;\n    }\n",
                  dtype_ctype(g.x->dtype));
    return text_end(out, err);
}

static const Op table[] = {
    {"aten.grid_sampler.default",
     "Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners",
     infer, reference, plain, cost, 0, NULL, NULL},
};

const OpFamily grid_family = {"grid", table, sizeof table / sizeof *table};
