/* Control flow: blocks, branches, joins, calls, and the scheduling of a warp's splits. */
#include "eval/sim/memory/memory_ops.h"

#include "base/memory.h"

enum {
    SLICE = 20000,
    MAX_CALL_DEPTH = 512,
    LEAST_LANES = 8 /* a lane alone costs the simulator what eight do */
};

/* ---- splits and joins ---- */

void warp_enter(Warp *w, Frame *f)
{
    w->frame = f;
    w->bank32[0] = f->rows32;
    w->bank64[0] = f->rows64;
    w->p = f->preds;
}

void warp_pick(Warp *w, int split)
{
    const Split *s = &w->splits[split];
    w->current = split;
    w->active = s->mask;
    w->join = s->join;
    w->join_pc = s->join ? s->join->pc : NULL;
    w->slice = SLICE;
    warp_enter(w, s->frame);
}

void warp_park(Warp *w, const Inst *pc, int state)
{
    Split *s = &w->splits[w->current];
    s->mask = w->active;
    s->pc = pc;
    s->state = state;
    s->frame = w->frame;
    s->join = w->join;
}

static void remove_current(Warp *w)
{
    w->splits[w->current] = w->splits[--w->n_splits];
}

static void add_split(Warp *w, uint32_t mask, const Inst *pc, Frame *frame, Join *join)
{
    w->splits[w->n_splits++] =
        (Split){.mask = mask, .pc = pc, .frame = frame, .join = join, .state = SPLIT_READY};
}

static Join *new_join(Warp *w)
{
    for (int i = 0; i < 2 * LANES + 2; i++)
        if (!(w->joins_used[i >> 6] >> (i & 63) & 1)) {
            w->joins_used[i >> 6] |= 1ull << (i & 63);
            return &w->joins[i];
        }
    return NULL;
}

static void free_join(Warp *w, const Join *j)
{
    int i = (int)(j - w->joins);
    w->joins_used[i >> 6] &= ~(1ull << (i & 63));
}

/* The running split reached its join: it goes on if it was the last, merged with the others. */
static int arrive(Warp *w, const Inst *in)
{
    while (w->join && in == w->join->pc && w->frame == w->join->frame) {
        Join *j = w->join;
        j->arrived |= w->active;
        if ((j->arrived & w->live) != (j->expected & w->live)) {
            remove_current(w);
            return 0;
        }
        w->active = j->arrived & w->live;
        w->join = j->parent;
        free_join(w, j);
    }
    w->join_pc = w->join ? w->join->pc : NULL;
    return 1;
}

/* Lanes exited: joins that waited for them only may be complete now. */
static void settle_joins(Warp *w, Join *j)
{
    while (j) {
        Join *parent = j->parent;
        if ((j->arrived & w->live) != (j->expected & w->live)) return;
        if (j->arrived & w->live) {
            add_split(w, j->arrived & w->live, j->pc, j->frame, parent);
            free_join(w, j);
            return;
        }
        free_join(w, j);
        j = parent;
    }
}

/* ---- blocks ---- */

const Inst *h_block(Warp *w, const Inst *in)
{
    if (in == w->join_pc && !arrive(w, in)) return NULL;
    CodeBlock *b = in->block;
    Exec *x = w->x;
    uint32_t lanes = (uint32_t)__builtin_popcount(w->active);
    if (w->slice < 0) {
        w->yielded = 1;
        warp_park(w, in, SPLIT_READY);
        return NULL;
    }
    w->slice -= b->n_insts + 1;
    b->passes++;
    b->lanes += lanes;
    w->insts += b->n_insts;
    w->chain += b->chain;
    w->global_waits += b->global_waits;
    w->local_waits += b->local_waits;
    x->clock += b->n_insts;
    x->budget -= (int64_t)b->n_insts * (lanes < LEAST_LANES ? LEAST_LANES : lanes) + 1;
    if (w->n_unwritten && unwritten_follow(w, in + 1)) return NULL;
    if (x->budget < 0)
        return exec_fault(w, in + 1, __builtin_ctz(w->active), OUTCOME_TIMEOUT,
                          "is still running after the limit of instructions: a loop that does not "
                          "end, or far too much work");
    return in + 1;
}

/* ---- branches ---- */

const Inst *h_bra_uni(Warp *w, const Inst *in)
{
    w->x->counts.branches++;
    return in->branch->target;
}

/* The join of a branch, or the current one if it is the same place. */
static void open_join(Warp *w, const BranchOp *b)
{
    const Inst *pc = b->join;
    Frame *frame = w->frame;
    if (!pc && frame->parent) { /* at the function's end: where it returns to */
        pc = frame->ret;
        frame = frame->parent;
    }
    if (!pc || (w->join && w->join->pc == pc && w->join->frame == frame)) return;
    Join *j = new_join(w);
    if (!j) /* they meet at the one outside */
        return;
    *j = (Join){.parent = w->join, .pc = pc, .frame = frame, .expected = w->active};
    w->join = j;
    w->join_pc = pc;
}

