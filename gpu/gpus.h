/* The GPUs that this process may use, in the CUDA driver's order: cuda:0, cuda:1, ... */
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

/* What the driver says of one; -1 when there is no such GPU. */
int gpus_get(const CudaDriver *cu, int ordinal, Gpu *out, Error *err);

/* All of them: their number, at most max; -1 when there is a GPU's device file and yet none can be
 * used. Without one nothing is opened, so that this takes no time. */
int gpus_list(Gpu *out, int max, Error *err);

/* This process and those that it starts will use cuda:N and no other: the driver starts the sooner
 * the fewer GPUs it has to look at. Before it starts, and before there are threads. Nothing changes
 * where there is one GPU, or no such one. */
void gpus_use_only(int ordinal);
/* The driver's number of cuda:N in this process; -1: gpus_use_only has left it another one. */
int gpus_here(int ordinal);

/* "580.159.03" of the kernel module when it can be read, else the CUDA version that the driver
 * supports: "CUDA 13.0". */
void gpus_driver(const CudaDriver *cu, char *out, size_t size);

#endif
