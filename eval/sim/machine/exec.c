/* Faults of a running kernel. The sentence names the kernel, line, block and thread; only the first
 * fault of a launch is kept. */
#include "eval/sim/machine/exec.h"

#include <stdarg.h>
#include <stdio.h>

const PtxInst *exec_source(const Warp *w, const Inst *in)
{
    const PtxFunction *f = w->frame->fn->ptx;
    return in->source < (uint32_t)f->n_insts ? &f->insts[in->source] : NULL;
}

const Inst *exec_fault(Warp *w, const Inst *in, int lane, Outcome outcome, const char *fmt, ...)
{
    Exec *x = w->x;
    Fault *f = x->fault;
    const PtxInst *src = exec_source(w, in);
    if (x->faulted) return NULL;
    x->faulted = 1;
    f->outcome = outcome;
    snprintf(f->kernel, sizeof f->kernel, "%s", x->launch->kernel);
    f->line = src ? src->line : 0;
    memcpy(f->block, x->cta.id, sizeof f->block);
    for (int i = 0; i < 3; i++) f->thread[i] = w->tid[i][lane];
    char what[360], name[64];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    device_kernel_name(x->launch->kernel, name, sizeof name);
    f->place = snprintf(f->message, sizeof f->message, "kernel %s, line %d, ", name, f->line);
    f->what = f->place + snprintf(f->message + f->place, sizeof f->message - (size_t)f->place,
                                  "block (%u,%u,%u), thread (%u,%u,%u): ", f->block[0], f->block[1],
                                  f->block[2], f->thread[0], f->thread[1], f->thread[2]);
    snprintf(f->message + f->what, sizeof f->message - (size_t)f->what, "%s", what);
    return NULL;
}

void exec_raise_pending(Exec *x)
{
    if (!x->has_pending || x->faulted || x->keeps_pending) return;
    *x->fault = x->pending;
    x->faulted = 1;
}
