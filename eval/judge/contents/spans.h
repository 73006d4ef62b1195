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

/* limit: two or more. row: positions from one row of a plane to the next; 1: there is no plane. seed: of the
 * contents, so that a source cannot be right at the chosen positions alone. */
typedef struct {
    int64_t limit, row;
    uint64_t seed;
} SpanChoice;

/* Chooses positions, in order. The first and the last span are among them, and the last position. Spans that
 * lie below one another have positions in other columns: with one in each row of a square tile, each column
 * has one, too. */
int64_t spans_choose(const Span *spans, int64_t n, const SpanChoice *c, int64_t *at);

#endif
