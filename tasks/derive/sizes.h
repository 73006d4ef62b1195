/* Chooses the sizes of workloads. Every choice can be bound (derivation_bind). */
#ifndef TASKS_DERIVE_SIZES_H
#define TASKS_DERIVE_SIZES_H

#include "tasks/derive/derivation.h"

enum { SIZES_CHECKS = 5 };

/* Estimates of a bound graph: bytes of its inputs, outputs and intermediate results; additions and
 * multiplications of its reference. */
double sizes_bytes(const GraphBound *b);
double sizes_flops(const GraphBound *b);
double sizes_bytes_at(const Derivation *v, const Sizes *s); /* -1: they do not fit */
/* The terms of the longest sum, which may be a running one, of a live call: inputs that one output depends
 * on. */
int64_t sizes_terms(const GraphBound *b);
/* Of one call, whose running sums do not count. */
int64_t sizes_call_terms(const GraphCall *c);
/* How many elements a node takes together: the terms of its sums, or the rows that it normalises. */
int64_t sizes_reduced(const GraphCall *c);
/* The elements of the longest running sum. 1: there is none. */
double sizes_scan(const GraphBound *b);

/* Sizes such as the module's own, halved along a batch axis or else the largest one until the tensors fit. */
int sizes_time(const Derivation *v, const Sizes *from, double max_bytes, Sizes *out, Error *err);
/* The same shape halved until it costs at most so much work. */
int sizes_small(const Derivation *v, const Sizes *from, double max_work, Sizes *out, Error *err);
/* Candidates of check workloads, from the smallest on, each within max_work where the graph can be so
 * small: one, two or three, odd, prime, aligned; so many times as large. Returns their number. */
int sizes_checks(const Derivation *v, double max_work, int times, Sizes out[SIZES_CHECKS]);
/* Sizes with the longest sums of `from` that cost at most max_flops, as long as they can be. */
int sizes_deep(const Derivation *v, const Sizes *from, double max_flops, Sizes *out, Error *err);

/* Sizes at which each node reduces as many elements as at `from`, and which cost at most max_flops. -1: there
 * are none. */
int sizes_whole_sums(const Derivation *v, const Sizes *from, double max_flops, Sizes *out);
/* Does each node reduce as many elements at both? */
int sizes_reduce_alike(const Derivation *v, const Sizes *a, const Sizes *b);

/* Sizes with the running sums of `from` that cost max_flops, or more where these cost more. */
void sizes_long(const Derivation *v, const Sizes *from, double max_flops, Sizes *out);

/* Doubles axes of s, up to those of `from` and within max_flops, until no node that reduces many elements
 * at `from` reduces fewer than 16: a norm of groups of one element has no error at all. */
void sizes_widen(const Derivation *v, const Sizes *from, double max_flops, Sizes *s);
/* The same of each of n sizes, and no axis has its least size but that of `from`; returns how many differ. */
int sizes_widen_all(const Derivation *v, const Sizes *from, double max_flops, Sizes *list, int n);

/* -1: one execution at these sizes takes more flops. */
int sizes_affordable(const Derivation *v, const Sizes *s, double max_flops, Error *err);

#endif
