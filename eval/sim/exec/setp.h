/* The result of setp: how a comparison is combined with a predicate and stored. */
#ifndef EVAL_SIM_EXEC_SETP_H
#define EVAL_SIM_EXEC_SETP_H

#include "eval/sim/exec/handlers.h"

/* r, q: a truth value per lane for the first and second destination. Returns the next instruction.
 */
static inline const Inst *setp_result(Warp *w, const Inst *in, uint32_t r, uint32_t q)
{
    uint32_t m = exec_mask(w, in), c = w->p[in->c] ^ in->f;
    switch (in->k1) {
    case COMBINE_AND: r &= c, q &= c; break;
    case COMBINE_OR: r |= c, q |= c; break;
    case COMBINE_XOR: r ^= c, q ^= c; break;
    }
    put_pred(w, in->d, m, r);
    put_pred(w, in->e, m, q);
    return in + 1;
}

#endif
