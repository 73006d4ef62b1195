/* The pool: every correct kernel of a run with its score. It is the performance-indexed database
 * that exemplars are drawn from (method, section 4.3). A task has each source once, by its digest,
 * and the kernels keep the order in which they were added. */
#ifndef STAGES_DATA_POOL_H
#define STAGES_DATA_POOL_H

#include "stages/data/promptset.h"
#include "stages/data/samples.h"

#define POOL_BASELINE "baseline" /* a parent that is the task's baseline */

typedef struct {
    char *id, *task, *source, *stage;
    char source_digest[DIGEST_HEX];
    double score, speedup;
    int64_t round;
    /* The kernels that it was made from: those that its prompt showed, by their source's digest. */
    char (*parents)[DIGEST_HEX];
    int n_parents; /* -1: not known; 0: its prompt showed none */
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
/* Notes the parents of the kernels from index `first` on, which pool_add took from these samples. Of an
 * answer to a verdict it is the judged kernel, or that one's parents if it was not correct. */
void pool_note_parents(Pool *p, long first, const SampleSet *s, const PromptSet *prompts);
/* Returns the kernel of a task with this source, or NULL. */
const PoolItem *pool_find(const Pool *p, const char *task, const char *source_digest);
int pool_write(const Pool *p, const char *path, const ArtifactSpec *spec, Error *err);
/* Returns the kernel with the highest score of a task, the earliest of equal ones, or NULL. */
const PoolItem *pool_best(const Pool *p, const char *task);

#endif
