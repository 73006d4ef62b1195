/* Control flow: basic blocks, branches, calls and exits. */
#include <immintrin.h>

#include "base/memory.h"
#include "eval/sim/exec/barrier.h"
#include "eval/sim/exec/handlers.h"
#include "eval/sim/exec/splits.h"
#include "eval/sim/memory/cluster.h"
#include "eval/sim/memory/proxy.h"
#include "eval/sim/memory/shadow.h"
#include "eval/sim/memory/traffic.h"
#include "eval/sim/memory/undefined.h"
#include "eval/sim/memory/unwritten.h"

enum {
    MAX_CALL_DEPTH = 512,
    MIN_CHARGED_LANES = 8, /* one lane costs the simulator as much as eight */
    DENORMALS = 0x12,      /* flags of MXCSR: a denormal operand, a result that underflows */
    DENORMAL_COST = 200,   /* of an instruction, in thread-instructions */
    ALONE = 2500000        /* thread-instructions: more is a wait, where the limit is reached */
};

/* A reserve that is smaller by this factor is not enough: memory that is new at first makes it dearer. */
static const double SURE = 2;

/* ---- blocks ---- */

/* The budget has bought so many of the warp-instructions that are needed: is the reserve enough for the
 * others? Then it is given. */
static int take_reserve(Exec *x)
{
    ExecReserve *r = &x->reserve;
    double ran = (double)(x->clock - r->began + 1), all = (double)(r->spent + r->left);
    if (!r->left || (double)r->spent / ran * r->needed > SURE * all) return 0;
    x->budget += r->left;
    x->cta.alone_since += r->left;
    r->left = 0;
    return x->budget >= x->block_floor;
}

/* In the opposite order a block may wait for one that comes later, if it looks with atomics, volatile
 * loads or fences. A loop without them may never see what the other writes. */
static const Inst *out_of_budget(Warp *w, const Inst *in)
{
    Exec *x = w->x;
    int lane = __builtin_ctz(w->active);
    if (take_reserve(x)) return in;
    if (mbarrier_is_stuck(w, in)) return NULL;
    if (x->reversed && x->ample && x->cta.alone_since - x->budget > ALONE)
        return exec_fault(w, in, lane, OUTCOME_RACE,
                          "waits for what another block or warp writes in a loop without an "
                          "atomic, a volatile load or a fence: the write may never be seen");
    return exec_fault(w, in, lane, OUTCOME_TIMEOUT,
                      "is still running after the limit of instructions: a loop that does not "
                      "end, or far too much work");
}

/* Arithmetic on denormal numbers takes the host ten times as long. The flags of the code that ran last
 * tell of it; the block that comes next pays. */
static void charge_denormals(Exec *x, const CodeBlock *b)
{
    unsigned flags = _mm_getcsr();
    if (!(flags & DENORMALS)) return;
    _mm_setcsr(flags & ~(unsigned)DENORMALS);
    exec_charge(x, (int64_t)(b->by_class[INST_FP32] + b->by_class[INST_FP16] +
                             b->by_class[INST_FP64] + b->by_class[INST_SFU] + b->expansion + 1) *
                       DENORMAL_COST);
}

const Inst *h_block(Warp *w, const Inst *in)
{
    if (in == w->join_pc && !join_arrive(w, in)) return NULL;
    CodeBlock *b = in->block;
    Exec *x = w->x;
    uint32_t lanes = (uint32_t)__builtin_popcount(w->active);
    if (w->slice < 0) {
        w->yielded = 1;
        split_park(w, in, SPLIT_READY);
        return NULL;
    }
    w->slice -= b->n_insts + 1;
    b->passes++;
    b->lanes += lanes;
    w->insts += b->n_insts - b->folded;
    uint64_t *pipes = x->cta.pipes[w->index % SCHEDULERS];
    for (int p = 0; p < PIPE_COUNT; p++) pipes[p] += b->pipes[p];
    w->chain += b->chain;
    traffic_settle_waits(w, b->global_waits);
    w->global_waits += b->global_waits;
    w->local_waits += b->local_waits;
    x->clock += b->n_insts;
    x->budget -=
        (int64_t)b->n_insts * (lanes < MIN_CHARGED_LANES ? MIN_CHARGED_LANES : lanes) + 1 + b->host;
    charge_denormals(x, b);
    if (w->n_unwritten && unwritten_follow(w, in + 1)) return NULL;
    return x->budget < x->block_floor ? out_of_budget(w, in + 1) : in + 1;
}

/* ---- branches ---- */

const Inst *h_bra_uni(Warp *w, const Inst *in)
{
    w->x->counts.branches++;
    return in->branch->target;
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
    join_open(w, b->join);
    if (w->join && w->join->pc == in + 1 && w->join->frame == w->frame) {
        w->join->arrived |= rest;
        w->active = taken;
        return b->target;
    }
    join_send(w, taken, b->target);
    w->active = rest;
    return in + 1;
}

