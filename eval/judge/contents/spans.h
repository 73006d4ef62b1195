/* The spans of an output that sampled blocks have written, and the positions in them that are compared. */
#ifndef EVAL_JUDGE_CONTENTS_SPANS_H
#define EVAL_JUDGE_CONTENTS_SPANS_H

#include "eval/judge/contents/timed_contents.h"

typedef struct {
    size_t from, end; /* positions */
} Span;

/* The spans of positions of `bytes` bytes of which the output has written elements, in order, without
 * repetitions. The caller frees *out. */
int64_t spans_find(const TimedOutputs *r, int output, size_t bytes, Span **out);

/* Chooses at most `limit` positions, two or more, in order. The first and the last span are among
 * them; the others follow from the seed of the contents, so that a source cannot be right there
 * alone. */
int64_t spans_choose(const Span *spans, int64_t n, int64_t limit, uint64_t seed, int64_t *at);

#endif
