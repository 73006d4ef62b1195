/* What all blocks of a launch write, without running them: the slice of the kernel that decides where it
 * stores runs for a block, and tells in which other blocks the same happens, moved by a constant; then for a
 * block that is left, and so on. Most kernels take two to eight blocks. */
#ifndef EVAL_SIM_COVERAGE_COVERAGE_H
#define EVAL_SIM_COVERAGE_COVERAGE_H

#include "eval/sim/coverage/slice.h"
#include "eval/sim/coverage/written.h"
#include "eval/sim/machine/device_memory.h"
#include "eval/sim/ptx/ptx.h"

/* The launch of a kernel. wanted: by allocation, whose accesses are found; those of others are left out where
 * that is simple. kind: the accesses. unit: the bytes that are told apart. thin: few threads of each block
 * stand for all. either: where a condition is not known, accesses of both sides are found. */
typedef struct {
    const DevMem *mem;
    const PtxModule *module;
    const PtxFunction *kernel;
    const DeviceLaunch *launch;
    const uint8_t *wanted;
    uint32_t unit;
    SliceKind kind;
    int thin, either;
} CoverageOf;

/* The bytes that a launch writes, or reads, by allocation. */
typedef struct {
    int n;
    Written *of;  /* NULL: they are not collected */
    char why[96]; /* not empty: not known completely; why, behind "the kernel has" */
    int line;     /* of the source */
    int too_many; /* of coverage_reaching: blocks that reach the bytes */
    uint64_t ran; /* blocks */
} Coverage;

/* The bytes of the smallest element that the kernel moves; 16 where there is none. */
uint32_t coverage_unit(const PtxFunction *kernel);
/* Does a parameter of the launch point into the allocation? */
int coverage_has_pointer(const CoverageOf *of, int allocation);
/* Has the kernel an access of the kind to wanted memory, or may it have one? */
int coverage_has_access(const CoverageOf *of);
/* Is told what a block does, and in which box of blocks the same happens: the joined runs of *r, whose budget
 * the work of the call takes. A result that is not 0 stops the visit. */
struct SliceRun;
typedef int CoverageSee(void *to, struct SliceRun *r);
/* Visits boxes that together are the grid. Of *out, `why`, `line` and `ran` are set. */
void coverage_visit(const CoverageOf *of, int64_t *budget, CoverageSee *see, void *to,
                    Coverage *out);
/* The same for each of these blocks alone, whose linear numbers are in id. */
void coverage_visit_some(const CoverageOf *of, const uint64_t *id, int64_t n, int64_t *budget,
                         CoverageSee *see, void *to, Coverage *out);
/* Fills in *out, which the caller releases. *budget: what it may take, in lanes of instructions; what it took
 * is subtracted. */
void coverage_find(const CoverageOf *of, int64_t *budget, Coverage *out);
void coverage_release(Coverage *c);

/* Marks the buffers that a launch stores nothing to, as far as the kernel's code and its parameters tell,
 * until steady_forget. No access of the launch to one of them is a race, and the shadows of who read and
 * wrote there, four times the buffer's size, need not be kept. */
void steady_find(DevMem *m, const DeviceLaunch *l, const PtxModule *module, const PtxFunction *f);
void steady_forget(DevMem *m);

#endif
