/* Post-dominators as in Cooper, Harvey and Kennedy, on the reversed graph. A branch decides whether a block
 * runs that post-dominates one of its successors, and not the branch itself. */
#include "eval/sim/ptx/ptx_flow.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static int is_exit(const PtxInst *in)
{
    return !strcmp(in->op, "ret") || !strcmp(in->op, "exit") || !strcmp(in->op, "trap");
}

static int ends_block(const PtxInst *in)
{
    return is_exit(in) || !strcmp(in->op, "bra") || !strcmp(in->op, "brx");
}

static void find_blocks(const PtxFunction *f, Flow *out)
{
    unsigned char *leads = memory_alloc((size_t)f->n_insts + 2);
    leads[0] = 1;
    for (int i = 0; i < f->n_labels; i++) leads[f->labels[i].inst] = 1;
    for (int i = 0; i < f->n_insts; i++)
        if (ends_block(&f->insts[i])) leads[i + 1] = 1;
    out->block_of = memory_array((size_t)f->n_insts + 1, sizeof(int));
    for (int i = 0; i < f->n_insts; i++) out->n += leads[i];
    out->blocks = memory_array((size_t)out->n + 1, sizeof *out->blocks);
    for (int i = 0, b = -1; i < f->n_insts; i++) {
        if (leads[i]) out->blocks[++b].first = i;
        out->blocks[b].last = i + 1;
        out->block_of[i] = b;
    }
    free(leads);
}

/* The block behind a label; -1: none. */
static int labelled(const PtxFunction *f, const Flow *flow, const PtxInst *in)
{
    const PtxOperand *o = in->n_operands ? &in->operands[0] : NULL;
    int label = o && o->kind == OPND_NAME ? ptx_find_label(f, o->name, in->scope) : -1;
    if (label < 0) return -1;
    int at = f->labels[label].inst;
    return at < f->n_insts ? flow->block_of[at] : flow->n;
}

static int find_ends(const PtxFunction *f, Flow *flow)
{
    for (int b = 0; b < flow->n; b++) {
        FlowBlock *k = &flow->blocks[b];
        const PtxInst *in = &f->insts[k->last - 1];
        k->end = ENDS_FALL;
        k->target = flow->n;
        if (!ends_block(in)) continue;
        if (!strcmp(in->op, "brx")) return -1;
        if (!is_exit(in) && (k->target = labelled(f, flow, in)) < 0) return -1;
        k->end = in->guard >= 0 ? ENDS_BRANCH : is_exit(in) ? ENDS_EXIT : ENDS_JUMP;
    }
    return 0;
}

int flow_successors(const Flow *f, int b, int out[2])
{
    const FlowBlock *k = &f->blocks[b];
    int n = 0;
    if (k->end != ENDS_FALL) out[n++] = k->target;
    if (k->end == ENDS_FALL || k->end == ENDS_BRANCH) out[n++] = b + 1;
    return n;
}

typedef struct {
    int *first, *from; /* predecessors */
    int *order, *number, n_order;
    int *above; /* the immediate post-dominator */
} Order;

static void find_predecessors(const Flow *f, Order *o)
{
    int to[2], *at = memory_array((size_t)f->n + 2, sizeof(int));
    o->first = memory_array((size_t)f->n + 3, sizeof(int));
    o->from = memory_array(2 * (size_t)f->n + 1, sizeof(int));
    for (int b = 0; b < f->n; b++)
        for (int i = flow_successors(f, b, to); i-- > 0;) o->first[to[i] + 1]++;
    for (int b = 0; b <= f->n; b++) o->first[b + 1] += o->first[b];
    memcpy(at, o->first, ((size_t)f->n + 1) * sizeof *at);
    for (int b = 0; b < f->n; b++)
        for (int i = flow_successors(f, b, to); i-- > 0;) o->from[at[to[i]]++] = b;
    free(at);
}

