/* Which values lie in memory, and the kernels and op lines that write them, in order.
 * Over 800 lines: all steps share one plan. */
#include "generate/first.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "generate/attended.h"
#include "generate/convolve.h"
#include "generate/depthwise.h"
#include "generate/kernel.h"
#include "generate/layout.h"
#include "generate/packing.h"
#include "generate/recurrence.h"
#include "generate/small.h"
#include "generate/together.h"

/* In a graph of MANY_NODES kernels repeat, and have parameters of the same names. */
enum { MANY_NODES = 24, MOST_KERNELS = 2048, SOURCE_MAX = 250 * 1024 };

typedef struct {
    Nodes nodes;
    Buffer plan, source;
    KernelText text;
    unsigned char *done; /* by node: NODE_BEGUN, or NODE_WRITTEN: its elements are in memory */
    Attended *attended;  /* those of the graph that are kernels */
    int n_attended;
    unsigned char *view; /* by value of the graph: an op line of it is written */
    int *kernels;        /* by node: how many kernels compute it for results of theirs */
    int *uses;   /* by line of the graph: kernels, op lines and outputs that read its result */
    int counted; /* uses are those of a plan in which products are op lines */
    Estimate *estimate; /* of the kernels; NULL: none is asked for */
    int room, n_kernels, n_lines;
    int *
        made; /* results of the kernels of the plan that counts, of the graph's first n_given nodes */
    int n_made, n_given, joins; /* joins: kernels may have several results */
    unsigned char *shared;      /* by such a node: it lies in memory, as the counting plan says */
    int n_shared;
    Plain *plain; /* kernels are plain ones; NULL: they are not */
    int given;    /* convolutions keep the order of elements that they were given */
    Error *err;
} Plan;

static Node *node_at(Plan *p, int i)
{
    return &p->nodes.node[i];
}

static int is_output(const Plan *p, int node)
{
    for (int i = 0; i < p->nodes.graph->n_outputs; i++)
        if (p->nodes.output[i] == node) return 1;
    return 0;
}

/* ---- names ---- */

/* A name in the plan for a node that lies in memory: of the graph's value that it is, if there is one. */
static void choose_name(Plan *p, int node)
{
    Node *x = node_at(p, node);
    char own[GRAPH_NAME], name[GRAPH_NAME];
    node_key(&p->nodes, node, own);
    snprintf(name, sizeof name, "%s", own);
    for (int i = 1; node_name_taken(&p->nodes, name); i++)
        snprintf(name, sizeof name, "%.50s_%d", own, i);
    snprintf(x->name, sizeof x->name, "%s", name);
}

static void store(Plan *p, int node)
{
    if (node_at(p, node)->stored && *node_at(p, node)->name) return;
    choose_name(p, node);
    node_at(p, node)->stored = 1;
}

/* ---- outputs ---- */

static int no_expression(Plan *p, int value)
{
    return error_set(p->err, ERROR_UNSUPPORTED, "the shape of %s is no expression over the axes",
                     p->nodes.graph->name[value]);
}

/* Each output is a node of its own in memory, with the task's name. */
static int name_outputs(Plan *p)
{
    const Task *t = p->nodes.sizes->task;
    for (int i = 0; i < p->nodes.graph->n_outputs; i++) {
        int at = p->nodes.output[i];
        const Node *x = node_at(p, at);
        if (x->kind == NODE_VIEW || x->kind == NODE_INPUT || x->stored != (x->kind == NODE_KEPT) ||
            (x->kind == NODE_KEPT &&
             strcmp(x->name, p->nodes.graph->name[p->nodes.graph->output[i]])) ||
            is_output(p, at) != 1) {
            if (p->nodes.sizes->odd[p->nodes.graph->output[i]])
                return no_expression(p, p->nodes.graph->output[i]);
            at = node_point(&p->nodes, "a", x->dtype, at, -1);
        }
        for (int k = 0; k < i; k++)
            if (p->nodes.output[k] == at) at = node_point(&p->nodes, "a", x->dtype, at, -1);
        p->nodes.output[i] = at;
        node_at(p, at)->stored = 1;
        snprintf(node_at(p, at)->name, GRAPH_NAME, "%s", t->outputs[i].name);
    }
    return 0;
}

/* ---- op lines ---- */

static void grow(Plan *p)
{
    if (p->nodes.n <= p->room) return;
    int room = 2 * p->nodes.n;
    p->done = memory_grow(p->done, (size_t)room, 1);
    p->kernels = memory_grow(p->kernels, (size_t)room, sizeof *p->kernels);
    memset(p->done + p->room, 0, (size_t)(room - p->room));
    memset(p->kernels + p->room, 0, (size_t)(room - p->room) * sizeof *p->kernels);
    p->room = room;
}

static int put_line(Plan *p, int line);
static int write_node(Plan *p, int node);
static int put_buffer(Plan *p, int node);

static const GraphValue *value_at(const Plan *p, int value)
{
    return &p->nodes.sizes->bound[0]->values[value];
}

/* The attention that a kept node is, where the plan has a kernel for it. */
static Attended *attention_at(const Plan *p, int node)
{
    for (int i = 0; i < p->n_attended; i++)
        if (p->attended[i].of == node) return &p->attended[i];
    return NULL;
}

/* The product that a kept node is, where the plan has a kernel for it. */
static int is_product(const Plan *p, int node, MatrixProduct *m)
{
    if (!p->counted || attention_at(p, node) || !product_read(&p->nodes, node, m)) return 0;
    product_choose(&p->nodes, m, 0);
    return m->route != ROUTE_LIBRARY;
}

/* The recurrent layers of which a kept node is a result, where the plan has kernels for them. */
static int is_recurrence(const Plan *p, int node, Recurrence *r)
{
    return recurrence_read(&p->nodes, node, r) && recurrence_choose(&p->nodes, r);
}

/* The name under which an op line reads a node. A buffer has one dimension; a view gives it the node's
 * shape. */
