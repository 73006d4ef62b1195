/* The GPUs that this process may use, in the order of the CUDA driver: cuda:0, cuda:1, ... */
#ifndef GPU_GPUS_H
#define GPU_GPUS_H

#include "gpu/driver.h"

enum { GPUS_MAX = 64 };

typedef struct {
    CuDevice device;
    int ordinal;
    char name[64]; /* its device class: "NVIDIA H200" */
    char uuid[48]; /* "GPU-%08x-...", as nvidia-smi prints it */
    char pci[32];  /* "0000:1b:00.0" */
    char arch[16]; /* "sm_90" */
} Gpu;

/* The properties of one GPU; -1: there is no such GPU. */
int gpus_get(const CudaDriver *cu, int ordinal, Gpu *out, Error *err);

/* All GPUs, at most max. Returns their number, or -1 when a device file exists and the driver
 * fails. Without a device file the driver is not opened, so that this takes no time. */
int gpus_list(Gpu *out, int max, Error *err);

/* Hide all GPUs but cuda:N from this process and its children, since the driver starts faster with
 * fewer GPUs. To be called before the driver starts and before there are threads. Does nothing when
 * there is one GPU, or no such GPU. */
void gpus_use_only(int ordinal);
/* The driver's number of cuda:N in this process; -1: gpus_use_only has hidden it. */
int gpus_driver_ordinal(int ordinal);

/* The version of the kernel module, "580.159.03", when it can be read, else the CUDA version that
 * the driver supports, "CUDA 13.0". */
void gpus_driver(const CudaDriver *cu, char *out, size_t size);

#endif
