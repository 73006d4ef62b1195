/* The seconds of a sequence of launches by source line, with the stall that takes them.
 *
 * A launch takes about sqrt(T^2 + L^2) (time_model.h). Its seconds are divided in this proportion of
 * squares between the busiest resource and the latency. The resource's part goes to the lines by
 * what they ask of it, the latency's to the lines that wait for loads, at barriers, and in dependent
 * instructions. Nothing of it is exact: it orders lines, as a sampling profiler would. */
#ifndef EVAL_SIM_TIME_LINE_COSTS_H
#define EVAL_SIM_TIME_LINE_COSTS_H

#include "eval/sim/machine/instruction.h"
#include "eval/sim/time/time_model.h"

typedef enum {
    STALL_LOADS = TIME_RESOURCE_COUNT,
    STALL_BARRIERS,
    STALL_CHAIN,
    STALL_OPERATOR, /* a line of the plan whose kernel is the harness's */
    STALL_COUNT
} Stall; /* below STALL_LOADS: a TimeResource */

typedef struct {
    double seconds[STALL_COUNT];
    InstTraffic traffic;
} LineCost;

typedef struct {
    int n; /* lines 0 to n - 1; line 0: unknown */
    LineCost *line;
} LineCosts;

/* Adds a launch that has just run. code: whose counts by instruction are those of this launch; NULL:
 * of an op line, all of it belongs to `line`. */
void line_costs_add(LineCosts *l, const Profile *p, const Code *code, int line, const SimCounts *c,
                    const LaunchTime *t);
/* Writes the costliest lines as sentences, each with its share of `seconds`. Returns their number. */
int line_costs_text(const LineCosts *l, double seconds,
                    char out[DEVICE_MAX_LINES][DEVICE_LINE_TEXT]);
void line_costs_release(LineCosts *l);

#endif