static const char *shaped_name(Plan *p, int node)
{
    Node *x = node_at(p, node);
    char text[SIZE_TEXT], dense[GRAPH_NAME];
    MatrixProduct m;
    Recurrence r;
    SmallProduct s;
    if (x->kind == NODE_KEPT && x->last) return x->shaped;
    int kept = x->kind == NODE_KEPT && !attention_at(p, node) && !is_product(p, node, &m) &&
               !is_recurrence(p, node, &r) && !small_read(&p->nodes, node, &s);
    if (x->kind == NODE_INPUT || kept || x->rank == 1 || is_output(p, node)) return x->name;
    if (*x->shaped) return x->shaped;
    snprintf(x->shaped, sizeof x->shaped, "%.50s_shaped", x->name);
    snprintf(dense, sizeof dense, x->last ? "%.50s_dense" : "%.50s_shaped", x->name);
    buffer_printf(&p->plan, "//@ op %s = aten.view(%s, [", dense, x->name);
    for (int d = 0; d < x->rank; d++) {
        if (size_text(p->nodes.sizes, x->size[d], text, p->err)) return NULL;
        buffer_printf(&p->plan, "%s%s", d ? ", " : "", text);
    }
    buffer_puts(&p->plan, "])\n");
    p->n_lines++;
    if (x->last) layout_put_permuted(&p->plan, x->shaped, x->rank, dense, 0);
    p->n_lines += x->last;
    return x->shaped;
}

/* 1: an op line reads a value by the line of a view of memory that is written once. Others are copied. */
static int is_line_view(Plan *p, int value, int node)
{
    const Node *x = node_at(p, node);
    const GraphValue *v = value_at(p, value);
    return x->kind == NODE_VIEW && !x->stored && !p->nodes.versions[v->base] && v->base != value &&
           v->node >= 0;
}

/* The memory of a line's result is read. */
static void note_use(Plan *p, int node)
{
    const Node *x = node_at(p, node);
    if (x->kind == NODE_VIEW && !x->stored) x = node_at(p, x->arg[0]);
    if (x->kind == NODE_KEPT && !p->counted) p->uses[x->line]++;
}

/* Writes what an op line's tensor needs, and returns its name. */
static const char *need(Plan *p, int value, int node)
{
    const GraphValue *v = value_at(p, value);
    note_use(p, node);
    if (is_line_view(p, value, node)) {
        if (!p->view[value] && put_line(p, v->node)) return NULL;
        const GraphCall *c = &p->nodes.sizes->bound[0]->calls[v->node];
        for (int i = 0; i < c->call.n_results; i++) p->view[p->nodes.graph->first[v->node] + i] = 1;
        return p->nodes.graph->name[value];
    }
    if (p->nodes.sizes->odd[value] && node_at(p, node)->kind != NODE_KEPT) {
        no_expression(p, value);
        return NULL;
    }
    store(p, node);
    return write_node(p, node) ? NULL : shaped_name(p, node);
}

/* The nodes of a line's tensors as they are when it runs. */
static int operand_node(Plan *p, int line, int i)
{
    const GraphCall *c = &p->nodes.sizes->bound[0]->calls[line];
    return p->nodes.kept[line] ? p->nodes.kept[line][i] : nodes_value(&p->nodes, c->in[i]);
}

static void store_operands(Plan *p, int line, unsigned char *seen);
static void store_needed(Plan *p, int node, unsigned char *seen);

static void store_attended(Plan *p, const Attended *a, unsigned char *seen)
{
    for (int x = 0; x < ATTENDS; x++) {
        store_needed(p, a->side[x].node, seen);
        store(p, a->side[x].node);
    }
}

/* Stores what the op lines that a node needs read, before any kernel is traced: no kernel computes it once
 * more. */
static void store_needed(Plan *p, int node, unsigned char *seen)
{
    const Node x = *node_at(p, node);
    if (seen[node]) return;
    seen[node] = 1;
    for (int i = 0; i < 3; i++)
        if (x.arg[i] >= 0) store_needed(p, x.arg[i], seen);
    const Attended *a = attention_at(p, node);
    if (a) store_attended(p, a, seen);
    if (x.kind == NODE_KEPT && !a) store_operands(p, x.line, seen);
}

static void store_operands(Plan *p, int line, unsigned char *seen)
{
    const GraphCall *c = &p->nodes.sizes->bound[0]->calls[line];
    for (int i = 0; i < c->call.n_tensors; i++) {
        int node = p->nodes.kept[line] ? p->nodes.kept[line][i] : -1;
        if (node < 0) continue;
        store_needed(p, node, seen);
        if (!is_line_view(p, c->in[i], node)) store(p, node);
    }
}

static int find_names(Plan *p, int line, const char **name)
{
    const GraphCall *c = &p->nodes.sizes->bound[0]->calls[line];
    for (int i = 0; i < c->call.n_tensors; i++) {
        int node = operand_node(p, line, i);
        grow(p);
        if (node < 0 && p->nodes.kept[line]) { /* a bias that is added later */
            name[i] = "None";
            continue;
        }
        name[i] = node < 0 ? NULL : need(p, c->in[i], node);
        if (!name[i] && node < 0)
            return error_set(p->err, ERROR_UNSUPPORTED, "a tensor without contents");
        if (!name[i]) return -1;
    }
    return 0;
}

static const char *result_name(Plan *p, int line, int value)
{
    for (int i = 0; i < p->nodes.n; i++) {
        const Node *x = node_at(p, i);
        if (x->kind == NODE_KEPT && x->line == line && x->value == value)
            return x->last ? x->shaped : x->name;
    }
    return p->nodes.graph->name[value];
}

