/* Buffers that a launch stores nothing to: no access of it to one of them is a race, and the shadows of who
 * read and wrote there, four times the buffer's size, need not be kept. */
#ifndef EVAL_SIM_STEADY_H
#define EVAL_SIM_STEADY_H

#include "eval/sim/machine/device_memory.h"
#include "eval/sim/ptx/ptx.h"

/* Marks them, as far as the kernel's code and its parameters tell, until steady_forget. */
void steady_find(DevMem *m, const DeviceLaunch *l, const PtxModule *module, const PtxFunction *f);
void steady_forget(DevMem *m);

#endif
