/* The memory of the buffers: one fixed range of addresses, backed on demand. It is mapped at the
 * same addresses in the harness's context and in the runners', so that a pointer is valid in
 * all. */
#ifndef EVAL_CUDA_MEMORY_SPACE_H
#define EVAL_CUDA_MEMORY_SPACE_H

#include "eval/cuda/memory/arena.h"
#include "gpu/driver.h"

typedef struct {
    const CudaDriver *cu;
    CuDevice device;
    CuPtr base; /* 0: nothing reserved */
    uint64_t reserved;
    int hint;                               /* index of the base in the list of addresses */
    CuMemHandle handles[ARENA_MAX_EXTENTS]; /* of the arena's extents */
    int n;
    CuMemHandle spare; /* memory of the last extent that was unmapped to be kept */
    uint64_t spare_bytes;
} Space;

/* Reserve `bytes` of addresses, at the first base of a fixed list that is free. */
int space_open(Space *s, const CudaDriver *cu, CuDevice device, uint64_t bytes, Error *err);
/* Move to the next base of the list, when another process cannot reserve this range. Only while
 * nothing is mapped. */
int space_move(Space *s, Error *err);
void space_close(Space *s); /* after all extents were unmapped */

/* Map new memory as the next extent, at the offset `at`. */
int space_map(Space *s, uint64_t at, uint64_t bytes, Error *err);
/* Unmap the last extent. keep: the next extent of the same size gets its memory, so that what lies there
 * is as fast as before. */
void space_unmap(Space *s, uint64_t at, uint64_t bytes, int keep);
/* A descriptor of an extent's memory, for the other process. The caller closes it. */
int space_export(const Space *s, int extent, int *fd, Error *err);

/* The runner's side: reserve the harness's range, and map memory from a descriptor. */
int space_reserve_at(const CudaDriver *cu, CuPtr base, uint64_t bytes, Error *err);
int space_import(const CudaDriver *cu, CuDevice device, CuPtr p, uint64_t bytes, int fd,
                 Error *err);

#endif
