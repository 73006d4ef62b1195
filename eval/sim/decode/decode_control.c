/* Branches, calls, block barriers and fences. */

#include "base/memory.h"
#include "eval/sim/decode/decode_internal.h"

/* ---- branches ---- */

int decode_label(const Decoder *d, const char *name, int scope)
{
    int i = ptx_find_label(d->p, name, scope);
    return i < 0 ? TARGET_UNKNOWN : d->p->labels[i].inst;
}

static BlockInfo *this_block(Decoder *d)
{
    return &d->blocks[d->n_blocks - 1];
}

static BranchOp *new_branch(Decoder *d)
{
    return ptx_arena_alloc(d->code->ptx.arena, sizeof(BranchOp));
}

static int branch_to(Decoder *d, int target)
{
    int conditional = d->in->guard >= 0;
    decode_put(d, conditional ? h_bra : h_bra_uni, (Inst){.branch = new_branch(d)});
    this_block(d)->end = conditional ? END_COND : END_BRANCH;
    this_block(d)->target = target;
    d->inst_class = INST_BRANCH;
    return 0;
}

static int bra_op(Decoder *d)
{
    const PtxOperand *o = decode_operand(d, 0);
    decode_has(d, "uni");
    int target =
        o && o->kind == OPND_NAME ? decode_label(d, o->name, d->in->scope) : TARGET_UNKNOWN;
    return target < 0 ? decode_refuse(d, "a target that is no label") : branch_to(d, target);
}

static int brx_op(Decoder *d)
{
    const PtxOperand *table = decode_operand(d, 1);
    uint32_t index;
    decode_has(d, "idx");
    decode_has(d, "uni");
    if (!table || table->kind != OPND_NAME || d->in->guard >= 0 || decode_source(d, 0, 32, &index))
        return decode_refuse(d, "no table of targets");
    int found = ptx_find_targets(d->p, table->name, d->in->scope);
    if (found < 0) return decode_refuse(d, "a table of targets that is not there");
    const PtxTargets *t = &d->p->targets[found];
    BlockInfo *b = this_block(d);
    b->table = memory_array((size_t)t->n, sizeof(int));
    for (int k = 0; k < t->n; k++) {
        b->table[k] = decode_label(d, t->labels[k], t->scope);
        if (b->table[k] < 0) return decode_refuse(d, "a target that is no label");
    }
    b->n_table = t->n;
    b->end = END_TABLE;
    Inst *in = decode_emit(d, h_brx);
    in->a = index;
    in->branch = new_branch(d);
    in->branch->n_targets = t->n;
    in->branch->targets = ptx_arena_alloc(d->code->ptx.arena, sizeof(Inst *) * (size_t)t->n);
    d->inst_class = INST_BRANCH;
    return 0;
}

/* exit and ret. Under a guard it is a branch to the extra block. */
static int leave_op(Decoder *d, int is_exit)
{
    is_exit |= d->p->is_entry;
    decode_has(d, "uni");
    d->inst_class = INST_BRANCH;
    if (d->in->guard >= 0) {
        int *block = is_exit ? &d->exit_block : &d->ret_block;
        *block = BLOCK_NEEDED;
        return branch_to(d, is_exit ? TARGET_EXIT : TARGET_RET);
    }
    decode_emit(d, is_exit ? h_exit : h_ret);
    this_block(d)->end = is_exit ? END_EXIT : END_RET;
    return 0;
}

/* ---- calls ---- */

static int words_of(const PtxVar *v)
{
    return (int)((v->size + 3) / 4);
}

/* Matches the arguments or results of a call with the callee's variables. `from` has rows of the
 * caller's variables, `to` of the callee's. */
static int match_words(Decoder *d, const PtxOperand *list, PtxVar *const *vars, int n,
                       CallWords *out)
{
    int total = 0, at = 0;
    if ((list ? list->n : 0) != n)
        return decode_refuse(d, "another number of arguments than the function");
    for (int i = 0; i < n; i++) total += words_of(vars[i]);
    out->from = ptx_arena_alloc(d->code->ptx.arena, sizeof(uint32_t) * (size_t)(total + 1));
    out->to = ptx_arena_alloc(d->code->ptx.arena, sizeof(uint32_t) * (size_t)(total + 1));
    for (int i = 0; i < n; i++) {
        const PtxOperand *o = &list->items[i];
        if (o->kind != OPND_VAR || o->var->space != SPACE_PARAM ||
            words_of(o->var) != words_of(vars[i]))
            return decode_refuse(d, "an argument that is no parameter variable of its size");
        for (int k = 0; k < words_of(vars[i]); k++, at++) {
            out->from[at] = (uint32_t)(o->var->offset + (uint64_t)k) * ROW32;
            out->to[at] = (uint32_t)(vars[i]->offset + (uint64_t)k) * ROW32;
        }
    }
    out->n = total;
    return 0;
}

