/* Data-parallel work on several GPUs of one host: n processes of one program, rank r on a GPU of
 * its own. Every rank runs the same code on its share of the data and calls the functions below in
 * the same order; rank 0 alone writes files and speaks. Without ranks_start (or with n = 1) a
 * process is rank 0 of 1, and everything here does nothing, correctly.
 *
 * On GPUs the sums run over NCCL, in the table's order like every other operation, two of them
 * beside those that follow: what fails then is told by `status`. On the CPU they go through rank 0,
 * in the order of ranks. Sums are the same on all ranks, and the same again in a second run.
 *
 * Signals that ask to stop reach rank 0 alone: whether a loop goes on is its word, to be shared
 * (ranks_host_share) before each step, or the ranks part at different ones.
 *
 * A rank that ends early takes the others with it, with a sentence on rank 0's stderr: files are
 * written atomically, so a run that is started again goes on from its last checkpoint. */
#ifndef MODEL_CORE_RANKS_H
#define MODEL_CORE_RANKS_H

#include <stddef.h>

#include "model/core/ops.h"

enum { RANKS_MAX = 16 };

/* Makes n - 1 children, and returns in all n. To be called before a thread is started, a device
 * opened or a file written; the children's stdout goes nowhere, and they die with rank 0. */
int ranks_start(int n, Error *err);
int ranks_rank(void); /* 0 to ranks_size() - 1 */
int ranks_size(void);

/* The device of this rank when the user asked for `name`: "auto" and "cuda:N" are GPU N + rank
 * ("auto": N is 0, and the CPU where there is no GPU), "cpu" is cpu. */
int ranks_device(const char *name, char out[16], Error *err);
/* Once the device is open: the ranks find one another. */
int ranks_join(const Ops *ops, Error *err);
/* The last act of a run that went well: waits for all ranks. In the children it does not return; in
 * rank 0 it returns -1 with a sentence when one of them failed. */
int ranks_finish(Error *err);

/* ---- memory of the device; 0, or -1 when the ranks have lost one another ---- */

int ranks_all_reduce(float *x, size_t n, Error *err); /* x: the sum of all ranks' x */
/* For an optimiser whose state is cut in slices: an array of ranks_size() * each numbers, each from
 * ranks_each; the slice of rank r begins at r * each. */
size_t ranks_each(size_t n, size_t align); /* so that all slices cover n; a multiple of align */
int ranks_broadcast(void *p, size_t bytes, Error *err); /* rank 0's, to all */
/* These two come after the table's operations so far and run beside later ones, which may not touch
 * the array before ranks_settle or a wait of the table's (`download`, `status`). */
int ranks_reduce_scatter(float *x, size_t each,
                         Error *err); /* this rank's slice: the sum; the others: 0 */
int ranks_all_gather(void *p, size_t bytes,
                     Error *err); /* every rank's slice of so many bytes, to all */
void ranks_settle(void);          /* the table's operations from now on come after them */

/* ---- memory of the host: small things ---- */

int ranks_host_sum(double *x, int n, Error *err);
int ranks_host_share(void *p, size_t bytes, Error *err); /* rank 0's, to all */

#endif
