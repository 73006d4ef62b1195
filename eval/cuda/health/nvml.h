/* What the driver tells of a GPU through NVML (libnvidia-ml, opened at run time, declared here):
 * clocks, heat, power, reasons for lower clocks, ECC counts, and Xid errors as they come. A machine
 * without NVML, or an NVML that does not know the GPU, is no failure: everything then reads as 0
 * and nvml_absent says why. */
#ifndef EVAL_CUDA_HEALTH_NVML_H
#define EVAL_CUDA_HEALTH_NVML_H

#include "eval/device/device.h"

typedef struct Nvml Nvml;

/* The GPU by its uuid ("GPU-..."), else by its PCI bus id ("0000:1b:00.0"); either may be NULL or
 * "". Never NULL. */
Nvml *nvml_open(const char *uuid, const char *pci);
void nvml_close(Nvml *n);

/* NULL when the GPU was found, else a sentence. */
const char *nvml_absent(const Nvml *n);

/* All 0 where NVML cannot tell. Reasons of `throttle` leave out idleness and clocks that a person
 * has set. */
void nvml_telemetry(Nvml *n, DeviceTelemetry *out);

/* Numbers of the Xid errors that the driver reported for this GPU, whoever caused them, since the
 * last call (the first: since nvml_open), oldest first, at most `max`. Does not wait. -1: this NVML
 * does not report them. */
int nvml_xids(Nvml *n, unsigned *xids, int max);

#endif
