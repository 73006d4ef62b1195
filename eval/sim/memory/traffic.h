/* Counters of requests to global memory: sectors, first touches, hits of a small L1. */
#ifndef EVAL_SIM_MEMORY_TRAFFIC_H
#define EVAL_SIM_MEMORY_TRAFFIC_H

#include "eval/sim/memory/access.h"

void traffic_count(Warp *w, const Access *a, int kind); /* kind: MEM_LOAD, MEM_STORE, MEM_ATOM */

#endif
