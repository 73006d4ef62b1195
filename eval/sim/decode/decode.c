#include "eval/sim/decode/decode.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "eval/sim/ptx/ptx_parser.h"

/* ---- constants ---- */

static uint32_t pool_add(unsigned char **pool, int *n, int *cap, const void *row, size_t bytes)
{
    for (int i = *n - 1; i >= 0 && i > *n - 64;
         i--) /* the recent ones: most constants repeat nearby */
        if (!memcmp(*pool + (size_t)i * bytes, row, bytes))
            return ROW_CONST | (uint32_t)((size_t)i * bytes);
    if (*n == *cap) {
        *cap = *cap ? *cap * 2 : 64;
        *pool = memory_grow(*pool, (size_t)*cap, bytes);
    }
    memcpy(*pool + (size_t)*n * bytes, row, bytes);
    return ROW_CONST | (uint32_t)((size_t)(*n)++ * bytes);
}

uint32_t decode_const32(Code *c, uint32_t v)
{
    uint32_t row[LANES];
    for (int i = 0; i < LANES; i++) row[i] = v;
    return pool_add(&c->pool32, &c->n_pool32, &c->cap_pool32, row, sizeof row);
}

uint32_t decode_const64(Code *c, uint64_t v)
{
    uint64_t row[LANES];
    for (int i = 0; i < LANES; i++) row[i] = v;
    return pool_add(&c->pool64, &c->n_pool64, &c->cap_pool64, row, sizeof row);
}

/* ---- output ---- */

Inst *decode_emit(Decoder *d, Handler *fn)
{
    d->out = ptx_push(d->out, &d->n, &d->cap, sizeof(Inst));
    Inst *i = &d->out[d->n - 1];
    i->fn = fn;
    i->src = d->in ? (uint32_t)(d->in - d->p->insts) : 0;
    if (d->in && d->in->guard >= 0) {
        i->g = (uint32_t)d->in->guard + 1;
        i->gneg = d->in->guard_negated ? FULL_MASK : 0;
    }
    return i;
}

int decode_refuse(Decoder *d, const char *why)
{
    if (!d->why) d->why = why;
    return -1;
}

uint32_t decode_temp32(Decoder *d)
{
    return d->next32++ * ROW32;
}

uint32_t decode_temp64(Decoder *d)
{
    return d->next64++ * ROW64;
}

uint32_t decode_temp_pred(Decoder *d)
{
    return d->next_pred++;
}

/* ---- modifiers ---- */

int decode_has(Decoder *d, const char *mod)
{
    for (int i = 0; i < d->in->n_mods; i++)
        if (!strcmp(d->in->mods[i], mod)) {
            d->mods_used |= 1u << i;
            return 1;
        }
    return 0;
}

static const ValueType value_types[] = {
    {"u8", T_U8, 8, 0, 0, 0},        {"s8", T_S8, 8, 0, 1, 0},      {"b8", T_U8, 8, 0, 0, 0},
    {"u16", T_U16, 16, 0, 0, 0},     {"s16", T_S16, 16, 0, 1, 0},   {"b16", T_U16, 16, 0, 0, 0},
    {"u32", T_U32, 32, 0, 0, 0},     {"s32", T_S32, 32, 0, 1, 0},   {"b32", T_U32, 32, 0, 0, 0},
    {"u64", T_U64, 64, 0, 0, 0},     {"s64", T_S64, 64, 0, 1, 0},   {"b64", T_U64, 64, 0, 0, 0},
    {"f16", T_F16, 16, 1, 1, 0},     {"bf16", T_BF16, 16, 1, 1, 0}, {"f16x2", T_F16, 32, 1, 1, 1},
    {"bf16x2", T_BF16, 32, 1, 1, 1}, {"f32", T_F32, 32, 1, 1, 0},   {"f64", T_F64, 64, 1, 1, 0},
    {"tf32", T_TF32, 32, 1, 1, 0},   {"pred", T_U8, 1, 0, 0, 0},
};

const ValueType *decode_type(Decoder *d)
{
    for (int i = d->in->n_mods - 1; i >= 0; i--)
        for (size_t k = 0;
             k < sizeof value_types / sizeof value_types[0] && !(d->mods_used >> i & 1); k++)
            if (!strcmp(d->in->mods[i], value_types[k].name)) {
                d->mods_used |= 1u << i;
                return &value_types[k];
            }
    return NULL;
}

/* ---- operands ---- */

const PtxOperand *decode_operand(const Decoder *d, int i)
{
    return i < d->in->n_operands ? &d->in->operands[i] : NULL;
}

