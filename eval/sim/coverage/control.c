/* What a value follows from is found for all registers at once, in whatever order instructions run. */
#include "eval/sim/coverage/control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/sim/coverage/slice_bases.h"
#include "eval/sim/ptx/ptx_arena.h"
#include "eval/sim/ptx/ptx_flow.h"

/* What a value follows from. */
enum { OF_MEMORY = 1, NOT_KNOWN = 2 };
/* MUCH: instructions of a branch without a loop that matter as one with. */
enum { MUCH = 256, MOST_BLOCKS = 4000 };

/* OF_CALL: what a function has returned. */
typedef enum { NO_ACCESS, OF_PARAM, OF_CALL, OF_BLOCK, OF_GRID, OF_ANY } Where;

typedef struct {
    const PtxFunction *f;
    Flow flow;
    Bases bases;
    uint64_t steady;
    uint8_t *of[REG_CLASSES]; /* by register: what it follows from */
    uint8_t *deciding;        /* by block: what it follows from whether it runs */
    uint8_t own;              /* what the contents of shared and local memory follow from */
    uint8_t passed;           /* what functions return follows from */
    int calls;                /* functions change nothing but their own memory */
    uint8_t *once;            /* by instruction: a global atomic that has one turn */
    uint8_t *taken;           /* by instruction */
    uint8_t *decides;         /* by block: its branch is taken */
    int needs_own;            /* shared or local memory is read */
    int needs_calls;          /* a function's result is read */
    int *work, n_work;
} Cut;

static int is(const PtxInst *in, const char *op)
{
    return ptx_same(in->op, op);
}

static int has_any(const PtxInst *in, const char *const *mods, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (ptx_has_mod(in, mods[i])) return 1;
    return 0;
}

/* ---- memory ---- */

static int is_own_param(const Cut *c, const PtxInst *in)
{
    const PtxOperand *from = in->n_operands > 1 ? &in->operands[1] : NULL;
    for (int i = 0; from && from->kind == OPND_ADDR && i < c->f->n_params; i++)
        if (from->items[0].kind == OPND_VAR && from->items[0].var == c->f->params[i]) return 1;
    return 0;
}

/* The operand with the address, of an access that is no copy. */
static const PtxOperand *address_of(const PtxInst *in)
{
    const int at = is(in, "st") || is(in, "red") || is(in, "stmatrix") ? 0 : 1;
    return in->n_operands > at ? &in->operands[at] : NULL;
}

static Where where_of(const Cut *c, const PtxInst *in)
{
    static const char *const accesses[] = {"ld",  "ldu",      "st",      "atom",
                                           "red", "ldmatrix", "stmatrix"},
                             *const far[] = {"shared::cluster", "async"},
                             *const own[] = {"shared", "shared::cta", "local"};
    size_t i = 0, n = sizeof accesses / sizeof *accesses;
    while (i < n && !is(in, accesses[i])) i++;
    if (i == n) return NO_ACCESS;
    if (has_any(in, far, 2)) return OF_ANY;
    if (has_any(in, own, 3) || is(in, "ldmatrix") || is(in, "stmatrix")) return OF_BLOCK;
    if (ptx_has_mod(in, "param")) return is_own_param(c, in) || is(in, "st") ? OF_PARAM : OF_CALL;
    if (ptx_has_mod(in, "const")) return OF_PARAM;
    if (ptx_has_mod(in, "global")) return OF_GRID;
    const PtxOperand *address = address_of(in);
    uint64_t from = address ? bases_of(&c->bases, address) : 0;
    return !from ? OF_ANY : from == BASE_OWN ? OF_BLOCK : from & BASE_OWN ? OF_ANY : OF_GRID;
}

/* What is loaded through an address of global memory. Where nothing is stored, a volatile load finds what any
 * other finds, and the compiler has said so of `.nc`. */
static uint8_t of_global(const Cut *c, const PtxInst *in, const PtxOperand *address)
{
    uint64_t from = address ? bases_of(&c->bases, address) : 0;
    return (from && !(from & ~c->steady)) || ptx_has_mod(in, "nc") ? OF_MEMORY : NOT_KNOWN;
}

