/* What one launch did, counted while it ran: the simulator fills it, the time model reads it.
 * Every number is exact and the same on every run. "Warp-instructions" are issues of one
 * instruction for a warp (or for the part of it that took this path); "thread-instructions"
 * are those times the lanes that were active. */
#ifndef EVAL_SIM_MACHINE_COUNTS_H
#define EVAL_SIM_MACHINE_COUNTS_H

#include <stdint.h>

/* How an instruction is issued: the pipe that takes it. */
#define INST_CLASSES(X)                                                                           \
    X(FP32, "fp32")                                                                               \
    X(INT, "int")                                                                                 \
    X(FP16, "fp16")                                                                               \
    X(FP64, "fp64") X(SFU, "sfu") X(GLOBAL_LOAD, "global_load") X(GLOBAL_STORE, "global_store")   \
        X(SHARED_LOAD, "shared_load") X(SHARED_STORE, "shared_store") X(LOCAL_LOAD, "local_load") \
            X(LOCAL_STORE, "local_store") X(CONST_LOAD, "const_load") X(ATOMIC, "atomic") X(      \
                BRANCH, "branch") X(BARRIER, "barrier") X(SHUFFLE, "shuffle") X(TENSOR, "tensor") \
                X(OTHER, "other") /* moves, parameter reads, address-space conversions: mostly \
                                         folded away by the assembler */

typedef enum {
#define X(id, name) INST_##id,
    INST_CLASSES(X)
#undef X
        INST_CLASS_COUNT
} InstClass;

typedef struct {
    /* the launch */
    char kernel[256];
    uint32_t grid[3], block[3];
    int registers; /* per thread, from the cubin; 0 unknown */
    uint32_t static_shared, dynamic_shared;
    uint32_t local_bytes;   /* per thread */
    uint64_t blocks, warps; /* of the whole grid */

    /* issue */
    uint64_t warp_insts;
    uint64_t thread_insts;
    uint64_t by_class[INST_CLASS_COUNT]; /* warp-instructions */
    uint64_t threads_by_class[INST_CLASS_COUNT];
    uint64_t fp32_flops, fp16_flops,
        fp64_flops; /* per thread; fma counts 2, packed halves count 2 or 4 */
    uint64_t tensor_flops;
    uint64_t
        expansion_slots; /* warp-level issue slots beyond one an instruction, where the assembler
                            expands it: division, remainder, exact square root, 64-bit products */
    uint64_t branches, divergent_branches;

    /* global memory; a sector is 32 bytes. A sector of one request counts once. */
    uint64_t global_load_requests, global_store_requests; /* warp-level */
    uint64_t global_load_sectors, global_store_sectors;   /* after coalescing */
    uint64_t global_load_wavefronts,
        global_store_wavefronts; /* turns of L1: the bank conflicts of shared memory, and at
                                    most four lines of 128 bytes a turn */
    uint64_t global_load_bytes, global_store_bytes; /* that the threads asked for */
    uint64_t l1_hit_sectors;  /* of the load sectors: found in a 64 KiB direct-mapped cache, emptied
                                 per block */
    uint64_t l2_load_sectors; /* load sectors past L1 that this launch had touched before */
    uint64_t dram_read_sectors;  /* first touched in this launch, by a load */
    uint64_t dram_write_sectors; /* distinct sectors written in this launch */

    /* shared memory */
    uint64_t shared_load_requests, shared_store_requests;
    uint64_t shared_load_wavefronts,
        shared_store_wavefronts; /* >= requests; the excess is bank conflicts */

    /* local memory (spills, indexed arrays), const memory */
    uint64_t local_load_sectors, local_store_sectors;
    uint64_t const_requests, const_distinct; /* addresses a request had to take one after another */

    /* atomics and reductions, on global and on shared memory */
    uint64_t global_atomic_requests, global_atomic_sectors,
        global_atomic_serial;       /* serial: sum over requests of the most
                             lanes on one address */
    uint64_t global_atomic_hottest; /* most lanes that one sector took in the launch */
    uint64_t shared_atomic_requests, shared_atomic_serial;

    /* synchronisation */
    uint64_t barriers;      /* completed, per block */
    uint64_t warp_barriers; /* warp-level arrivals at block barriers */
    uint64_t fences;

    /* latency that one warp sees. A wait is a use of a loaded value before which nothing hid the
     * load: loads issued together are one wait. chain is the longest chain of dependent
     * instructions in units of cycles with arithmetic 4, special functions 18, shared memory 24,
     * shuffles 24, and without global and local loads (they are the waits). Sums over all warps;
     * max is the slowest warp's. */
    uint64_t global_waits, global_waits_max;
    uint64_t local_waits, local_waits_max;
    uint64_t chain_cycles, chain_cycles_max;
    uint64_t warp_insts_max; /* most warp-instructions that one warp issued */
    /* A block is done when its slowest warp is, however many warps beside it have nothing to do:
     * sums over the blocks of the most that one of the block's warps did. Barriers are those of a
     * warp that did not leave at once. */
    uint64_t block_global_waits, block_local_waits, block_chain_cycles, block_insts;
    uint64_t block_barriers, block_barriers_max;
    /* Warps run one after another here and together on a GPU, where who loads what another warp of
     * the block is loading waits as long: sectors of the warp that fetched most of its block's,
     * times the warps of the block. */
    uint64_t led_dram_sectors, led_past_l1_sectors;
    /* How unequal blocks are: the warp-instructions of the heaviest, and how many issued at least
     * heavy_insts of them, which is 15/16 of that or more. */
    uint64_t heaviest_insts, heavy_insts, heavy_blocks;
    uint64_t async_copies; /* cp.async requests (counted as global loads and shared stores too) */
} SimCounts;

#endif
