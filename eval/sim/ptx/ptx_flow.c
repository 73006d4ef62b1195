/* A branch decides whether a block runs that post-dominates one of its successors, and not the branch
 * itself. */
#include "eval/sim/ptx/ptx_flow.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/sim/ptx/postdominate.h"

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

/* Fills in the joins. Returns -1 when no path leads from some block to the exit: it is in an endless loop. */
static int find_joins(Flow *f)
{
    int *first = memory_array((size_t)f->n + 1, sizeof(int)),
        *edges = memory_array(2 * (size_t)f->n + 1, sizeof(int)), rc = 0;
    for (int b = 0; b < f->n; b++)
        first[b + 1] = first[b] + flow_successors(f, b, edges + first[b]);
    int *above = postdominate(f->n, first, edges);
    for (int b = 0; b < f->n; b++) {
        f->blocks[b].join = above[b] < 0 ? f->n : above[b];
        if (above[b] < 0) rc = -1;
    }
    free(first);
    free(edges);
    free(above);
    return rc;
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
    memset(out, 0, sizeof *out);
    find_blocks(f, out);
    if (find_ends(f, out)) return -1;
    int rc = find_joins(out);
    out->deciding_first = memory_array((size_t)out->n + 2, sizeof(int));
    visit_deciding(out, NULL);
    for (int b = 0; b < out->n; b++) out->deciding_first[b + 1] += out->deciding_first[b];
    out->deciding = memory_array((size_t)out->deciding_first[out->n] + 1, sizeof(int));
    int *at = memory_array((size_t)out->n + 1, sizeof(int));
    memcpy(at, out->deciding_first, (size_t)out->n * sizeof *at);
    visit_deciding(out, at);
    free(at);
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
