/* The pool: every correct kernel of the run with its score, once each (by source digest), in the
 * order in which it entered. It is the performance-indexed database that exemplars are drawn from.
 */
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

int pool_load(const char *path, Pool *out, Error *err); /* path NULL: empty */
void pool_release(Pool *p);
/* Is this kernel, by digest, already there for its task? */
int pool_holds(const Pool *p, const Sample *s);
/* Add the correct candidates of train tasks; returns how many were new. */
long pool_add(Pool *p, const SampleSet *s, const char *stage, int64_t round);
int pool_write(const Pool *p, const char *path, const ArtifactSpec *spec, Error *err);
/* Best of a task by score (ties: the earlier), or NULL. */
const PoolItem *pool_best(const Pool *p, const char *task);

#endif
