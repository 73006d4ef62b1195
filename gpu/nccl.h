/* NCCL, opened at run time: collective operations between the GPUs of one host, with one process
 * per GPU, enqueued in a stream. */
#ifndef GPU_NCCL_H
#define GPU_NCCL_H

#include <stddef.h>

#include "base/error.h"
#include "gpu/driver.h"

typedef struct {
    char bytes[128];
} NcclId;

typedef struct Nccl Nccl;

/* The id by which the ranks connect: one rank makes it and sends it to the others. */
int nccl_new_id(NcclId *out, Error *err);
/* To be called by all n ranks, each with its GPU's context current; it returns when all are
 * connected. NVLink multicast is off unless NCCL_NVLS_ENABLE is set: drivers in containers often
 * refuse it with an error that names no cause. */
int nccl_open(const NcclId *id, int rank, int n, Nccl **out, Error *err);
/* To be called by all ranks, with no work enqueued. NULL is allowed. */
void nccl_close(Nccl *c);

/* In place, in device memory. x: n floats; their sums over all ranks replace them. */
int nccl_all_reduce(Nccl *c, float *x, size_t n, CuStream stream, Error *err);
/* x: a slice of `each` floats for every rank. Slice `rank` becomes the sum of that slice over all
 * ranks. */
int nccl_reduce_scatter(Nccl *c, float *x, size_t each, CuStream stream, Error *err);
/* p: a slice of `bytes` bytes for every rank. Each rank's slice is copied to all ranks. */
int nccl_all_gather(Nccl *c, void *p, size_t bytes, CuStream stream, Error *err);
/* The bytes of rank 0 are copied to all ranks. */

#endif
