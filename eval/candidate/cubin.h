/* The resources of each kernel in a cubin, as the assembler decided them: registers, static shared
 * memory, local memory. The ELF file is untrusted: every offset, size and name is checked against
 * the bytes present.
 *
 * Their places in files of toolkits 11 to 13: registers are attribute 0x2f of .nv.info, as pairs
 * (symbol, count); older files also have them in the top byte of sh_info of .text.K. The stack
 * frame is attribute 0x11, and 0x12 with the functions that K calls. Static shared memory is the
 * size of .nv.shared.K, less 1 KiB for the system where the file has a section
 * .nv.shared.reserved.0. An instruction has 16 bytes, and its operation is in the low 12 bits: 0x983
 * is LDL, 0x387 STL, and bits 73 to 75 tell its width (as nvdisasm prints them, for sm_80 to sm_90).
 * 0x981 is LDG. Bits 110 to 112 name the scoreboard that an instruction's result sets (7: none), and bits 116
 * to 121 those that it waits for. 0x947 is a branch, 0x94d EXIT, 0x950 RET, 0x944 CALL.
 * .nv_debug_line_sass is a line program of DWARF 2, from addresses to lines of the PTX. */
#ifndef EVAL_CANDIDATE_CUBIN_H
#define EVAL_CANDIDATE_CUBIN_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* A load or store of local memory in machine code. */
typedef struct {
    uint32_t inst; /* its place in the code */
    uint8_t is_store, words;
} CubinLocal;

/* A load of global memory in a piece of straight machine code. Its turn is how many waits for loads of the
 * piece come before it, of those that begin when all earlier ones have ended. */
typedef struct {
    uint32_t inst, piece, turn;
} CubinLoad;

typedef struct {
    char *name;             /* lowered, as in the PTX */
    int registers;          /* per thread */
    uint32_t static_shared; /* bytes per block that the kernel declares */
    uint32_t local_bytes;   /* of one thread's stack: arrays, spills and calls */
    int n_locals;
    CubinLocal *locals; /* in the order of the code */
    int n_loads;
    CubinLoad *loads; /* in the order of the code */
    uint32_t n_insts,
        *lines; /* where it has any of these, the line of the PTX of each instruction; 0: unknown */
} CubinKernel;

typedef struct {
    int sm;                  /* 90 for sm_90; 0 unknown */
    uint64_t variable_bytes; /* of the module's variables in global memory */
    int has_state;           /* the module has variables that a launch could change */
    int n;
    CubinKernel *kernels; /* in the file's order */
} Cubin;

/* -1: not a valid cubin. Release after 0. */
int cubin_parse(const void *data, size_t len, Cubin *out, Error *err);
void cubin_release(Cubin *c);
const CubinKernel *cubin_find(const Cubin *c, const char *name); /* NULL: none */

#endif
