/* What wgmma does to shared memory. A product reads its factors at some moment between its issue and
 * the wgmma.wait_group that ends its group, so that their bytes must stay as they are until then. They
 * are read in chunks of 16 bytes at once; the wait compares them. Each warp issues and waits for its own
 * 16 of the 64 rows. Functions that return an int return 0, or -1 with a fault. */
#ifndef EVAL_SIM_MEMORY_WGMMA_READS_H
#define EVAL_SIM_MEMORY_WGMMA_READS_H

#include "eval/sim/memory/access.h"

enum {
    WGMMA_WARPS = 4,
    WGMMA_ROWS = 16,         /* of a warp */
    WGMMA_CHUNK = 16,        /* bytes */
    WGMMA_COLUMNS_MAX = 256, /* N */
    WGMMA_DEPTH_MAX = 32,    /* K of 8-bit types */
    WGMMA_CHUNKS_MAX = 2 * (WGMMA_ROWS + WGMMA_COLUMNS_MAX)
};

/* The chunks of an instruction of one warp: where they are, and their bytes. */
typedef struct {
    int n;
    uint32_t at[WGMMA_CHUNKS_MAX]; /* offsets in the block's shared memory */
    unsigned char bytes[WGMMA_CHUNKS_MAX][WGMMA_CHUNK];
    uint8_t doubtful[WGMMA_CHUNKS_MAX]; /* what depends on the chunk is doubtful (doubts.h) */
    uint32_t event;
} WgmmaChunks;

/* A second factor as numbers, which is decoded once for the warps that read it. */
typedef struct {
    int type, columns, transposed; /* columns 0: nothing */
    uint32_t at;                   /* of its first chunk */
    unsigned char bytes[2 * WGMMA_COLUMNS_MAX][WGMMA_CHUNK];
    float values[WGMMA_DEPTH_MAX * WGMMA_COLUMNS_MAX]; /* groups of 8 columns, each by rows */
} WgmmaFactor;

/* FACTORS: that are kept: of a step of 64 along K, three products in place of one take 8. PAST: products of a
 * warp that are done and still followed. */
enum { WGMMA_FACTORS = 16, WGMMA_PAST = 64 };

/* What the instruction that ran last has read without a value, and by which event (doubts.h). */
typedef struct {
    uint32_t rows, columns[WGMMA_COLUMNS_MAX / 32], event;
} WgmmaUndefined;

typedef struct {
    struct WgmmaRead **reads; /* in the order of issue */
    struct WgmmaPast *past;   /* the last WGMMA_PAST products that are done, in turns */
    int n, cap;
    uint32_t issued, committed; /* instructions, and groups */
} WgmmaWarp;

struct WgmmaReads {
    WgmmaWarp warps[MAX_WARPS];
    WgmmaFactor factors[WGMMA_FACTORS];
    uint32_t n_factors; /* that have been decoded */
    WgmmaUndefined undefined;
    WgmmaChunks now; /* of the instruction that runs */
};

WgmmaReads *wgmma_reads(Exec *x);
/* Checks the chunks as loads and fills in their bytes. */
int wgmma_read(Warp *w, const Inst *in, WgmmaChunks *c);
/* Keeps the chunks until the wait. */
int wgmma_hold(Warp *w, const Inst *in, const WgmmaChunks *c);
void wgmma_commit(Warp *w);
/* A copy into shared memory begins, which may land at once: no product of the block may be under way that
 * reads there, and the warp must know of those that are done: one that was told too early may copy in time
 * by chance alone. */
int wgmma_check_copy(Warp *w, const Inst *in, int lane, uint64_t at, uint32_t bytes);
/* Waits for all groups but the last `pending`; < 0: for everything. */
int wgmma_wait(Warp *w, const Inst *in, int64_t pending);

void wgmma_start_block(Exec *x);
int wgmma_end_block(Exec *x); /* the warps of a warpgroup must have issued as many products */
void wgmma_release(Exec *x);

#endif
