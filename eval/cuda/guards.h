/* Guard zones of the device "cuda:N": all mapped memory outside the buffers holds poison, so that a
 * write past a buffer's bounds changes a byte that is found afterwards. */
#ifndef EVAL_CUDA_GUARDS_H
#define EVAL_CUDA_GUARDS_H

#include "eval/cuda/cuda_device.h"

/* Fill every guard zone with poison, whatever was written there. */
void guards_poison(Device *d);
/* Returns 0 when every guard zone is intact, 1 with *fault when one is not, -1 on an error. A zone
 * that changed is poisoned again. */
int guards_check(Device *d, Fault *fault);
/* Compare the buffers of `list` with their expected contents and, with check_zones, check all guard
 * zones, in one wait. Returns 1 when something differs, without saying what. */
int guards_expect(Device *d, const DeviceExpected *list, int n, int check_zones, Error *err);

#endif
