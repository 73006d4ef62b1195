/* Decoded memory instructions, with the address pattern that each saw last. */
#ifndef EVAL_SIM_MACHINE_MEMORY_OP_H
#define EVAL_SIM_MACHINE_MEMORY_OP_H

#include "eval/sim/machine/instruction.h"

enum { MEM_LOAD, MEM_STORE, MEM_ATOM, MEM_RED };
enum { PAST_L1 = 1, PAST_L1_STRONG };
/* VOLATILE: an atomic without an order, too. From ORDER_RELEASE on it releases. */
enum { ORDER_WEAK, ORDER_VOLATILE, ORDER_RELAXED, ORDER_ACQUIRE, ORDER_RELEASE, ORDER_ACQ_REL };
/* Of a strong access or a fence: the threads that it is ordered with. */
enum { SCOPE_BLOCK, SCOPE_CLUSTER, SCOPE_DEVICE };
/* What a fence does. The last two: writes of the generic proxy come before the asynchronous one's reads. */
enum { FENCE_ACQUIRES = 1, FENCE_RELEASES = 2, FENCE_PROXY_SHARED = 4, FENCE_PROXY_GLOBAL = 8 };

/* The class of the register that holds an address. ADDRESS_FIXED: no register, only the offset. */
enum { ADDRESS_32, ADDRESS_64, ADDRESS_FIXED };

/* What 16 lanes of a full warp read: any addresses, one address, or consecutive words. */
enum { HALF_ANY, HALF_SAME, HALF_ROW };

/* The lanes' addresses relative to the first active lane's, and what follows from them. Loops
 * repeat a pattern, so an access usually compares it and computes nothing. */
typedef struct Pattern {
    uint32_t mask, phase; /* phase: the low two bits of the base */
    int size;             /* bytes per lane; 0: the pattern is empty */
    int32_t delta[LANES]; /* 0 for inactive lanes */
    int32_t min, max;
    uint8_t uniform, consecutive, aligned;
    uint8_t half[2];     /* HALF_* of lanes 0..15 and 16..31 */
    uint16_t wavefronts; /* of shared memory or L1 */
    uint16_t ideal;      /* wavefronts without bank conflicts */
    uint16_t distinct;   /* addresses */
    uint16_t max_same;   /* the largest number of lanes on one address */
    int n_ranges;        /* disjoint byte ranges, in order */
    struct {
        int32_t lo, hi;
    } ranges[LANES];
} Pattern;

typedef struct MemOp {
    uint8_t kind, space, order; /* MEM_*, PtxSpace, ORDER_* */
    uint8_t scope;              /* SCOPE_*, of a strong access */
    uint8_t element, count;     /* bytes of an element, elements per lane */
    uint8_t is_signed;
    uint8_t address_kind; /* ADDRESS_* */
    uint8_t width[4];     /* bits of each data register */
    uint8_t atom, type;   /* of an atomic: ATOM_*, T_* */
    uint8_t packed;       /* of an atomic: two halves */
    uint8_t merged;       /* of an atomic: one lane executes it for all on its address */
    uint8_t unread;       /* of an atomic: nothing reads its result */
    uint8_t waits;        /* of an atomic: a warp may wait by it */
    uint8_t decides,
        ends;          /* of an atomic: a branch of a loop depends on its result; the loop's end */
    uint8_t past_l1;   /* a load that never hits L1: PAST_L1 .cg, .lu; PAST_L1_STRONG: others */
    uint8_t read_only; /* ld.global.nc: a write in the same launch is an error */
    uint32_t data[8], address; /* data of an atomic: `count` results, then its sources */
    int64_t offset;
    const PtxVar *beyond; /* the static shared variable that a fixed address leaves; NULL: none */
    uint32_t last_alloc;  /* index of the allocation of the last access */
    InstTraffic *traffic; /* of the PTX instruction; NULL: it is not counted by line */
    Pattern pattern;
} MemOp;

/* A register of a wmma fragment, or an element of one, that is loaded or stored. */
typedef struct WmmaPart {
    MemOp base; /* address of the matrix */
    char which; /* 'a', 'b', or 'c' for accumulators */
    uint8_t m, n, type, reg, element;
    uint8_t by_columns; /* the layout in memory */
    /* Bytes of which each row in memory starts at a multiple: in shared memory, elsewhere. */
    uint8_t shared_unit, unit;
    uint32_t stride; /* row code */
} WmmaPart;

/* cp.async.bulk */
typedef struct BulkOp {
    MemOp to, from, barrier; /* barrier: of a copy into shared memory */
    uint32_t size;           /* row code */
    uint8_t rank, reduces; /* rank > 0: a box of a tensor, whose map is the side in global memory */
    uint32_t coordinates[5]; /* row codes, innermost first */
    InstTraffic *traffic;
} BulkOp;

#endif
