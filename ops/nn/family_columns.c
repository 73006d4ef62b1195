/* Windows of images as columns, and the sums of columns in an image. Eager PyTorch launches a kernel for each
 * image of a batch to make columns, and one for all to add them; a thread has an image's element, or one
 * place of a window in a channel. */
#include <stdio.h>
#include <string.h>

#include "base/embed.h"
#include "base/part.h"
#include "ops/op_text.h"
#include "ops/op_window.h"

EMBED(op_columns_cu, "ops/nn/family_columns.cu")

enum { COLUMN_THREADS = 1024, IMAGE_THREADS = 512 };

/* x is [batch, channels, h, w], of a fold [batch, channels * taps, places]; `lead` is 0 without a batch. */
typedef struct {
    int folds, lead;
    int64_t batch, channels, taps, places;
    Window w[2];
} Columns;

static int window(const OpCall *c, int d, Window *w, Error *err)
{
    if (window_argument(c, "kernel_size", d, 1, &w->kernel, err) ||
        window_argument(c, "dilation", d, 1, &w->dilation, err) ||
        window_argument(c, "padding", d, 0, &w->padding, err) ||
        window_argument(c, "stride", d, 1, &w->stride, err))
        return -1;
    int64_t room = w->in + 2 * w->padding - w->dilation * (w->kernel - 1) - 1;
    if (room < 0)
        return error_set(err, ERROR_INVALID, "a window of %lld does not fit in %lld elements",
                         (long long)w->kernel, (long long)w->in);
    w->out = room / w->stride + 1;
    return 0;
}

static int columns_of(const OpCall *c, Columns *k, Error *err)
{
    const OpTensor *x = op_tensor(c, 0);
    *k = (Columns){.folds = op_argument(c->op, "output_size") >= 0};
    k->lead = x->rank - (k->folds ? 2 : 3);
    if (k->lead != 0 && k->lead != 1)
        return error_set(err, ERROR_INVALID, "expected %d or %d dimensions, found %d",
                         k->folds ? 2 : 3, k->folds ? 3 : 4, x->rank);
    if (!dtype_is_float(x->dtype))
        return error_set(err, ERROR_UNSUPPORTED, "expected a floating-point type, found %s",
                         dtype_name(x->dtype));
    for (int d = 0; d < x->rank; d++)
        if (x->size[d] < 1 || x->size[d] > INT32_MAX)
            return error_set(err, ERROR_INVALID, "a dimension has %lld elements",
                             (long long)x->size[d]);
    for (int d = 0; d < 2; d++) {
        k->w[d].in = k->folds ? 0 : x->size[k->lead + 1 + d];
        if (k->folds && window_argument(c, "output_size", d, 1, &k->w[d].in, err)) return -1;
        if (window(c, d, &k->w[d], err)) return -1;
    }
    k->batch = k->lead ? x->size[0] : 1;
    k->taps = k->w[0].kernel * k->w[1].kernel;
    k->places = k->w[0].out * k->w[1].out;
    k->channels = k->folds ? x->size[k->lead] / k->taps : x->size[k->lead];
    if (!k->folds) return 0;
    if (x->size[k->lead] != k->channels * k->taps || x->size[k->lead + 1] != k->places)
        return error_set(err, ERROR_INVALID,
                         "expected a multiple of %lld rows and %lld columns, found %lld and %lld",
                         (long long)k->taps, (long long)k->places, (long long)x->size[k->lead],
                         (long long)x->size[k->lead + 1]);
    return 0;
}

static int infer(OpCall *c, Error *err)
{
    Columns k;
    int64_t size[4] = {0};
    int n = 0;
    if (columns_of(c, &k, err)) return -1;
    if (k.lead) size[n++] = k.batch;
    size[n++] = k.folds ? k.channels : k.channels * k.taps;
    if (!k.folds) size[n++] = k.places;
    for (int d = 0; d < 2 && k.folds; d++) size[n++] = k.w[d].in;
    return op_result(c, op_tensor(c, 0)->dtype, n, size, err);
}

/* ---- reference ---- */

/* Copies one row of columns from a channel's image, or adds it there. */
static void row(const Columns *k, int64_t tap, double *image, double *column)
{
    const Window *h = &k->w[0], *w = &k->w[1];
    for (int64_t o = 0; o < h->out; o++) {
        int64_t y = window_input(h, o, tap / w->kernel);
        for (int64_t p = 0; p < w->out; p++) {
            int64_t x = window_input(w, p, tap % w->kernel);
            double *at = &column[o * w->out + p];
            if (!k->folds)
                *at = y < 0 || x < 0 ? 0 : image[y * w->in + x];
            else if (y >= 0 && x >= 0)
                image[y * w->in + x] += *at;
        }
    }
}

