/* OpenBLAS, opened at run time. It chooses its kernels when it is loaded, from a list of known
 * processor models. A processor newer than the list gets generic kernels of a quarter of the speed;
 * then the choice is overridden. */
#ifndef MODEL_CPU_BLAS_H
#define MODEL_CPU_BLAS_H

#include "model/core/ops.h"

/* Open OpenBLAS once per process. Returns 0, or -1 where there is none. $OPENBLAS_CORETYPE takes
 * precedence. */
int blas_open(Error *err);

/* c = alpha a b + beta c, all float, in the calling thread only. It opens OpenBLAS if needed, and
 * ends the process where there is none. */
void blas_sgemm(float alpha, Matrix a, Matrix b, float beta, float *c, int ldc);

/* Returns the name of the kernels in use, for example "SkylakeX". OpenBLAS must be open. */
const char *blas_core(void);

/* Returns the core type that OpenBLAS should use instead of `core`, or NULL if `core` is right.
 * wide: 1 with AVX2 and FMA, 2 with AVX-512 too. */
const char *blas_better_core(const char *core, int wide);

#endif
