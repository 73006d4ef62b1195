/* Modules of the device "cuda:N", each in the runner of its home. A module without state is kept
 * when it is unloaded, and used again when the same code is loaded. A small one is kept in several
 * copies, since a kernel's time depends on where its code lies (docs/gpu-verdict.md, "Module
 * copies"). */
#ifndef EVAL_CUDA_MODULES_H
#define EVAL_CUDA_MODULES_H

#include "eval/cuda/cuda_device.h"

/* Returns 1 with *fault when the driver refuses the code. code NULL, not in HOME_CANDIDATE: a module of
 * library calls alone. */
int module_load(Device *d, const DeviceCode *code, int home, DeviceModule **out, Fault *fault);
void module_unload(Device *d, DeviceModule *m);
void modules_close(Device *d);
/* Another process of libraries for the present candidate, whose modules there are to be loaded again. */
int modules_renew(Device *d, Error *err);
/* Make sure that a trusted module is loaded. It outlives its runner: after a restart it is loaded
 * again, with the kernels that were asked for. */
int module_present(Device *d, DeviceModule *m, Error *err);
/* The kernel of this lowered name; NULL: the module has none. It stays valid until the next
 * call. */
const ModuleKernel *module_kernel(Device *d, DeviceModule *m, const char *name, Error *err);

#endif
