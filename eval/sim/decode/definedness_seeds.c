/* Which registers of a function may be read before they are set on some path. A parameter's word is
 * set by its stores; what calls read of one that was not stored has no value. */
#include <stdlib.h>

#include "base/memory.h"
#include "eval/sim/decode/definedness.h"

/* A list of places by register: the first one of each, and the next of the same register. */
typedef struct {
    int *head, *next, *block, *inst, n, cap;
} Places;

static void places_init(Places *p, int n_registers)
{
    memset(p, 0, sizeof *p);
    p->head = memory_array((size_t)n_registers + 1, sizeof(int));
    for (int i = 0; i <= n_registers; i++) p->head[i] = -1;
}

/* Adds a place unless the register's last one is in the same block. */
static void places_add(Places *p, int reg, int block, int inst)
{
    if (p->head[reg] >= 0 && p->block[p->head[reg]] == block) return;
    if (p->n == p->cap) {
        p->cap = p->cap ? p->cap * 2 : 256;
        p->next = memory_grow(p->next, (size_t)p->cap, sizeof(int));
        p->block = memory_grow(p->block, (size_t)p->cap, sizeof(int));
        p->inst = memory_grow(p->inst, (size_t)p->cap, sizeof(int));
    }
    p->next[p->n] = p->head[reg];
    p->block[p->n] = block;
    p->inst[p->n] = inst;
    p->head[reg] = p->n++;
}

static void places_release(Places *p)
{
    free(p->head);
    free(p->next);
    free(p->block);
    free(p->inst);
}

static void add_uses(const Registers *r, const Places *sets, Places *reads, int block, int inst)
{
    for (int i = 0; i < r->n; i++) {
        int set = sets->head[r->reg[i]];
        if (set < 0 || sets->block[set] != block) places_add(reads, r->reg[i], block, inst);
    }
}

/* Finds for each register the blocks that set it without a guard, and those that read it before. */
static void find_places(const Decoder *d, const Definedness *k, const int *block_of, Places *sets,
                        Places *reads)
{
    Registers r;
    for (int i = 0; i < d->p->n_insts; i++) {
        const PtxInst *in = &d->p->insts[i];
        if (in->bad) continue;
        definedness_values(k, in, &r);
        add_uses(&r, sets, reads, block_of[i], i);
        definedness_addresses(k, in, &r);
        add_uses(&r, sets, reads, block_of[i], i);
        if (in->guard >= 0) {
            r = (Registers){1, {k->base[REG_PRED] + in->guard}};
            add_uses(&r, sets, reads, block_of[i], i);
            continue;
        }
        definedness_dests(k, in, &r);
        for (int j = 0; j < r.n; j++) places_add(sets, r.reg[j], block_of[i], i);
    }
}

typedef struct {
    int n, *first, *preds; /* predecessors of b: preds[first[b]] to preds[first[b + 1] - 1] */
} Flow;

/* Calls `edge` for each edge between blocks. */
static void each_edge(const Decoder *d, const int *block_of, int n_blocks,
                      void (*edge)(Flow *f, int from, int to), Flow *f)
{
    for (int i = 0; i < d->p->n_insts; i++) {
        const PtxInst *in = &d->p->insts[i];
        int b = block_of[i], falls = 1;
        if (block_of[i + 1] == b || in->bad) continue;
        if (definedness_is(in, "bra") && in->n_operands && in->operands[0].kind == OPND_NAME) {
            int target = decode_label(d, in->operands[0].name, in->scope);
            if (target >= 0) edge(f, b, block_of[target]);
            falls = in->guard >= 0;
        } else if (definedness_is(in, "brx")) {
            int found = in->n_operands > 1 && in->operands[1].kind == OPND_NAME
                            ? ptx_find_targets(d->p, in->operands[1].name, in->scope)
                            : -1;
            const PtxTargets *table = found < 0 ? NULL : &d->p->targets[found];
            for (int j = 0; table && j < table->n; j++) {
                int target = decode_label(d, table->labels[j], table->scope);
                if (target >= 0) edge(f, b, block_of[target]);
            }
            falls = 0;
        } else if (definedness_is(in, "ret") || definedness_is(in, "exit")) {
            falls = in->guard >= 0;
        }
        if (falls && b + 1 < n_blocks) edge(f, b, b + 1);
    }
}