static const Inst *h_local_address(Warp *w, const Inst *in)
{
    uint32_t m = exec_mask(w, in);
    uint64_t v = w->frame->local_base + in->imm;
    for (; m; m &= m - 1) {
        int lane = __builtin_ctz(m);
        if (in->k1)
            row64(w, in->d)[lane] = v;
        else
            row32(w, in->d)[lane] = (uint32_t)v;
    }
    return in + 1;
}

static int variable_address(Decoder *d, const PtxOperand *o, int bits, uint32_t *row)
{
    const PtxVar *v = o->var;
    uint64_t at = v->offset + (uint64_t)o->value;
    if (v->space == SPACE_GLOBAL) at = v->address + (uint64_t)o->value;
    if (v->space == SPACE_GLOBAL && v->is_extern)
        return decode_refuse(d, "a variable that is defined elsewhere");
    if (v->space == SPACE_PARAM && !d->p->is_entry)
        return decode_refuse(d, "the address of a function's parameter");
    if (v->space == SPACE_LOCAL) {
        *row = bits == 64 ? decode_temp64(d) : decode_temp32(d);
        Inst *i = decode_emit(d, h_local_address);
        i->d = *row;
        i->imm = at;
        i->k1 = bits == 64;
    } else {
        *row = bits == 64 ? decode_const64(d->code, at) : decode_const32(d->code, (uint32_t)at);
    }
    return 0;
}

static uint64_t literal_bits(const PtxOperand *o, int bits)
{
    if (o->kind == OPND_F64 && bits == 32) { /* a decimal literal in a 32-bit place */
        double v;
        memcpy(&v, &o->value, 8);
        float f = (float)v;
        uint32_t b;
        memcpy(&b, &f, 4);
        return b;
    }
    if (o->kind == OPND_F32 && bits == 64) {
        uint32_t b = (uint32_t)o->value;
        float f;
        memcpy(&f, &b, 4);
        double v = f;
        uint64_t r;
        memcpy(&r, &v, 8);
        return r;
    }
    return (uint64_t)o->value & (bits == 64 ? ~0ull : (1ull << bits) - 1);
}

int decode_source_of(Decoder *d, const PtxOperand *o, int bits, uint32_t *row)
{
    if (!o) return decode_refuse(d, "fewer operands than expected");
    switch (o->kind) {
    case OPND_REG:
        if (o->negated || o->cls != (bits == 64 ? REG_64 : REG_32))
            return decode_refuse(d, "a register of another size");
        *row = o->reg * (bits == 64 ? ROW64 : ROW32);
        return 0;
    case OPND_INT:
    case OPND_F32:
    case OPND_F64:
        *row = bits == 64 ? decode_const64(d->code, literal_bits(o, 64))
                          : decode_const32(d->code, (uint32_t)literal_bits(o, bits));
        return 0;
    case OPND_VAR: return variable_address(d, o, bits, row);
    case OPND_SPECIAL: {
        *row = bits == 64 ? decode_temp64(d) : decode_temp32(d);
        Inst *i = decode_emit(d, h_special);
        i->d = *row;
        i->k0 = (uint8_t)o->value;
        i->k1 = bits == 64;
        i->f = bits == 16 ? 0xffff : FULL_MASK;
        return 0;
    }
    case OPND_NAME: {
        uint64_t at = bits == 64 ? ptx_take_address(&d->code->ptx, o->name) : 0;
        if (at) {
            *row = decode_const64(d->code, at);
            return 0;
        }
        return decode_refuse(d, "an operand of another kind");
    }
    default: return decode_refuse(d, "an operand of another kind");
    }
}

int decode_source(Decoder *d, int operand, int bits, uint32_t *row)
{
    return decode_source_of(d, decode_operand(d, operand), bits, row);
}

int decode_dest(Decoder *d, int operand, int bits, uint32_t *row)
{
    const PtxOperand *o = decode_operand(d, operand);
    if (o && o->kind == OPND_SINK) {
        *row = bits == 64 ? decode_temp64(d) : decode_temp32(d);
        return 0;
    }
    if (!o || o->kind != OPND_REG || o->cls != (bits == 64 ? REG_64 : REG_32))
        return decode_refuse(d, "a destination register of another size");
    *row = o->reg * (bits == 64 ? ROW64 : ROW32);
    return 0;
}

int decode_pred(Decoder *d, int operand, uint32_t *pred, uint32_t *flip)
{
    const PtxOperand *o = decode_operand(d, operand);
    *flip = 0;
    if (o && o->kind == OPND_INT) { /* a constant truth value */
        *pred = 0;
        *flip = o->value ? 0 : FULL_MASK;
        return 0;
    }
    if (!o || o->kind != OPND_REG || o->cls != REG_PRED) return decode_refuse(d, "a predicate");
    *pred = o->reg + 1;
    *flip = o->negated ? FULL_MASK : 0;
    return 0;
}

