/* What the assembler decided for each kernel, read from the cubin: registers, static shared memory,
 * local memory. The ELF is foreign: every offset, size and name is bounded by the bytes present.
 *
 * Where it stands (toolkits 11 to 13): registers are attribute 0x2f of .nv.info, pairs of (symbol,
 * count); older files also have them in the top byte of .text.K's sh_info. The stack frame is
 * attribute 0x11 (and 0x12 with what K calls). Static shared memory is the size of .nv.shared.K,
 * less the 1 KiB that the system reserves where the file has a section .nv.shared.reserved.0. */
#ifndef EVAL_CANDIDATE_CUBIN_H
#define EVAL_CANDIDATE_CUBIN_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct {
    char *name;             /* lowered, as in the PTX */
    int registers;          /* per thread */
    uint32_t static_shared; /* bytes per block that the kernel declares */
    uint32_t local_bytes;   /* stack of one thread: arrays, spills and calls */
} CubinKernel;

typedef struct {
    int sm;                  /* 90 for sm_90; 0 unknown */
    uint64_t variable_bytes; /* of the module's variables in global memory */
    int has_state; /* it has variables, in global memory or elsewhere, that a launch could leave
                      changed */
    int n;
    CubinKernel *kernels; /* in the file's order */
} Cubin;

int cubin_parse(const void *data, size_t len, Cubin *out, Error *err);
void cubin_release(Cubin *c);
const CubinKernel *cubin_find(const Cubin *c, const char *name); /* NULL: none */

#endif
