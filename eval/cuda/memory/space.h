/* The memory of the buffers: one fixed range of addresses, backed on demand, mapped at the same
 * place in the harness's context and in the runners', so that a pointer means the same in all. */
#ifndef EVAL_CUDA_MEMORY_SPACE_H
#define EVAL_CUDA_MEMORY_SPACE_H

#include "eval/cuda/memory/arena.h"
#include "gpu/driver.h"

typedef struct {
    const CudaDriver *cu;
    CuDevice device;
    CuPtr base; /* 0: nothing reserved */
    uint64_t reserved;
    int hint;                               /* which of the addresses was taken */
    CuMemHandle handles[ARENA_MAX_EXTENTS]; /* of the arena's extents */
    int n;
} Space;

/* Reserve `bytes` of addresses; in every process the first of a fixed list that is free. */
int space_open(Space *s, const CudaDriver *cu, CuDevice device, uint64_t bytes, Error *err);
/* The other process cannot have this range: take the next of the list. Only while nothing is
 * mapped. */
int space_move(Space *s, Error *err);
void space_close(Space *s); /* after all was unmapped */

int space_map(Space *s, uint64_t at, uint64_t bytes,
              Error *err);                               /* one extent more, at the offset */
void space_unmap(Space *s, uint64_t at, uint64_t bytes); /* the last */
int space_export(const Space *s, int extent, int *fd,
                 Error *err); /* for the other process; the caller closes it */

/* The runner's side: the range where the harness has it, and memory as it comes. */
int space_reserve_at(const CudaDriver *cu, CuPtr base, uint64_t bytes, Error *err);
int space_import(const CudaDriver *cu, CuDevice device, CuPtr p, uint64_t bytes, int fd,
                 Error *err);

#endif
