/* How a GPU's memory is divided among buffers, the contents that the harness keeps, and the local
 * memory of a kernel, so that none of them can take what another needs. A simulator applies the same
 * bound to local memory, so that both accept the same kernels. */
#ifndef EVAL_DEVICE_MEMORY_SHARES_H
#define EVAL_DEVICE_MEMORY_SHARES_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t buffers, contents; /* bytes */
    uint64_t plan;              /* of buffers: for those of one plan */
    uint64_t kept; /* of contents: the rest is for those that a judgement cannot do without */
    /* Bytes of local memory (stack frames, spills and indexed arrays) of a thread. The driver
     * reserves them for every thread that can be resident, whatever the launch, and keeps them for
     * the next kernels of the context. */
    size_t local;
} MemoryShares;

/* Divide `bytes` of free memory of a GPU that can hold so many threads at a time. */
void memory_shares(uint64_t bytes, uint64_t resident_threads, MemoryShares *out);

#endif
