/* Each part of a kernel's time is counted alone; the longest counts, and a share of the next one. */
#include "generate/estimate.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "generate/fold_text.h"

/* Rates that no profile has: how many bytes of L2 a sector holds, the share of L2 that a second pass finds
 * its rows in, instructions of a loop's step, of a call of a function such as expf, and of a quotient. */
enum { SECTOR = 32, STEP_COST = 8, CALL_COST = 12, DIVISION_COST = 8, BASE_REGISTERS = 26 };
static const double l2_share = 0.5, second_share = 0.25, kept_share = 0.6;

/* The kernel's loops over threads. columns: of the longest pass over a row. */
typedef struct {
    double rows, columns, threads, blocks, a_thread; /* a_thread: vectors of a row */
    double resident;                                 /* blocks of a multiprocessor */
} Shape;

typedef struct {
    double dram, l2, instructions, latency; /* latency: cycles of a block */
    double flight;                          /* bytes that a thread has in flight */
} Work;

static double size_of(const Writer *w, unsigned axes)
{
    double n = 1;
    for (int i = 0; i < w->k->axes.n; i++)
        if (axes >> i & 1) n *= (double)w->k->axes.size[i].at[0];
    return n;
}

static double parts_of(const Writer *w)
{
    return w->part < 0 ? 1 : w->k->nodes->node[w->k->root[0].node].parts;
}

static double registers(const Writer *w)
{
    double n = BASE_REGISTERS;
    for (int i = 0; i < w->k->n; i++) {
        if (!is_load(w, i)) continue;
        double bytes = (double)dtype_size(node_of(w, i)->dtype);
        n += fmax(1, w->vec * bytes / 4) * (w->keep ? 1 : w->items);
        if (w->kept[i]) n += fmax(1, w->vec * bytes / 4) * w->keep;
    }
    return n;
}

static Shape shape_of(const Writer *w, const Profile *p)
{
    Shape s = {.rows = 1, .columns = size_of(w, w->columns) / parts_of(w)};
    if (w->k->has_folds) {
        s.columns = (double)writer_longest_pass(w);
        s.rows = size_of(w, w->k->rows);
        s.a_thread = ceil(s.columns / w->lanes / w->vec);
        s.threads = writer_threads(w);
        double rows = w->turned       ? TURNED_SIDE * TURNED_SIDE
                      : w->strip >= 0 ? 32
                      : w->lanes > 32 ? 1
                                      : w->block / w->lanes;
        s.blocks = ceil(s.rows / rows);
    } else {
        s.threads = w->block;
        s.rows = w->slices ? size_of(w, w->k->rows) : 1;
        s.a_thread = w->items;
        s.blocks = s.rows * ceil(s.columns / w->block / w->vec / w->items);
    }
    double by_threads = floor(p->threads_per_sm / s.threads),
           by_registers = floor(p->registers_per_sm / fmin(255, registers(w)) / s.threads);
    s.resident = fmax(1, fmin(fmin(by_threads, by_registers), p->blocks_per_sm));
    return s;
}

/* What the passes over a row do. times: in how many a step is needed, where a load that stays in registers is
 * needed once; elements: of all these passes together; columns: of all passes. */
typedef struct {
    double times[KERNEL_STEPS], elements[KERNEL_STEPS], columns;
} Row;

static void add_pass(const Writer *w, const Pass *p, double columns, Row *r)
{
    unsigned char set[KERNEL_STEPS];
    writer_needed(w, p, set);
    for (int i = 0; i < w->k->n; i++) {
        const int folds = p->level && writer_takes_part(w, p, i);
        if (!folds && (!set[i] || !in_columns(w, i) || (w->kept[i] && r->times[i] > 0))) continue;
        r->times[i]++;
        r->elements[i] += columns;
    }
    r->columns += columns;
}

