/* Reads the arguments of library calls. Sizes that contradict each other are refused here. */
#include "eval/candidate/library_arguments.h"

#include <stddef.h>
#include <string.h>

#include "base/precision.h"

static const LibrarySignature signatures[] = {
    {"cublas.gemm", "pppzziiiibbiiizzzd", 3},
    {"cublas.sgemm", "pppiii", 0},
    {"cublas.sgemm_batched", "pppiiiibbd", 0},
    {"cublaslt.gemm_bias", "ppppziiib", 4},
    {"cublaslt.sgemm_bias_relu", "ppppiii", 0},
    {"cudnn.conv3d_forward", "pppiiiiiiiiz", 0},
    {"cudnn.convolution", "pppbziiiiiiiiziiiiiziiiiizi", 4},
    {"cudnn.convolution_last", "pppbziiiiiiiiziiiiiziiiiizi", 4},
};

void library_let_tf32(const LibrarySignature *s, unsigned tf32, uint64_t *dtype)
{
    unsigned by = strncmp(s->name, "cudnn.", 6) ? TF32_CUBLAS : TF32_CUDNN;
    if (s->dtype && !*dtype && tf32 & by) *dtype = LIBRARY_TF32;
}

const LibrarySignature *library_signature(const char *name)
{
    for (size_t i = 0; i < sizeof signatures / sizeof *signatures; i++)
        if (!strcmp(signatures[i].name, name)) return &signatures[i];
    return NULL;
}

enum { LIBRARY_DTYPES = 3 }; /* of memory */

static int is_call(const char *name, int n)
{
    const LibrarySignature *s = library_signature(name);
    return s && (int)strlen(s->kinds) == n;
}

static int read_dtype(uint64_t arg, int *dtype, int *tf32, Error *err)
{
    *tf32 = arg == LIBRARY_TF32;
    *dtype = *tf32 ? 0 : (int)arg;
    if (arg < LIBRARY_DTYPES || *tf32) return 0;
    return error_set(err, ERROR_INVALID, "dtype: expected 0 to %d, found %lld", LIBRARY_TF32,
                     (long long)arg);
}

/* Dense matrices of the product's sizes. */
static void dense(LibraryProduct *p)
{
    p->lda = p->transpose_a ? p->m : p->k;
    p->ldb = p->transpose_b ? p->k : p->n;
    p->ldc = p->n;
    p->apart_a = p->m * p->k, p->apart_b = p->k * p->n, p->apart_c = p->m * p->n;
}

/* Sizes m, n, k from args. */
static void sizes(LibraryProduct *p, const uint64_t *args)
{
    p->m = (int64_t)args[0], p->n = (int64_t)args[1], p->k = (int64_t)args[2];
}

/* cublas.gemm: the arguments after the pointers. */
static int general(LibraryProduct *p, const uint64_t *s, Error *err)
{
    int no;
    p->batch = (int64_t)s[2];
    sizes(p, s + 3);
    p->transpose_a = (int)s[6], p->transpose_b = (int)s[7];
    p->lda = (int64_t)s[8], p->ldb = (int64_t)s[9], p->ldc = (int64_t)s[10];
    p->apart_a = (int64_t)s[11], p->apart_b = (int64_t)s[12], p->apart_c = (int64_t)s[13];
    memcpy(&p->alpha, &s[14], sizeof p->alpha);
    if (read_dtype(s[0], &p->dtype, &p->tf32, err) || read_dtype(s[1], &p->c_dtype, &no, err))
        return -1;
    if (p->dtype != p->c_dtype && p->c_dtype)
        return error_set(err, ERROR_INVALID,
                         "a product in half precision has a half or a float32 result");
    if (p->lda < (p->transpose_a ? p->m : p->k) || p->ldb < (p->transpose_b ? p->k : p->n) ||
        p->ldc < p->n)
        return error_set(err, ERROR_INVALID, "a row is longer than the distance to the next one");
    return 1;
}

