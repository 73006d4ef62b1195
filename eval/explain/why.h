/* Why a kernel takes the time that it takes, in sentences: the resource that limits it, what the
 * task needs at best, the costliest source lines, the change that usually helps, and what differs
 * from another kernel. All of it follows from a verdict's counters. */
#ifndef EVAL_EXPLAIN_WHY_H
#define EVAL_EXPLAIN_WHY_H

#include "base/buffer.h"
#include "eval/judge/verdict/verdict.h"

typedef struct {
    int n;
    DeviceCounter v[DEVICE_MAX_COUNTERS];
} Counters;

/* Returns the value of a counter, or NAN when there is none of that name. */
double counters_get(const Counters *c, const char *name);
void counters_of(const DeviceCounter *v, int n, Counters *out);

typedef struct {
    const char *text; /* "DRAM" */
    double share;     /* of the time that the resource alone needs, or of its peak */
    unsigned bit;     /* of why_most_gained */
    int of_peak;      /* share: how much of its peak a GPU's unit reaches in the kernel */
} Limit;

/* Finds the limiting resource. Returns 0, or -1 when the counters do not tell. */
int why_limit(const Counters *c, Limit *out);

typedef struct {
    const char *label, *unit;
    double before, after;
    int better; /* 1 the change helps, -1 it hurts, 0 it says nothing */
} CounterRow;

enum { WHY_ROWS = 16 };
/* Lists the counters that differ by more than a hundredth. Returns how many. */
int why_rows(const Counters *before, const Counters *after, CounterRow out[WHY_ROWS]);

/* Says what limits each and which counters improved most, the limiting resource's first. before and
 * after: what the sentences call them. */
void why_difference(const Counters *before, const Counters *after, const char *before_name,
                    const char *after_name, Buffer *out);

/* One or two sentences: the change that usually helps against this limit, with the counters that
 * say so. */
void why_advice(const Verdict *v, Buffer *out);
/* All of it, with the text of the costliest lines; source is NUL-terminated. */
void why_text(const Verdict *v, const char *source, Buffer *out);

/* Formats a number with its unit: "12.6 MB", "48,160", "0.75". */
void why_number(double v, const char *unit, char *out, size_t size);

#endif
