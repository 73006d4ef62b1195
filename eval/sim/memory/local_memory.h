/* Loads and stores of local memory. They return 0, or -1 with a fault. */
#ifndef EVAL_SIM_MEMORY_LOCAL_MEMORY_H
#define EVAL_SIM_MEMORY_LOCAL_MEMORY_H

#include "eval/sim/memory/access.h"

int local_load(Warp *w, Access *a);
int local_store(Warp *w, Access *a);

#endif
