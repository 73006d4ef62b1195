/* The handlers of memory instructions. The operands are in in->mem but where noted. */
#ifndef EVAL_SIM_MEMORY_MEMORY_OPS_H
#define EVAL_SIM_MEMORY_MEMORY_OPS_H

#include "eval/sim/machine/exec.h"

/* load_store.c */
Handler h_mem;     /* ld, st of all spaces */
Handler h_discard; /* a store of 128 bytes without a value */
/* A kernel's parameter: d; imm its offset, k0 bytes, k1 signed, k2 bits of the register. */
Handler h_ldparam;
/* Part of a parameter's word in a frame: d, a; k0 shift, k1 bits, k2 signed (get), e bits of the
 * register. */
Handler h_param_get, h_param_put;

Handler h_atom; /* atomics.c: atom, red */

/* async_copy.c. h_cp_async: mem is the global side; a shared addresses (k0: ADDRESS_*), e their
 * offset, b source sizes or ROW_NONE. h_cp_async_group: k0 wait or commit; imm the groups that may
 * stay under way, -1 none at all. */
Handler h_cp_async, h_cp_async_group;

#endif
