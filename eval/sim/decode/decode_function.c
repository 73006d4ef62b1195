/* One function: its instructions are decoded in order and grouped into basic blocks, whose joins
 * and costs follow (cfg.c). Each block starts with an h_block. A guarded exit or return becomes a
 * branch to an extra block at the end. */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "eval/sim/decode/decode_internal.h"

static void begin_block(Decoder *d)
{
    int n = d->n_blocks;
    if (n) d->blocks[n - 1].last = d->n;
    d->blocks = ptx_push(d->blocks, &d->n_blocks, &d->cap_blocks, sizeof(BlockInfo));
    d->costs = ptx_push(d->costs, &n, &d->cap_costs, sizeof(CodeBlock));
    d->blocks[n - 1] = (BlockInfo){.first = d->n, .end = END_FALL, .join = -1};
    const PtxInst *in = d->in;
    for (int k = 0; k < INST_CLASS_COUNT; k++) d->owed[k] = COST_WHOLE / 2; /* rounds the sum */
    d->in = NULL;
    Inst *i = decode_emit(d, h_block);
    i->starts_block = 1;
    i->source = in ? (uint32_t)(in - d->p->insts) : d->p->n_insts ? (uint32_t)d->p->n_insts - 1 : 0;
    d->in = in;
}

/* Does an instruction end its basic block? */
static int ends_block(const PtxInst *in)
{
    return ptx_same(in->op, "bra") || ptx_same(in->op, "brx") || ptx_same(in->op, "ret") ||
           ptx_same(in->op, "exit") || ptx_same(in->op, "call");
}

/* What follows a barrier is charged behind it, when the others have come. */
static int is_barrier(const PtxInst *in)
{
    return !strncmp(in->op, "bar", 3) && !ptx_has_mod(in, "warp");
}

/* Marks the instructions at which a block starts. */
static void mark_leaders(const PtxFunction *p, unsigned char *leader)
{
    leader[0] = leader[p->n_insts] = 1;
    for (int i = 0; i < p->n_labels; i++) leader[p->labels[i].inst] = 1;
    for (int i = 0; i < p->n_insts; i++)
        if (ends_block(&p->insts[i]) || is_barrier(&p->insts[i])) leader[i + 1] = 1;
}

/* The instruction's text on one line. */
static void plain_text(const PtxInst *in, char *out, size_t size)
{
    size_t n = 0;
    for (uint32_t i = 0; i < in->text_len && n + 1 < size; i++) {
        char c = in->text[i] == '\n' || in->text[i] == '\t' ? ' ' : in->text[i];
        if (c != ' ' || (n && out[n - 1] != ' ')) out[n++] = c;
    }
    out[n] = 0;
}

/* Puts an instruction that ends the run in the place of one that cannot be decoded, of which the function
 * has `n` instructions already, and of whose block `info` was known before. */
static void refuse_instruction(Decoder *d, int n, BlockInfo info)
{
    char text[160], *sentence = ptx_arena_alloc(d->code->ptx.arena, 512);
    BlockInfo *block = &d->blocks[d->n_blocks - 1];
    if (block->table != info.table) free(block->table);
    *block = info;
    d->n = n;
    plain_text(d->in, text, sizeof text);
    snprintf(sentence, 512,
             "executes the instruction \"%s\" (PTX line %d), which the simulator does not know%s%s",
             text, d->in->ptx_line, d->why ? ": it has " : "", d->why ? d->why : "");
    decode_emit(d, h_unknown)->text = sentence;
}

static int has_128_bits(const PtxOperand *o, int n)
{
    for (int i = 0; i < n; i++)
        if ((o[i].kind == OPND_REG && o[i].cls == REG_128) ||
            ((o[i].kind == OPND_VEC || o[i].kind == OPND_LIST) && has_128_bits(o[i].items, o[i].n)))
            return 1;
    return 0;
}