static int reference(const OpCall *c, const double *const *in, double *const *out, Error *err)
{
    double *x = (double *)in[c->arg[0].integer[0]], *y = out[0];
    Columns k;
    if (columns_of(c, &k, err)) return -1;
    int64_t image = k.w[0].in * k.w[1].in;
    double *images = k.folds ? y : x, *columns = k.folds ? x : y;
#pragma omp parallel for if (op_elements(op_tensor(c, 0)) >= 1 << 14)
    for (int64_t i = 0; i < k.batch * k.channels; i++) {
        double *own = images + i * image;
        if (k.folds) memset(own, 0, (size_t)image * sizeof *own);
        for (int64_t t = 0; t < k.taps; t++) row(&k, t, own, columns + (i * k.taps + t) * k.places);
    }
    return 0;
}

/* Elements between the windows, or columns in the padding, need not be read. */
static void cost(const OpCall *c, OpCost *out)
{
    Columns k;
    Error err;
    double used = 1;
    if (columns_of(c, &k, &err)) return;
    for (int d = 0; d < 2; d++) {
        const Window *w = &k.w[d];
        WindowUse u = window_use(w, k.folds);
        used *= k.folds ? u.pairs / ((double)w->out * (double)w->kernel) : u.inputs / (double)w->in;
    }
    if (used < 1) out->bytes -= (1 - used) * op_bytes(op_tensor(c, 0));
    out->flops = k.folds ? used * (double)op_elements(op_tensor(c, 0)) : 0;
}

/* ---- kernels ---- */

static int plain(const OpCall *c, OpPlain *out, Error *err)
{
    static const char *const names[] = {"h", "w"};
    const OpTensor *x = op_tensor(c, 0);
    const char *type = dtype_ctype(x->dtype);
    char place[48], name[24], operands[400];
    Columns k;
    snprintf(name, sizeof name, "x%lld", (long long)c->arg[0].integer[0]);
    if (columns_of(c, &k, err) || text_dense(out, name, x, place, sizeof place, err)) return -1;
    int threads = k.folds ? IMAGE_THREADS : COLUMN_THREADS;
    int64_t image = k.channels * k.w[0].in * k.w[1].in,
            n = k.folds ? k.batch * image : k.channels * k.places;
    int len = snprintf(operands, sizeof operands, "%.*s y0 n:%lld", (int)strcspn(place, " "), place,
                       (long long)n);
    for (int d = 0; d < 2; d++) {
        const Window *w = &k.w[d];
        len += snprintf(operands + len, sizeof operands - (size_t)len,
                        " in%s:%lld out%s:%lld kernel%s:%lld pad%s:%lld stride%s:%lld "
                        "dilation%s:%lld",
                        names[d], (long long)w->in, names[d], (long long)w->out, names[d],
                        (long long)w->kernel, names[d], (long long)w->padding, names[d],
                        (long long)w->stride, names[d], (long long)w->dilation);
    }
    if (!k.folds) snprintf(operands + len, sizeof operands - (size_t)len, " t");
    OpLaunch *l = text_begin(
        out,
        &(TextHead){k.folds ? "col2im" : "im2col", operands, (n + threads - 1) / threads, threads},
        err);
    if (!l) return -1;
    buffer_printf(out->source, "    typedef %s T;\n    typedef %s A;\n    (void)(A)0;\n", type,
                  text_type(x->dtype));
    if (k.folds) {
        buffer_printf(out->source, "    const T *col = %s;\n", place);
        part_put(out->source, op_columns_cu, "fold");
    } else {
        l->repeat = k.batch;
        buffer_printf(out->source,
                      "    const T *im = %s + t * %lldLL;\n    T *col = y0 + t * n * kernelh * "
                      "kernelw;\n",
                      place, (long long)image);
        part_put(out->source, op_columns_cu, "unfold");
    }
    return text_end(out, err);
}

#define WINDOWS "int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride"

static const Op table[] = {
    {"aten.im2col.default", "Tensor self, " WINDOWS, infer, reference, plain, cost, 0, NULL, NULL},
    {"aten.col2im.default", "Tensor self, int[2] output_size, " WINDOWS, infer, reference, plain,
     cost, 0, NULL, NULL},
};

const OpFamily columns_family = {"columns", table, sizeof table / sizeof *table};
