/* Buffers of the device "cuda:N": places in the arena with memory behind them. A buffer's address
 * is the same in the harness's context and in both runners. */
#ifndef EVAL_CUDA_BUFFERS_H
#define EVAL_CUDA_BUFFERS_H

#include "eval/cuda/cuda_device.h"

/* Make room for n buffers of these sizes, in this order, in one extent: the speed of a kernel depends on
 * where its tensors lie in the device's memory, and a large extent lies in the same way each time. Does
 * nothing while there are buffers, or where the memory does not suffice. */
int buffers_reserve(Device *d, const size_t *bytes, int n, Error *err);
/* A poisoned buffer of `bytes`; `label` names it in faults. */
int buffers_alloc(Device *d, size_t bytes, const char *label, DevicePtr *out, Error *err);
/* Free the buffer that starts at p. When it was the last, most of the memory goes back. */
void buffers_free(Device *d, DevicePtr p);
/* Returns 0 when [p, p + bytes) lies inside one buffer, else -1. */
int buffers_hold(Device *d, DevicePtr p, size_t bytes, Error *err);
void buffers_close(Device *d);

#endif