static void put_line_text(Plan *p, int line, const char *const *name)
{
    const Graph *g = p->nodes.graph;
    const GraphCall *c = &p->nodes.sizes->bound[0]->calls[line];
    int text = 0, results = 1;
    buffer_puts(&p->plan, "//@ op ");
    for (const char *at = g->text[line]; *at;) {
        size_t n = 1;
        if (*at == '\'') text = !text;
        if (*at == '=') results = 0;
        if (text || !(isalpha((unsigned char)*at) || *at == '_')) {
            buffer_append(&p->plan, at++, 1);
            continue;
        }
        while (isalnum((unsigned char)at[n]) || at[n] == '_' || at[n] == '.') n++;
        int value = graph_find(g, at, n);
        char plain[NODE_WORD], word[NODE_WORD];
        snprintf(word, sizeof word, "%.*s", (int)n, at);
        node_plain_name(word, plain);
        const char *to = value >= 0 && results ? result_name(p, line, value) : NULL;
        for (int i = 0; i < c->call.n_tensors && value >= 0 && !to; i++)
            if (c->in[i] == value) to = name[i];
        if (c->call.op->flags & OP_IN_PLACE && !results && !strncmp(word, "aten.", 5)) to = plain;
        buffer_append(&p->plan, to ? to : at, to ? strlen(to) : n);
        at += n;
    }
    buffer_puts(&p->plan, "\n");
    p->n_lines++;
}

static int put_line(Plan *p, int line)
{
    const char *name[OP_MAX_TENSORS];
    if (find_names(p, line, name)) return -1;
    put_line_text(p, line, name);
    return 0;
}

/* ---- what a kernel needs ---- */

static int may_be_stored(const Plan *p, int node)
{
    const Node *x = &p->nodes.node[node];
    return (x->kind == NODE_POINT || x->kind == NODE_FOLD) && !x->parts && x->pair < 0 &&
           !is_output(p, node);
}

static int choose_stored(Plan *p, int node, int by_default)
{
    char key[GRAPH_NAME];
    node_key(&p->nodes, node, key);
    return genes_choose(p->nodes.genes, key,
                        &(GenePoint){.gene = GENE_STORE, .by_default = by_default, .most = 1});
}

/* Scans that a node is made of lie in memory no more, unless they do already: its own kernel has them. */
static void unstore_scans(Plan *p, int node, unsigned char *seen)
{
    Node *x = node_at(p, node);
    if (seen[node]) return;
    seen[node] = 1;
    if (x->kind == NODE_SCAN && x->stored && !p->done[node] && !is_output(p, node)) {
        x->stored = 0, x->name[0] = 0;
        return;
    }
    if (x->stored || (x->kind != NODE_POINT && x->kind != NODE_VIEW)) return;
    for (int i = 0; i < 3; i++)
        if (x->arg[i] >= 0) unstore_scans(p, x->arg[i], seen);
}

/* Stores what a kernel would compute anew for many elements. 1: it has to be traced again. */
static int store_costly(Plan *p, const Kernel *k)
{
    const int node = p->plain ? -1 : estimate_costly(k);
    if (node < 0 || !may_be_stored(p, node) || !choose_stored(p, node, 1)) return 0;
    unsigned char *seen = memory_array((size_t)p->nodes.n, 1);
    unstore_scans(p, node, seen);
    free(seen);
    store(p, node);
    return 1;
}

/* What lies in memory for the fold of a pair: the one point of as many elements that both are needed for, and
 * nothing else of either; else the fold. */
static int point_of_pair(const Plan *p, int fold)
{
    const Nodes *n = &p->nodes;
    int found = -1, others = n->node[fold].pair < 0 || n->node[fold].parts;
    unsigned char *same = memory_array((size_t)n->n, 1); /* the same elements as one of the two */
    for (int i = 0; i < n->n && !others; i++) {
        const Node *x = &n->node[i];
        int reads = 0, all = x->kind == NODE_POINT;
        same[i] = i == fold || i == n->node[fold].pair;
        others |= same[i] && is_output(p, i);
        for (int a = 0; a < 3; a++) {
            reads |= x->arg[a] >= 0 && same[x->arg[a]];
            all &= x->arg[a] < 0 || same[x->arg[a]];
        }
        if (!reads || same[i]) continue;
        const int whole = size_same(node_count(x), node_count(&n->node[fold]));
        same[i] = x->kind == NODE_VIEW && whole && !is_output(p, i);
        others |= !same[i] && (!all || !whole || found >= 0);
        if (!same[i]) found = i;
    }
    free(same);
    return found >= 0 && !others ? found : fold;
}

/* Traces a kernel, and stores what has to lie in memory before. */
static int trace_whole(Plan *p, int node, Kernel *k)
{
    for (int tries = 0; tries < 64; tries++) {
        int rc = kernel_trace(k, &p->nodes, node, p->err);
        const int apart = rc || p->plain ? -1 : layout_apart(k);
        grow(p);
        if (apart >= 0) k->wanted = apart;
        if (!rc && apart < 0 && store_costly(p, k)) continue;
        if (!rc && apart < 0) return 0;
        if (rc < 0) return rc;
        k->wanted = p->plain || rc <= 0 ? k->wanted : point_of_pair(p, k->wanted);
        int pair = node_at(p, k->wanted)->pair;
        store(p, p->plain ? k->wanted : layout_stored(&p->nodes, k->wanted));
        if (pair >= 0 && layout_apart(k) >= 0) store(p, pair); /* one kernel computes both */
        if (k->wanted == node) return error_set(p->err, ERROR_UNSUPPORTED, "a fold of folds");
    }
    return error_set(p->err, ERROR_UNSUPPORTED, "a kernel that is never whole");
}

/* 1: a step reads memory that is no product's of the kernel. */
static int is_needed(const Plan *p, const Kernel *k, const ProductJoin *j, int step)
{
    const int joined = (j->n > 0 && step == j->step[0]) || (j->n > 1 && step == j->step[1]);
    return p->nodes.node[k->step[step].node].stored && k->step[step].arg[0] < 0 && !joined;
}

