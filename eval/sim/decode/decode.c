/* A module: layout first, then every function, then which kernels are unsupported. */
#include "eval/sim/decode/decode.h"

#include <stdlib.h>

#include "base/memory.h"
#include "eval/sim/decode/decode_internal.h"

/* In thread-instructions: a launch clears and sums what is counted by block and instruction. */
enum { BLOCK_COST = 20, INST_COST = 6 };

/* A kernel cannot run when a function that it calls cannot. */
static void spread_unsupported(Function *f, Function *root, int depth)
{
    if (f->visited == root->visited && depth) return;
    f->visited = root->visited;
    if (f != root && f->unsupported && !root->unsupported) {
        root->unsupported = f->unsupported;
        root->unsupported_line = f->unsupported_line;
    }
    for (int i = 0; i < f->n_callees && depth < 1000; i++)
        spread_unsupported((Function *)(uintptr_t)f->callees[i], root, depth + 1);
}

/* Finds the functions whose address is taken, before anything is decoded: a call through a pointer
 * may come first in the text. */
static void take_addresses(PtxModule *m)
{
    for (int i = 0; i < m->n_functions; i++)
        for (int k = 0; k < m->functions[i].n_insts; k++) {
            const PtxInst *in = &m->functions[i].insts[k];
            if (ptx_same(in->op, "mov") && in->n_operands == 2 && in->operands[1].kind == OPND_NAME)
                ptx_take_address(m, in->operands[1].name);
        }
}

int code_build(PtxModule *ptx, int follow, Code *out, Error *err)
{
    memset(out, 0, sizeof *out);
    out->follow = follow;
    out->ptx = *ptx;
    memset(ptx, 0, sizeof *ptx);
    int n = out->ptx.n_functions;
    out->functions = memory_array((size_t)n + 1, sizeof(Function));
    if (layout_const(out, err)) {
        code_release(out);
        return -1;
    }
    const PtxVar *last = NULL;
    uint64_t shared = layout_shared(out, &last);
    for (int i = 0; i < n; i++) {
        out->functions[i].ptx = &out->ptx.functions[i];
        if (out->ptx.functions[i].is_entry) layout_entry_shared(&out->functions[i], shared, last);
    }
    layout_dynamic_shared(out);
    take_addresses(&out->ptx);
    for (int i = 0; i < n; i++) layout_frame(&out->functions[i]);
    for (int i = 0; i < n; i++) decode_function(out, i);
    for (int i = 0; i < n; i++)
        out->launch_cost += BLOCK_COST * out->functions[i].n_blocks +
                            INST_COST * (int64_t)out->ptx.functions[i].n_insts;
    for (int i = 0; i < n; i++) {
        out->functions[i].visited = i + 1;
        if (out->ptx.functions[i].is_entry)
            spread_unsupported(&out->functions[i], &out->functions[i], 0);
    }
    return 0;
}

void code_release(Code *c)
{
    for (int i = 0; c->functions && i < c->ptx.n_functions; i++) {
        Function *f = &c->functions[i];
        free(f->insts);
        free(f->gaps.list);
        free(f->blocks);
        free(f->callees);
        free(f->classes);
        free(f->waits);
        free(f->traffic);
    }
    free(c->functions);
    free(c->gaps.list);
    free(c->pool32);
    free(c->pool64);
    free(c->const_bank);
    ptx_release(&c->ptx);
    memset(c, 0, sizeof *c);
}

Function *code_find_entry(Code *c, const char *name)
{
    for (int i = 0; i < c->ptx.n_functions; i++)
        if (c->ptx.functions[i].is_entry && c->ptx.functions[i].defined &&
            !strcmp(c->ptx.functions[i].name, name))
            return &c->functions[i];
    return NULL;
}