/* Folds over different axes are passes of their own. */
static void count_passes(const Writer *w, Row *r)
{
    const Kernel *k = w->k;
    const int most = writer_passes(w);
    int stores = 0;
    *r = (Row){0};
    for (int level = 1; level <= most; level++)
        for (int i = 0; i < k->n; i++) {
            const Pass p = {level, k->step[i].over};
            int first = writer_takes_part(w, &p, i);
            for (int j = 0; j < i && first; j++) first = !writer_takes_part(w, &p, j);
            if (first) add_pass(w, &p, size_of(w, p.over & w->columns) / parts_of(w), r);
        }
    for (int i = 0; i < k->n_roots; i++) stores |= in_columns(w, k->root[i].step);
    const Pass last = {0, w->columns};
    if (stores) add_pass(w, &last, size_of(w, writer_stored(w)) / parts_of(w), r);
}

/* Bytes that L2 hands over for a useful one. */
static double waste_at(const Writer *w, const Index *at, double bytes)
{
    int along = w->strip >= 0 ? w->strip : w->last;
    if (along < 0 || size_is(at->by[along], 1) || size_is(at->by[along], 0)) return 1;
    return SECTOR / bytes;
}

/* The same of a load; vectors with what lies between are read once for all that take of them. */
static double waste(const Writer *w, int step, double bytes)
{
    Index base;
    return w->vec > 1 && writer_spacing(w, step, &base) ? 1
                                                        : waste_at(w, &w->k->step[step].at, bytes);
}

double point_work(const char *text)
{
    double n = 1;
    unsigned char before = ' ';
    for (; text && *text; before = (unsigned char)*text++)
        if (*text == '(' && isalnum(before))
            n += strchr("fhw", before) ? 2 * CALL_COST : CALL_COST; /* erf, tanh, pow */
        else if (*text == '/')
            n += DIVISION_COST;
        else if (strchr("+*-<>?", *text))
            n++;
    return n;
}

static void count_loads(const Writer *w, const Shape *s, const Row *r, const Profile *p, Work *k)
{
    double elements = s->rows * s->columns, row_bytes = 0;
    for (int i = 0; i < w->k->n; i++)
        if (is_load(w, i) && in_columns(w, i))
            row_bytes += s->columns * (double)dtype_size(node_of(w, i)->dtype);
    double rows_at_once = fmin(s->rows, s->resident * p->sm_count * s->rows / s->blocks);
    int again = row_bytes * rows_at_once > l2_share * (double)p->l2_size;
    for (int i = 0; i < w->k->n; i++) {
        if (!is_load(w, i)) continue;
        const Step *step = &w->k->step[i];
        double bytes = (double)dtype_size(node_of(w, i)->dtype), own = size_of(w, step->axes),
               wide = waste(w, i, bytes);
        int by_column = in_columns(w, i);
        const double terms = size_of(w, step->axes & w->k->looped),
                     n = by_column ? s->rows * r->elements[i] : s->rows;
        k->dram += own * bytes * (again && own * 2 > elements ? fmax(1, r->times[i]) : 1);
        k->l2 += n * bytes * wide * terms;
        k->flight += by_column ? bytes * w->vec * (w->kept[i] ? w->keep : w->items) : 0;
        k->instructions += (by_column ? n / w->vec : n) * terms;
    }
}

static void count_rest(const Writer *w, const Shape *s, const Row *r, Work *k)
{
    for (int i = 0; i < w->k->n_roots; i++) {
        int step = w->k->root[i].step;
        double bytes = (double)dtype_size(w->k->nodes->node[w->k->root[i].node].dtype);
        double n = s->rows * (in_columns(w, step) ? size_of(w, writer_stored(w)) / parts_of(w) : 1);
        k->dram += n * bytes;
        k->l2 += n * bytes * (w->turned ? 1 : waste_at(w, &w->k->root[i].at, bytes));
        k->instructions += n / w->vec;
    }
    k->instructions += s->rows * r->columns / w->vec * STEP_COST;
    for (int i = 0; i < w->k->n; i++) {
        if (is_load(w, i)) continue;
        double n = s->rows * fmax(1, r->elements[i]);
        n *= size_of(w, w->k->step[i].axes & w->k->looped);
        k->instructions += n * (is_fold(w, i) ? 1 : point_work(node_of(w, i)->text));
    }
}