static int decode_one(Decoder *d)
{
    static int (*const parts[])(Decoder *) = {
        decode_alu,     decode_moves, decode_mbarrier, decode_bulk, decode_memory, decode_cluster,
        decode_control, decode_warp,  decode_mma,      decode_wmma, decode_wgmma};
    d->mods_used = 0;
    d->why = NULL;
    d->flops = d->expansion = d->repeats = d->mma_slots = d->cycles = 0;
    d->inst_class = INST_OTHER;
    if (d->in->bad) {
        d->why = decode_unknown_copy(d->in);
        return -1;
    }
    if (has_128_bits(d->in->operands, d->in->n_operands))
        return decode_refuse(d, "a register of 128 bits");
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        int r = parts[i](d);
        if (r > 0) continue;
        if (r == 0 && d->mods_used != (1u << d->in->n_mods) - 1)
            return decode_refuse(d, "a modifier that is not known here");
        return r;
    }
    return -1;
}

/* Cycles until the result of the current instruction can be used; 0 for loads that count as waits. The
 * instructions that the assembler makes of one wait for one another. */
static int latency_of(const Decoder *d)
{
    enum { SLOT = 5 };
    int more = SLOT * d->expansion;
    if (d->cycles) return d->cycles;
    switch (d->inst_class) {
    case INST_SFU: return 18 + more;
    case INST_SHARED_LOAD:
    case INST_SHUFFLE: return 24;
    case INST_TENSOR: return 32;
    case INST_FP16:
    case INST_FP64: return 8 + more;
    case INST_ATOMIC:
    case INST_CONST_LOAD: return 30;
    case INST_GLOBAL_LOAD:
    case INST_LOCAL_LOAD: return 0;
    case INST_OTHER: return 0;
    default: return 4 + more;
    }
}

static void add_cost(Decoder *d)
{
    CodeBlock *c = &d->costs[d->n_blocks - 1];
    int *owed = &d->owed[d->inst_class];
    const int cost = d->cost[d->in - d->p->insts];
    if (cost & COST_NARROW) d->expansion = d->repeats = 0;
    *owed += cost & ~COST_NARROW;
    if (*owed < COST_WHOLE) {
        c->folded++;
        d->inst_class = INST_OTHER;
        d->flops = d->expansion = d->repeats = d->mma_slots = d->cycles = 0;
    } else {
        *owed -= COST_WHOLE;
    }
    d->classes[d->in - d->p->insts] = (uint8_t)d->inst_class;
    d->latency[d->in - d->p->insts] = (uint16_t)latency_of(d);
    c->n_insts++;
    c->by_class[d->inst_class] += 1 + (uint32_t)d->repeats;
    c->expansion += (uint32_t)(d->expansion + d->repeats);
    uint64_t *flops = d->inst_class == INST_TENSOR ? &c->tensor_flops
                      : d->inst_class == INST_FP64 ? &c->fp64_flops
                      : d->inst_class == INST_FP16 ? &c->fp16_flops
                                                   : &c->fp32_flops;
    *flops += (uint64_t)d->flops;
    c->mma_slots += (uint64_t)d->mma_slots;
    if (d->inst_class == INST_TENSOR && !d->mma_slots) c->wgmma_slots += (uint64_t)d->flops;
}

/* Ends the current block with an instruction that the PTX does not have. */
static void end_with(Decoder *d, Handler *fn, int end)
{
    d->in = NULL;
    decode_emit(d, fn);
    d->out[d->n - 1].source = d->p->n_insts ? (uint32_t)d->p->n_insts - 1 : 0;
    d->blocks[d->n_blocks - 1].end = end;
    d->costs[d->n_blocks - 1].n_insts++;
    d->costs[d->n_blocks - 1].by_class[INST_BRANCH]++;
}

static void decode_body(Decoder *d, const unsigned char *leader)
{
    for (int i = 0; i < d->p->n_insts; i++) {
        d->in = &d->p->insts[i];
        if (leader[i]) begin_block(d);
        d->block_of[i] = d->n_blocks - 1;
        wgmma_before(d);
        int n = d->n;
        definedness_before(d);
        BlockInfo info = d->blocks[d->n_blocks - 1];
        if (decode_one(d))
            refuse_instruction(d, n, info);
        else
            definedness_after(d), decode_price(d);
        add_cost(d);
    }
    d->in = NULL;
    begin_block(d);
    d->block_of[d->p->n_insts] = d->n_blocks - 1;
    end_with(d, d->p->is_entry ? h_exit : h_ret, d->p->is_entry ? END_EXIT : END_RET);
    if (d->exit_block == BLOCK_NEEDED) {
        begin_block(d);
        d->exit_block = d->n_blocks - 1;
        end_with(d, h_exit, END_EXIT);
    }
    if (d->ret_block == BLOCK_NEEDED) {
        begin_block(d);
        d->ret_block = d->n_blocks - 1;
        end_with(d, d->p->is_entry ? h_exit : h_ret, d->p->is_entry ? END_EXIT : END_RET);
    }
    d->blocks[d->n_blocks - 1].last = d->n;
}