const Inst *h_brx(Warp *w, const Inst *in)
{
    const BranchOp *b = in->branch;
    const uint32_t *index = row32(w, in->a);
    w->x->counts.branches++;
    uint32_t m = w->active, first = index[__builtin_ctz(m)];
    int n_targets = 0;
    while (m) {
        int lane = __builtin_ctz(m);
        uint32_t same = 0, v = index[lane];
        if (v >= (uint32_t)b->n_targets)
            return exec_fault(w, in, lane, OUTCOME_LAUNCH_ERROR,
                              "branches to entry %u of a table of %d", v, b->n_targets);
        for (int i = 0; i < LANES; i++) same |= (uint32_t)(index[i] == v) << i;
        same &= m;
        m &= ~same;
        if (!m && !n_targets) return b->targets[first];
        if (!n_targets++) {
            w->x->counts.divergent_branches++;
            join_open(w, b->join);
            split_remove_current(w); /* before the adds: 32 targets need all places */
        }
        join_send(w, same, b->targets[v]);
    }
    join_settle(w, w->join); /* every target may be the join itself */
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

/* Lanes leave a frame; the last ones free it. */
static void leave_frame(Exec *x, Frame *f, uint32_t lanes)
{
    f->lanes -= lanes;
    if (!f->lanes && f->parent) {
        f->parent = x->free_frames;
        x->free_frames = f;
    }
}

static void copy_words(const CallWords *c, unsigned char *to, const unsigned char *from, uint32_t m)
{
    for (int i = 0; i < c->n; i++)
        blend32((uint32_t *)(void *)(to + c->to[i]),
                (const uint32_t *)(const void *)(from + c->from[i]), m);
}

/* Calls a function with the arguments of the current frame. */
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
    copy_words(&call->in, f->rows32, up->rows32, w->active);
    frame_enter(w, f);
    return fn->insts;
}

const Inst *h_call(Warp *w, const Inst *in)
{
    return enter(w, in, in->call);
}

/* Lanes that call different functions part here, and each part comes back to this call. */
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
    w->x->counts.divergent_branches++;
    join_open(w, in + 1);
    split_remove_current(w);
    split_add(w, others, in, w->frame, w->join);
    split_add(w, m & ~others, in, w->frame, w->join);
    return NULL;
}

const Inst *h_ret(Warp *w, const Inst *in)
{
    Frame *f = w->frame;
    const CallOp *call = f->call;
    (void)in;
    copy_words(&call->out, f->parent->rows32, f->rows32, w->active);
    if (f->parent->fn->words) undefined_return(w);
    const Inst *next = f->ret;
    frame_enter(w, f->parent);
    leave_frame(w->x, f, (uint32_t)__builtin_popcount(w->active));
    return next;
}

const Inst *h_call_drop(Warp *w, const Inst *in)
{
    static const uint32_t zero[LANES];
    const CallOp *call = in->call;
    for (int i = 0; i < call->out.n; i++)
        blend32((uint32_t *)(void *)(w->frame->rows32 + call->out.to[i]), zero, w->active);
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
    if (w->x->cluster && cluster_exit(w, in)) return NULL;
    for (Frame *f = w->frame, *up; f; f = up) {
        up = f->parent;
        leave_frame(w->x, f, lanes);
    }
    w->live &= ~w->active;
    w->x->cta.live_threads -= lanes;
    split_remove_current(w);
    join_settle(w, join);
    barrier_check_all(w->x);
    return NULL;
}

const Inst *h_trap(Warp *w, const Inst *in)
{
    uint32_t m = exec_mask(w, in);
    if (!m) return in + 1;
    if (in->k0)
        return exec_fault(w, in, __builtin_ctz(m), OUTCOME_LAUNCH_ERROR, "executes a breakpoint");
    return exec_fault(
        w, in, __builtin_ctz(m), OUTCOME_LAUNCH_ERROR,
        w->x->code->uses_grid && !w->x->cooperative
            ? "executes a trap: the launch is not cooperative, so that the blocks of a "
              "grid cannot wait for each other; write //@ launch cooperative, or split the kernel "
              "where the grid synchronises, into two launches of the plan"
            : "executes a trap");
}

const Inst *h_unknown(Warp *w, const Inst *in)
{
    uint32_t m = exec_mask(w, in);
    if (!m) return in + 1;
    return exec_fault(w, in, __builtin_ctz(m), OUTCOME_UNSUPPORTED, "%s", in->text);
}

const Inst *h_nop(Warp *w, const Inst *in)
{
    (void)w;
    return in + 1;
}

const Inst *h_fence(Warp *w, const Inst *in)
{
    if (!exec_mask(w, in)) return in + 1;
    if (in->k1 & (FENCE_PROXY_SHARED | FENCE_PROXY_GLOBAL))
        proxy_fence(w, in->k1);
    else
        global_fence(w, in->k0, in->k1);
    w->x->counts.fences += in->k2; /* that of the system takes twice as long */
    return in + 1;
}
