/* The operations of a transformer on the CPU: fp32, OpenBLAS and OpenMP. */
#ifndef MODEL_CPU_OPS_CPU_H
#define MODEL_CPU_OPS_CPU_H

#include "model/core/ops.h"

const Ops *ops_cpu(void);

/* Whether the processor has what the wide variant needs: x86-64-v4 by its parts, since clang does not take
 * that name here. 0 in a build without that variant. */
int cpu_has_wide(void);

/* What QUERN_CPU says; a wrong text says nothing. */
typedef struct {
    double threads, narrow; /* 0: not said */
} CpuSetting;
CpuSetting cpu_setting(void);
int cpu_threads(void); /* as QUERN_CPU says, or the number of online cores */

#endif
