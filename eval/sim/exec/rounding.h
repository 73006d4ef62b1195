/* The rounding mode and the flush to zero of the processor that simulates, set for a few operations. */
#ifndef EVAL_SIM_EXEC_ROUNDING_H
#define EVAL_SIM_EXEC_ROUNDING_H

#include <immintrin.h>

#include "eval/sim/machine/values.h"

/* mode: FP_ROUNDING and FP_FTZ. Returns what leave_mode takes. */
static inline unsigned enter_mode(int mode)
{
    unsigned old = _mm_getcsr();
    unsigned csr =
        (old & ~0xe040u) | (unsigned)(mode & FP_ROUNDING) << 13 | (mode & FP_FTZ ? 0x8040u : 0);
    _mm_setcsr(csr);
    __asm__ volatile("" ::: "memory");
    return old;
}

static inline void leave_mode(unsigned old)
{
    __asm__ volatile("" ::: "memory");
    _mm_setcsr(old);
}

#endif
