/* Which results share a kernel. */
#include "generate/together.h"

#include <stdlib.h>

#include "base/memory.h"
#include "generate/convolve.h"
#include "generate/layout.h"
#include "generate/product.h"

/* Kernels that read and write less than SMALL_BYTES together take about as long as a launch, 2 to 3 us on an
 * H200 (2026-11-30). More than JOINED_STEPS steps leave a thread few registers for loads in flight. */
enum { SMALL_BYTES = 1 << 20, JOINED_STEPS = 120 };

static double bytes_of(const Nodes *n, int node)
{
    const Node *x = &n->node[node];
    return (double)node_count(x).at[0] * (double)dtype_size(x->dtype);
}

static int is_read(const Kernel *k, int step)
{
    return k->nodes->node[k->step[step].node].stored && k->step[step].arg[0] < 0;
}

static int reads(const Kernel *k, int node)
{
    for (int i = 0; i < k->n; i++)
        if (is_read(k, i) && k->step[i].node == node) return 1;
    return 0;
}

/* The bytes of the tensors that a kernel reads, of all or of those that the other one reads, too. */
static double bytes_read(const Kernel *k, const Kernel *too)
{
    double bytes = 0;
    for (int i = 0; i < k->n; i++) {
        const int node = k->step[i].node;
        int seen = !is_read(k, i) || (too && !reads(too, node));
        for (int j = 0; j < i && !seen; j++) seen = is_read(k, j) && k->step[j].node == node;
        if (!seen) bytes += bytes_of(k->nodes, node);
    }
    return bytes;
}

/* 1: what both read is half of what one of them reads, a launch is what they cost, or one reads what the
 * other one makes: a norm of a sum that is a result, too, has the sum in registers. */
static int is_worth(const Kernel *k, const Kernel *own)
{
    const double a = bytes_read(k, NULL), b = bytes_read(own, NULL), shared = bytes_read(k, own);
    const double result =
        bytes_of(k->nodes, k->root[0].node) + bytes_of(k->nodes, own->root[0].node);
    return 2 * shared >= (a < b ? a : b) || a + b + result <= SMALL_BYTES ||
           reads(own, k->root[0].node);
}

/* 1: a kernel without folds reads memory along another axis than it writes: it brings tiles of it through
 * shared memory, and has one result. */
static int turns(const Kernel *k)
{
    const Index *to = &k->root[0].at;
    for (int i = 0; i < k->n && !k->has_folds; i++)
        for (int a = 0; a < k->axes.n && is_read(k, i); a++) {
            const Size by = k->step[i].at.by[a];
            if (size_is(to->by[a], 1) && !size_is(by, 0) && !size_is(by, 1)) return 1;
        }
    return 0;
}

static int is_simple(const Kernel *k)
{
    const Node *x = &k->nodes->node[k->root[0].node];
    return k->n_roots == 1 && k->scan < 0 && x->pair < 0 && !turns(k) &&
           (x->kind == NODE_POINT || x->kind == NODE_FOLD);
}

static int state_of(const Together *t, int node)
{
    return node < t->n_done ? t->done[node] : 0;
}

/* 1: all that a kernel reads lies in memory, but for the node `made`, which is computed beside it. */
static int is_ready(const Kernel *k, const Together *t, int made)
{
    for (int i = 0; i < k->n; i++)
        if (is_read(k, i) && k->nodes->node[k->step[i].node].kind != NODE_INPUT &&
            k->step[i].node != made && state_of(t, k->step[i].node) != NODE_WRITTEN)
            return 0;
    return 1;
}

/* The parts of a fold that lie in memory by themselves, or the node. */
static int parts_of(const Nodes *n, int node)
{
    for (int i = 0; i < n->n; i++)
        if (n->node[i].parts && n->node[i].whole == node) return i;
    return node;
}

/* 1: results of as many elements, or one of them of one for each row that the other one's kernel may fold. */
static int agree(const Kernel *k, const Kernel *own)
{
    const Node *x = &k->nodes->node[k->root[kernel_largest(k)].node],
               *y = &k->nodes->node[own->root[0].node];
    const Size a = node_count(x), b = node_count(y);
    if (size_same(a, b)) return 1;
    return !x->parts && !y->parts &&
           (size_less(a, b) ? own->has_folds || reads(own, k->root[0].node)
                            : size_less(b, a) && (k->has_folds || own->has_folds));
}

/* What is to be written beside the kernel's result for another node, which is itself or the parts of its
 * fold; own: its kernel alone. -1: nothing. */
static int find_other(const Kernel *k, const Together *t, int node, Kernel *own)
{
    Error unused;
    MatrixProduct m;
    ProductJoin j;
    int rc = 1;
    node = parts_of(k->nodes, node);
    for (int tries = 0; tries < 2 && rc > 0; tries++) {
        const int parts = k->nodes->node[k->root[0].node].parts;
        if (state_of(t, node) == NODE_WRITTEN || node == k->root[0].node) return -1;
        rc = kernel_trace(own, k->nodes, node, &unused);
        if (rc < 0) return -1;
        if (rc > 0) node = own->wanted;
        if (rc > 0 && (!parts || k->nodes->node[node].parts != parts)) return -1;
    }
    const Node *x = &k->nodes->node[node], *y = &k->nodes->node[k->root[0].node];
    if (rc || x->parts != y->parts || !agree(k, own)) return -1;
    if (!is_simple(own) || !is_ready(own, t, k->root[0].node) || layout_apart(own) >= 0) return -1;
    if (x->parts && convolve_folded(k->nodes, node, &m) >= 0) return -1;
    product_join(own, &j);
    return j.n ? -1 : node;
}

/* 1: a fold of the kernel's largest result should lie in memory. */
static int is_apart(Kernel *both)
{
    const int n = both->n_roots;
    both->root[KERNEL_ROOTS] = both->root[0];
    both->root[0] = both->root[kernel_largest(both)], both->n_roots = 1;
    const int apart = layout_apart(both) >= 0;
    both->root[0] = both->root[KERNEL_ROOTS], both->n_roots = n;
    return apart;
}

/* Traces a kernel of several results: 1 if it can be written. */
static int fits(Nodes *n, const int *root, int n_roots, const Together *t, Kernel *both)
{
    Error unused;
    return !kernel_trace_together(both, n, root, n_roots, &unused) && both->n <= JOINED_STEPS &&
           both->scan < 0 && is_ready(both, t, -1) && !kernel_is_stale(both) && !is_apart(both);
}

static int is_wanted(Nodes *n, int node)
{
    char key[GRAPH_NAME];
    node_key(n, node, key);
    return genes_choose(n->genes, key, &(GenePoint){.gene = GENE_JOIN, .by_default = 1, .most = 1});
}

void together_join(Kernel *k, const Together *t)
{
    int root[KERNEL_ROOTS] = {k->root[0].node}, n = 1;
    if (!t->n_other || !is_simple(k)) return;
    Kernel *own = memory_alloc(sizeof *own), *both = memory_alloc(sizeof *both);
    for (int i = 0; i < t->n_other && n < KERNEL_ROOTS; i++) {
        if (t->only_stored && !k->nodes->node[t->other[i]].stored) continue;
        const int node = find_other(k, t, t->other[i], own);
        int known = node < 0;
        for (int r = 0; r < n && !known; r++) known = root[r] == node;
        if (known || !is_worth(k, own)) continue;
        root[n] = node;
        if (!fits(k->nodes, root, n + 1, t, both) || !is_wanted(k->nodes, node)) continue;
        *k = *both;
        n++;
    }
    free(own);
    free(both);
}