/* Writes what a kernel reads, and the factors of the products that are made in it. */
static int write_needed(Plan *p, const Kernel *k, const ProductJoin *j)
{
    for (int i = 0; i < k->n; i++)
        if (is_needed(p, k, j, i) && write_node(p, k->step[i].node)) return -1;
    for (int i = 0; i < j->n * PRODUCT_OPERANDS; i++) {
        int x = i % PRODUCT_OPERANDS, node = j->m[i / PRODUCT_OPERANDS].side[x].node;
        if (x == PRODUCT_C || node < 0) continue;
        store(p, node);
        if (write_node(p, node)) return -1;
    }
    return 0;
}

static void note_needed(Plan *p, const Kernel *k, const ProductJoin *j)
{
    for (int i = 0; i < k->n; i++)
        if (is_needed(p, k, j, i)) note_use(p, k->step[i].node);
}

/* ---- products ---- */

/* The kernel of products, and of what follows them in k. */
static int put_product(Plan *p, const ProductJoin *j, Kernel *k)
{
    if (++p->n_kernels > MOST_KERNELS)
        return error_set(p->err, ERROR_UNSUPPORTED, "more than %d kernels", MOST_KERNELS);
    p->text.number = p->n_kernels;
    if (p->estimate)
        estimate_add_product(p->estimate, k, product_us(&p->nodes, j) * product_left(k, j),
                             product_launches(j));
    return product_write(j, k, &p->text, p->err);
}

/* Names and buffers for the statistics that a product's kernel makes. */
static int put_statistics(Plan *p, const MatrixProduct *m)
{
    for (int i = 0; i < 3 && m->stat[0]; i++) {
        store(p, m->stat[i]);
        p->done[m->stat[i]] = NODE_WRITTEN;
        if (put_buffer(p, m->stat[i])) return -1;
    }
    return 0;
}

/* A product, with what makes `body` of its elements, which others read from memory: as node `of`. That may be
 * the parts of a fold, or what a join makes of a pool. With statistics they are of `body`. */
static int write_product(Plan *p, int of, int body, const ProductJoin *made)
{
    const MatrixProduct *m = &made->m[0];
    int at = node_point(&p->nodes, "a", node_at(p, body)->dtype, body, -1), rc;
    Kernel *k = memory_alloc(sizeof *k);
    grow(p);
    node_at(p, at)->stored = 1;
    memcpy(node_at(p, at)->name, node_at(p, of)->name, GRAPH_NAME);
    ProductJoin j = {0};
    do {
        rc = trace_whole(p, at, k);
        if (!rc) product_join(k, &j);
        if (!rc && !j.n) rc = error_set(p->err, ERROR_UNSUPPORTED, "a product in other dimensions");
        if (!rc) rc = write_needed(p, k, &j);
    } while (!rc && kernel_is_stale(k));
    j.m[0] = *m;
    j.after = made->after, j.pooled = made->pooled;
    if (of == body && m->convolution && p->counted)
        node_at(p, of)->packed = j.m[0].packed = convolve_packed(&p->nodes, of);
    if (!rc) note_needed(p, k, &j);
    if (!rc) rc = put_statistics(p, m) || put_product(p, &j, k) || put_buffer(p, of) ? -1 : 0;
    free(k);
    return rc;
}

/* Finds the products that no other kernel needs. */
static void joined_products(const Plan *p, const Kernel *k, ProductJoin *j)
{
    int n = 0;
    j->n = 0;
    if (p->counted) product_join(k, j);
    for (int i = 0; i < j->n; i++) {
        MatrixProduct m;
        if (p->uses[p->nodes.node[j->m[i].of].line] != 1 || attention_at(p, j->m[i].of) ||
            convolve_measured(&p->nodes, j->m[i].of, &m) >= 0)
            continue;
        j->m[n] = j->m[i];
        j->step[n++] = j->step[i];
    }
    j->n = n;
    if (n) product_choose(&p->nodes, &j->m[0], n);
    if (n && j->m[0].route == ROUTE_LIBRARY) j->n = 0;
}

/* How many nodes read one. */
static int count_readers(const Plan *p, int node)
{
    int n = 0;
    for (int i = 0; i < p->n_given; i++) {
        const int *arg = p->nodes.node[i].arg;
        n += arg[0] == node || arg[1] == node || arg[2] == node;
    }
    return n;
}

/* What a kernel computes of each window of a pool, which a convolution's kernel folds and nothing else
 * reads, is that kernel's. Returns what is pooled; -1: there is no such pool. */
static int joined_pool(const Plan *p, const Kernel *k, ProductJoin *j)
{
    for (int i = 0; i < k->n && p->counted && k->n_roots == 1 && !k->has_folds; i++) {
        const int node = k->step[i].node;
        const Node *x = &p->nodes.node[node];
        if (x->kind != NODE_FOLD || k->step[i].arg[0] >= 0 || p->done[node] || is_output(p, node) ||
            count_readers(p, node) != 1 || !index_same(&k->step[i].at, &k->root[0].at) ||
            !convolve_pools(&p->nodes, node) || convolve_packed(&p->nodes, k->root[0].node))
            continue;
        j->n = 1, j->step[0] = j->pooled = i;
        return convolve_folded(&p->nodes, node, &j->m[0]);
    }
    return -1;
}

/* ---- attention ---- */

/* Traces the scores; what they need is stored and written. */
static int trace_scores(Plan *p, Attended *a, Kernel *k)
{
    attention_scores(&p->nodes, a);
    int at = node_point(&p->nodes, "a", DTYPE_F32, a->scores, -1);
    ProductJoin j = {0};
    j.n = 1;
    for (int x = 0; x < PRODUCT_OPERANDS; x++) j.m[0].side[x].node = -1;
    do {
        j.step[0] = trace_whole(p, at, k) ? -1 : attention_step(a, k);
        if (j.step[0] < 0)
            return error_set(p->err, ERROR_UNSUPPORTED, "scores in other dimensions");
        if (write_needed(p, k, &j)) return -1;
    } while (kernel_is_stale(k));
    note_needed(p, k, &j);
    return j.step[0];
}

