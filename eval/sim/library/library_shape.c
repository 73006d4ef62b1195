/* Shapes of the calls in eval/candidate/library_signatures.c, and the work of each shape. */
#include "eval/sim/library/library_shape.h"

#include <math.h>
#include <string.h>

#include "tasks/task.h"

const char *library_op_name(LibraryOp op)
{
    static const char *const names[] = {"gemm", "conv", "convt"};
    return names[op];
}

int library_op_sizes(LibraryOp op)
{
    return op == LIBRARY_GEMM ? LIBRARY_GEMM_SIZES : LIBRARY_CONV_SIZES;
}

int library_shape(const DeviceLaunch *call, LibraryShape *out, Error *err)
{
    uint64_t a[KERNEL_MAX_PARAMS];
    size_t n = (size_t)call->library_args;
    if (n > KERNEL_MAX_PARAMS)
        return error_set(err, ERROR_LIMIT, "%s has %zu arguments", call->kernel, n);
    memcpy(a, call->params, n * sizeof *a);
    *out = (LibraryShape){.op = LIBRARY_GEMM, .dtype = DTYPE_F32};
    double *s = out->size;
    if (!strcmp(call->kernel, "cublas.sgemm") && n == 6) {
        for (int i = 0; i < 3; i++) s[1 + i] = (double)a[3 + i];
        s[0] = 1;
    } else if (!strcmp(call->kernel, "cublaslt.sgemm_bias_relu") && n == 7) {
        for (int i = 0; i < 3; i++) s[1 + i] = (double)a[4 + i];
        s[0] = 1;
    } else if (!strcmp(call->kernel, "cublas.sgemm_batched") && n == 10) {
        for (int i = 0; i < 4; i++) s[i] = (double)a[3 + i];
        s[4] = (double)a[8];
    } else if (!strcmp(call->kernel, "cudnn.conv3d_forward") && n == 12) {
        out->op = LIBRARY_CONV;
        for (int i = 0; i < 6; i++) s[i] = (double)a[3 + i];
        for (int i = 6; i < 9; i++) s[i] = (double)a[9];
        s[9] = (double)a[10];
        s[10] = (double)a[11];
        s[11] = 1;
    } else {
        return error_set(err, ERROR_UNSUPPORTED, "the simulator has no library call %s",
                         call->kernel);
    }
    return 0;
}

static LibraryWork convolution(const LibraryShape *s)
{
    const double *v = s->size;
    int transposed = s->op == LIBRARY_CONV_TRANSPOSED;
    LibraryWork w = {.groups = v[11], .kernel = 1};
    double in = 1, out = 1;
    for (int i = 3; i < 6; i++) {
        if (v[i] == 1 && v[i + 3] == 1) continue; /* not a dimension of this convolution */
        w.dims++;
        w.kernel *= v[i + 3];
        in *= v[i];
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