/* What a block waits for at least: its loads one after another, and its folds over lanes. */
static double block_cycles(const Writer *w, const Shape *s, const Profile *p)
{
    double passes = w->k->has_folds ? writer_passes(w) : 1,
           rounds = w->keep ? 1 : ceil(s->a_thread / w->items);
    double fold = log2(fmax(2, w->lanes)) * 30;
    if (w->lanes > 32 || w->strip >= 0) fold += 2 * p->barrier_cycles + s->threads / 32 * 4;
    double first = p->dram_cycles * rounds, again = w->keep ? 0 : p->l2_cycles * rounds;
    return first + (passes - 1) * again + (w->k->has_folds ? passes * fold : 0) + p->block_cycles +
           p->block_warp_cycles * s->threads / 32;
}

static double time_us(const Writer *w, const Profile *p)
{
    Shape s = shape_of(w, p);
    Work k = {0};
    Row r;
    count_passes(w, &r);
    count_loads(w, &s, &r, p, &k);
    count_rest(w, &s, &r, &k);
    double at_once = fmin(s.blocks, s.resident * p->sm_count);
    double flight = fmax(1, k.flight) * s.threads * at_once;
    double rate =
        fmin(p->dram_bytes_per_s * p->dram_efficiency, flight / (p->dram_cycles / p->clock_hz));
    double sms = fmin(p->sm_count, s.blocks);
    const double part[] = {
        k.dram / rate, k.l2 / p->l2_bytes_per_s, k.instructions / 32 / (sms * 3 * p->clock_hz),
        ceil(s.blocks / (s.resident * p->sm_count)) * block_cycles(w, &s, p) / p->clock_hz,
        s.blocks * p->block_interval / p->clock_hz};
    double most = 0, sum = 0, share = second_share;
    /* Where a block keeps a row, reads, folds and stores overlap those of other blocks alone. */
    if (w->keep) share = fmax(share, kept_share / fmin(s.resident, ceil(s.blocks / p->sm_count)));
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
        sum += part[i];
        if (part[i] > most) most = part[i];
    }
    return 1e6 * (most + share * (sum - most) + p->launch_s);
}

/* Of a load's elements those that no load before it reads: a tensor has each once, at however many places
 * it is read. */
static double new_elements(const Writer *w, int step)
{
    double left = (double)node_count(node_of(w, step)).at[0];
    for (int i = 0; i < step; i++)
        if (is_load(w, i) && w->k->step[i].node == w->k->step[step].node)
            left -= size_of(w, w->k->step[i].axes);
    return fmax(0, fmin(left, size_of(w, w->k->step[step].axes)));
}

static double light_us(const Writer *w, const Profile *p)
{
    double bytes = 0;
    for (int i = 0; i < w->k->n; i++)
        if (is_load(w, i)) bytes += new_elements(w, i) * (double)dtype_size(node_of(w, i)->dtype);
    for (int i = 0; i < w->k->n_roots; i++) {
        const Node *x = &w->k->nodes->node[w->k->root[i].node];
        bytes += (double)node_count(x).at[0] * (double)dtype_size(x->dtype);
    }
    return 1e6 * (bytes / (p->dram_bytes_per_s * p->dram_efficiency) + p->launch_s);
}

/* ---- all schedules of a kernel ---- */

typedef struct {
    const Writer *w;
    const Profile *gpu;
    Genes trial;
    KernelEstimate *out;
    GenePoint point[GENES];
    int n_points;
} Ranking;

