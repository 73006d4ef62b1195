/* A task whose task.json has a graph: what other tasks read from reference.c, baseline.cu and their
 * cost expressions follows from it. */
#ifndef TASKS_TASK_GRAPH_H
#define TASKS_TASK_GRAPH_H

#include "base/json.h"
#include "tasks/task.h"

/* Reads root["graph"] into t->graph, and writes reference_source and baseline_source. */
int task_graph_read(Task *t, const json_t *root, const char *file, Error *err);
/* Reads root["operators"] into t->operators, where a task of files has it. */
int task_operators_read(Task *t, const json_t *root, const char *file, Error *err);

/* TF32_CUBLAS, TF32_CUDNN: the libraries that may round factors of its operators (op_tf32). */
int task_graph_tf32(const Task *t, unsigned *out, Error *err);
/* Those flops of task_cost whose factors the task's precision lets eager PyTorch round to TF32. */
int task_tf32_flops(const Task *t, const Workload *w, double *flops, Error *err);
/* Binds the graph to a workload, or the `operators` of a task of files, and checks that outputs have the
 * shapes and dtypes that task.json states. The caller frees *out with graph_bound_free. */
int task_graph_bind(const Task *t, const Workload *w, GraphBound **out, Error *err);
/* As task_cost, without what is not needed of products and convolutions whose results are only summed. */
int task_least_cost(const Task *t, const Workload *w, double *bytes, double *flops, Error *err);
int task_graph_cost(const Task *t, const Workload *w, double *bytes, double *flops, Error *err);
int task_graph_reference(const Task *t, const Workload *w, const double *const *in,
                         double *const *out, Error *err);

#endif