static int write_attention(Plan *p, Attended *a)
{
    double library;
    for (int x = 0; x < ATTENDS; x++) note_use(p, a->side[x].node);
    for (int x = 0; x < ATTENDS; x++)
        if (write_node(p, a->side[x].node)) return -1;
    Kernel *k = memory_alloc(sizeof *k);
    int step = trace_scores(p, a, k), rc = step < 0 ? -1 : put_buffer(p, a->of);
    if (!rc && ++p->n_kernels > MOST_KERNELS)
        rc = error_set(p->err, ERROR_UNSUPPORTED, "more than %d kernels", MOST_KERNELS);
    p->text.number = p->n_kernels;
    if (!rc) rc = attention_write(a, k, step, &p->text, p->err);
    if (!rc && p->estimate)
        estimate_add_product(p->estimate, k, attention_us(a, node_at(p, a->of)->dtype, &library),
                             4);
    free(k);
    return rc;
}

/* ---- recurrent layers ---- */

/* Writes what the layers read, and finds the names of it. */
static int find_recurrent(Plan *p, const Recurrence *r, RecurrenceNames *names)
{
    const GraphCall *c = &p->nodes.sizes->bound[0]->calls[r->line];
    for (int i = 0; i < c->call.n_tensors; i++) {
        int node = operand_node(p, r->line, i);
        grow(p);
        if (node < 0) return error_set(p->err, ERROR_UNSUPPORTED, "a tensor without contents");
        if (recurrence_multiplies(r, i)) {
            names->tensor[i] = need(p, c->in[i], node);
        } else {
            store(p, node);
            names->tensor[i] = write_node(p, node) ? NULL : node_at(p, node)->name;
        }
        if (!names->tensor[i]) return -1;
    }
    return 0;
}

static int write_recurrence(Plan *p, const Recurrence *r)
{
    RecurrenceNames names = {0};
    const int first = p->nodes.graph->first[r->line];
    int rc = find_recurrent(p, r, &names), node = -1;
    for (int i = 0; i < p->nodes.n && !rc; i++) {
        const Node *x = node_at(p, i);
        if (x->kind != NODE_KEPT || x->line != r->line) continue;
        p->done[i] = NODE_BEGUN;
        if (!value_at(p, x->value)->live && !is_output(p, i)) continue;
        names.result[x->value - first] = x->name;
        rc = put_buffer(p, i);
        node = i;
    }
    if (rc) return rc;
    p->text.number = ++p->n_kernels;
    p->n_kernels += r->call.layers - (r->shape.teams ? 0 : 1);
    if (p->estimate)
        estimate_add_call(p->estimate, &p->nodes, node, recurrence_us(r), r->call.layers);
    return recurrence_write(r, &names, p->nodes.sizes, &p->text, &p->n_lines, p->err);
}

static int write_small(Plan *p, const SmallProduct *s)
{
    for (int x = 0; x < 2; x++) {
        store(p, s->node[x]);
        if (write_node(p, s->node[x])) return -1;
    }
    if (put_buffer(p, s->of)) return -1;
    if (++p->n_kernels > MOST_KERNELS)
        return error_set(p->err, ERROR_UNSUPPORTED, "more than %d kernels", MOST_KERNELS);
    p->text.number = p->n_kernels;
    if (p->estimate) estimate_add_call(p->estimate, &p->nodes, s->of, small_us(s), 1);
    return small_write(s, &p->nodes, &p->text, p->err);
}

static int write_kept(Plan *p, int node)
{
    MatrixProduct m;
    Recurrence r;
    SmallProduct s;
    if (attention_at(p, node)) return write_attention(p, attention_at(p, node));
    if (is_product(p, node, &m)) {
        const int of = convolve_measured(&p->nodes, node, &m);
        return write_product(p, node, of < 0 ? node : of, &(ProductJoin){.m = {m}});
    }
    if (is_recurrence(p, node, &r)) return write_recurrence(p, &r);
    if (small_read(&p->nodes, node, &s)) return write_small(p, &s);
    int line = node_at(p, node)->line;
    for (int i = 0; i < p->nodes.n; i++)
        if (p->nodes.node[i].kind == NODE_KEPT && p->nodes.node[i].line == line)
            p->done[i] = NODE_BEGUN;
    if (put_line(p, line)) return -1;
    const Node *x = node_at(p, node);
    if (!x->last) return 0;
    char dense[GRAPH_NAME];
    snprintf(dense, sizeof dense, "%.50s_dense", x->name);
    layout_put_permuted(&p->plan, dense, x->rank, x->shaped, 1);
    buffer_printf(&p->plan, "//@ op %s = aten.contiguous(%s)\n", x->name, dense);
    p->n_lines += 2;
    return 0;
}

/* ---- kernels ---- */

static int put_buffer(Plan *p, int node)
{
    char text[SIZE_TEXT];
    const Node *x = node_at(p, node);
    if (is_output(p, node)) return 0;
    buffer_printf(&p->plan, "//@ buffer %s %s[", dtype_ctype(x->dtype), x->name);
    if (x->packed) {
        if (packing_put_count(&p->nodes, node, &p->plan, p->err)) return -1;
    } else {
        if (size_text(p->nodes.sizes, node_count(x), text, p->err)) return -1;
        buffer_puts(&p->plan, text);
    }
    buffer_puts(&p->plan, "]\n");
    return 0;
}

/* Notes what a kernel computes on the way to its results. */
static void count_computed(Plan *p, const Kernel *k)
{
    for (int i = 0; i < k->n; i++) {
        int node = k->step[i].node, seen = node == k->root[0].node;
        for (int j = 0; j < i; j++) seen |= k->step[j].node == node;
        if (!seen && !(node_at(p, node)->stored && k->step[i].arg[0] < 0)) p->kernels[node]++;
    }
}