int decode_pred_dest(Decoder *d, const PtxOperand *o, uint32_t *pred)
{
    *pred = 0;
    if (o && o->kind == OPND_SINK) return 0;
    if (!o || o->kind != OPND_REG || o->cls != REG_PRED)
        return decode_refuse(d, "a predicate as destination");
    *pred = o->reg + 1;
    return 0;
}

/* ---- functions ---- */

static void begin_block(Decoder *d)
{
    int n = d->n_blocks;
    if (n) { /* a block that nothing ended falls through */
        d->blocks[n - 1].last = d->n;
    }
    d->blocks = ptx_push(d->blocks, &d->n_blocks, &d->cap_blocks, sizeof(BlockInfo));
    d->costs = ptx_push(d->costs, &n, &d->cap_costs, sizeof(CodeBlock));
    d->blocks[n - 1] = (BlockInfo){.first = d->n, .end = END_FALL, .join = -1};
    const PtxInst *in = d->in;
    d->in = NULL;
    Inst *i = decode_emit(d, h_block);
    i->src = in ? (uint32_t)(in - d->p->insts) : d->p->n_insts ? (uint32_t)d->p->n_insts - 1 : 0;
    d->in = in;
}

static int ends_block(const PtxInst *in)
{
    return !strcmp(in->op, "bra") || !strcmp(in->op, "brx") || !strcmp(in->op, "ret") ||
           !strcmp(in->op, "exit") || !strcmp(in->op, "call");
}

static void mark_leaders(const PtxFunction *p, unsigned char *leader)
{
    leader[0] = leader[p->n_insts] = 1;
    for (int i = 0; i < p->n_labels; i++) leader[p->labels[i].inst] = 1;
    for (int i = 0; i < p->n_insts; i++)
        if (ends_block(&p->insts[i])) leader[i + 1] = 1;
}

static void refuse_instruction(Decoder *d)
{
    char text[240];
    size_t n = 0;
    Function *f = d->f;
    if (f->unsupported) return;
    for (uint32_t i = 0; i < d->in->text_len && n < 160; i++) {
        char c = d->in->text[i];
        if (c == '\n' || c == '\t' || c == ' ') c = ' ';
        if (c != ' ' || (n && text[n - 1] != ' ')) text[n++] = c;
    }
    text[n] = 0;
    char *sentence = ptx_arena_alloc(d->code->ptx.arena, 512);
    snprintf(sentence, 512,
             "the simulator does not know the instruction \"%s\" (line %d, PTX line %d)%s%s", text,
             d->in->line, d->in->ptx_line, d->why ? ": it has " : "", d->why ? d->why : "");
    f->unsupported = sentence;
    f->unsupported_line = d->in->line;
}

static int decode_one(Decoder *d)
{
    static int (*const parts[])(Decoder *) = {decode_alu,    decode_moves,   decode_mbarrier,
                                              decode_memory, decode_control, decode_mma,
                                              decode_wmma};
    d->mods_used = 0;
    d->why = NULL;
    d->flops = d->expansion = 0;
    d->inst_class = INST_OTHER;
    if (d->in->bad) return -1;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        int r = parts[i](d);
        if (r > 0) continue;
        if (r == 0 && d->mods_used != (1u << d->in->n_mods) - 1)
            return decode_refuse(d, "a modifier that is not known here");
        return r;
    }
    return -1;
}

static void add_cost(Decoder *d)
{
    CodeBlock *c = &d->costs[d->n_blocks - 1];
    d->classes[d->in - d->p->insts] = (uint8_t)d->inst_class;
    c->n_insts++;
    c->by_class[d->inst_class]++;
    c->expansion += (uint32_t)d->expansion;
    uint64_t *flops = d->inst_class == INST_TENSOR ? &c->tensor_flops
                      : d->inst_class == INST_FP64 ? &c->fp64_flops
                      : d->inst_class == INST_FP16 ? &c->fp16_flops
                                                   : &c->fp32_flops;
    *flops += (uint64_t)d->flops;
}

