/* OpenBLAS, opened at run time: it takes its kernels as it is loaded, by a list of processors that
 * it knows by number, and a processor newer than the list gets those of 2004 (measured: a quarter
 * of the speed). Then it is told what to take. */
#ifndef MODEL_CPU_BLAS_H
#define MODEL_CPU_BLAS_H

#include <cblas.h>

#include "base/error.h"

/* Once a process; 0, or -1 where there is no OpenBLAS. $OPENBLAS_CORETYPE, where set, is obeyed. */
int blas_open(Error *err);

/* Row-major cblas_sgemm, in the calling thread alone. Opens where nobody has; a process without
 * OpenBLAS ends here. */
void blas_sgemm(enum CBLAS_TRANSPOSE ta, enum CBLAS_TRANSPOSE tb, int m, int n, int k, float alpha,
                const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);

/* The kernels in use: "SkylakeX". Open before. */
const char *blas_core(void);

/* What to tell an OpenBLAS that took `core`: NULL when it need not be told. wide: AVX2 and FMA (1),
 * AVX-512 too (2). */
const char *blas_better_core(const char *core, int wide);

#endif
