/* The state of a GPU through NVML (libnvidia-ml, opened at run time, declared here): clocks,
 * temperature, power, reasons for lower clocks, ECC counts and Xid errors. Without NVML, or when
 * NVML does not know the GPU, all values are 0; that is no error. */
#ifndef EVAL_CUDA_HEALTH_NVML_H
#define EVAL_CUDA_HEALTH_NVML_H

#include "eval/device/device.h"

typedef struct Nvml Nvml;

/* The GPU by its uuid ("GPU-..."), else by its PCI bus id ("0000:1b:00.0"); either may be NULL or
 * "". Never NULL. */
Nvml *nvml_open(const char *uuid, const char *pci);
void nvml_close(Nvml *n);

/* Values that NVML does not have are 0. `throttle` leaves out idleness and clocks that were set on
 * purpose. */
void nvml_telemetry(Nvml *n, DeviceTelemetry *out);

/* The numbers of the Xid errors of this GPU since the last call or nvml_open, caused by any
 * process, oldest first, at most `max`. Does not wait. Returns -1 when NVML does not report Xid
 * errors. */
int nvml_xids(Nvml *n, unsigned *xids, int max);

#endif