/* One of the ways: lanes that are at the join already wait there. */
static void leave_for(Warp *w, uint32_t mask, const Inst *pc)
{
    if (w->join && w->join->pc == pc && w->join->frame == w->frame)
        w->join->arrived |= mask;
    else
        add_split(w, mask, pc, w->frame, w->join);
}

const Inst *h_bra(Warp *w, const Inst *in)
{
    uint32_t taken = exec_mask(w, in), rest = w->active & ~taken;
    SimCounts *n = &w->x->counts;
    n->branches++;
    if (!taken) return in + 1;
    const BranchOp *b = in->branch;
    if (!rest) return b->target;
    n->divergent_branches++;
    open_join(w, b);
    if (w->join && w->join->pc == in + 1 && w->join->frame == w->frame) {
        w->join->arrived |= rest;
        w->active = taken;
        return b->target;
    }
    leave_for(w, taken, b->target);
    w->active = rest;
    return in + 1;
}

const Inst *h_brx(Warp *w, const Inst *in)
{
    const BranchOp *b = in->branch;
    const uint32_t *index = row32(w, in->a);
    w->x->counts.branches++;
    uint32_t m = w->active, first = index[__builtin_ctz(m)];
    int ways = 0;
    while (m) {
        int lane = __builtin_ctz(m);
        uint32_t same = 0, v = index[lane];
        if (v >= (uint32_t)b->n_targets)
            return exec_fault(w, in, lane, OUTCOME_LAUNCH_ERROR,
                              "branches to entry %u of a table of %d", v, b->n_targets);
        for (int i = 0; i < LANES; i++) same |= (uint32_t)(index[i] == v) << i;
        same &= m;
        m &= ~same;
        if (!m && !ways) return b->targets[first];
        if (!ways++) {
            w->x->counts.divergent_branches++;
            open_join(w, b);
            remove_current(w); /* first: 32 ways need all the places that there are */
        }
        leave_for(w, same, b->targets[v]);
    }
    settle_joins(w, w->join); /* every way may lead to the join itself */
    return NULL;
}

/* ---- functions ---- */

static Frame *new_frame(Exec *x)
{
    Frame *f = x->free_frames;
    if (f) {
        x->free_frames = f->parent;
        return f;
    }
    f = memory_alloc(sizeof *f);
    f->next = x->all_frames;
    x->all_frames = f;
    return f;
}

static void leave_frame(Exec *x, Frame *f, uint32_t lanes)
{
    f->lanes -= lanes;
    if (!f->lanes && f->parent) {
        f->parent = x->free_frames;
        x->free_frames = f;
    }
}

static void copy_words(unsigned char *to, const uint32_t *to_rows, const unsigned char *from,
                       const uint32_t *from_rows, int n, uint32_t m)
{
    for (int i = 0; i < n; i++)
        blend32((uint32_t *)(void *)(to + to_rows[i]),
                (const uint32_t *)(const void *)(from + from_rows[i]), m);
}

static const Inst *enter(Warp *w, const Inst *in, const CallOp *call)
{
    const Function *fn = call->callee, *caller = w->frame->fn;
    Frame *f = new_frame(w->x), *up = w->frame;
    *f = (Frame){.parent = up, .fn = fn, .ret = in + 1, .call = call, .next = f->next};
    f->rows32 = up->rows32 + (size_t)caller->rows32 * ROW32;
    f->rows64 = up->rows64 + (size_t)caller->rows64 * ROW64;
    f->preds = up->preds + caller->preds;
    f->local_base = (up->local_base + caller->local_bytes + 15) & ~15u;
    f->depth = up->depth + 1;
    f->lanes = (uint32_t)__builtin_popcount(w->active);
    if (f->depth > MAX_CALL_DEPTH || f->rows32 + (size_t)fn->rows32 * ROW32 > w->end32 ||
        f->rows64 + (size_t)fn->rows64 * ROW64 > w->end64 || f->preds + fn->preds > w->preds_end ||
        f->local_base + fn->local_bytes > w->x->local_cap) {
        leave_frame(w->x, f, f->lanes);
        return exec_fault(w, in, __builtin_ctz(w->active), OUTCOME_LAUNCH_ERROR,
                          "overflows its stack at a call depth of %u", up->depth + 1);
    }
    f->preds[0] = FULL_MASK;
    copy_words(f->rows32, call->in_to, up->rows32, call->in_from, call->n_in, w->active);
    warp_enter(w, f);
    return fn->insts;
}

const Inst *h_call(Warp *w, const Inst *in)
{
    return enter(w, in, in->call);
}

/* a = the row of pointers. Lanes that call different functions part here, and each part comes back
 * to this call. */
