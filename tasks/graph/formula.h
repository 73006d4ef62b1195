/* A graph as formulas that people and models read: y = softmax(relu(x @ w.T + b), -1). What is used once
 * stands where it is used, or each operator has a line. */
#ifndef TASKS_GRAPH_FORMULA_H
#define TASKS_GRAPH_FORMULA_H

#include "base/buffer.h"
#include "tasks/graph/graph.h"

typedef enum { FORMULA_NESTED, FORMULA_LINES } FormulaForm;

/* Appends one line a formula. max_bytes: a longer text ends with how many lines are left out.
 * FORMULA_LINES: every operator has a line, but for those that only rename or transpose. */
void graph_formula(const Graph *g, FormulaForm form, size_t max_bytes, Buffer *out);

#endif