static void clear_writer(Writer *w, const Writer *of, unsigned char *kept, unsigned char *defined)
{
    memset(kept, 0, KERNEL_STEPS);
    memset(defined, 0, KERNEL_STEPS);
    *w = (Writer){.k = of->k, .t = of->t, .err = of->err, .kept = kept, .defined = defined};
}

static double try_schedule(Ranking *r)
{
    unsigned char kept[KERNEL_STEPS], defined[KERNEL_STEPS];
    Writer w;
    Genes *own = r->w->k->nodes->genes;
    clear_writer(&w, r->w, kept, defined);
    r->trial.n = 0;
    r->w->k->nodes->genes = &r->trial;
    writer_schedule(&w);
    r->w->k->nodes->genes = own;
    return time_us(&w, r->gpu);
}

/* Keeps the fastest vector of each value of the first gene, the widths of a row or of a vector. */
static void keep_vector(Ranking *r, const GeneVector *v)
{
    KernelEstimate *k = r->out;
    int at = 0;
    for (; at < k->n_ranked; at++)
        if (k->ranked[at].value[0] == v->value[0]) break;
    if (at == ESTIMATE_RANKED || (at < k->n_ranked && k->ranked[at].us <= v->us)) return;
    if (at == k->n_ranked) k->n_ranked++;
    for (; at > 0 && k->ranked[at - 1].us > v->us; at--) k->ranked[at] = k->ranked[at - 1];
    k->ranked[at] = *v;
}

static void rank(Ranking *r, GeneVector *v)
{
    if (v->n == r->n_points) {
        v->us = try_schedule(r);
        keep_vector(r, v);
        return;
    }
    const GenePoint *p = &r->point[v->n];
    const GeneRow *row = gene_row(p->gene);
    v->gene[v->n] = p->gene;
    v->n++;
    for (int i = 0; i < row->n; i++) {
        if (!genes_allow(p, row->value[i])) continue;
        v->value[v->n - 1] = row->value[i];
        genes_give(&r->trial, r->out->of, p->gene, row->value[i]);
        rank(r, v);
    }
    v->n--;
}

/* The points of the kernel's text, that of its width first. */
static void find_points(Ranking *r)
{
    const Genes *g = r->w->k->nodes->genes;
    for (int i = 0; g && i < g->n; i++) {
        const GenePoint *p = &g->point[i];
        if (p->gene == GENE_STORE || p->gene == GENE_SPLIT || strcmp(p->of, r->out->of)) continue;
        r->point[r->n_points++] = *p;
        int last = r->n_points - 1;
        if (p->gene == GENE_LANES || (p->gene == GENE_ITEMS && !r->w->k->has_folds)) {
            r->point[last] = r->point[0];
            r->point[0] = *p;
        }
    }
}

/* ---- the operators of a kernel ---- */

static void add_op(KernelEstimate *out, const char *name)
{
    char word[80];
    size_t at = strlen(out->ops);
    if (!strncmp(name, "aten.", 5)) name += 5;
    snprintf(word, sizeof word, "%.*s", (int)strcspn(name, "."), name);
    const char *found = strstr(out->ops, word);
    size_t n = strlen(word);
    if (found && (found == out->ops || found[-1] == ' ') && (!found[n] || found[n] == ',')) return;
    if (at + n + 3 < sizeof out->ops)
        snprintf(out->ops + at, sizeof out->ops - at, "%s%s", at ? ", " : "", word);
}

static void find_ops(const Kernel *k, KernelEstimate *out)
{
    const GraphBound *b = k->nodes->sizes->bound[0];
    for (int i = 0; i < k->n; i++) {
        const Node *x = &k->nodes->node[k->step[i].node];
        int line = x->value < 0 ? -1 : b->values[x->value].node, read = k->step[i].arg[0] < 0;
        if (line < 0 || (read && x->stored && x->kind != NODE_KEPT)) continue;
        if (x->kind != NODE_KEPT || out->launches > 1) add_op(out, b->calls[line].call.op->name);
    }
}

