/* One memory instruction of one warp: the lanes' addresses as a base and 32 differences, what
 * follows from their pattern (ranges, bank conflicts), and the checks against the shadows. A
 * pattern is kept with its instruction: loops repeat it, so most accesses only compare it. */
#ifndef EVAL_SIM_MEMORY_ACCESS_H
#define EVAL_SIM_MEMORY_ACCESS_H

#include "eval/sim/machine/machine.h"

enum {
    TAG_PHASE_SHIFT = 10,
    TAG_WARP_SHIFT = 4,
    TAG_MANY = 32 << TAG_WARP_SHIFT,
    TAG_WARP_MASK = 0x3f0
};

typedef struct {
    const Inst *in;
    MemOp *mo;
    uint32_t mask;
    int first, size; /* the first lane; bytes a lane */
    int align; /* that its address must have: the size, but for the tail of an asynchronous copy */
    uint64_t base; /* its address */
    const Pattern *p;
    unsigned char *host; /* of base, once the bounds are known */
} Access;

/* Fills a; 0 when the lanes are too far apart to be described so: take them one by one. */
int access_begin(Warp *w, const Inst *in, uint32_t mask, Access *a);
uint64_t access_lane_address(const Warp *w, const MemOp *mo, int lane);

static inline uint64_t access_address(const Access *a, int lane)
{
    return a->base + (uint64_t)(int64_t)a->p->delta[lane];
}

/* Offsets are any 64 bits that a kernel likes, so these compare before they add: a sum that wraps
 * would pass. */
static inline int access_is_beyond(uint64_t at, int size, uint64_t bytes)
{
    return at > bytes || (uint64_t)size > bytes - at;
}

/* All lanes within a space of so many bytes, which has offsets of 32 bits? */
static inline int access_is_within(const Access *a, uint64_t bytes)
{
    return a->base <= bytes && (int64_t)a->base + a->p->min >= 0 &&
           (int64_t)a->base + a->p->max + a->size <= (int64_t)bytes;
}

/* Bounds and alignment; a->host is set. 0 or -1 with a fault. window_base: subtracted for messages.
 */
int access_global_bounds(Warp *w, Access *a,
                         int is_write); /* 1: lanes lie in several buffers, take them one by one */
int access_shared_bounds(Warp *w, Access *a, int is_write);
const Inst *access_wild_fault(Warp *w, const Inst *in, int lane, uint64_t address, int size,
                              int is_write);

/* The shadows: 0, or -1 with a fault. Stores call check before and mark after the bytes have
 * changed; `changed` compares what a lane is about to write. */
typedef int AccessChanged(const Access *a, const Warp *w, int lane, const unsigned char *now);
int shared_check_load(Warp *w, Access *a);
int shared_check_written(Warp *w,
                         Access *a); /* of a volatile load: no race, but there must be something */
int shared_check_store(Warp *w, Access *a, AccessChanged *changed);
int shared_check_atomic(Warp *w, Access *a);
int global_check_load(Warp *w, Access *a);
int global_check_read_only(
    Warp *w, const Access *a); /* ld.global.nc: nobody has written it in this launch */
int global_check_store(Warp *w, Access *a, AccessChanged *changed);
int global_check_atomic(Warp *w, Access *a);
void global_fence(Warp *w);
void shared_renew_epochs(Exec *x); /* the epochs of shared memory start again from the lowest */

/* A load finds what nobody has written, first for this lane at this offset: 0 (not used so far), or
 * -1 with a fault. */
int unwritten_read(Warp *w, const Access *a, int lane, uint64_t at, int is_shared);

/* Counters of a request. */
void global_count(Warp *w, const Access *a, int kind);

#endif
