/* A block's part of Exec, while another block is the current one. */
#ifndef EVAL_SIM_MEMORY_BLOCK_STATE_H
#define EVAL_SIM_MEMORY_BLOCK_STATE_H

#include "eval/sim/machine/exec.h"

/* All zeros: a block without memory. */
typedef struct {
    Cta cta;
    Warp *warps;
    int cap_warps;
    unsigned char *register_file, *shared_store;
    size_t register_file_bytes;
    uint32_t shared_cap;
    AsyncCopies *async;
    BulkCopies *bulk;
    WgmmaReads *wgmma;
    struct BlockPaths *paths;
    struct BlockOrder *order;
    struct ProxyFences *proxy;
    struct Landed *landed;
    unsigned char *undefined_shared;
    uint32_t *undefined_local;
    size_t undefined_cap;
    int has_pending;
    Fault pending;
} BlockState;

void block_save(const Exec *x, BlockState *b);
void block_restore(Exec *x, const BlockState *b);
void block_release(Exec *x); /* frees what the current block has */

#endif