static int write_text(Plan *p, Kernel *k)
{
    if (p->plain) return p->plain->write(k, &p->text, p->err);
    const int rc = layout_write(k, &p->text, p->err);
    return rc ? (rc < 0 ? -1 : 0) : kernel_write(k, &p->text, p->err);
}

/* The results of a kernel of the plan that counts; without products the next plan has the same ones. Parts
 * stand for their fold. */
static void note_made(Plan *p, int node)
{
    if (node_at(p, node)->parts) node = node_at(p, node)->whole;
    if (p->joins || p->plain || node >= p->n_given) return;
    p->made = memory_grow(p->made, (size_t)p->n_made + 1, sizeof *p->made);
    p->made[p->n_made++] = node;
}

/* Gives a kernel those other results that read what it reads. */
static void join_others(Plan *p, Kernel *k)
{
    if (!p->joins) return;
    together_join(k, &(Together){p->made, p->done, p->n_made, p->room, p->counted});
    grow(p);
}

/* A kernel whose one result convolutions read: as they read it. 1: done; 0: they pack it, or nothing does. */
static int write_packed(Plan *p, int node, Kernel *k, ProductJoin *j)
{
    const int pointwise = !j->n && !k->has_folds && packing_fits(k);
    const PackedLayout layout =
        pointwise || (j->n && j->m[0].convolution) ? convolve_packed(&p->nodes, node) : PACKED_NOT;
    if (!layout) return 0;
    count_computed(p, k);
    node_at(p, node)->packed = j->m[0].packed = layout;
    if (put_buffer(p, node)) return -1;
    if (j->n) return put_product(p, j, k) ? -1 : 1;
    p->text.number = ++p->n_kernels;
    return packing_write(k, layout, &p->text, p->err) ? -1 : 1;
}

static int write_computed(Plan *p, int node)
{
    Kernel *k = memory_alloc(sizeof *k);
    ProductJoin j = {0};
    int rc, pooled = -1;
    do {
        rc = trace_whole(p, node, k);
        if (!rc) joined_products(p, k, &j);
        pooled = rc || j.n ? -1 : joined_pool(p, k, &j);
        if (!rc) rc = write_needed(p, k, &j);
    } while (!rc && p->done[node] != NODE_WRITTEN && kernel_is_stale(k));
    if (!rc && p->done[node] == NODE_WRITTEN) return free(k), 0; /* with what it reads */
    if (!rc) note_needed(p, k, &j);
    if (!rc && pooled >= 0) {
        j.after = k;
        count_computed(p, k);
        rc = write_product(p, node, pooled, &j);
        return free(k), rc;
    }
    const int packed = rc || !p->counted ? 0 : write_packed(p, node, k, &j);
    if (packed) return free(k), packed < 0 ? -1 : 0;
    if (!rc && j.n) {
        count_computed(p, k);
        rc = put_buffer(p, node) || put_product(p, &j, k) ? -1 : 0;
        free(k);
        return rc;
    }
    if (!rc && ++p->n_kernels > MOST_KERNELS)
        rc = error_set(p->err, ERROR_UNSUPPORTED, "more than %d kernels", MOST_KERNELS);
    if (!rc) {
        note_made(p, node);
        join_others(p, k);
        count_computed(p, k);
        kernel_merge(k);
        p->text.number = p->n_kernels;
        for (int r = 0; r < k->n_roots && !rc; r++) {
            store(p, k->root[r].node);
            p->done[k->root[r].node] = NODE_WRITTEN;
            rc = put_buffer(p, k->root[r].node);
        }
        if (!rc) rc = write_text(p, k);
    }
    free(k);
    return rc;
}

static int write_node(Plan *p, int node)
{
    grow(p);
    const Node *x = node_at(p, node);
    if (p->done[node] || x->kind == NODE_INPUT) return 0;
    p->done[node] = NODE_BEGUN;
    if (x->kind != NODE_KEPT && !*x->name) store(p, node);
    if (x->by >= 0) return write_node(p, x->by);
    MatrixProduct m;
    const int body = x->parts || (x->kind == NODE_FOLD && convolve_pools(&p->nodes, node))
                         ? convolve_folded(&p->nodes, node, &m)
                         : -1;
    const int rc = x->kind == NODE_KEPT ? write_kept(p, node)
                   : body >= 0          ? write_product(p, node, body, &(ProductJoin){.m = {m}})
                                        : write_computed(p, node);
    grow(p);
    if (!rc) p->done[node] = NODE_WRITTEN;
    return rc;
}

/* ---- the schedule ---- */

/* Stores the values that the schedule names, and those that are shared. */
static void store_given(Plan *p)
{
    const Genes *g = p->nodes.genes;
    char key[GRAPH_NAME];
    for (int i = 0; i < p->nodes.n; i++) {
        if (!may_be_stored(p, i) || node_at(p, i)->stored) continue;
        if (p->shared && p->shared[i]) {
            if (choose_stored(p, i, 1)) store(p, i);
            continue;
        }
        node_key(&p->nodes, i, key);
        if (!g) continue;
        for (int k = 0; k < g->n_given; k++)
            if (g->given[k].gene == GENE_STORE && g->given[k].value &&
                !strcmp(g->given[k].of, key) && choose_stored(p, i, 0))
                store(p, i);
    }
}

/* What may be stored: what two kernels compute, and folds on the way to a result. */
static void offer_stored(Plan *p)
{
    for (int i = 0; i < p->nodes.n; i++)
        if (may_be_stored(p, i) && !node_at(p, i)->stored &&
            (p->kernels[i] > 1 || (p->kernels[i] && node_at(p, i)->kind == NODE_FOLD) ||
             (p->kernels[i] && p->plain && node_at(p, i)->value >= 0)) &&
            !(p->shared && i < p->n_given && p->shared[i]))
            choose_stored(p, i, 0);
}

/* What an element of a value is made of: tensors in memory that are as large, each once. */
typedef struct {
    int at[16], n, kept; /* kept: some are results of op lines, or of products */
} Sources;

