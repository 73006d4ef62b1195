/* Engines of cuDNN's graph functions for one convolution, which are what eager PyTorch runs: the first of
 * the heuristics' list, then of the fallback list, that computes in float32, or TF32 where that is
 * allowed, and can be built. */
#ifndef EVAL_CUDA_LIBRARY_LIBRARY_ENGINE_H
#define EVAL_CUDA_LIBRARY_LIBRARY_ENGINE_H

#include <stddef.h>

#include "eval/candidate/library_arguments.h"

/* Pointers are aligned to at least so many bytes, which decides what engines fit. */
enum { ENGINE_MAX_ALIGNED = 32 };

typedef struct {
    void *plan;   /* NULL: none */
    size_t bytes; /* of workspace */
    int offered;  /* engines */
} LibraryEngine;

/* The symbols of the open cuDNN. */
int library_engine_load(Error *err);

/* UNSUPPORTED: cuDNN offers none. The pointers of c say how they are aligned. */
int library_engine_find(void *handle, const LibraryConvolution *c, LibraryEngine *out, Error *err);
int library_engine_run(void *handle, const LibraryEngine *e, const LibraryConvolution *c,
                       void *workspace, Error *err);
void library_engine_release(LibraryEngine *e);
int library_engine_alignment(const LibraryConvolution *c);
/* The strides of a dense tensor of n sizes (batch, channels, the rest) in the convolution's layout. */
void library_engine_strides(const LibraryConvolution *c, int n, const int64_t *sizes,
                            int64_t *strides);

#endif
