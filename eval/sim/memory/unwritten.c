/* Reads of shared or local memory that nobody has written. A compiler moves a load up before the
 * branch that asks whether it is needed, so such a read is a fault only when its value is used: the
 * registers are followed over the blocks that the warp then passes, until they are read or
 * overwritten. */
#include "eval/sim/memory/memory_ops.h"

enum { KEPT = 0, OVERWRITTEN = 1, USED = 2 };

static int is_register(const PtxOperand *o, uint8_t cls, uint32_t reg)
{
    return o->kind == OPND_REG && o->cls == cls && o->reg == reg;
}

static int mentions(const PtxOperand *o, uint8_t cls, uint32_t reg)
{
    if (is_register(o, cls, reg)) return 1;
    int n = o->kind == OPND_ADDR ? 1 : o->kind == OPND_VEC || o->kind == OPND_LIST ? o->n : 0;
    for (int i = 0; i < n; i++)
        if (mentions(&o->items[i], cls, reg)) return 1;
    return 0;
}

static int has_destination(const PtxInst *in)
{
    static const char *const none[] = {"st", "red", "call", "cp", "bar", "barrier", "nanosleep"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        if (!strcmp(in->op, none[i])) return 0;
    return 1;
}

/* A selection takes what it needs: unwritten_select looks at it when it runs. */
static int effect(const PtxInst *in, uint8_t cls, uint32_t reg)
{
    int first = has_destination(in) ? 1 : 0, selects = !strcmp(in->op, "selp");
    for (int i = first; i < in->n_operands && !selects; i++)
        if (mentions(&in->operands[i], cls, reg)) return USED;
    if (!first || !in->n_operands) return KEPT;
    const PtxOperand *d = &in->operands[0];
    if (d->kind == OPND_ADDR) return mentions(d, cls, reg) ? USED : KEPT;
    return mentions(d, cls, reg) && in->guard < 0 ? OVERWRITTEN : KEPT;
}

/* Shared memory: kept until the next barrier, where it is a fault of its own unless a write by
 * another warp has made it a race. 0, or -1 with a fault. */
static int confirm(Warp *w, const Unwritten *u)
{
    Exec *x = w->x;
    if (!u->is_shared) {
        exec_fault(w, u->in, u->lane, OUTCOME_OUT_OF_BOUNDS,
                   "reads %d bytes of a local array before writing them (offset %llu)", u->size,
                   (unsigned long long)u->at);
        return -1;
    }
    if (x->has_pending || x->faulted) return 0;
    exec_fault(
        w, u->in, u->lane, OUTCOME_OUT_OF_BOUNDS,
        "reads %d bytes at offset %llu of shared memory that no thread of the block has written",
        u->size, (unsigned long long)u->at);
    x->pending = *x->fault;
    x->has_pending = 1;
    x->faulted = 0;
    return 0;
}

static void forget(Warp *w, int i)
{
    w->unwritten[i] = w->unwritten[--w->n_unwritten];
}

/* What the rest of a block does with the registers of one read: 1, it is settled; 0, not yet; -1 a
 * fault. */
static int follow_one(Warp *w, Unwritten *u, const Inst *from)
{
    const Function *f = w->frame->fn;
    uint32_t seen = u->in->src;
    for (const Inst *in = from; in < f->insts + f->n_insts && in->fn != h_block && u->n_regs;
         in++) {
        const PtxInst *p = exec_source(w, in);
        if (!p || in->src == seen) continue;
        seen = in->src;
        for (int k = 0; k < u->n_regs; k++) {
            int e = effect(p, u->regs[k].cls, u->regs[k].reg);
            if (e == USED) return confirm(w, u) ? -1 : 1;
            if (e == OVERWRITTEN && !(u->lanes & ~w->active)) u->regs[k--] = u->regs[--u->n_regs];
        }
    }
    if (!(u->lanes & ~w->active)) return !u->n_regs;
    return 0;
}

int unwritten_follow(Warp *w, const Inst *from)
{
    for (int i = 0; i < w->n_unwritten; i++) {
        Unwritten *u = &w->unwritten[i];
        if (u->frame != w->frame || !(u->lanes & w->active)) continue;
        int r = follow_one(w, u, from);
        if (r < 0) return -1;
        if (r) forget(w, i--);
    }
    return 0;
}

int unwritten_select(Warp *w, const Inst *in, uint32_t m, uint32_t takes_a)
{
    for (int i = 0; i < w->n_unwritten; i++) {
        Unwritten *u = &w->unwritten[i];
        uint32_t lanes = u->frame == w->frame ? u->lanes & m : 0;
        for (int k = 0; k < u->n_regs && lanes; k++) {
            if (!(u->regs[k].row == in->a && lanes & takes_a) &&
                !(u->regs[k].row == in->b && lanes & ~takes_a))
                continue;
            if (confirm(w, u)) return -1;
            forget(w, i--);
            break;
        }
    }
    return 0;
}

int unwritten_read(Warp *w, const Access *a, int lane, uint64_t at, int is_shared)
{
    const PtxInst *p = exec_source(w, a->in);
    const MemOp *mo = a->mo;
    Unwritten u = {.in = a->in,
                   .frame = w->frame,
                   .lanes = a->mask,
                   .lane = lane,
                   .size = a->size,
                   .at = at,
                   .is_shared = is_shared};
    const PtxOperand *d = p && p->n_operands ? &p->operands[0] : NULL;
    /* An atomic, a volatile load, a matrix's load: nobody moves those. */
    int plain = a->in->fn == h_mem && p && !strncmp(p->op, "ld", 2) && mo->kind == MEM_LOAD &&
                mo->order == ORDER_WEAK && d;
    for (int i = 0; i < w->n_unwritten; i++)
        if (w->unwritten[i].in == a->in && w->unwritten[i].frame == w->frame) {
            u.lanes |= w->unwritten[i].lanes; /* read again, or the access goes lane by lane */
            forget(w, i--);
        }
    if (!plain || w->n_unwritten == UNWRITTEN_MAX) return confirm(w, &u);
    for (int k = 0; k < mo->count; k++) {
        const PtxOperand *r = d->kind == OPND_VEC && k < d->n ? &d->items[k] : d;
        if (r->kind != OPND_REG || mo->data[k] == ROW_NONE) continue;
        u.regs[u.n_regs].cls = r->cls;
        u.regs[u.n_regs].reg = r->reg;
        u.regs[u.n_regs++].row = mo->data[k];
    }
    int r = follow_one(w, &u, a->in + 1);
    if (!r && u.n_regs) w->unwritten[w->n_unwritten++] = u;
    return r < 0 ? -1 : 0;
}
