/* The places of variables and parameters: rows and local memory of a frame, the constant bank, and
 * the shared memory of a block. */
#include "base/memory.h"
#include "eval/sim/decode/decode_internal.h"

/* Aligns a variable at `at` or behind. Returns the offset of its end. */
static uint64_t place(PtxVar *v, uint64_t at)
{
    v->offset = (at + v->align - 1) & ~(uint64_t)(v->align - 1);
    return v->offset + v->size;
}

/* A shared array of unstated size is dynamic shared memory. */
static int is_dynamic(const PtxVar *v)
{
    return v->is_extern || !v->size;
}

/* Gives a parameter its rows; v->offset is the first one. */
static void take_words(Function *f, PtxVar *v)
{
    uint64_t words = (v->size + 3) / 4;
    v->offset = f->rows32;
    if (words > FRAME_MAX_ROWS - f->rows32)
        f->unsupported = "it has more than 4 MiB of parameters";
    else
        f->rows32 += (uint32_t)words;
}

void layout_frame(Function *f)
{
    const PtxFunction *p = f->ptx;
    uint64_t local = 0;
    f->rows32 = p->n_regs[REG_32];
    f->rows64 = p->n_regs[REG_64];
    f->preds = p->n_regs[REG_PRED] + 1;
    for (int i = 0; i < p->n_params && !p->is_entry; i++) take_words(f, p->params[i]);
    for (int i = 0; i < p->n_returns && !p->is_entry; i++) take_words(f, p->returns[i]);
    for (PtxVar *v = p->vars; v; v = v->next)
        if (v->space == SPACE_LOCAL)
            local = place(v, local);
        else if (v->space == SPACE_PARAM)
            take_words(f, v);
    if (local > 1 << 20) f->unsupported = "it has more than 1 MiB of local memory";
    f->local_bytes = (uint32_t)local;
}

int layout_const(Code *c, Error *err)
{
    uint64_t at = 0;
    for (PtxVar *v = c->ptx.vars; v; v = v->next)
        if (v->space == SPACE_CONST) at = place(v, at);
    if (at > 65536)
        return error_set(err, ERROR_LIMIT, "constant memory of %llu bytes; 65536 are allowed",
                         (unsigned long long)at);
    c->const_bytes = (uint32_t)at;
    c->const_bank = memory_alloc((size_t)at + 16);
    for (PtxVar *v = c->ptx.vars; v; v = v->next)
        if (v->space == SPACE_CONST && v->init) memcpy(c->const_bank + v->offset, v->init, v->size);
    return 0;
}

/* ptxas aligns variables behind the system's part of a block's shared memory: one that is aligned to more
 * than the size of this part lies so many bytes behind a multiple of its alignment. */
static uint64_t place_shared(PtxVar *v, uint64_t at)
{
    place(v, at);
    if (v->align > RESERVED_SHARED) v->offset += RESERVED_SHARED;
    return v->offset + v->size;
}

/* Adds the bytes [lo, hi) behind a variable. A kernel beyond 1 MiB, whose offsets may not fit, has no run. */
static void add_gap(SharedGaps *gaps, const PtxVar *before, uint64_t lo, uint64_t hi)
{
    if (lo >= hi || hi > 1 << 20) return;
    gaps->list = memory_grow(gaps->list, (size_t)gaps->n + 1, sizeof *gaps->list);
    gaps->list[gaps->n++] = (struct SharedGap){(uint32_t)lo, (uint32_t)hi, before};
}

/* Places the static shared variables of a list at `at` or behind. *last: the variable that ends there, and
 * then the last one of the list. Returns where that ends. */
static uint64_t place_all_shared(PtxVar *list, uint64_t at, SharedGaps *gaps, const PtxVar **last)
{
    for (PtxVar *v = list; v; v = v->next) {
        if (v->space != SPACE_SHARED || is_dynamic(v)) continue;
        uint64_t end = place_shared(v, at);
        add_gap(gaps, *last, at, v->offset);
        at = end;
        *last = v;
    }
    return at;
}

uint64_t layout_shared(Code *c, const PtxVar **last)
{
    uint64_t at = 0;
    for (int i = -1; i < c->ptx.n_functions; i++) {
        if (i >= 0 && c->ptx.functions[i].is_entry) continue;
        at = place_all_shared(i < 0 ? c->ptx.vars : c->ptx.functions[i].vars, at, &c->gaps, last);
    }
    return at;
}

void layout_entry_shared(Function *f, uint64_t at, const PtxVar *last)
{
    at = place_all_shared(f->ptx->vars, at, &f->gaps, &last);
    f->static_shared = (uint32_t)(((at > 1 << 20 ? 1 << 20 : at) + 15) & ~(uint64_t)15);
    add_gap(&f->gaps, last, at, f->static_shared);
    /* The size is bounded even so: the dynamic memory of other kernels starts behind it. */
    if (at > 1 << 20) f->unsupported = "it declares more than 1 MiB of static shared memory";
}

void layout_dynamic_shared(Code *c)
{
    uint32_t end = 0;
    int dynamic = 0;
    for (PtxVar *v = c->ptx.vars; v; v = v->next)
        dynamic |= v->space == SPACE_SHARED && is_dynamic(v);
    for (int i = 0; i < c->ptx.n_functions; i++)
        if (c->functions[i].static_shared > end) end = c->functions[i].static_shared;
    for (PtxVar *v = c->ptx.vars; v; v = v->next)
        if (v->space == SPACE_SHARED && is_dynamic(v)) v->offset = end;
    for (int i = 0; i < c->ptx.n_functions && dynamic; i++) {
        if (!c->functions[i].ptx->is_entry) continue;
        c->functions[i].dynamic_at = end;
        add_gap(&c->functions[i].gaps, NULL, c->functions[i].static_shared, end);
    }
}
