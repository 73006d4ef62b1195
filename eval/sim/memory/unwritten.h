/* Reads of shared or local memory that was never written. A compiler moves a load up before the
 * branch that decides whether it is needed, so such a read is a fault only when its value is used.
 * The destination registers are followed over the blocks that the warp passes, until they are read
 * or overwritten. All functions return 0, or -1 with a fault. */
#ifndef EVAL_SIM_MEMORY_UNWRITTEN_H
#define EVAL_SIM_MEMORY_UNWRITTEN_H

#include "eval/sim/memory/access.h"

/* A load found unwritten bytes, first for this lane at offset `at`. bytes: a bit for each one of the
 * lane's access. Where others have a value, as between the members of a struct, or where they are
 * copied in memory, the module is loaded again, and the value of these is doubtful (doubts.h). */
int unwritten_read(Warp *w, const Access *a, int lane, uint64_t at, int is_shared, uint32_t bytes);
/* The running split is about to run the rest of a block, from an instruction on. */
int unwritten_follow(Warp *w, const Inst *from);
/* A selection uses operand a in the lanes of takes_a, operand b in the others of m. */
int unwritten_select(Warp *w, const Inst *in, uint32_t m, uint32_t takes_a);

#endif
