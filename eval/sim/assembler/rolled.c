/* Loops of which `.pragma "nounroll"` says that they stay loops. It stands in a loop's first block. */
#include <string.h>

#include "base/memory.h"
#include "eval/sim/assembler/assembler.h"

int branch_target(const PtxFunction *p, const PtxInst *in)
{
    if (strcmp(in->op, "bra") || in->n_operands != 1 || in->operands[0].kind != OPND_NAME)
        return -1;
    int label = ptx_find_label(p, in->operands[0].name, in->scope);
    return label < 0 ? -1 : p->labels[label].inst;
}

/* 1: the block that begins there is one of a loop that stays. */
static int is_rolled(const PtxFunction *p, int first, int last)
{
    for (int i = first; i <= last; i++) {
        if (p->insts[i].rolled) return 1;
        if (!strcmp(p->insts[i].op, "bra")) return 0;
    }
    return 0;
}

uint8_t *rolled_find(const PtxFunction *p)
{
    uint8_t *rolled = memory_alloc((size_t)p->n_insts + 1);
    for (int i = 0; i < p->n_insts; i++) {
        const int to = branch_target(p, &p->insts[i]);
        if (to >= 0 && to <= i && is_rolled(p, to, i)) memset(rolled + to, 1, (size_t)(i - to + 1));
    }
    return rolled;
}
