/* The operations of a transformer on the CPU: fp32, OpenBLAS and OpenMP. */
#ifndef MODEL_CPU_OPS_CPU_H
#define MODEL_CPU_OPS_CPU_H

#include "model/core/ops.h"

const Ops *ops_cpu(void);

/* Whether the processor has what the wide variant needs: x86-64-v4 by its parts, since clang does not take
 * that name here. 0 in a build without that variant. */
int cpu_has_wide(void);

int cpu_threads(void); /* QUERN_THREADS, or the number of online cores */

#endif
