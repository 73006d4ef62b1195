/* The table of library calls by name. Arguments are checked here against the signature, so that a
 * call gets no null pointer and no integer beyond an int. */
#include "eval/cuda/library/library.h"

#include <string.h>

#include "eval/candidate/library_signatures.h"
#include "eval/cuda/library/library_cublas.h"
#include "eval/cuda/library/library_cudnn.h"

static const struct {
    const char *name; /* as in eval/candidate/library_signatures.c */
    int (*call)(const uint64_t *args, void *stream, Error *err);
} calls[] = {
    {"cublas.sgemm", library_cublas_sgemm},
    {"cublas.sgemm_batched", library_cublas_sgemm_batched},
    {"cublaslt.sgemm_bias_relu", library_cublaslt_sgemm_bias_relu},
    {"cudnn.conv3d_forward", library_cudnn_conv3d_forward},
};

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
    size_t c = 0;
    while (c < sizeof calls / sizeof *calls && strcmp(calls[c].name, name)) c++;
    if (c == sizeof calls / sizeof *calls)
        return error_set(err, ERROR_UNKNOWN_NAME, "no library call is named \"%s\"", name);
    const char *kinds = library_signature(name)->kinds;
    int expected = (int)strlen(kinds);
    if (n != expected)
        return error_set(err, ERROR_INVALID, "%s takes %d arguments, found %d", name, expected, n);
    for (int i = 0; i < n; i++)
        if (check_argument(name, i, kinds[i], args[i], err)) return -1;
    if (calls[c].call(args, stream, err)) return error_prefix(err, "%s", name);
    return 0;
}
