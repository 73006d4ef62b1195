/* What a graph's operators index, and with what. */
#ifndef TASKS_DERIVE_INDICES_H
#define TASKS_DERIVE_INDICES_H

#include "tasks/graph/graph.h"

/* Called with a value that an operator takes as indices or classes, and the number of those that there
 * are. */
typedef void IndexSeen(void *ctx, int value, int64_t size);
void indices_each(const GraphBound *b, IndexSeen *f, void *ctx);

/* Called with a value that is compared with a range of positions: it is a length, or the last position that
 * counts. `least` is the least that leaves a position, n their number: least + n - 1 leaves all. */
typedef void LengthSeen(void *ctx, int value, int64_t least, int64_t n);
void lengths_each(const GraphBound *b, LengthSeen *f, void *ctx);

/* Is a value the integers of an input, each with *plus added? */
int indices_of_input(const GraphBound *b, int value, int input, int64_t *plus);

/* Indices that the graph makes itself, a range or the places of sorted elements, are within what they
 * index, as far as shapes tell: 1, or 0. */
int indices_fit(const GraphBound *b);

/* The dimension of an input along which its integers must be distinct, since an operator writes to the
 * places that they name and the order of two writes is open; -1: there is none. *room: the number of
 * places. */
int indices_distinct(const GraphBound *b, int input, int64_t *room);

/* An operator that writes elements to places of which two may be the same, as far as the graph tells; NULL:
 * there is none. */
const char *indices_repeat(const GraphBound *b);

#endif
