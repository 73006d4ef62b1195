/* The shadows of shared and global memory: which warp wrote and read each word last. They find
 * races and reads of unwritten bytes.
 *
 * Both shadows keep a tag per word for the last writer and one for the last reader. The low ten
 * bits of a tag are warp << 4 | bytes: a bit for each byte of the word that was touched. The bits
 * above say when: the epoch in shared memory (32-bit tags, shadow_shared.c), the block tag and the
 * phase in global memory (64-bit tags, shadow_global.c).
 *
 * The checks return 0, or -1 with a fault. They mark what the access touches. */
#ifndef EVAL_SIM_MEMORY_SHADOW_H
#define EVAL_SIM_MEMORY_SHADOW_H

#include "eval/sim/memory/access.h"

enum {
    TAG_PHASE_SHIFT = 10,
    TAG_WARP_SHIFT = 4,
    TAG_BYTES = 15,
    TAG_SEVERAL_WARPS = 32 << TAG_WARP_SHIFT, /* a reader's tag: more than one warp */
    TAG_WARP_MASK = 63 << TAG_WARP_SHIFT,
    SHARED_EPOCH_MAX = (1 << 22) - 8 /* epochs have 22 bits */
};

/* Does what a lane is about to write differ from the bytes at `now`? A store that changes nothing
 * is no race. */
typedef int AccessChanged(const Access *a, const Warp *w, int lane, const unsigned char *now);
AccessChanged always_changes; /* 1 */

int shared_check_load(Warp *w, Access *a);
/* The same for what a wgmma reads: chunks of 16 bytes at n offsets, which lie in shared memory. doubtful: a
 * flag for each chunk; those that have it are not looked at, and those whose value is doubtful get it,
 * with the event. event NULL: these are faults. */
int shared_check_chunks(Warp *w, const Inst *in, const uint32_t *at, int n, uint8_t *doubtful,
                        uint32_t *event);
/* For a volatile load, which is no race: the bytes must only be written. */
int shared_check_written(Warp *w, Access *a);
int shared_check_store(Warp *w, Access *a, AccessChanged *changed); /* NULL: a volatile store */
/* Only for races: the store comes later. */
int shared_check_overwrite(Warp *w, Access *a, AccessChanged *changed);
int shared_check_atomic(Warp *w, Access *a);
/* Sets bytes of shared memory to 0, as if the system had written them before the block. Both are
 * multiples of 4. */
void shared_clear(Cta *c, uint32_t at, uint32_t bytes);
/* The word has no value, as if it had not been written. */
void shared_forget(Cta *c, uint64_t word);
/* Has the block written all bytes of [lo, hi)? */
int shared_has_value(const Cta *c, uint64_t lo, uint64_t hi);
/* A release: what the block's threads have done to shared memory comes before what follows. */
void shared_release(Warp *w);
/* Starts the epochs again from the lowest. Written bytes stay written. */
void shared_renew_epochs(Exec *x);

int global_check_load(Warp *w, Access *a);
/* For ld.global.nc: nothing may have been written there in this launch. */
int global_check_read_only(Warp *w, const Access *a);
int global_check_store(Warp *w, Access *a, AccessChanged *changed);
int global_check_atomic(Warp *w, Access *a);
void global_fence(Warp *w, int scope, int kind); /* SCOPE_*, FENCE_* */
/* What the block has done before a barrier of its cluster comes before what others do after it. */
void global_release(Exec *x);

/* ---- what both shadows share; lo, hi: byte offsets from the start of the shadowed memory ---- */

typedef struct {
    uint64_t lo, hi;
} ShadowRange;

/* Range i of an access to memory that starts at the address `origin`. */
static inline ShadowRange shadow_range(const Access *a, int i, uint64_t origin)
{
    uint64_t base = a->base - origin;
    return (ShadowRange){base + (uint64_t)(int64_t)a->p->ranges[i].lo,
                         base + (uint64_t)(int64_t)a->p->ranges[i].hi};
}

/* The bytes of a word that lie in [lo, hi), a bit each. */
static inline uint32_t shadow_bytes(uint64_t word, uint64_t lo, uint64_t hi)
{
    uint32_t m = TAG_BYTES;
    if (lo > word * 4) m &= 15u << (lo - word * 4);
    if (hi < word * 4 + 4) m &= 15u >> (word * 4 + 4 - hi);
    return m;
}

/* The tag of a partly touched word: bytes that the same warp touched in the same phase stay. */
static inline uint64_t shadow_add_bytes(uint64_t tag, uint64_t mine, uint32_t bytes)
{
    return mine | bytes | ((tag ^ mine) >> TAG_WARP_SHIFT ? 0 : tag & TAG_BYTES);
}

/* The lanes that touch a word. */
static inline uint32_t shadow_lanes(const Access *a, uint64_t origin, uint64_t word)
{
    uint32_t found = 0;
    EACH_LANE(a->mask, i)
    {
        uint64_t lo = access_address(a, (int)i) - origin;
        found |= (uint32_t)(lo < word * 4 + 4 && lo + (uint64_t)a->size > word * 4) << i;
    }
    return found;
}

/* The first of them, for messages. */
static inline int shadow_lane(const Access *a, uint64_t origin, uint64_t word)
{
    uint32_t lanes = shadow_lanes(a, origin, word);
    return lanes ? __builtin_ctz(lanes) : a->first;
}

#endif