int library_product(const char *name, const uint64_t *args, int n, LibraryProduct *out, Error *err)
{
    *out = (LibraryProduct){.a = args[0], .b = args[1], .c = args[2], .batch = 1, .alpha = 1};
    if (!is_call(name, n)) return 0;
    if (!strcmp(name, "cublas.gemm")) return general(out, args + 3, err);
    if (!strcmp(name, "cublas.sgemm")) {
        sizes(out, args + 3);
    } else if (!strcmp(name, "cublas.sgemm_batched")) {
        out->batch = (int64_t)args[3];
        sizes(out, args + 4);
        out->transpose_a = (int)args[7], out->transpose_b = (int)args[8];
        memcpy(&out->alpha, &args[9], sizeof out->alpha);
    } else if (!strncmp(name, "cublaslt.", 9)) {
        int typed = !strcmp(name, "cublaslt.gemm_bias");
        out->bias = args[2], out->c = args[3], out->relu = !typed;
        sizes(out, args + 4 + typed);
        if (typed) {
            if (read_dtype(args[4], &out->dtype, &out->tf32, err)) return -1;
            out->c_dtype = out->dtype;
            out->transpose_b = (int)args[8];
        }
    } else {
        return 0;
    }
    dense(out);
    return 1;
}

/* What stride, padding and dilation make of an input's size; a transposed one may have some more. */
static int outputs_fit(const LibraryConvolution *c, int d, Error *err)
{
    int64_t in = c->d[d].in, out = c->d[d].out, stride = c->d[d].stride,
            span = c->d[d].dilation * (c->d[d].kernel - 1) + 1;
    if (c->transposed) in = c->d[d].out, out = c->d[d].in;
    int64_t room = in + 2 * c->d[d].padding - span;
    if (room < 0)
        return error_set(err, ERROR_LIMIT, "the kernel of %lld is larger than the input of %lld",
                         (long long)c->d[d].kernel, (long long)in);
    if (room / stride + 1 == out) return 0;
    return error_set(err, ERROR_INVALID, "dimension %d: expected %lld outputs, found %lld", d,
                     (long long)(room / stride + 1), (long long)out);
}

static int convolution_fits(const LibraryConvolution *c, Error *err)
{
    if (c->in % c->groups || c->out % c->groups)
        return error_set(err, ERROR_INVALID, "channels do not fall into %lld groups",
                         (long long)c->groups);
    for (int d = 0; d < 3; d++)
        if (outputs_fit(c, d, err)) return -1;
    return 1;
}

int library_convolution(const char *name, const uint64_t *args, int n, LibraryConvolution *out,
                        Error *err)
{
    *out = (LibraryConvolution){.x = args[0], .weight = args[1], .y = args[2], .groups = 1};
    if (!is_call(name, n)) return 0;
    if (!strcmp(name, "cudnn.conv3d_forward")) {
        out->batch = (int64_t)args[3], out->in = (int64_t)args[4], out->out = (int64_t)args[5];
        for (int d = 0; d < 3; d++) {
            int64_t in = (int64_t)args[6 + d], kernel = (int64_t)args[9],
                    stride = (int64_t)args[10], padding = (int64_t)args[11],
                    room = in + 2 * padding - kernel;
            out->d[d].in = in, out->d[d].kernel = kernel, out->d[d].stride = stride;
            out->d[d].padding = padding, out->d[d].dilation = 1;
            out->d[d].out = room < 0 ? 0 : room / stride + 1;
        }
    } else if (!strncmp(name, "cudnn.convolution", 17)) {
        out->last = !strcmp(name, "cudnn.convolution_last");
        out->transposed = (int)args[3];
        int tf32;
        if (read_dtype(args[4], &out->dtype, &tf32, err)) return -1;
        out->tf32 = tf32;
        out->batch = (int64_t)args[5], out->in = (int64_t)args[6], out->out = (int64_t)args[7];
        out->groups = (int64_t)args[8];
        for (int d = 0; d < 3; d++) {
            const uint64_t *s = args + 9 + 6 * d;
            out->d[d].in = (int64_t)s[0], out->d[d].kernel = (int64_t)s[1];
            out->d[d].out = (int64_t)s[2], out->d[d].stride = (int64_t)s[3];
            out->d[d].padding = (int64_t)s[4], out->d[d].dilation = (int64_t)s[5];
        }
    } else {
        return 0;
    }
    return convolution_fits(out, err);
}