static KernelEstimate *add_kernel(Estimate *m, const Kernel *k, const KernelEstimate *time)
{
    m->kernel = memory_grow(m->kernel, (size_t)m->n + 1, sizeof *m->kernel);
    KernelEstimate *out = &m->kernel[m->n++];
    *out = *time;
    snprintf(out->of, sizeof out->of, "%s", k->nodes->node[k->root[0].node].name);
    find_ops(k, out);
    return out;
}

void estimate_add(Estimate *m, const Writer *w)
{
    const KernelEstimate time = {
        .launches = 1, .us = time_us(w, m->gpu), .light_us = light_us(w, m->gpu)};
    Ranking r = {.w = w, .gpu = m->gpu, .out = add_kernel(m, w->k, &time)};
    if (!m->times_only) find_points(&r);
    if (r.n_points) rank(&r, &(GeneVector){0});
    genes_free(&r.trial);
}

void estimate_add_product(Estimate *m, const Kernel *k, double us, int launches)
{
    const KernelEstimate time = {.launches = launches, .us = us, .light_us = us};
    add_kernel(m, k, &time);
}

void estimate_add_call(Estimate *m, Nodes *n, int node, double us, int launches)
{
    Kernel *k = memory_alloc(sizeof *k);
    *k = (Kernel){.nodes = n, .n = 1, .n_roots = 1};
    k->step[0].node = k->root[0].node = node;
    k->step[0].arg[0] = -1;
    estimate_add_product(m, k, us, launches);
    free(k);
}

void estimate_clear(Estimate *m)
{
    free(m->kernel);
    m->kernel = NULL;
    m->n = 0;
}

/* ---- what is computed anew for many elements ---- */

/* A value is stored where each of its elements is computed OFTEN times and that takes COSTLY microseconds: a
 * launch has 2 to 3. THREADS: instructions of threads a second; NEAR_BYTES: bytes a second from L1 and L2
 * (2026-11-30, an H200: a gate of channels that each place computes, with an exponential and four quotients,
 * 149 us for 75 of memory; slopes times positions from two words of 64 bits each, 164 us for 17). */
enum { OFTEN = 32, COSTLY = 8, VECTOR = 4 };
static const double threads_a_second = 2.8e13, near_bytes_a_second = 1e13;
/* A smaller node is taken where it saves so much of what the best one does. */
static const double enough = 0.7;

static double elements_of(const Kernel *k, unsigned axes)
{
    double n = 1;
    for (int i = 0; i < k->axes.n; i++)
        if (axes >> i & 1) n *= (double)k->axes.size[i].at[0];
    return n;
}

/* What a step needs in the kernel, and itself. */
static void close_steps(const Kernel *k, int step, unsigned char *set)
{
    const Step *s = &k->step[step];
    const Condition *c = &k->condition[s->inside];
    const unsigned axes = index_axes(&s->at);
    if (set[step]) return;
    set[step] = 1;
    for (int i = 0; i < 3; i++)
        if (s->arg[i] >= 0) close_steps(k, s->arg[i], set);
    for (int i = 0; i < k->axes.n; i++)
        if (axes >> i & 1 && k->bound[i] >= 0) close_steps(k, k->bound[i], set);
    for (int i = 0; i < c->n; i++) close_steps(k, c->term[i].step, set);
}

/* 1: no other step than those of the set needs it. */
static int is_of_set(const Kernel *k, int step, const unsigned char *set)
{
    for (int i = 0; i < k->n; i++)
        for (int a = 0; a < 3 && !set[i]; a++)
            if (k->step[i].arg[a] == step) return 0;
    return 1;
}