const Inst *h_call_pointer(Warp *w, const Inst *in)
{
    const uint64_t *to = row64(w, in->a);
    uint32_t m = w->active;
    uint64_t first = to[__builtin_ctz(m)];
    uint32_t others = 0;
    for (uint32_t rest = m; rest; rest &= rest - 1)
        others |= (uint32_t)(to[__builtin_ctz(rest)] != first) << __builtin_ctz(rest);
    if (!others) {
        int index = ptx_function_at(&w->x->code->ptx, first);
        const CallOp *call = index >= 0 ? in->call->targets[index] : NULL;
        if (!call)
            return exec_fault(w, in, __builtin_ctz(m), OUTCOME_LAUNCH_ERROR,
                              "calls through a pointer that leads to no function with such "
                              "arguments");
        return enter(w, in, call);
    }
    BranchOp meet = {.join = in + 1};
    w->x->counts.divergent_branches++;
    open_join(w, &meet);
    remove_current(w);
    add_split(w, others, in, w->frame, w->join);
    add_split(w, m & ~others, in, w->frame, w->join);
    return NULL;
}

const Inst *h_ret(Warp *w, const Inst *in)
{
    Frame *f = w->frame;
    const CallOp *call = f->call;
    (void)in;
    copy_words(f->parent->rows32, call->out_to, f->rows32, call->out_from, call->n_out, w->active);
    const Inst *next = f->ret;
    warp_enter(w, f->parent);
    leave_frame(w->x, f, (uint32_t)__builtin_popcount(w->active));
    return next;
}

/* A function of the runtime whose effect is dropped: it returns 0. */
const Inst *h_call_drop(Warp *w, const Inst *in)
{
    static const uint32_t zero[LANES];
    const CallOp *call = in->call;
    for (int i = 0; i < call->n_out; i++)
        blend32((uint32_t *)(void *)(w->frame->rows32 + call->out_to[i]), zero, w->active);
    return in + 1;
}

const Inst *h_assert(Warp *w, const Inst *in)
{
    uint32_t m = exec_mask(w, in);
    return m ? exec_fault(w, in, __builtin_ctz(m), OUTCOME_LAUNCH_ERROR, "fails an assertion")
             : in + 1;
}

const Inst *h_exit(Warp *w, const Inst *in)
{
    uint32_t lanes = (uint32_t)__builtin_popcount(w->active);
    Join *join = w->join;
    (void)in;
    for (Frame *f = w->frame, *up; f; f = up) {
        up = f->parent;
        leave_frame(w->x, f, lanes);
    }
    w->live &= ~w->active;
    w->x->cta.live_threads -= lanes;
    remove_current(w);
    settle_joins(w, join);
    barrier_check(w->x);
    return NULL;
}

const Inst *h_trap(Warp *w, const Inst *in)
{
    uint32_t m = exec_mask(w, in);
    return m ? exec_fault(w, in, __builtin_ctz(m), OUTCOME_LAUNCH_ERROR, "executes a trap")
             : in + 1;
}

const Inst *h_nop(Warp *w, const Inst *in)
{
    (void)w;
    return in + 1;
}

const Inst *h_fence(Warp *w, const Inst *in)
{
    if (exec_mask(w, in)) global_fence(w);
    return in + 1;
}

/* ---- the warp's scheduler ---- */

void warp_start(Warp *w)
{
    w->live = w->lanes;
    w->n_splits = 0;
    w->joins_used[0] = w->joins_used[1] = 0;
    w->insts = w->global_waits = w->local_waits = w->chain = 0;
    w->carry = 0;
    w->entry_frame.lanes = (uint32_t)__builtin_popcount(w->lanes);
    w->entry_frame.preds[0] = FULL_MASK;
    add_split(w, w->lanes, w->entry_frame.fn->insts, &w->entry_frame, NULL);
}

static int next_ready(const Warp *w)
{
    for (int i = w->n_splits - 1; i >= 0; i--)
        if (w->splits[i].state == SPLIT_READY) return i;
    return -1;
}

/* The split's turn is over: the others first. Lanes that wait for it at a join may be what it waits
 * for (they hold a lock): they go on alone. A join that is then left to those below it is given
 * back, or they would run out. */
static void move_to_front(Warp *w)
{
    uint32_t below = w->splits[w->current].mask;
    for (Join **at = &w->splits[w->current].join, *j = *at; j; j = *at) {
        uint32_t waiting = j->arrived & w->live;
        j->expected &= ~j->arrived;
        j->arrived = 0;
        if (waiting) add_split(w, waiting, j->pc, j->frame, j->parent);
        if ((j->expected & w->live) == below) {
            *at = j->parent;
            free_join(w, j);
        } else {
            below = j->expected & w->live;
            at = &j->parent;
        }
    }
    Split s = w->splits[w->current];
    memmove(&w->splits[1], &w->splits[0], sizeof(Split) * (size_t)w->current);
    w->splits[0] = s;
}

int warp_run(Warp *w)
{
    int did = 0, turns = 0;
    while (!w->x->faulted && w->n_splits) {
        int s = next_ready(w);
        if (s < 0) {
            if (!warp_resolve(w)) break;
            did = 1;
            continue;
        }
        did = 1;
        warp_pick(w, s);
        const Inst *in = w->splits[s].pc;
        while (in) in = in->fn(w, in);
        if (w->yielded) {
            w->yielded = 0;
            move_to_front(w);
            warp_resolve(w); /* it may spin until lanes that wait for one another go on */
            if (++turns >= w->n_splits) break;
        }
    }
    return did;
}
