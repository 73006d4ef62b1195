/* The counter that explains best why one kernel is faster than another of the same task, from the
 * counters of their verdicts. */
#ifndef STAGES_DATA_DECIDING_H
#define STAGES_DATA_DECIDING_H

#include "artifacts/record.h"

typedef struct {
    const char *name;   /* of the counter: "dram_bytes" */
    const char *label;  /* in words: "DRAM traffic" */
    const char *change; /* what the faster kernel does: "moves less to and from DRAM" */
    double fast, slow;  /* its values */
    double share;       /* of the slower kernel's time that its resource takes */
} Deciding;

/* A counter decides by how far it differs to the better, weighted with the share of the slower
 * kernel's time that its resource takes. Returns 1 and fills *out, or 0 when no counter differs by
 * a tenth, or a verdict has no counters. */
int deciding_counter(const View *fast, const View *slow, Deciding *out);

/* The counters that cost a correct kernel most, the worst first: by the share of its time that the
 * counter's resource takes and how far the counter is from the best that it can be, as far as that
 * is known. Its value is in `slow`. Returns how many, at most n; 0 without counters. */
int deciding_worst(const View *verdict, Deciding *out, int n);

#endif
