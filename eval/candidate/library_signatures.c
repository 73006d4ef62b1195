/* The table of library calls. eval/cuda/library has one function for each name. */
#include "eval/candidate/library_signatures.h"

#include <stddef.h>
#include <string.h>

static const LibrarySignature signatures[] = {
    {"cublas.gemm", "pppzziiiibbiiizzzd"},
    {"cublas.sgemm", "pppiii"},
    {"cublas.sgemm_batched", "pppiiiibbd"},
    {"cublaslt.gemm_bias", "ppppziiib"},
    {"cublaslt.sgemm_bias_relu", "ppppiii"},
    {"cudnn.conv3d_forward", "pppiiiiiiiiz"},
    {"cudnn.convolution", "pppbziiiiiiiiziiiiiziiiiizi"},
};

const LibrarySignature *library_signature(const char *name)
{
    for (size_t i = 0; i < sizeof signatures / sizeof *signatures; i++)
        if (!strcmp(signatures[i].name, name)) return &signatures[i];
    return NULL;
}
