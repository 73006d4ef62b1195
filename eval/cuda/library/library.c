/* Library calls by name. Arguments are checked here against the signature, so that a
 * call gets no null pointer and no integer beyond an int. */
#include "eval/cuda/library/library.h"

#include <string.h>

#include "eval/candidate/library_arguments.h"
#include "eval/cuda/library/library_cublas.h"
#include "eval/cuda/library/library_cudnn.h"

static int call(const char *name, const uint64_t *args, int n, void *stream, Error *err)
{
    LibraryProduct p;
    LibraryConvolution c;
    int rc = library_product(name, args, n, &p, err);
    if (rc > 0)
        return p.bias ? library_cublaslt_gemm_bias(&p, stream, err)
                      : library_cublas_gemm(&p, stream, err);
    if (!rc) rc = library_convolution(name, args, n, &c, err);
    return rc > 0 ? library_cudnn_convolution(&c, stream, err) : -1;
}

static int check_argument(const char *name, int i, char kind, uint64_t arg, Error *err)
{
    int64_t v = (int64_t)arg, low = kind == 'i', high = kind == 'b' ? 1 : INT32_MAX;
    if (kind == 'd') return 0;
    if (kind == 'p')
        return arg ? 0
                   : error_set(err, ERROR_INVALID, "%s: argument %d is a null pointer", name,
                               i + 1);
    if (v >= low && v <= high) return 0;
    return error_set(err, ERROR_INVALID, "%s: argument %d is %lld; expected %lld to %lld", name,
                     i + 1, (long long)v, (long long)low, (long long)high);
}

int library_call(const char *name, const uint64_t *args, int n, void *stream, Error *err)
{
    const LibrarySignature *signature = library_signature(name);
    if (!signature)
        return error_set(err, ERROR_UNKNOWN_NAME, "no library call is named \"%s\"", name);
    const char *kinds = signature->kinds;
    int expected = (int)strlen(kinds);
    if (n != expected)
        return error_set(err, ERROR_INVALID, "%s takes %d arguments, found %d", name, expected, n);
    for (int i = 0; i < n; i++)
        if (check_argument(name, i, kinds[i], args[i], err)) return -1;
    if (call(name, args, n, stream, err)) return error_prefix(err, "%s", name);
    return 0;
}
