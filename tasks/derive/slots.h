/* The memory that the baseline's op lines take beside inputs and outputs: results that do not live at
 * the same time share slots, and an operator's scratch lives for its own line. */
#ifndef TASKS_DERIVE_SLOTS_H
#define TASKS_DERIVE_SLOTS_H

#include "tasks/graph/graph.h"

double slots_bytes(const GraphBound *b);

#endif
