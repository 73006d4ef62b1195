/* The pool: every correct kernel of a run with its score. It is the performance-indexed database
 * that exemplars are drawn from (method, section 4.3). A task has each source once, by its digest,
 * and the kernels keep the order in which they were added. */
#ifndef STAGES_DATA_POOL_H
#define STAGES_DATA_POOL_H

#include "stages/data/samples.h"

typedef struct {
    char *id, *task, *source, *stage;
    char source_digest[DIGEST_HEX];
    double score, speedup;
    int64_t round;
} PoolItem;

typedef struct {
    PoolItem *items;
    long n;
} Pool;

/* path NULL gives an empty pool. */
int pool_load(const char *path, Pool *out, Error *err);
void pool_release(Pool *p);
/* Whether the pool has the source of this sample for its task. */
int pool_holds(const Pool *p, const Sample *s);
/* Adds the correct samples of train tasks that are not in the pool yet. Returns how many it
 * added. */
long pool_add(Pool *p, const SampleSet *s, const char *stage, int64_t round);
int pool_write(const Pool *p, const char *path, const ArtifactSpec *spec, Error *err);
/* Returns the kernel with the highest score of a task, the earliest of equal ones, or NULL. */
const PoolItem *pool_best(const Pool *p, const char *task);

#endif