/* Adds the sources of a value. 0: it is made of more than pointwise operators, or of too many tensors. */
static int add_sources(const Plan *p, const unsigned char *shared, int node, Size whole, Sources *s)
{
    const Node *x = &p->nodes.node[node];
    if (x->stored || x->kind == NODE_INPUT || x->kind == NODE_KEPT || shared[node]) {
        if (!size_same(node_count(x), whole)) return 1; /* such as a row's weights */
        for (int i = 0; i < s->n; i++)
            if (s->at[i] == node) return 1;
        if (s->n == (int)(sizeof s->at / sizeof *s->at)) return 0;
        s->kept |= x->kind == NODE_KEPT;
        s->at[s->n++] = node;
        return 1;
    }
    if (x->kind != NODE_POINT && x->kind != NODE_VIEW) return 0;
    for (int i = 0; i < 3; i++)
        if (x->arg[i] >= 0 && !add_sources(p, shared, x->arg[i], whole, s)) return 0;
    return 1;
}

/* 1: three joined tensors or more: each tap of a window asks which one has it (2026-12-01, sim:h200: pools of
 * GoogLeNet 121 us, 22 with what stores the joined tensor; of two, SqueezeNet's, 1,390 and 1,420). */
static int is_joined(const Plan *p, int node)
{
    for (int n = 0; n < 2; n++) {
        const Node *x = &p->nodes.node[node];
        if (x->kind != NODE_POINT || !x->text || strcmp(x->text, "a ? b : c") || x->arg[2] < 0 ||
            p->nodes.node[x->arg[2]].kind != NODE_PAD)
            return 0;
        node = x->arg[1];
    }
    return 1;
}

/* What a view of more elements than it has, such as windows that overlap, reads, if it is joined, or made of
 * one product alone that has a kernel: that stores it, where each tap would compute it anew. -1: none. */
static int made_for_windows(Plan *p, int view)
{
    const Node *x = &p->nodes.node[view],
               *of = x->kind == NODE_VIEW ? &p->nodes.node[x->arg[0]] : x;
    if (x->kind != NODE_VIEW || node_count(x).at[0] <= node_count(of).at[0]) return -1;
    const int at = of->kind == NODE_PAD ? of->arg[0] : x->arg[0];
    Sources s = {.n = 0};
    MatrixProduct m;
    if (p->nodes.node[at].kind != NODE_POINT || !may_be_stored(p, at) || p->nodes.node[at].stored ||
        !p->kernels[at])
        return -1;
    if (is_joined(p, at)) return at;
    if (!add_sources(p, p->shared, at, node_count(&p->nodes.node[at]), &s) || s.n != 1 || !s.kept ||
        p->uses[p->nodes.node[s.at[0]].line] != 1 || !product_read(&p->nodes, s.at[0], &m))
        return -1;
    product_choose(&p->nodes, &m, 1);
    return m.route == ROUTE_LIBRARY ? -1 : at;
}

/* Sums of a product and of what was there before, which several kernels would add up anew: the
 * stream of a network's residuals. Where such a value lies in memory, the next layers read it alone,
 * layers that are alike have equal kernels, and a product may write it (2026-11-30, sim:h200: two
 * layers of 8192 x 1024 in bfloat16 take 134 us, and 167 without). */
static void find_shared(Plan *p)
{
    unsigned char *shared = p->shared = memory_array((size_t)p->n_given + 1, 1);
    for (int i = 0; i < p->n_given; i++) {
        const int before = made_for_windows(p, i);
        if (before >= 0 && !shared[before]) shared[before] = 1, p->n_shared++;
    }
    for (int i = 0; i < p->n_given; i++) {
        const Node *x = &p->nodes.node[i];
        Sources s = {.n = 0};
        if (x->kind != NODE_POINT || x->value < 0 || x->stored || p->kernels[i] < 2 ||
            !may_be_stored(p, i) || count_readers(p, i) < 2)
            continue;
        shared[i] = add_sources(p, shared, i, node_count(x), &s) && s.kept && s.n > 1;
        p->n_shared += shared[i];
    }
}

static void find_attention(Plan *p)
{
    const int n = p->nodes.n;
    for (int i = 0; i < n; i++) {
        Attended a;
        if (!attention_read(&p->nodes, i, &a) || !attention_choose(&p->nodes, &a)) continue;
        p->attended = memory_grow(p->attended, (size_t)p->n_attended + 1, sizeof *p->attended);
        p->attended[p->n_attended++] = a;
    }
}

/* A plan may have so many buffers. */
static int check_buffers(const Plan *p)
{
    int n = 0;
    for (const char *at = p->plan.data; (at = strstr(at, "//@ buffer ")); at++) n++;
    return n > GENERATE_BUFFERS ? error_set(p->err, ERROR_UNSUPPORTED,
                                            "a plan of %d buffers, at most %d", n, GENERATE_BUFFERS)
                                : 0;
}

/* Writes the plan and the source. */
static int write_plan(Plan *p, SizeTable *sizes, Genes *genes)
{
    const Graph *g = size_graph(sizes->task);
    p->nodes.genes = genes;
    p->nodes.plain = p->plain;
    if (nodes_read(&p->nodes, sizes, p->err)) return -1;
    depthwise_nodes(&p->nodes);
    if (!p->plain && !p->given) layout_nodes(&p->nodes);
    if (!p->plain) convolve_statistics(&p->nodes);
    p->nodes.plain_names = g->n_nodes > MANY_NODES;
    buffer_init(&p->plan, SOURCE_MAX);
    buffer_init(&p->source, SOURCE_MAX);
    p->text = (KernelText){.plan = &p->plan, .source = &p->source, .estimate = p->estimate};
    p->view = memory_array((size_t)g->n_values + 1, 1);
    grow(p);
    if (!p->plain) find_attention(p);
    store_given(p);
    if (name_outputs(p)) return -1;
    p->n_given = p->nodes.n;
    unsigned char *seen = memory_array((size_t)p->nodes.n + 1, 1);
    for (int i = 0; i < g->n_outputs; i++) store_needed(p, p->nodes.output[i], seen);
    free(seen);
    int rc = 0;
    for (int i = 0; i < g->n_outputs && !rc; i++) {
        note_use(p, p->nodes.output[i]);
        rc = write_node(p, p->nodes.output[i]);
    }
    offer_stored(p);
    packing_put_launches(&p->text);
    product_buffers(&p->text);
    if (!rc && (p->plan.full || p->source.full))
        rc = error_set(p->err, ERROR_UNSUPPORTED, "a source of more than %d bytes", SOURCE_MAX);
    return rc ? rc : check_buffers(p);
}