static void note_callee(Decoder *d, const Function *callee)
{
    Function *f = d->f;
    for (int i = 0; i < f->n_callees; i++)
        if (f->callees[i] == callee) return;
    f->callees =
        memory_grow((void *)(uintptr_t)f->callees, (size_t)f->n_callees + 1, sizeof *f->callees);
    f->callees[f->n_callees++] = callee;
}

/* Returns what a call copies, or NULL when it is refused. */
static CallOp *call_of(Decoder *d, const PtxFunction *callee, const PtxOperand *args,
                       const PtxOperand *results)
{
    CallOp *call = ptx_arena_alloc(d->code->ptx.arena, sizeof *call);
    if (match_words(d, args, callee->params, callee->n_params, &call->in) ||
        match_words(d, results, callee->returns, callee->n_returns, &call->out))
        return NULL;
    uint32_t *callers = call->out.from; /* results go back */
    call->out.from = call->out.to;
    call->out.to = callers;
    if (callee->defined) {
        call->callee = &d->code->functions[callee - d->code->ptx.functions];
        note_callee(d, call->callee);
    }
    return call;
}

static int same_words(const PtxOperand *list, PtxVar *const *vars, int n)
{
    if ((list ? list->n : 0) != n) return 0;
    for (int i = 0; i < n; i++)
        if (list->items[i].kind != OPND_VAR || words_of(list->items[i].var) != words_of(vars[i]))
            return 0;
    return 1;
}

/* Bound of table entries and argument words of all calls through pointers of a module. */
enum { POINTER_TARGETS_MAX = 1 << 18 };

/* A call through a pointer may reach any function whose address is taken and whose arguments have
 * these sizes. */
static int call_pointer(Decoder *d, const PtxOperand *pointer, const PtxOperand *args,
                        const PtxOperand *results)
{
    const PtxModule *m = &d->code->ptx;
    CallOp *call = ptx_arena_alloc(m->arena, sizeof *call);
    uint32_t row;
    if (decode_source_of(d, pointer, 64, &row)) return -1;
    if ((d->code->pointer_targets += m->n_functions) > POINTER_TARGETS_MAX)
        return decode_refuse(d, "too many calls through pointers and functions before it");
    call->targets = ptx_arena_alloc(m->arena, sizeof(CallOp *) * (size_t)m->n_functions);
    for (int i = 0; i < m->n_functions; i++) {
        const PtxFunction *f = &m->functions[i];
        if (!f->address_taken || !same_words(args, f->params, f->n_params) ||
            !same_words(results, f->returns, f->n_returns))
            continue;
        if (!(call->targets[i] = call_of(d, f, args, results))) return -1;
        if ((d->code->pointer_targets += call->targets[i]->in.n + call->targets[i]->out.n) >
            POINTER_TARGETS_MAX)
            return decode_refuse(d, "too many arguments of calls through pointers");
    }
    decode_put(d, h_call_pointer, (Inst){.call = call, .a = row});
    return 0;
}

/* Issue slots of a scheduler that a call and its return take (an H200, 2026-11-29, tests/bench/rates). */
enum { CALL_SLOTS = 6 };

static int call_op(Decoder *d)
{
    int i = 0;
    decode_has(d, "uni");
    d->inst_class = INST_BRANCH;
    const PtxOperand *results = NULL, *args = NULL, *o = decode_operand(d, i);
    if (o && o->kind == OPND_LIST) {
        results = o;
        o = decode_operand(d, ++i);
    }
    if (!o || (o->kind != OPND_NAME && o->kind != OPND_REG) || d->in->guard >= 0)
        return decode_refuse(d, "no function's name: calls under a guard are not known");
    const PtxOperand *to = o;
    const char *name = o->name;
    o = decode_operand(d, ++i);
    if (o && o->kind == OPND_LIST) args = o;
    if (to->kind == OPND_REG) return call_pointer(d, to, args, results);
    PtxFunction *callee = ptx_find_function(&d->code->ptx, name);
    if (!strcmp(name, "__assertfail") || !strcmp(name, "__assert_fail")) {
        decode_emit(d, h_assert);
        return 0;
    }
    if (!callee || (!callee->defined && strcmp(name, "vprintf")))
        return decode_refuse(d, "a function that is not in the module");
    CallOp *call = call_of(d, callee, args, results);
    if (!call) return -1;
    d->expansion = CALL_SLOTS;
    decode_emit(d, callee->defined ? h_call : h_call_drop)->call = call;
    return 0;
}

/* ---- barriers ---- */

