/* The device code of this folder and of decode/, embedded in the program, and its compilation. */
#ifndef MODEL_CUDA_SOURCES_H
#define MODEL_CUDA_SOURCES_H

#include <stddef.h>

#include "base/digest.h"
#include "base/error.h"
#include "gpu/nvrtc.h"
#include "model/cuda/kernels.h"

const char *cuda_source_name(CudaSource s); /* "norm.cu" */
const char *cuda_source_text(CudaSource s);

typedef struct {
    char *data;
    size_t len;
} CudaBinary;

/* Get the binaries of all sources for `arch` ("sm_90"): from the cache in `cache_dir` (NULL: none),
 * else compiled by NVRTC, several at a time, and stored there. The cache key covers sources, flags,
 * arch and the version of NVRTC. Release `out` in all cases. */
int cuda_compile(const char *arch, const char *cache_dir, CudaBinary out[SOURCE_COUNT + 1],
                 Error *err);
void cuda_compile_release(CudaBinary cubins[SOURCE_COUNT + 1]);

/* One compilation of cuda_compile, of which it keeps the binary, and the key of that binary in the
 * cache. The caller releases *out in all cases. */
NvrtcOutcome cuda_compile_source(const Nvrtc *nvrtc, const char *arch, CudaSource s,
                                 NvrtcOutput *out);
void cuda_source_key(const Nvrtc *nvrtc, const char *arch, CudaSource s, char hex[DIGEST_HEX]);

#endif