static void close_plan(Plan *p)
{
    if (p->nodes.graph) nodes_free(&p->nodes);
    buffer_release(&p->plan);
    buffer_release(&p->source);
    for (int i = 0; i < p->text.n_seen; i++) free(p->text.seen[i].text);
    free(p->text.seen);
    free(p->attended);
    free(p->view);
    free(p->done);
    free(p->kernels);
}

/* Counts what reads each product. The plan's own choices are not those of the one that counts. 1: there is a
 * product with a kernel of its own. */
static int count_uses(Plan *p, SizeTable *sizes, const Genes *genes)
{
    Genes own = {0};
    if (p->plain) return 0;
    MatrixProduct m;
    int found = 0;
    if (genes) own.n_given = genes->n_given, own.given = genes->given;
    int rc = write_plan(p, sizes, genes ? &own : NULL);
    for (int i = 0; i < p->nodes.n && !rc && !found; i++) found = product_read(&p->nodes, i, &m);
    if (found && !p->shared) find_shared(p);
    close_plan(p);
    free(own.point);
    return rc ? rc : found;
}

/* The plan and the source, behind the lines of the schedule, which plain kernels have not. */
static void put_whole(const Plan *p, const Genes *genes, Generated *out)
{
    const char *between = p->plain ? "" : "\n";
    Buffer whole;
    buffer_init(&whole, 3 * SOURCE_MAX);
    if (genes && !p->plain) genes_write(genes, &whole);
    buffer_printf(&whole, "%s%s", p->plan.data, between);
    plain_headers(p->source.data, p->plain != NULL, &whole);
    buffer_printf(&whole, "%s%s", between, p->source.data);
    *out = (Generated){
        .source = buffer_detach(&whole), .n_kernels = p->n_kernels, .n_lines = p->n_lines};
    buffer_release(&whole);
}

/* Every operator as it is in eager PyTorch, for a graph that the generator cannot write. */
static void put_eager(const Task *t, const Error *why, Generated *out)
{
    Buffer whole;
    buffer_init(&whole, 3 * SOURCE_MAX);
    buffer_printf(&whole, "// All operators stay as they are: %s.\n%s", why->text,
                  t->baseline_source);
    *out = (Generated){.source = buffer_detach(&whole), .n_lines = t->graph->n_nodes};
    snprintf(out->why, sizeof out->why, "%s", why->text);
    buffer_release(&whole);
}

static int write_whole(SizeTable *sizes, Plan *p, Genes *genes, Generated *out)
{
    const size_t lines = (size_t)size_graph(sizes->task)->n_nodes + 1;
    Plan own = *p;
    p->uses = own.uses = memory_array(lines, sizeof *p->uses);
    p->estimate = NULL;
    int rc = count_uses(p, sizes, genes);
    if (rc > 0 && p->n_shared) { /* once more, with these in memory */
        Plan again = own;
        memset(own.uses, 0, lines * sizeof *own.uses);
        free(p->made);
        again.estimate = NULL;
        again.shared = p->shared;
        *p = again;
        rc = count_uses(p, sizes, genes);
    }
    own.counted = rc > 0;
    own.made = p->made, own.n_made = p->n_made, own.joins = !p->plain;
    own.shared = p->shared;
    *p = own;
    if (rc >= 0) rc = write_plan(p, sizes, genes);
    if (!rc) put_whole(p, genes, out);
    return rc;
}

static int generate(const Task *task, Plan *p, Genes *genes, Generated *out)
{
    SizeTable *sizes = memory_alloc(sizeof *sizes);
    *out = (Generated){0};
    int open = !size_open(sizes, task, p->err);
    int rc = open ? write_whole(sizes, p, genes, out) : -1;
    free(p->uses);
    free(p->made);
    free(p->shared);
    if (open) close_plan(p), size_close(sizes);
    free(sizes);
    return rc;
}

int generate_first(const Task *task, Genes *genes, Estimate *estimate, Generated *out, Error *err)
{
    Plan p = {.estimate = estimate, .err = err};
    if (!task->graph) return error_set(err, ERROR_UNSUPPORTED, "task %s has no graph", task->name);
    const int points = genes ? genes->n : 0;
    int rc = generate(task, &p, genes, out);
    if (rc &&
        err->code == ERROR_UNSUPPORTED) { /* such as too many buffers, of which layouts need more */
        Plan given = {.estimate = estimate, .given = 1, .err = err};
        if (estimate) estimate_clear(estimate);
        if (genes) genes->n = points;
        rc = generate(task, &given, genes, out);
    }
    if (rc && (err->code == ERROR_UNSUPPORTED || err->code == ERROR_INVALID) &&
        !(genes && genes->n_given)) {
        if (estimate) estimate_clear(estimate);
        put_eager(task, err, out);
        rc = 0;
    }
    return rc ? error_prefix(err, "task %s", task->name) : 0;
}

int generate_plain(const Task *task, Genes *genes, Plain *plain, Generated *out, Error *err)
{
    Plan p = {.plain = plain, .err = err};
    memset(plain->places, 0, sizeof plain->places);
    return generate(task, &p, genes, out) ? error_prefix(err, "task %s", task->name) : 0;
}
