/* The runner process's side: a context in which candidates run, and nothing that they could want;
 * or baselines. */
#ifndef EVAL_CUDA_PROCESS_RUNNER_SERVER_H
#define EVAL_CUDA_PROCESS_RUNNER_SERVER_H

#include "base/error.h"

/* Serve the device over the socket until it closes, or until a launch has lost the context.
 * trusted: a launch may be a call of a library. 0: it closed. */
int cudaserve_run(int socket, int ordinal, int trusted, Error *err);

#endif
