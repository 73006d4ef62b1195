/* Data-parallel work on several GPUs of one host: n processes of one program, with one GPU per
 * rank. Every rank runs the same code on its share of the data and calls the functions below in the
 * same order. Only rank 0 writes files and prints. Without ranks_start, or with n = 1, a process is
 * rank 0 of 1 and the functions below do nothing.
 *
 * On GPUs the collectives run over NCCL, in the order of the table's operations;
 * ranks_reduce_scatter and ranks_all_gather run in parallel to the operations after them. `status`
 * reports their failures. On the CPU they go through rank 0, which adds in the order of the ranks.
 * Sums are identical on all ranks and between runs.
 *
 * Signals that ask to stop reach rank 0 only. Rank 0 therefore decides whether a loop goes on and
 * shares the decision (ranks_host_share) before each step. Otherwise the ranks would stop at
 * different steps.
 *
 * A rank that ends early ends the others, with a sentence on the stderr of rank 0. Files are
 * written atomically, so that a restarted run continues from its last checkpoint. */
#ifndef MODEL_CORE_RANKS_H
#define MODEL_CORE_RANKS_H

#include <stddef.h>

#include "model/core/ops.h"

enum { RANKS_MAX = 16 };

/* Fork n - 1 children; it returns in all n processes. Call it before a thread is started, a device
 * opened or a file written. The stdout of the children is discarded, and they die with rank 0. */
int ranks_start(int n, Error *err);
int ranks_rank(void); /* 0 to ranks_size() - 1 */
int ranks_size(void);

/* The device of this rank for the user's `name`. "cuda:N" is GPU N + rank, "auto" is GPU `rank`, or
 * the CPU where there is no GPU, and "cpu" is the CPU. */
int ranks_device(const char *name, char out[16], Error *err);
/* Connect the ranks. Call it after the device is open. */
int ranks_join(const Ops *ops, Error *err);
/* End a successful run: wait for all ranks. It does not return in the children. In rank 0 it
 * returns -1 with a sentence when one of them failed. */
int ranks_finish(Error *err);

/* ---- device memory; 0, or -1 when a rank is lost ---- */

int ranks_all_reduce(float *x, size_t n, Error *err); /* x becomes the sum of all ranks' x */
/* The next functions serve an optimizer whose state is divided into slices. An array has
 * ranks_size() * each numbers, where `each` comes from ranks_each. The slice of rank r begins at r
 * * each. */
size_t ranks_each(size_t n, size_t align); /* a multiple of align; all slices cover n */
/* ranks_reduce_scatter and ranks_all_gather start after all earlier operations of the table and run
 * in parallel to later ones. Later operations may not use the array before ranks_settle, `download`
 * or `status`. */
/* The slice of this rank becomes the sum, the other slices 0. */
int ranks_reduce_scatter(float *x, size_t each, Error *err);
/* All ranks get the slice, of that many bytes, of every rank. */
int ranks_all_gather(void *p, size_t bytes, Error *err);
void ranks_settle(void); /* later operations of the table wait for them */

/* ---- host memory, for small data ---- */

int ranks_host_sum(double *x, int n, Error *err);
int ranks_host_share(void *p, size_t bytes, Error *err); /* from rank 0 to all */

#endif