/* 1: neighbouring threads take neighbouring rows, and what a step loads is the same for all of a warp. */
static int is_shared_by_warp(const Kernel *k, const Step *s)
{
    for (int i = 0; i < k->axes.n && k->has_folds; i++)
        if (size_is(k->root[0].at.by[i], 1) && k->rows >> i & 1) return !(s->axes >> i & 1);
    return 0;
}

/* Microseconds that a kernel saves if a step's elements lie in memory, all of its own being `all`. */
static double saved_us(const Kernel *k, int step, double all)
{
    const Nodes *n = k->nodes;
    unsigned char set[KERNEL_STEPS] = {0};
    double work = 0, bytes = -(double)dtype_size(n->node[k->step[step].node].dtype);
    close_steps(k, step, set);
    for (int i = 0; i < k->n; i++) {
        const Node *x = &n->node[k->step[i].node];
        if (!set[i] || (i != step && !is_of_set(k, i, set))) continue;
        if (k->has_folds && !(k->step[i].axes & ~k->rows)) continue; /* known for the whole row */
        if (x->stored && k->step[i].arg[0] < 0)
            bytes += (double)dtype_size(x->dtype);
        else
            work += point_work(x->kind == NODE_POINT ? x->text : NULL);
    }
    if (is_shared_by_warp(k, &k->step[step])) bytes = 0;
    if (!k->has_folds) work /= VECTOR; /* it is computed once for a vector */
    return 1e6 * all * (work / threads_a_second + bytes / near_bytes_a_second);
}

/* 1: a kernel of results alone whose rows are long: what is the same for a row is computed once. */
static int is_of_long_row(const Kernel *k, const Step *s)
{
    Size by = size_number(1);
    for (int i = 0; i < k->axes.n && !k->has_folds; i++) {
        if (!size_same(k->root[0].at.by[i], by) || s->axes >> i & 1 || size_is(k->axes.size[i], 1))
            continue;
        by = size_times(by, k->axes.size[i]);
        i = -1; /* the next axis of the row */
    }
    return by.at[0] >= LONG_SLICE;
}

/* 1: a library's result is read, in whose kernel the steps may be. */
static int reads_kept(const Kernel *k)
{
    for (int i = 0; i < k->n; i++)
        if (k->nodes->node[k->step[i].node].kind == NODE_KEPT) return 1;
    return 0;
}

/* 1: a step is a point that the kernel computes for far more elements than it has, all of these `all`. */
static int is_repeated(const Kernel *k, const Step *s, unsigned loops, double all)
{
    if (is_of_long_row(k, s)) return 0;
    const Node *x = &k->nodes->node[s->node];
    const double own = elements_of(k, s->axes & loops);
    return x->kind == NODE_POINT && !x->stored && s->arg[0] >= 0 && !s->inside && !s->level &&
           !s->scanned && !(s->axes & ~loops) && s->axes & ~(k->has_folds ? k->rows : 0) &&
           own * OFTEN <= all && own == (double)node_count(x).at[0];
}

int estimate_costly(const Kernel *k)
{
    unsigned loops = 0;
    double gain[KERNEL_STEPS], most = 0, least = 0;
    int found = -1;
    for (int i = 0; i < k->axes.n; i++)
        if (k->bound[i] < 0 && !(k->looped >> i & 1)) loops |= 1u << i;
    const int parts = k->nodes->node[k->root[0].node].parts;
    const double all = elements_of(k, loops) / (parts ? parts : 1);
    for (int i = 0; i < k->n && !reads_kept(k); i++) {
        gain[i] = is_repeated(k, &k->step[i], loops, all) ? saved_us(k, i, all) : 0;
        if (gain[i] > most) most = gain[i];
    }
    for (int i = k->n - 1; i >= 0 && most > 0; i--) {
        const double own = elements_of(k, k->step[i].axes & loops);
        if (gain[i] < COSTLY || gain[i] < enough * most || (found >= 0 && own >= least)) continue;
        found = k->step[i].node;
        least = own;
    }
    return found;
}