static int bar_reduction(Decoder *d, int kind, int is_aligned)
{
    const ValueType *t = decode_type(d);
    uint32_t bar, count = ROW_NONE, p, flip, dest;
    int n = d->in->n_operands;
    if (!t || n < 3 || n > 4 || decode_source(d, 1, 32, &bar) ||
        (n == 4 && decode_source(d, 2, 32, &count)) || decode_pred(d, n - 1, &p, &flip))
        return decode_refuse(d, "another number of operands");
    if (t->bits == 1 ? decode_pred_dest(d, decode_operand(d, 0), &dest)
                     : decode_dest(d, 0, 32, &dest))
        return -1;
    decode_put(d, h_bar,
               (Inst){.a = bar,
                      .b = count,
                      .c = p,
                      .e = flip,
                      .k0 = (uint8_t)kind,
                      .k1 = (uint8_t)is_aligned});
    decode_put(d, h_bar_result, (Inst){.a = bar, .d = dest, .k0 = (uint8_t)kind});
    return 0;
}

static int bar_op(Decoder *d)
{
    decode_has(d, "cta");
    d->inst_class = INST_BARRIER;
    if (decode_has(d, "warp")) {
        uint32_t mask;
        decode_has(d, "sync");
        if (decode_source(d, 0, 32, &mask)) return -1;
        decode_emit(d, h_bar_warp)->f = mask;
        return 0;
    }
    int aligned = decode_has(d, "aligned") || !strcmp(d->in->op, "bar");
    if (decode_has(d, "red")) {
        int kind = decode_has(d, "popc")  ? BAR_POPC
                   : decode_has(d, "and") ? BAR_AND
                   : decode_has(d, "or")  ? BAR_OR
                                          : BAR_SYNC;
        return kind != BAR_SYNC ? bar_reduction(d, kind, aligned)
                                : decode_refuse(d, "no reduction");
    }
    int arrive = decode_has(d, "arrive"), n = d->in->n_operands;
    uint32_t bar, count = ROW_NONE;
    decode_has(d, "sync");
    if (n < 1 || n > 2 || decode_source(d, 0, 32, &bar) ||
        (n == 2 && decode_source(d, 1, 32, &count)))
        return decode_refuse(d, "another number of operands");
    decode_put(
        d, h_bar,
        (Inst){.a = bar, .b = count, .k0 = arrive ? BAR_ARRIVE : BAR_SYNC, .k1 = (uint8_t)aligned});
    return 0;
}

/* A fence between proxies: of writes that the asynchronous one is to read. */
static void proxy_fence(Decoder *d)
{
    int of_shared = decode_has(d, "shared::cta") || decode_has(d, "shared::cluster"),
        of_global = decode_has(d, "global"), is_async = decode_has(d, "async");
    decode_put(d, is_async ? h_fence : h_nop,
               (Inst){.k0 = SCOPE_BLOCK,
                      .k1 = (uint8_t)((of_global ? 0 : FENCE_PROXY_SHARED) |
                                      (of_shared ? 0 : FENCE_PROXY_GLOBAL))});
}

static int fence_op(Decoder *d)
{
    int of_block = decode_has(d, "cta"), of_cluster = decode_has(d, "cluster"),
        acquires = decode_has(d, "acquire"), releases = decode_has(d, "release"),
        of_system = decode_has(d, "sys"), is_proxy = decode_has(d, "proxy"),
        of_mbarrier = decode_has(d, "mbarrier_init");
    d->inst_class = INST_BARRIER;
    if (is_proxy)
        proxy_fence(d);
    else
        decode_put(d, of_mbarrier ? h_nop : h_fence,
                   (Inst){.k0 = of_block     ? SCOPE_BLOCK
                                : of_cluster ? SCOPE_CLUSTER
                                             : SCOPE_DEVICE,
                          .k1 = (uint8_t)((releases ? 0 : FENCE_ACQUIRES) |
                                          (acquires ? 0 : FENCE_RELEASES)),
                          .k2 = (uint8_t)of_system});
    d->mods_used = (1u << d->in->n_mods) - 1;
    return 0;
}

static int exit_op(Decoder *d)
{
    return leave_op(d, 1);
}

static int ret_op(Decoder *d)
{
    return leave_op(d, 0);
}

static int trap_op(Decoder *d)
{
    decode_emit(d, h_trap)->k0 = !strcmp(d->in->op, "brkpt");
    return 0;
}

int decode_nothing(Decoder *d)
{
    d->mods_used = (1u << d->in->n_mods) - 1;
    decode_emit(d, h_nop);
    return 0;
}

int decode_control(Decoder *d)
{
    static const DecodeOp table[] = {
        {"bra", bra_op},
        {"brx", brx_op},
        {"ret", ret_op},
        {"exit", exit_op},
        {"call", call_op},
        {"bar", bar_op},
        {"barrier", bar_op},
        {"membar", fence_op},
        {"fence", fence_op},
        {"trap", trap_op},
        {"brkpt", trap_op},
        {"nanosleep", decode_nothing},
        {"griddepcontrol", decode_nothing},
        {"pmevent", decode_nothing},
        {"setmaxnreg", decode_nothing},
    };
    return decode_among(d, table, sizeof table / sizeof *table);
}
