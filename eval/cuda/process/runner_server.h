/* The runner process (quern-cudarunner): a CUDA context in which candidates run, or baselines. It
 * holds no expected output, no queue connection and no file of the evaluator. */
#ifndef EVAL_CUDA_PROCESS_RUNNER_SERVER_H
#define EVAL_CUDA_PROCESS_RUNNER_SERVER_H

#include "base/error.h"

typedef struct {
    int socket, ordinal;
    int libraries; /* launches may be library calls */
    int hold;      /* a descriptor that is closed once the context exists; -1: none */
} RunnerServer;

/* Answer the harness's calls on the socket until it closes (0), or until a launch has lost the
 * context (-1). */
int runner_server_run(const RunnerServer *of, Error *err);

#endif
