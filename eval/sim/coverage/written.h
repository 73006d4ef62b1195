/* Which bytes of a buffer a launch writes, or several do: a bit for each unit of a few bytes. */
#ifndef EVAL_SIM_COVERAGE_WRITTEN_H
#define EVAL_SIM_COVERAGE_WRITTEN_H

#include <stdint.h>

typedef struct {
    uint64_t bytes;
    uint32_t unit; /* bytes: a power of two */
    int all;       /* every byte; bits may be NULL */
    uint64_t *bits;
    uint64_t marked; /* units, with repetitions: what marking took */
} Written;

enum { WRITTEN_DIMS = 8 /* those of a box (lanes.h), and of a row */ };

/* A run of bytes that repeats: `count` times at each stride. */
typedef struct {
    int64_t at; /* of the buffer */
    int64_t bytes, stride[WRITTEN_DIMS];
    uint64_t count[WRITTEN_DIMS];
} WrittenRun;

void written_release(Written *w);
/* What lies outside of the buffer is ignored, and so are units that are written in part. */
void written_mark(Written *w, WrittenRun run);
void written_add(Written *w, const Written *other);
/* The first unit at or after `from` that is not written; all units: there is none. */
uint64_t written_next(const Written *w, uint64_t from);
/* Are the bytes [from, end) written? */
int written_has(const Written *w, uint64_t from, uint64_t end);
/* What `other` has is no longer written. */
void written_remove(Written *w, const Written *other);
/* How many units are not written, or are; *first: the byte where the first one begins. */
uint64_t written_holes(const Written *w, uint64_t *first);
uint64_t written_units(const Written *w, uint64_t *first);

#endif