static void end_with(Decoder *d, Handler *fn, int end)
{
    d->in = NULL;
    decode_emit(d, fn);
    d->out[d->n - 1].src = d->p->n_insts ? (uint32_t)d->p->n_insts - 1 : 0;
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
        if (decode_one(d)) refuse_instruction(d);
        add_cost(d);
    }
    d->in = NULL;
    begin_block(d);
    d->block_of[d->p->n_insts] = d->n_blocks - 1;
    end_with(d, d->p->is_entry ? h_exit : h_ret, d->p->is_entry ? END_EXIT : END_RET);
    if (d->exit_block == -2) {
        begin_block(d);
        d->exit_block = d->n_blocks - 1;
        end_with(d, h_exit, END_EXIT);
    }
    if (d->ret_block == -2) {
        begin_block(d);
        d->ret_block = d->n_blocks - 1;
        end_with(d, d->p->is_entry ? h_exit : h_ret, d->p->is_entry ? END_EXIT : END_RET);
    }
    d->blocks[d->n_blocks - 1].last = d->n;
}

static int label_block(const Decoder *d, int code)
{
    if (code == -1) return d->exit_block;
    if (code == -2) return d->ret_block;
    return d->block_of[code];
}

/* Block numbers become pointers; until here a target is a PTX instruction's index, or -1 exit, -2
 * ret. */
static void link_blocks(Decoder *d)
{
    Function *f = d->f;
    for (int b = 0; b < d->n_blocks; b++) {
        BlockInfo *info = &d->blocks[b];
        info->pure_exit = info->end == END_EXIT && info->last - info->first == 2;
        if (info->end == END_BRANCH || info->end == END_COND)
            info->target = label_block(d, info->target);
        for (int k = 0; k < info->n_table; k++) info->table[k] = label_block(d, info->table[k]);
    }
    cfg_joins(d);
    cfg_costs(d);
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

/* Row codes are byte offsets of 31 bits: far from what would wrap. */
enum { FRAME_MAX_ROWS = 1 << 20 };

static uint32_t take_words(Function *f, PtxVar *v)
{
    uint64_t words = (v->size + 3) / 4;
    v->offset = f->rows32; /* of a function's parameter: its first row */
    if (words > FRAME_MAX_ROWS - f->rows32)
        f->unsupported = "it has more than 4 MiB of parameters";
    else
        f->rows32 += (uint32_t)words;
    return f->rows32;
}

/* Parameters of functions, and the .param variables of their calls, are 32-bit rows of the frame.
 */
static void lay_out_frame(Function *f)
{
    const PtxFunction *p = f->ptx;
    uint64_t local = 0;
    f->rows32 = p->n_regs[REG_32];
    f->rows64 = p->n_regs[REG_64];
    f->preds = p->n_regs[REG_PRED] + 1;
    for (int i = 0; i < p->n_params && !p->is_entry; i++) take_words(f, p->params[i]);
    for (int i = 0; i < p->n_returns && !p->is_entry; i++) take_words(f, p->returns[i]);
    for (PtxVar *v = p->vars; v; v = v->next)
        if (v->space == SPACE_LOCAL) {
            local = (local + v->align - 1) & ~(uint64_t)(v->align - 1);
            v->offset = local;
            local += v->size;
        } else if (v->space == SPACE_PARAM) {
            take_words(f, v);
        }
    if (local > 1 << 20) f->unsupported = "it has more than 1 MiB of local memory";
    f->local_bytes = (uint32_t)local;
}

static void decode_function(Code *code, int index)
{
    Decoder d = {.code = code,
                 .f = &code->functions[index],
                 .p = &code->ptx.functions[index],
                 .exit_block = -1,
                 .ret_block = -1};
    d.f->code = code;
    if (!d.p->defined) return;
    d.next32 = d.f->rows32;
    d.next64 = d.f->rows64;
    d.next_pred = d.f->preds;
    if (d.p->n_regs[REG_128]) d.f->unsupported = "the simulator does not know 128-bit registers";
    unsigned char *leader = memory_alloc((size_t)d.p->n_insts + 1);
    d.block_of = memory_array((size_t)d.p->n_insts + 1, sizeof(int));
    d.classes = memory_alloc((size_t)d.p->n_insts + 1);
    mark_leaders(d.p, leader);
    decode_body(&d, leader);
    link_blocks(&d);
    d.f->rows32 = d.next32;
    d.f->rows64 = d.next64;
    d.f->preds = d.next_pred;
    if (d.next32 > FRAME_MAX_ROWS || d.next64 > FRAME_MAX_ROWS)
        d.f->unsupported = "it has more than a million registers";
    for (int i = 0; i < d.n_blocks; i++) free(d.blocks[i].table);
    free(d.blocks);
    free(d.block_of);
    free(d.classes);
    free(leader);
}

/* ---- module ---- */

static int lay_out_const(Code *c, Error *err)
{
    uint64_t at = 0;
    for (PtxVar *v = c->ptx.vars; v; v = v->next)
        if (v->space == SPACE_CONST) {
            at = (at + v->align - 1) & ~(uint64_t)(v->align - 1);
            v->offset = at;
            at += v->size;
        }
    if (at > 65536)
        return error_set(err, ERROR_INVALID, "constant memory of %llu bytes; 65536 are allowed",
                         (unsigned long long)at);
    c->const_bytes = (uint32_t)at;
    c->const_bank = memory_alloc((size_t)at + 16);
    for (PtxVar *v = c->ptx.vars; v; v = v->next)
        if (v->space == SPACE_CONST && v->init) memcpy(c->const_bank + v->offset, v->init, v->size);
    return 0;
}

/* Every function's shared variables get their own place: what a kernel calls is small. Extern
 * arrays (dynamic shared memory) start where the static part ends. */
static uint64_t lay_out_shared(Code *c)
{
    uint64_t at = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = -1; i < c->ptx.n_functions; i++) {
            if (i >= 0 && c->ptx.functions[i].is_entry) continue;
            for (PtxVar *v = i < 0 ? c->ptx.vars : c->ptx.functions[i].vars; v; v = v->next)
                if (v->space == SPACE_SHARED && (v->is_extern || !v->size) == pass && !pass) {
                    at = (at + v->align - 1) & ~(uint64_t)(v->align - 1);
                    v->offset = at;
                    at += v->size;
                }
        }
    return at;
}

