/* One memory instruction of one warp: the lanes' addresses as a base and 32 differences, what
 * follows from their pattern (ranges, bank conflicts), and the checks of bounds and alignment. */
#ifndef EVAL_SIM_MEMORY_ACCESS_H
#define EVAL_SIM_MEMORY_ACCESS_H

#include "eval/sim/machine/exec.h"

typedef struct {
    const Inst *in;
    MemOp *mo;
    uint32_t mask;
    int first, size; /* the first active lane; bytes per lane */
    int align;       /* required of an address: the size, except for the tail of a cp.async */
    uint64_t base;   /* address of the first lane */
    const Pattern *p;
    unsigned char *host; /* where base is, once the bounds are checked */
} Access;

enum { ACCESS_ALONE_COST = 50 }; /* of a lane that is taken alone, in thread-instructions */

/* A loop over the lanes i of a mask. */
#define EACH_LANE(m, i)                                                             \
    for (uint32_t rest_ = (m), i; rest_ && (i = (uint32_t)__builtin_ctz(rest_), 1); \
         rest_ &= rest_ - 1)

/* Fills *a. Returns 0 when the lanes' addresses are too far apart for 32-bit differences: the
 * caller then takes the lanes one by one. */
int access_begin(Warp *w, const Inst *in, uint32_t mask, Access *a);
void access_release(Exec *x); /* the patterns that are kept */
uint64_t access_lane_address(const Warp *w, const MemOp *mo, int lane);

/* The space of a generic address. */
PtxSpace access_space(uint64_t address);
/* access_begin, and the space. A generic address becomes relative to its window. Returns -1 when
 * the lanes must be taken one by one. */
int access_resolve(Warp *w, const Inst *in, uint32_t mask, Access *a);

/* Runs `once` for all lanes of the mask, or, when it returns 1, for each lane alone. `once` returns
 * 0, -1 with a fault, or 1. Returns the next instruction, or NULL with a fault. */
typedef int AccessOnce(Warp *w, const Inst *in, uint32_t mask);
static inline const Inst *access_run(Warp *w, const Inst *in, AccessOnce *once)
{
    uint32_t m = exec_mask(w, in);
    if (!m) return in + 1;
    int r = once(w, in, m);
    if (r < 0) return NULL;
    if (r > 0) {
        exec_charge(w->x, (int64_t)ACCESS_ALONE_COST * __builtin_popcount(m));
        EACH_LANE(m, i)
        {
            if (once(w, in, 1u << i)) return NULL;
        }
    }
    return in + 1;
}

static inline uint64_t access_address(const Access *a, int lane)
{
    return a->base + (uint64_t)(int64_t)a->p->delta[lane];
}

/* Does an access of `size` bytes at an offset leave a space of `bytes`? Offsets are any 64 bits, so
 * this compares before it adds: a sum could wrap. */
static inline int access_is_beyond(uint64_t at, int size, uint64_t bytes)
{
    return at > bytes || (uint64_t)size > bytes - at;
}

/* Are all lanes within a space of `bytes`, whose offsets have 32 bits? */
static inline int access_is_within(const Access *a, uint64_t bytes)
{
    return a->base <= bytes && (int64_t)a->base + a->p->min >= 0 &&
           (int64_t)a->base + a->p->max + a->size <= (int64_t)bytes;
}

/* Check bounds, alignment and, for global memory, write protection, and set a->host. Return 0, or
 * -1 with a fault. access_global_bounds also returns 1: the lanes are in several buffers and must
 * be taken one by one. */
int access_global_bounds(Warp *w, Access *a, int is_write);
int access_shared_bounds(Warp *w, Access *a, int is_write);

#endif
