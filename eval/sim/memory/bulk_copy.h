/* cp.async.bulk: copies of whole ranges between global and shared memory, issued by one thread. As
 * with cp.async, each takes effect at the latest moment that a device may choose.
 *
 * A copy into shared memory counts bytes at an mbarrier (complete_tx). The bytes are read at once and
 * land when the barrier's phase ends: all of it have arrived, and the bytes that it expects are those
 * of the copies under way. A copy out of shared memory is made when its thread waits for its group, so
 * that a buffer that is written too early shows. Functions return 0, or -1 with a fault. */
#ifndef EVAL_SIM_MEMORY_BULK_COPY_H
#define EVAL_SIM_MEMORY_BULK_COPY_H

#include "eval/sim/memory/access.h"

/* The barrier at this offset of shared memory expects `bytes` more in this phase. */
int bulk_expect(Warp *w, const Inst *in, int lane, uint32_t barrier, uint32_t bytes);
/* As many of them have arrived, without a copy. */
int bulk_complete(Warp *w, const Inst *in, int lane, uint32_t barrier, uint32_t bytes);
void bulk_forget(Exec *x, uint32_t barrier); /* mbarrier.init and .inval */
/* The bytes that it expects in this phase and no copy under way brings; < 0: that too many bring. */
int64_t bulk_missing(const Exec *x, uint32_t barrier);
int bulk_land(Warp *w, const Inst *in, uint32_t barrier); /* its copies, at the end of a phase */

/* Issue the copy in->bulk of one lane. barrier: where the load counts its bytes. */
int bulk_load(Warp *w, const Inst *in, int lane, uint32_t barrier);
int bulk_store(Warp *w, const Inst *in, int lane);
/* A load into the shared memory of another block of the cluster, in two steps. Returns what is copied, or
 * NULL with a fault; the caller frees it. rank: the other block. */
unsigned char *bulk_take(Warp *w, const Inst *in, int lane, int rank, uint32_t *bytes);
int bulk_put(Warp *w, const Inst *in, int lane, const unsigned char *data, uint32_t bytes);
void bulk_commit(Warp *w, uint32_t lanes);
int bulk_wait(Warp *w, const Inst *in, uint32_t lanes, uint64_t pending);

/* The line of a load under way that writes some of these bytes of shared memory; -1: there is none. */
int bulk_line_at(const Exec *x, uint64_t at, uint32_t bytes);
void bulk_start_block(Exec *x);
int bulk_end_block(Exec *x); /* a copy that nobody waited for is a fault */
void bulk_release(Exec *x);

#endif