/* May block b run again behind itself? */
static int repeats(const Cut *c, int b)
{
    const int n = c->flow.n;
    uint8_t *seen = memory_alloc((size_t)n + 1);
    int *left = memory_array((size_t)n + 1, sizeof *left), n_left = 0, to[2];
    left[n_left++] = b;
    while (n_left && !seen[b]) {
        const int from = left[--n_left];
        for (int i = flow_successors(&c->flow, from, to) - 1; i >= 0; i--) {
            if (to[i] >= n || seen[to[i]]) continue;
            seen[to[i]] = 1;
            left[n_left++] = to[i];
        }
    }
    const int again = seen[b];
    free(seen);
    free(left);
    return again;
}

/* The type of what an atomic finds, if a load of it finds the same; NULL: it does not. */
static const char *type_found(const PtxInst *in)
{
    static const char *const types[] = {"u32", "s32", "b32", "f32", "u64", "s64", "b64", "f64"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (ptx_has_mod(in, types[i])) return types[i];
    return NULL;
}

/* What an atomic finds that has one turn is what the word holds when the launch begins, if no other block
 * changes it. A queue's blocks look at one word; a lock, or a loop of tickets, has many turns. */
static void find_once(Cut *c)
{
    for (int i = 0; i < c->f->n_insts; i++) {
        const PtxInst *in = &c->f->insts[i];
        if (!is(in, "atom") || in->n_operands < 2 || in->operands[0].kind != OPND_REG) continue;
        c->once[i] = type_found(in) && !repeats(c, c->flow.block_of[i]);
    }
}

/* In the part a load stands for the atomic, so that nothing is changed. */
static PtxInst as_load(const PtxInst *in)
{
    PtxInst load = *in;
    load.op = "ld";
    load.n_mods = 0;
    if (ptx_has_mod(in, "global")) load.mods[load.n_mods++] = "global";
    load.mods[load.n_mods++] = type_found(in);
    load.n_operands = 2;
    return load;
}

/* ---- what values follow from ---- */

static uint8_t of_operand(const Cut *c, const PtxOperand *o)
{
    uint8_t of = 0;
    if (o->kind == OPND_REG) return c->of[o->cls][o->reg];
    if (o->kind == OPND_ADDR) return of_operand(c, &o->items[0]);
    for (int i = 0; i < o->n; i++) of |= of_operand(c, &o->items[i]);
    return of;
}

/* What the instruction reads, and whether it runs. */
static uint8_t of_sources(const Cut *c, const PtxInst *in, int block)
{
    uint8_t of = c->deciding[block];
    for (int i = ptx_has_dest(in); i < in->n_operands; i++) of |= of_operand(c, &in->operands[i]);
    return in->guard < 0 ? of : of | c->of[REG_PRED][in->guard];
}

static uint8_t of_result(const Cut *c, const PtxInst *in)
{
    static const char *const unknown[] = {"mbarrier", "wgmma", "wmma", "tex",
                                          "multimem", "suld",  "tld4", "clusterlaunchcontrol",
                                          "testp"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        if (is(in, unknown[i])) return NOT_KNOWN;
    switch (where_of(c, in)) {
    case OF_CALL: return c->calls ? c->passed : NOT_KNOWN;
    case OF_BLOCK: return c->own;
    case OF_GRID:
        if (is(in, "atom")) return c->once[in - c->f->insts] ? OF_MEMORY : NOT_KNOWN;
        return of_global(c, in, address_of(in));
    case OF_ANY: return NOT_KNOWN;
    default: return in->bad ? NOT_KNOWN : 0;
    }
}

/* What the instruction brings into the memory of the block. */
static uint8_t brought(const Cut *c, const PtxInst *in, int block)
{
    static const char *const others[] = {"bulk", "mbarrier"};
    if (is(in, "call") && c->calls) return 0;
    if (is(in, "call") || is(in, "wgmma") || is(in, "mbarrier") || in->bad) return NOT_KNOWN;
    if (is(in, "cp")) {
        if (has_any(in, others, 2)) return NOT_KNOWN;
        if (in->n_operands < 2) return 0; /* of groups */
        return of_sources(c, in, block) | of_global(c, in, &in->operands[1]);
    }
    const Where where = where_of(c, in);
    if (is(in, "ld") || is(in, "ldu") || is(in, "ldmatrix")) return 0;
    if (where == OF_ANY) return NOT_KNOWN;
    return where == OF_BLOCK ? of_sources(c, in, block) : 0;
}

static int add(Cut *c, const PtxOperand *to, uint8_t of)
{
    int changed = 0;
    for (int i = 0; to->kind == OPND_VEC && i < to->n; i++) changed |= add(c, &to->items[i], of);
    if (to->pair) changed |= add(c, to->pair, of);
    if (to->kind != OPND_REG || !(of & ~c->of[to->cls][to->reg])) return changed;
    c->of[to->cls][to->reg] |= of;
    return 1;
}

static uint8_t of_branch(const Cut *c, int block)
{
    const PtxInst *in = &c->f->insts[c->flow.blocks[block].last - 1];
    return c->deciding[block] | (in->guard < 0 ? 0 : c->of[REG_PRED][in->guard]);
}

/* What an argument of a function brings into its result. Pointers must lead to what is known. */
static uint8_t passes(const Cut *c, const PtxInst *in, int block)
{
    if (!is(in, "st") || !ptx_has_mod(in, "param") || in->n_operands < 2) return 0;
    const uint64_t from = bases_of(&c->bases, &in->operands[1]);
    return of_sources(c, in, block) | (from & ~c->steady ? NOT_KNOWN : OF_MEMORY);
}

static int follow_once(Cut *c)
{
    int changed = 0;
    for (int b = 0; b < c->flow.n; b++) {
        uint8_t of = c->deciding[b];
        for (int i = c->flow.deciding_first[b]; i < c->flow.deciding_first[b + 1]; i++)
            of |= of_branch(c, c->flow.deciding[i]);
        changed |= of != c->deciding[b];
        c->deciding[b] = of;
    }
    for (int i = 0; i < c->f->n_insts; i++) {
        const PtxInst *in = &c->f->insts[i];
        const int block = c->flow.block_of[i];
        const uint8_t own = c->own | brought(c, in, block),
                      passed = c->passed | passes(c, in, block);
        changed |= own != c->own || passed != c->passed;
        c->own = own, c->passed = passed;
        if (ptx_has_dest(in))
            changed |= add(c, &in->operands[0], of_sources(c, in, block) | of_result(c, in));
    }
    return changed;
}

/* ---- the branches that matter ---- */

/* Marks the blocks about which the branch of block b decides, also through others. */
static void reach(const Cut *c, int b, uint8_t *reached)
{
    memset(reached, 0, (size_t)c->flow.n);
    for (int changed = 1, x; changed;) {
        changed = 0;
        for (x = 0; x < c->flow.n; x++)
            for (int i = c->flow.deciding_first[x];
                 i < c->flow.deciding_first[x + 1] && !reached[x]; i++)
                if (c->flow.deciding[i] == b || reached[c->flow.deciding[i]])
                    changed = reached[x] = 1;
    }
}

static int matters(const Cut *c, const uint8_t *reached)
{
    int insts = 0;
    for (int x = 0; x < c->flow.n; x++) {
        const FlowBlock *k = &c->flow.blocks[x];
        if (!reached[x]) continue;
        if (k->end != ENDS_FALL && k->target <= x) return 1;
        insts += k->last - k->first;
    }
    return insts >= MUCH;
}

static void take(Cut *c, int inst)
{
    if (c->taken[inst]) return;
    c->taken[inst] = 1;
    c->work[c->n_work++] = inst;
}

static void take_branch(Cut *c, int block)
{
    if (c->flow.blocks[block].end != ENDS_BRANCH || of_branch(c, block) & NOT_KNOWN) return;
    c->decides[block] = 1;
    take(c, c->flow.blocks[block].last - 1);
}

/* Returns how many there are. */
static int find_branches(Cut *c)
{
    int n = 0;
    uint8_t *reached = memory_alloc((size_t)c->flow.n + 1);
    for (int b = 0; b < c->flow.n; b++) {
        if (c->flow.blocks[b].end != ENDS_BRANCH || of_branch(c, b) != OF_MEMORY) continue;
        reach(c, b, reached);
        if (!matters(c, reached)) continue;
        n++;
        take_branch(c, b);
        for (int x = 0; x < c->flow.n; x++)
            if (reached[x]) take_branch(c, x);
    }
    free(reached);
    return n;
}

/* ---- what they need ---- */

/* Instructions by what they define: a list for each register. */
typedef struct {
    int *first[REG_CLASSES]; /* 1 + an entry; 0: none */
    struct {
        int inst, next;
    } * of;
    int n, cap;
    uint8_t *seen[REG_CLASSES]; /* registers of which the instructions are taken */
} Definers;

static void define(Definers *d, const PtxOperand *to, int inst)
{
    for (int i = 0; to->kind == OPND_VEC && i < to->n; i++) define(d, &to->items[i], inst);
    if (to->pair) define(d, to->pair, inst);
    if (to->kind != OPND_REG) return;
    memory_room(d->of, d->n, d->cap, 64);
    d->of[d->n].inst = inst;
    d->of[d->n].next = d->first[to->cls][to->reg];
    d->first[to->cls][to->reg] = ++d->n;
}

/* In their order. */
static Definers definers_of(const PtxFunction *f)
{
    Definers d = {.n = 0};
    for (int k = 0; k < REG_CLASSES; k++) {
        d.first[k] = memory_array((size_t)f->n_regs[k] + 1, sizeof **d.first);
        d.seen[k] = memory_alloc((size_t)f->n_regs[k] + 1);
    }
    for (int i = f->n_insts - 1; i >= 0; i--)
        if (ptx_has_dest(&f->insts[i])) define(&d, &f->insts[i].operands[0], i);
    return d;
}

static void need_register(Cut *c, Definers *d, int cls, uint32_t reg)
{
    if (d->seen[cls][reg]) return;
    d->seen[cls][reg] = 1;
    for (int i = d->first[cls][reg]; i; i = d->of[i - 1].next) take(c, d->of[i - 1].inst);
}

static void need(Cut *c, Definers *d, const PtxOperand *o)
{
    if (o->kind == OPND_REG) need_register(c, d, o->cls, o->reg);
    if (o->kind == OPND_ADDR) need(c, d, &o->items[0]);
    for (int i = 0; o->kind != OPND_ADDR && i < o->n; i++) need(c, d, &o->items[i]);
}

/* Synchronizes the block, or its copies. */
static int is_meeting(const PtxInst *in)
{
    return is(in, "bar") || is(in, "barrier") || (is(in, "cp") && in->n_operands < 2);
}

static void need_own(Cut *c)
{
    if (c->needs_own) return;
    c->needs_own = 1;
    for (int i = 0; i < c->f->n_insts; i++) {
        const PtxInst *in = &c->f->insts[i];
        if (is_meeting(in) || is(in, "cp") || (where_of(c, in) == OF_BLOCK && !is(in, "ld")))
            take(c, i);
    }
}

static void need_calls(Cut *c)
{
    if (c->needs_calls) return;
    c->needs_calls = 1;
    for (int i = 0; i < c->f->n_insts; i++) {
        const PtxInst *in = &c->f->insts[i];
        if (is(in, "call") || (is(in, "st") && ptx_has_mod(in, "param"))) take(c, i);
    }
}

static void close_cut(Cut *c)
{
    Definers d = definers_of(c->f);
    while (c->n_work) {
        const int i = c->work[--c->n_work], b = c->flow.block_of[i];
        const PtxInst *in = &c->f->insts[i];
        for (int k = ptx_has_dest(in); k < in->n_operands; k++) need(c, &d, &in->operands[k]);
        if (in->guard >= 0) need_register(c, &d, REG_PRED, (uint32_t)in->guard);
        if (where_of(c, in) == OF_BLOCK) need_own(c);
        if (where_of(c, in) == OF_CALL) need_calls(c);
        for (int k = c->flow.deciding_first[b]; k < c->flow.deciding_first[b + 1]; k++)
            take_branch(c, c->flow.deciding[k]);
    }
    for (int k = 0; k < REG_CLASSES; k++) free(d.first[k]), free(d.seen[k]);
    free(d.of);
}

/* ---- the kernel of the part ---- */

/* The block where lanes go on behind a branch that is left out. */
static int behind(const Cut *c, int b)
{
    const FlowBlock *k = &c->flow.blocks[b];
    if (k->join < c->flow.n) return k->join;
    return k->target < c->flow.n && k->target > b ? k->target : b + 1;
}

/* A jump to a block, of which out->labels has one. */
static PtxInst jump(const Cut *c, PtxModule *m, int block, int was)
{
    char name[32];
    PtxInst in = {.text = "bra", .text_len = 3, .op = "bra", .n_operands = 1, .guard = -1};
    snprintf(name, sizeof name, "$block_%d", block);
    in.line = c->f->insts[was].line, in.ptx_line = c->f->insts[was].ptx_line;
    in.operands = ptx_arena_alloc(m->arena, sizeof *in.operands);
    *in.operands =
        (PtxOperand){.kind = OPND_NAME, .name = ptx_arena_text(m->arena, name, strlen(name))};
    return in;
}

static void write_labels(const Cut *c, const int *at, PtxModule *m, PtxFunction *to)
{
    const int n = c->f->n_labels;
    char name[32];
    to->labels = memory_array((size_t)(n + c->flow.n) + 1, sizeof *to->labels);
    for (int i = 0; i < n; i++) {
        to->labels[i] = c->f->labels[i];
        to->labels[i].inst = at[c->f->labels[i].inst];
    }
    for (int b = 0; b < c->flow.n; b++) {
        snprintf(name, sizeof name, "$block_%d", b);
        to->labels[n + b] = (PtxLabel){.name = ptx_arena_text(m->arena, name, strlen(name)),
                                       .inst = at[c->flow.blocks[b].first]};
    }
    to->n_labels = n + c->flow.n;
}

static void write_kernel(const Cut *c, Control *out)
{
    PtxModule *m = &out->module;
    PtxFunction *to = m->functions;
    int *at = memory_array((size_t)c->f->n_insts + 1, sizeof *at), all = 0, kept = 0;
    to->insts = memory_array((size_t)c->f->n_insts + (size_t)c->flow.n + 1, sizeof *to->insts);
    to->n_insts = 0;
    for (int b = 0; b < c->flow.n; b++) {
        const FlowBlock *k = &c->flow.blocks[b];
        const int before = to->n_insts;
        for (int i = k->first; i < k->last; i++) {
            const int ends = i == k->last - 1 && k->end != ENDS_FALL;
            at[i] = to->n_insts;
            if (c->taken[i] || (ends && k->end != ENDS_BRANCH))
                to->insts[to->n_insts++] = c->once[i] ? as_load(&c->f->insts[i]) : c->f->insts[i];
            else if (ends && behind(c, b) != b + 1 && behind(c, b) < c->flow.n)
                to->insts[to->n_insts++] = jump(c, m, behind(c, b), i);
        }
        if (c->decides[b]) all += k->last - k->first, kept += to->n_insts - before;
    }
    at[c->f->n_insts] = to->n_insts;
    write_labels(c, at, m, to);
    out->dilution = kept ? (double)all / kept : 1;
    free(at);
}

/* Do functions change nothing but their own memory, and does none meet others? */
static int are_harmless(const PtxModule *m)
{
    static const char *const harmful[] = {"red",     "atom",     "cp",    "bar",
                                          "barrier", "mbarrier", "wgmma", "stmatrix"},
                             *const own[] = {"local", "param"};
    for (int i = 0; i < m->n_functions; i++) {
        const PtxFunction *f = &m->functions[i];
        if (f->address_taken) return 0;
        for (int k = 0; !f->is_entry && k < f->n_insts; k++) {
            const PtxInst *in = &f->insts[k];
            for (size_t h = 0; h < sizeof harmful / sizeof *harmful; h++)
                if (is(in, harmful[h])) return 0;
            if (is(in, "st") && !has_any(in, own, 2)) return 0;
        }
    }
    return 1;
}

/* The kernel, and what it may call. */
static void copy_functions(const PtxModule *m, const PtxFunction *f, PtxModule *to)
{
    to->functions = memory_array((size_t)m->n_functions + 1, sizeof *to->functions);
    to->functions[0] = *f;
    to->n_functions = 1;
    for (int i = 0; i < m->n_functions; i++)
        if (!m->functions[i].is_entry) to->functions[to->n_functions++] = m->functions[i];
}

static void open_cut(Cut *c)
{
    const size_t n = (size_t)c->f->n_insts + 1;
    bases_find(c->f, &c->bases);
    for (int k = 0; k < REG_CLASSES; k++) c->of[k] = memory_alloc((size_t)c->f->n_regs[k] + 1);
    c->deciding = memory_alloc((size_t)c->flow.n + 1);
    c->decides = memory_alloc((size_t)c->flow.n + 1);
    c->taken = memory_alloc(n);
    c->once = memory_alloc(n);
    c->work = memory_array(n, sizeof *c->work);
}

static void close_all(Cut *c)
{
    flow_release(&c->flow);
    bases_release(&c->bases);
    for (int k = 0; k < REG_CLASSES; k++) free(c->of[k]);
    free(c->deciding);
    free(c->decides);
    free(c->taken);
    free(c->once);
    free(c->work);
}

/* Do the open branches that the part leaves out have one turn each, and no loop behind them? *insts: what
 * they decide about. A call runs code that is not looked at, and an atomic may find what others leave. */
static int is_settled(const Cut *c, const uint8_t *open, int *insts)
{
    const size_t n = (size_t)c->flow.n + 1;
    uint8_t *reached = memory_alloc(n), *all = memory_alloc(n);
    int settled = 1;
    *insts = 0;
    for (int i = 0; i < c->f->n_insts; i++)
        settled &= !is(&c->f->insts[i], "call") && !(c->once[i] && c->taken[i]);
    for (int b = 0; b < c->flow.n && settled; b++) {
        if (!open[b] || c->decides[b]) continue;
        reach(c, b, reached);
        settled = !repeats(c, b) && !matters(c, reached);
        for (int x = 0; x < c->flow.n; x++) all[x] |= reached[x];
    }
    for (int x = 0; x < c->flow.n; x++)
        if (all[x]) *insts += c->flow.blocks[x].last - c->flow.blocks[x].first;
    free(reached);
    free(all);
    return settled;
}

int control_cut(const PtxModule *m, const PtxFunction *f, uint64_t steady, const uint8_t *open,
                Control *out)
{
    Cut c = {.f = f, .steady = steady, .calls = are_harmless(m)};
    int rc = -1;
    *out = (Control){.is_settled = 0};
    if (!f->n_insts || flow_find(f, &c.flow) || c.flow.n > MOST_BLOCKS) {
        flow_release(&c.flow);
        return -1;
    }
    open_cut(&c);
    find_once(&c);
    while (follow_once(&c)) continue;
    const int found = find_branches(&c);
    if (found) close_cut(&c);
    out->is_settled = is_settled(&c, open, &out->left_out);
    if (found) {
        out->module = *m;
        out->module.arena = ptx_arena_new();
        copy_functions(m, f, &out->module);
        write_kernel(&c, out);
        rc = 0;
    }
    close_all(&c);
    return rc;
}

void control_return(PtxModule *m)
{
    m->vars = NULL;
    for (int i = 0; i < m->n_functions; i++) {
        PtxFunction *f = &m->functions[i];
        f->params = f->returns = NULL;
        f->targets = NULL;
        f->n_targets = 0;
        f->scopes = NULL;
        f->vars = NULL;
        if (i) f->insts = NULL, f->labels = NULL;
    }
}