static void count_edge(Flow *f, int from, int to)
{
    (void)from;
    f->first[to + 1]++;
}

static void put_edge(Flow *f, int from, int to)
{
    f->preds[f->first[to]++] = from;
}

static void find_flow(const Decoder *d, const int *block_of, int n_blocks, Flow *f)
{
    f->n = n_blocks;
    f->first = memory_array((size_t)n_blocks + 2, sizeof(int));
    each_edge(d, block_of, n_blocks, count_edge, f);
    for (int b = 0; b <= n_blocks; b++) f->first[b + 1] += f->first[b];
    f->preds = memory_array((size_t)f->first[n_blocks] + 1, sizeof(int));
    each_edge(d, block_of, n_blocks, put_edge, f);
    for (int b = n_blocks; b > 0; b--) f->first[b] = f->first[b - 1];
    f->first[0] = 0;
}

/* From reads of a register back to the entry. stamp: by block, 1 + the register where it was visited for
 * it, the negative where it sets the register. */
typedef struct {
    Places sets, reads;
    Flow flow;
    int *stamp, *stack;
    int64_t *steps;
} Search;

/* Does a path without a setting lead from the entry to a read of the register? */
static int reaches_entry(Search *s, int reg)
{
    int depth = 0, mark = reg + 1;
    for (int i = s->sets.head[reg]; i >= 0; i = s->sets.next[i]) s->stamp[s->sets.block[i]] = -mark;
    for (int i = s->reads.head[reg]; i >= 0; i = s->reads.next[i]) {
        int b = s->reads.block[i];
        if (b == 0) return 1;
        if (s->stamp[b] == mark) continue;
        if (s->stamp[b] != -mark) s->stamp[b] = mark; /* else it may set it behind the read */
        s->stack[depth++] = b;
        while (depth) {
            int at = s->stack[--depth];
            for (int e = s->flow.first[at]; e < s->flow.first[at + 1]; e++) {
                int p = s->flow.preds[e];
                if (++*s->steps > STEPS_MAX) return 1;
                if (s->stamp[p] == mark || s->stamp[p] == -mark) continue;
                if (p == 0) return 1;
                s->stamp[p] = mark;
                s->stack[depth++] = p;
            }
        }
    }
    return 0;
}

static int first_read(const Places *reads, int reg)
{
    int first = 0;
    for (int i = reads->head[reg]; i >= 0; i = reads->next[i]) first = reads->inst[i];
    return first;
}

/* Gives slots to the registers that may be read before they are set. */
void definedness_seeds(Decoder *d, const unsigned char *leader)
{
    Definedness *k = d->definedness;
    Search s = {.steps = &k->steps};
    int n_blocks = 0, *block_of = memory_array((size_t)d->p->n_insts + 1, sizeof(int));
    for (int i = 0; i <= d->p->n_insts; i++)
        block_of[i] = leader[i] || !i ? n_blocks++ : n_blocks - 1;
    places_init(&s.sets, k->n_registers);
    places_init(&s.reads, k->n_registers);
    find_places(d, k, block_of, &s.sets, &s.reads);
    find_flow(d, block_of, n_blocks, &s.flow);
    s.stamp = memory_array((size_t)n_blocks + 1, sizeof(int));
    s.stack = memory_array((size_t)n_blocks + 1, sizeof(int));
    for (int r = 0; r < k->n_registers; r++) {
        int is_parameter = r >= k->first_word && r < k->first_word + k->n_parameters;
        if (s.reads.head[r] < 0 || is_parameter || !reaches_entry(&s, r)) continue;
        definedness_give_slot(d, r, (uint32_t)first_read(&s.reads, r));
        d->f->n_undefined++;
    }
    places_release(&s.sets);
    places_release(&s.reads);
    free(s.flow.first);
    free(s.flow.preds);
    free(block_of);
    free(s.stamp);
    free(s.stack);
}
