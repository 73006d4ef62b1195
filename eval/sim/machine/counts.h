/* The counters of one launch: the simulator fills them and the time model reads them. Every number
 * is exact and the same on every run. A warp-instruction is one issue of an instruction for a warp,
 * or for a split of it. Thread-instructions are warp-instructions times their active lanes. */
#ifndef EVAL_SIM_MACHINE_COUNTS_H
#define EVAL_SIM_MACHINE_COUNTS_H

#include <stddef.h>
#include <stdint.h>

/* The class of an instruction: the pipe that executes it. INT_ADD: sums and shifts by constants, for which
 * the assembler takes the integer pipe or that of integer products, INT_MUL. OTHER: moves, parameter reads
 * and conversions of address spaces, most of which the assembler removes. */
#define INST_CLASSES(X)             \
    X(FP32, "fp32")                 \
    X(INT, "int")                   \
    X(INT_ADD, "int_add")           \
    X(INT_MUL, "int_mul")           \
    X(FP16, "fp16")                 \
    X(FP64, "fp64")                 \
    X(SFU, "sfu")                   \
    X(GLOBAL_LOAD, "global_load")   \
    X(GLOBAL_STORE, "global_store") \
    X(SHARED_LOAD, "shared_load")   \
    X(SHARED_STORE, "shared_store") \
    X(LOCAL_LOAD, "local_load")     \
    X(LOCAL_STORE, "local_store")   \
    X(CONST_LOAD, "const_load")     \
    X(ATOMIC, "atomic")             \
    X(BRANCH, "branch")             \
    X(BARRIER, "barrier")           \
    X(SHUFFLE, "shuffle")           \
    X(TENSOR, "tensor")             \
    X(OTHER, "other")

typedef enum {
#define X(id, name) INST_##id,
    INST_CLASSES(X)
#undef X
        INST_CLASS_COUNT
} InstClass;

/* Of what each of the SM's schedulers has a part: slots of issue, and pipes. INT: of integers but sums. */
enum {
    PIPE_ISSUE,
    PIPE_FP32,
    PIPE_INT,
    PIPE_SUM,
    PIPE_FP16,
    PIPE_FP64,
    PIPE_SFU,
    PIPE_TENSOR,
    PIPE_COUNT
};
enum { PIPE_TENSOR_UNIT = 256 }; /* slots of mma or wgmma that are a unit of that pipe */

