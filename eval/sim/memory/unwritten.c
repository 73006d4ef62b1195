/* The PTX operands of the instructions ahead say whether a followed register is used, overwritten
 * or neither. A selection is followed when it runs, since it uses only one of its operands. */
#include "eval/sim/memory/unwritten.h"

#include "eval/sim/memory/async_copy.h"
#include "eval/sim/memory/bulk_copy.h"
#include "eval/sim/memory/doubts.h"

typedef enum { KEPT, OVERWRITTEN, USED } Effect;

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
    static const char *const none[] = {
        "st",      "red",       "call",     "cp",      "bar",
        "barrier", "nanosleep", "stmatrix", "discard", "wgmma" /* it reads its destination, too */};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        if (!strcmp(in->op, none[i])) return 0;
    return 1;
}

/* A store to memory that keeps undefined values. */
static int is_copy(const PtxInst *in)
{
    int is = !strcmp(in->op, "st");
    for (int i = 0; i < in->n_mods; i++) is &= strcmp(in->mods[i], "global") != 0;
    return is;
}

/* What an instruction does with a register. */
static Effect effect_on(const PtxInst *in, uint8_t cls, uint32_t reg)
{
    int first = has_destination(in) ? 1 : 0, selects = !strcmp(in->op, "selp");
    for (int i = first; i < in->n_operands && !selects; i++)
        if (mentions(&in->operands[i], cls, reg)) return USED;
    if (!first || !in->n_operands) return KEPT;
    const PtxOperand *d = &in->operands[0];
    if (d->kind == OPND_ADDR) return mentions(d, cls, reg) ? USED : KEPT;
    return mentions(d, cls, reg) && in->guard < 0 ? OVERWRITTEN : KEPT;
}

static int report(Warp *w, const Unwritten *u)
{
    if (!u->is_shared)
        return exec_fail(w, u->in, u->lane, OUTCOME_OUT_OF_BOUNDS,
                         "reads %d bytes of a local array before writing them (offset %llu)",
                         u->size, (unsigned long long)u->at);
    int copy = async_line_at(w->x, u->at, (uint32_t)u->size),
        bulk = bulk_line_at(w->x, u->at, (uint32_t)u->size),
        clash = async_clash_at(w->x, u->at, (uint32_t)u->size);
    if (clash >= 0)
        return exec_fail(
            w, u->in, u->lane, OUTCOME_RACE,
            "reads %d bytes at offset %llu of shared memory, where the cp.async of line %d and "
            "another one, both under way at the same time, leave different bytes",
            u->size, (unsigned long long)u->at, clash);
    if (copy >= 0 || bulk >= 0)
        return exec_fail(
            w, u->in, u->lane, OUTCOME_OUT_OF_BOUNDS,
            "reads %d bytes at offset %llu of shared memory that the %s of line %d has not "
            "brought: it is not awaited (%s)",
            u->size, (unsigned long long)u->at, copy >= 0 ? "cp.async" : "bulk copy",
            copy >= 0 ? copy : bulk,
            copy >= 0 ? "cp.async.wait_group with fewer groups left, then a barrier"
                      : "mbarrier.try_wait of its phase");
    return exec_fail(
        w, u->in, u->lane, OUTCOME_OUT_OF_BOUNDS,
        "reads %d bytes at offset %llu of shared memory that no thread of the block has written",
        u->size, (unsigned long long)u->at);
}

/* The value is used. In local memory that is a fault. In shared memory the fault is pending until
 * the next barrier: if another warp writes the place before, it is a race. Returns 0, or -1 with a
 * fault. */
static int confirm(Warp *w, const Unwritten *u)
{
    Exec *x = w->x;
    if (u->is_plain && !x->code->follow)
        x->doubted |= u->is_copied ? DOUBTED_UNWRITTEN : DOUBTED_USED;
    if (!u->is_shared) return report(w, u);
    if (x->has_pending || x->faulted) return 0;
    report(w, u);
    x->pending = *x->fault;
    x->has_pending = 1;
    x->faulted = 0;
    return 0;
}

static void forget(Warp *w, int i)
{
    w->unwritten[i] = w->unwritten[--w->n_unwritten];
}

/* Follows the registers of one read to the end of the current block. Returns 1 when the read is
 * settled, 0 when it is not, -1 with a fault. */
static int follow_one(Warp *w, Unwritten *u, const Inst *from)
{
    const Function *f = w->frame->fn;
    uint32_t seen = u->in->source;
    for (const Inst *in = from; in < f->insts + f->n_insts && !in->starts_block && u->n_regs;
         in++) {
        const PtxInst *p = exec_source(w, in);
        if (!p || in->source == seen) continue;
        seen = in->source;
        for (int k = 0; k < u->n_regs; k++) {
            Effect e = effect_on(p, u->regs[k].cls, u->regs[k].reg);
            u->is_copied |= e == USED && is_copy(p);
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

int unwritten_read(Warp *w, const Access *a, int lane, uint64_t at, int is_shared, uint32_t bytes)
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
    /* A compiler does not move atomics or volatile loads. What is fetched ahead of the last step, a matrix
     * too, nobody may use. */
    int is_matrix = d && !strcmp(p->op, "ldmatrix"),
        plain = is_matrix || (d && (!strcmp(p->op, "ld") || !strcmp(p->op, "ldu")) &&
                              mo->kind == MEM_LOAD && mo->order == ORDER_WEAK);
    u.is_plain = plain;
    u.is_copied = plain && !is_matrix && a->size < 32 && bytes != (1u << a->size) - 1;
    if (plain && doubt_is_followed(w, a->in)) {
        if (!w->partial_load) report(w, &u);
        return doubt_bytes(w, a->in, lane, bytes);
    }
    for (int i = 0; i < w->n_unwritten; i++)
        if (w->unwritten[i].in == a->in && w->unwritten[i].frame == w->frame) {
            u.lanes |= w->unwritten[i].lanes; /* a repeated read, or the next lane of the access */
            forget(w, i--);
        }
    if (!plain || w->n_unwritten == UNWRITTEN_MAX) return confirm(w, &u);
    const uint32_t *rows = is_matrix ? mo->data + 4 : mo->data;
    if (is_matrix) u.lanes = w->active; /* the lanes of addresses give their rows to all */
    for (int k = 0; k < (is_matrix ? a->in->k0 : mo->count); k++) {
        const PtxOperand *r = d->kind == OPND_VEC && k < d->n ? &d->items[k] : d;
        if (r->kind != OPND_REG || rows[k] == ROW_NONE) continue;
        u.regs[u.n_regs].cls = r->cls;
        u.regs[u.n_regs].reg = r->reg;
        u.regs[u.n_regs++].row = rows[k];
    }
    int r = follow_one(w, &u, a->in + 1);
    if (!r && u.n_regs) w->unwritten[w->n_unwritten++] = u;
    return r < 0 ? -1 : 0;
}
