/* The operations of a transformer on the CPU: fp32, OpenBLAS and OpenMP. */
#ifndef MODEL_CPU_OPS_CPU_H
#define MODEL_CPU_OPS_CPU_H

#include "model/core/ops.h"

const Ops *ops_cpu(void);

int cpu_threads(void); /* QUERN_THREADS, or the number of online cores */

#endif