typedef struct {
    /* the launch */
    char kernel[256];
    int op_line; /* of the plan, for a kernel of an op line; else 0 */
    uint32_t grid[3], block[3];
    int registers;                          /* per thread, from the cubin; 0 unknown */
    uint32_t static_shared, dynamic_shared; /* bytes per block */
    uint32_t local_bytes;                   /* per thread */
    uint64_t blocks, warps;                 /* of the whole grid */

    /* issue */
    uint64_t warp_insts;
    uint64_t thread_insts;
    uint64_t by_class[INST_CLASS_COUNT]; /* warp-instructions */
    uint64_t threads_by_class[INST_CLASS_COUNT];
    uint64_t fp32_flops, fp16_flops, fp64_flops; /* an fma counts 2, packed halves 2 or 4 */
    uint64_t tensor_flops;
    /* The flops of products of halves, by mma or by wgmma, that take as long as those of the launch. */
    uint64_t mma_slots, wgmma_slots;
    /* Issue slots beyond one per instruction, where the assembler expands it: division, remainder,
     * exact square root, 64-bit products. */
    uint64_t expansion_slots;
    uint64_t folded_slots; /* warp-instructions that the assembler computes itself */
    uint64_t branches, divergent_branches;

    /* Global memory. A request is one instruction of a warp; a sector has 32 bytes and counts once
     * per request. Wavefronts are passes of L1: one per bank conflict, and at least one per four
     * lines of 128 bytes. */
    uint64_t global_load_requests, global_store_requests;
    uint64_t global_load_sectors, global_store_sectors;
    uint64_t global_store_lines; /* of 128 bytes, in each request */
    uint64_t global_load_wavefronts, global_store_wavefronts;
    uint64_t global_load_bytes, global_store_bytes; /* that the threads asked for */
    uint64_t l1_hit_sectors;    /* load sectors found in the L1 of the block (traffic.c) */
    uint64_t l2_load_sectors;   /* load sectors past L1 that hit L2 */
    uint64_t lone_sectors;      /* of a request past L1, without the other half of their 64 bytes */
    uint64_t again_sectors;     /* read by .cg or .lu where the block has read past L1 before */
    uint64_t strong_sectors;    /* the same by .cv, volatile and the like */
    uint64_t stored_sectors;    /* of these, that the block has stored to before */
    uint64_t near_sectors;      /* first touched by a block, and read by the block before it */
    uint64_t dram_read_sectors; /* first touched in this launch by a load, or again past L2 */
    uint64_t dram_write_sectors; /* distinct sectors written in this launch */
    /* Sectors that the launch writes in part and does not read, and the bytes that it writes of its
     * sectors. L2 reads such a sector from DRAM when it evicts it. */
    uint64_t part_sectors, covered_bytes;

    /* Shared memory. The ideal wavefronts of a request deliver its distinct words, 32 in each.
     * Wavefronts beyond the ideal are bank conflicts. */
    uint64_t shared_load_requests, shared_store_requests;
    uint64_t shared_load_wavefronts, shared_store_wavefronts;
    uint64_t shared_ideal_wavefronts;
    uint64_t filled_bytes;     /* by copies, of zeros and of what comes from shared memory */
    uint64_t far_shared_bytes; /* to and from other blocks of the cluster, as loads */

    /* Local memory (spills, indexed arrays) and constant memory. */
    uint64_t local_load_sectors, local_store_sectors;
    uint64_t scattered_local_loads, scattered_local_stores; /* sectors of which one word is used */
    uint64_t far_local_loads, far_local_stores; /* sectors of local memory past L1, with spills */
    uint64_t spill_cycles; /* waits for spilled registers of one warp of each block, in a sum */
    uint64_t const_requests, const_distinct; /* const_distinct: addresses, one after another */

    /* Atomics and reductions. Serial: summed over requests, the largest number of lanes on one
     * address, 1 where the assembler merges them (merged.c). */
    uint64_t global_atomic_requests, global_atomic_sectors, global_atomic_serial;
    uint64_t global_atomic_work; /* what they take of L2, in hundredths of a sector's (traffic.c) */
    /* Turns on pairs of lines, of 256 bytes, the pairs of the block, those of them that no block of the
     * launch has had before, and those that the block before had. */
    uint64_t atomic_turns, atomic_lines, atomic_first_lines, atomic_near_lines;
    uint64_t global_atomic_hottest; /* the most turns on one line in the launch (traffic.c) */
    /* The index of that line in the device's memory. Of a sample: the turns on one that blocks share. */
    uint64_t hottest_line, hottest_shared;
    uint64_t shared_atomic_requests, shared_atomic_serial;

    /* synchronisation */
    uint64_t barriers;             /* completed, per block */
    uint64_t warp_barriers;        /* arrivals of warps at block barriers */
    uint64_t barrier_votes;        /* of these, at barriers that reduce a value */
    uint64_t fences, block_fences; /* block_fences: of the scope of a block */
    uint64_t remote_arrivals;      /* of warps at the barrier of a cluster */
    uint64_t mbarrier_waits;       /* of warps that go on behind an mbarrier */

    /* Latency of one warp. A wait is the use of a loaded value before which nothing hid the load;
     * loads issued together are one wait. The chain is the longest chain of dependent instructions
     * in cycles: arithmetic 4, special functions 18, shared memory 24, shuffles 24. It leaves out
     * global and local loads, which are the waits. Sums over all warps, and the slowest warp's. */
    uint64_t global_waits, global_waits_max;
    uint64_t local_waits, local_waits_max;
    uint64_t chain_cycles, chain_cycles_max;
    uint64_t warp_insts_max;
    /* A block ends with its slowest warp, however many idle warps it has. Sums over the blocks of
     * the largest number of one of the block's warps. Barriers: of a warp that did not exit at
     * once. */
    uint64_t block_global_waits, block_local_waits, block_chain_cycles, block_insts;
    uint64_t block_barriers, block_barriers_max;
    /* Warp i runs on scheduler i % 4. Sums over the blocks of what all warps take of each pipe, in units of
     * the pipe, and four times that of the scheduler with the most of it, or of those that wait for one
     * another. */
    uint64_t scheduled[PIPE_COUNT], busiest[PIPE_COUNT];
    /* Warps run one after another here and together on a GPU, where a warp waits as long for a
     * sector that another warp of the block is loading. So these are the waits of the leader, the
     * warp of the block that waited the most for DRAM, and for DRAM or L2, times the warps of the
     * block. */
    uint64_t leader_dram_waits, leader_far_waits;
    uint64_t copy_waits; /* of sampled warps, behind copies from DRAM to shared memory */
    /* By how much the block that waits the longest for others lags behind; and the cycles that the launch
     * takes longer since its blocks wait for one another (memory/block_waits.h). */
    uint64_t delay_max, path_cycles;
    /* The cycles for which schedulers are busy that wait for one another, of a cooperative launch also SMs,
     * along the path where these are the most. */
    uint64_t busy_path_max;
    /* The spread of the blocks: the warp-instructions of the heaviest block, and the number of
     * blocks with at least heavy_insts, which is 15/16 of that or more. */
    uint64_t heaviest_insts, heavy_insts, heavy_blocks;
    /* The same by the cycles of the SM's memory (memory/busy.h), whose sum over all blocks stands first. */
    uint64_t memory_cycles, heaviest_memory, heavy_memory, heavy_memory_blocks;
    /* Of l2_load_sectors, those of which it is known how many loads past L1 the block has made since it read
     * the sector last; and their sum, of sectors. */
    uint64_t aged_sectors, aged_loads;
    uint64_t async_copies; /* cp.async requests; also counted as global loads and shared stores */
} SimCounts;

/* From warp_insts on they are numbers of 64 bits, which are added up as a list. */
#define COUNTS_FIRST offsetof(SimCounts, warp_insts)
enum { COUNTS_FIELDS = (sizeof(SimCounts) - COUNTS_FIRST) / sizeof(uint64_t) };
_Static_assert((sizeof(SimCounts) - COUNTS_FIRST) % sizeof(uint64_t) == 0, "numbers of 64 bits");

#endif