static void lay_out_entry_shared(Code *c, Function *f, uint64_t at)
{
    for (PtxVar *v = f->ptx->vars; v; v = v->next)
        if (v->space == SPACE_SHARED && v->size && !v->is_extern) {
            at = (at + v->align - 1) & ~(uint64_t)(v->align - 1);
            v->offset = at;
            at += v->size;
        }
    (void)c;
    f->static_shared = (uint32_t)(((at > 1 << 20 ? 1 << 20 : at) + 15) & ~(uint64_t)15);
    if (at > 1 << 20) /* never launched, but other kernels' dynamic memory begins behind it */
        f->unsupported = "it declares more than 1 MiB of static shared memory";
}

/* Dynamic shared memory begins at one offset for the whole module: behind the largest static part.
 */
static void place_dynamic_shared(Code *c)
{
    uint32_t most = 0;
    int dynamic = 0;
    for (PtxVar *v = c->ptx.vars; v; v = v->next)
        dynamic |= v->space == SPACE_SHARED && (v->is_extern || !v->size);
    for (int i = 0; i < c->ptx.n_functions; i++)
        most = c->functions[i].static_shared > most ? c->functions[i].static_shared : most;
    for (PtxVar *v = c->ptx.vars; v; v = v->next)
        if (v->space == SPACE_SHARED && (v->is_extern || !v->size)) v->offset = most;
    for (int i = 0; i < c->ptx.n_functions && dynamic; i++)
        if (c->functions[i].ptx->is_entry) c->functions[i].dynamic_at = most;
}

/* A kernel cannot run what it calls cannot. */
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

/* Before anything is decoded: a call through a pointer may stand before the function whose address
 * is taken. */
static void take_addresses(PtxModule *m)
{
    for (int i = 0; i < m->n_functions; i++)
        for (int k = 0; k < m->functions[i].n_insts; k++) {
            const PtxInst *in = &m->functions[i].insts[k];
            if (!strcmp(in->op, "mov") && in->n_operands == 2 && in->operands[1].kind == OPND_NAME)
                ptx_take_address(m, in->operands[1].name);
        }
}

int code_build(PtxModule *ptx, Code *out, Error *err)
{
    memset(out, 0, sizeof *out);
    out->ptx = *ptx;
    memset(ptx, 0, sizeof *ptx);
    int n = out->ptx.n_functions;
    out->functions = memory_array((size_t)n + 1, sizeof(Function));
    if (lay_out_const(out, err)) {
        code_release(out);
        return -1;
    }
    uint64_t shared = lay_out_shared(out);
    for (int i = 0; i < n; i++) {
        out->functions[i].ptx = &out->ptx.functions[i];
        if (out->ptx.functions[i].is_entry) lay_out_entry_shared(out, &out->functions[i], shared);
    }
    place_dynamic_shared(out);
    take_addresses(&out->ptx);
    for (int i = 0; i < n; i++) lay_out_frame(&out->functions[i]);
    for (int i = 0; i < n; i++) decode_function(out, i);
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
        free(f->blocks);
        free(f->callees);
    }
    free(c->functions);
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
