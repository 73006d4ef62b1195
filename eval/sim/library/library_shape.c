/* Shapes of the calls in eval/candidate/library_arguments.c, and the work of each shape. */
#include "eval/sim/library/library_shape.h"

#include <math.h>
#include <string.h>

#include "tasks/task.h"

const char *library_op_name(LibraryOp op)
{
    static const char *const names[] = {"gemm", "conv", "convt", "conv_last", "convt_last"};
    return names[op];
}

int library_op_sizes(LibraryOp op)
{
    return op == LIBRARY_GEMM ? LIBRARY_GEMM_SIZES : LIBRARY_CONV_SIZES;
}

int library_op_transposed(LibraryOp op)
{
    return op == LIBRARY_CONV_TRANSPOSED || op == LIBRARY_CONV_TRANSPOSED_LAST;
}

int library_op_last(LibraryOp op)
{
    return op == LIBRARY_CONV_LAST || op == LIBRARY_CONV_TRANSPOSED_LAST;
}

static void shape_of_product(const LibraryProduct *p, LibraryShape *out)
{
    double *s = out->size;
    out->op = LIBRARY_GEMM;
    out->dtype = p->dtype;
    out->tf32 = p->tf32;
    out->result = p->c_dtype;
    s[0] = (double)p->batch, s[1] = (double)p->m, s[2] = (double)p->n, s[3] = (double)p->k;
    s[4] = p->transpose_b;
}

/* The largest stride and padding stand for all dimensions of the convolution. */
void library_convolution_shape(const LibraryConvolution *c, LibraryShape *out)
{
    double *s = out->size;
    int even = 1, dims = 0;
    if (c->last)
        out->op = c->transposed ? LIBRARY_CONV_TRANSPOSED_LAST : LIBRARY_CONV_LAST;
    else
        out->op = c->transposed ? LIBRARY_CONV_TRANSPOSED : LIBRARY_CONV;
    out->dtype = out->result = c->dtype;
    out->tf32 = (int)c->tf32;
    s[0] = (double)c->batch, s[1] = (double)c->in, s[2] = (double)c->out;
    s[11] = (double)c->groups;
    for (int d = 0; d < 3; d++) {
        double stride = (double)c->d[d].stride, padding = (double)c->d[d].padding;
        s[3 + d] = (double)c->d[d].in, s[6 + d] = (double)c->d[d].kernel;
        if (c->d[d].in == 1 && c->d[d].kernel == 1) continue;
        even &= c->d[d].dilation == 1 && (!dims || (s[9] == stride && s[10] == padding));
        s[9] = fmax(s[9], stride), s[10] = fmax(s[10], padding);
        dims++;
    }
    if (!dims) s[9] = 1;
    for (int d = 0; d < 3; d++) {
        double plain = c->transposed ? (s[3 + d] - 1) * s[9] - 2 * s[10] + s[6 + d]
                                     : floor((s[3 + d] + 2 * s[10] - s[6 + d]) / s[9]) + 1;
        even &= (s[3 + d] == 1 && s[6 + d] == 1) || plain == (double)c->d[d].out;
    }
    for (int d = 0; d < 3 && !even; d++) out->out[d] = (double)c->d[d].out;
}

int library_read(const DeviceLaunch *launch, LibraryCall *out, Error *err)
{
    uint64_t args[KERNEL_MAX_PARAMS] = {0};
    const char *name = launch->kernel;
    int n = launch->library_args;
    if (n > KERNEL_MAX_PARAMS) return error_set(err, ERROR_LIMIT, "%s has %d arguments", name, n);
    memcpy(args, launch->params, (size_t)n * sizeof *args);
    int product = library_product(name, args, n, &out->product, err);
    int rc = product ? product : library_convolution(name, args, n, &out->convolution, err);
    if (rc < 0) return error_prefix(err, "%s", name);
    if (!rc) return error_set(err, ERROR_UNSUPPORTED, "the simulator has no library call %s", name);
    out->kind = product ? LIBRARY_PRODUCT : LIBRARY_CONVOLUTION;
    return 0;
}

int library_shape(const DeviceLaunch *call, LibraryShape *out, Error *err)
{
    LibraryCall c;
    *out = (LibraryShape){.op = LIBRARY_GEMM, .dtype = DTYPE_F32};
    if (library_read(call, &c, err)) return -1;
    if (c.kind == LIBRARY_PRODUCT)
        shape_of_product(&c.product, out);
    else
        library_convolution_shape(&c.convolution, out);
    return 0;
}

static LibraryWork convolution(const LibraryShape *s)
{
    const double *v = s->size;
    int transposed = library_op_transposed(s->op);
    LibraryWork w = {.groups = v[11], .kernel = 1};
    double in = 1, out = 1;
    for (int i = 3; i < 6; i++) {
        if (v[i] == 1 && v[i + 3] == 1) continue; /* not a dimension of this convolution */
        w.dims++;
        w.kernel *= v[i + 3];
        in *= v[i];
        if (s->out[i - 3] > 0)
            out *= s->out[i - 3];
        else
            out *= transposed ? (v[i] - 1) * v[9] - 2 * v[10] + v[i + 3]
                              : floor((v[i] + 2 * v[10] - v[i + 3]) / v[9]) + 1;
    }
    w.m = v[0] * (transposed ? in : out);
    w.n = v[2] / v[11] * (transposed ? w.kernel : 1);
    w.k = v[1] / v[11] * (transposed ? 1 : w.kernel);
    w.in = v[0] * v[1] * in;
    w.weights = v[1] * v[2] / v[11] * w.kernel;
    w.out = v[0] * v[2] * out;
    return w;
}

LibraryWork library_work(const LibraryShape *s)
{
    const double *v = s->size;
    LibraryWork w = s->op == LIBRARY_GEMM ? (LibraryWork){.groups = v[0],
                                                          .m = v[1],
                                                          .n = v[2],
                                                          .k = v[3],
                                                          .in = v[0] * v[1] * v[3],
                                                          .weights = v[0] * v[2] * v[3],
                                                          .out = v[0] * v[1] * v[2],
                                                          .kernel = 1}
                                          : convolution(s);
    w.flops = 2 * w.groups * w.m * w.n * w.k;
    return w;
}