/* The block of a target: an index of a PTX instruction or a TARGET_*. */
static int block_of_target(const Decoder *d, int target)
{
    if (target == TARGET_EXIT) return d->exit_block;
    if (target == TARGET_RET) return d->ret_block;
    return d->block_of[target];
}

/* Turns the targets of branches into blocks, finds the joins and costs, and hands the output to the
 * function. */
static void link_blocks(Decoder *d)
{
    Function *f = d->f;
    for (int b = 0; b < d->n_blocks; b++) {
        BlockInfo *info = &d->blocks[b];
        info->pure_exit = info->end == END_EXIT && info->last - info->first == 2;
        if (info->end == END_BRANCH || info->end == END_COND)
            info->target = block_of_target(d, info->target);
        for (int k = 0; k < info->n_table; k++) info->table[k] = block_of_target(d, info->table[k]);
    }
    cfg_joins(d);
    costs_find(d);
    f->insts = d->out;
    f->n_insts = d->n;
    f->blocks = d->costs;
    f->n_blocks = d->n_blocks;
    for (int b = 0; b < d->n_blocks; b++) {
        const BlockInfo *info = &d->blocks[b];
        f->insts[info->first].block = &f->blocks[b];
        Inst *end = &f->insts[info->last - 1];
        if (info->end != END_BRANCH && info->end != END_COND && info->end != END_TABLE) continue;
        BranchOp *op = end->branch;
        op->join = info->join >= 0 ? &f->insts[d->blocks[info->join].first] : NULL;
        if (info->end != END_TABLE) op->target = &f->insts[d->blocks[info->target].first];
        for (int k = 0; k < info->n_table; k++)
            op->targets[k] = &f->insts[d->blocks[info->table[k]].first];
    }
}

void decode_function(Code *code, int index)
{
    Decoder d = {.code = code,
                 .f = &code->functions[index],
                 .p = &code->ptx.functions[index],
                 .exit_block = BLOCK_NONE,
                 .ret_block = BLOCK_NONE};
    d.f->code = code;
    if (!d.p->defined) return;
    d.next32 = d.f->rows32;
    d.next64 = d.f->rows64;
    d.next_pred = d.f->preds;
    unsigned char *leader = memory_alloc((size_t)d.p->n_insts + 1);
    d.block_of = memory_array((size_t)d.p->n_insts + 1, sizeof(int));
    d.f->classes = d.classes = memory_alloc((size_t)d.p->n_insts + 1);
    d.latency = memory_array((size_t)d.p->n_insts + 1, sizeof *d.latency);
    d.f->waits = memory_alloc((size_t)d.p->n_insts + 1);
    d.f->traffic = memory_array((size_t)d.p->n_insts + 1, sizeof *d.f->traffic);
    d.cost = folded_find(d.p);
    unrolled_find(d.p, d.cost);
    fused_find(d.p, d.cost);
    narrowed_find(d.p, d.cost);
    d.merged = merged_find(d.p);
    spins_find(&code->ptx, d.p, d.merged);
    d.accumulators = wgmma_accumulators(d.p);
    mark_leaders(d.p, leader);
    definedness_find(&d, leader);
    decode_body(&d, leader);
    definedness_release(&d);
    link_blocks(&d);
    d.f->rows32 = d.next32;
    d.f->rows64 = d.next64;
    d.f->preds = d.next_pred;
    if (d.next32 > FRAME_MAX_ROWS || d.next64 > FRAME_MAX_ROWS)
        d.f->unsupported = "it has more than a million registers";
    for (int i = 0; i < d.n_blocks; i++) free(d.blocks[i].table);
    free(d.blocks);
    free(d.block_of);
    free(d.cost);
    free(d.latency);
    free(d.merged);
    free(d.accumulators);
    free(leader);
}
