/* Some elements of the result of a library call, computed of what they need alone. */
#ifndef EVAL_SIM_LIBRARY_LIBRARY_SOME_H
#define EVAL_SIM_LIBRARY_LIBRARY_SOME_H

#include "eval/sim/machine/device_memory.h"

/* Sets *asked to the bytes of the result that `need`, which is joined, has, and adds to *reads what their
 * elements read. *cost: what they take the host, in thread-instructions. Returns 0; 1: they take more than
 * `most`, or the result lies in no known way; -1: *err. */
int library_needs(const DeviceLaunch *call, const Ranges *need, double most, Ranges *asked,
                  Ranges *reads, double *cost, Error *err);

/* Computes the bytes of *asked, once all that they read has values. */
int library_run_some(DevMem *m, const DeviceLaunch *call, const Ranges *asked, Error *err);

#endif