/* Reverse postorder from the exit. */
static void number_blocks(const Flow *f, Order *o)
{
    int *stack = memory_array((size_t)f->n + 2, sizeof(int)),
        *next = memory_array((size_t)f->n + 2, sizeof(int)), depth = 0, post = f->n;
    o->order = memory_array((size_t)f->n + 2, sizeof(int));
    o->number = memory_array((size_t)f->n + 2, sizeof(int));
    for (int b = 0; b <= f->n; b++) o->number[b] = -1;
    stack[depth++] = f->n;
    o->number[f->n] = 0;
    next[f->n] = o->first[f->n];
    while (depth) {
        int b = stack[depth - 1];
        if (next[b] == o->first[b + 1]) {
            o->order[post--] = b;
            depth--;
            continue;
        }
        int p = o->from[next[b]++];
        if (o->number[p] >= 0) continue;
        o->number[p] = 0;
        next[p] = o->first[p];
        stack[depth++] = p;
    }
    o->n_order = f->n - post;
    memmove(o->order, o->order + post + 1, sizeof(int) * (size_t)o->n_order);
    for (int i = 0; i < o->n_order; i++) o->number[o->order[i]] = i;
    free(stack);
    free(next);
}

static int meet(const Order *o, int a, int b)
{
    while (a != b) {
        while (o->number[a] > o->number[b]) a = o->above[a];
        while (o->number[b] > o->number[a]) b = o->above[b];
    }
    return a;
}

static void dominate(const Flow *f, Order *o)
{
    int to[2];
    o->above = memory_array((size_t)f->n + 2, sizeof(int));
    for (int b = 0; b <= f->n; b++) o->above[b] = -1;
    o->above[f->n] = f->n;
    for (int changed = 1; changed;) {
        changed = 0;
        for (int i = 1; i < o->n_order; i++) {
            int b = o->order[i], best = -1;
            for (int k = flow_successors(f, b, to); k-- > 0;)
                if (o->number[to[k]] >= 0 && o->above[to[k]] >= 0)
                    best = best < 0 ? to[k] : meet(o, to[k], best);
            if (best < 0 || o->above[b] == best) continue;
            o->above[b] = best;
            changed = 1;
        }
    }
}

/* Visits the pairs of a block and a branch that decides whether it runs. at NULL: counts them, else notes
 * them there. */
static void visit_deciding(Flow *f, int *at)
{
    int to[2];
    for (int b = 0; b < f->n; b++) {
        if (f->blocks[b].end != ENDS_BRANCH) continue;
        for (int k = flow_successors(f, b, to); k-- > 0;)
            for (int x = to[k]; x < f->n && x != f->blocks[b].join; x = f->blocks[x].join) {
                if (at)
                    f->deciding[at[x]++] = b;
                else
                    f->deciding_first[x + 1]++;
            }
    }
}

int flow_find(const PtxFunction *f, Flow *out)
{
    Order o = {0};
    int rc;
    memset(out, 0, sizeof *out);
    find_blocks(f, out);
    if (find_ends(f, out)) return -1;
    find_predecessors(out, &o);
    number_blocks(out, &o);
    dominate(out, &o);
    /* A block that no path leads from to the exit is in an endless loop. */
    for (int b = 0; b < out->n; b++) out->blocks[b].join = o.above[b] < 0 ? out->n : o.above[b];
    rc = o.n_order <= out->n ? -1 : 0;
    out->deciding_first = memory_array((size_t)out->n + 2, sizeof(int));
    visit_deciding(out, NULL);
    for (int b = 0; b < out->n; b++) out->deciding_first[b + 1] += out->deciding_first[b];
    out->deciding = memory_array((size_t)out->deciding_first[out->n] + 1, sizeof(int));
    int *at = memory_array((size_t)out->n + 1, sizeof(int));
    memcpy(at, out->deciding_first, (size_t)out->n * sizeof *at);
    visit_deciding(out, at);
    free(at);
    free(o.first);
    free(o.from);
    free(o.order);
    free(o.number);
    free(o.above);
    return rc;
}

void flow_release(Flow *f)
{
    free(f->blocks);
    free(f->block_of);
    free(f->deciding_first);
    free(f->deciding);
    memset(f, 0, sizeof *f);
}
