/* The table of library calls. eval/cuda/library has one function for each name. */
#include "eval/candidate/library_signatures.h"

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
