/* The schedule of a kernel: its genes, whose defaults follow from the timed sizes. */
#include "generate/writer.h"

#include <string.h>

/* The elements of a row that a thread keeps at most (2026-11-29: 32
 * registers of two tensors leave 64 for the rest at two blocks of 512 threads a multiprocessor). */
enum {
    MOST_LANES = 1024,
    KEEP = 32,
    ENOUGH_ROWS = 1056,
    STRIP = 32,
    STRIP_LANES = 16,
    BLOCK = 256
};

/* A gene of the kernel. It is named as what it writes first. */
static int choose(const Writer *w, Gene gene, int by_default, int least, int most)
{
    const Nodes *n = w->k->nodes;
    const GenePoint p = {.gene = gene, .by_default = by_default, .least = least, .most = most};
    return genes_choose(n->genes, n->node[w->k->root[0].node].name, &p);
}

Size writer_product(const Writer *w, unsigned mask)
{
    Size n = size_number(1);
    for (int i = 0; i < w->k->axes.n; i++)
        if (mask >> i & 1) n = size_times(n, w->k->axes.size[i]);
    return n;
}

static int whole_vectors(const Writer *w, const Index *at, int vec)
{
    const Size by = size_number(vec);
    if (w->last < 0 || (at->through >> w->last & 1) || !size_is(at->by[w->last], 1)) return 0;
    if (at->text[0] || (size_constant(at->plus) && !size_divides(by, at->plus))) return 0;
    for (int i = 0; i < w->k->axes.n; i++)
        if (i != w->last && !size_is(at->by[i], 0) && at->by[i].at[0] % vec) return 0;
    return at->plus.at[0] % vec == 0;
}

int writer_is_vector(const Writer *w, int step)
{
    return w->vec > 1 && is_load(w, step) && whole_vectors(w, &w->k->step[step].at, w->vec);
}

int writer_root_is_vector(const Writer *w, int r)
{
    return w->vec > 1 && whole_vectors(w, &w->k->root[r].at, w->vec);
}

/* Of the elements that columns read and write: through how many of them an axis walks in steps of 1. */
static int walks(const Writer *w, int axis)
{
    int n = 0;
    for (int i = 0; i < w->k->n; i++)
        if (is_load(w, i) && in_columns(w, i)) n += size_is(w->k->step[i].at.by[axis], 1);
    for (int i = 0; i < w->k->n_roots; i++) n += size_is(w->k->root[i].at.by[axis], 1);
    return n;
}

static int narrowest(const Writer *w)
{
    int bytes = 8;
    for (int i = 0; i < w->k->n; i++)
        if (is_load(w, i) && in_columns(w, i) && (int)dtype_size(node_of(w, i)->dtype) < bytes)
            bytes = (int)dtype_size(node_of(w, i)->dtype);
    return bytes;
}

static int part_axis(const Kernel *k)
{
    const int parts = k->nodes->node[k->root[0].node].parts;
    for (int i = 0; i < k->axes.n && parts; i++)
        if (k->rows >> i & 1 && size_is(k->root[0].at.by[i], 1) && size_is(k->axes.size[i], parts))
            return i;
    return -1;
}

static void choose_axes(Writer *w)
{
    const Kernel *k = w->k;
    w->last = w->strip = -1;
    w->part = part_axis(k);
    for (int i = 0; i < k->axes.n; i++)
        if (!size_is(k->axes.size[i], 1) && !(k->has_folds && k->rows >> i & 1))
            w->columns |= 1u << i;
    for (int i = 0; i < k->axes.n; i++) {
        if (size_is(k->axes.size[i], 1) || i == w->part) continue;
        int *best = w->columns >> i & 1 ? &w->last : &w->strip;
        if (*best < 0 || walks(w, i) >= walks(w, *best)) *best = i;
    }
    if (w->strip >= 0 && w->last >= 0 && walks(w, w->strip) <= walks(w, w->last)) w->strip = -1;
    if (w->strip >= 0 && k->axes.size[w->strip].at[0] < 8) w->strip = -1;
}

static void choose_vector(Writer *w)
{
    int most = 16 / narrowest(w);
    w->vec = 1;
    if (w->strip >= 0 || w->last < 0 || most < 2) return;
    for (int i = 0; i < w->k->n; i++)
        if (is_fold(w, i) && !(w->k->step[i].over >> w->last & 1)) return;
    int vec = most > 8 ? 8 : most;
    while (vec > 1 && w->k->axes.size[w->last].at[0] % vec) vec /= 2;
    w->vec = vec;
    int any = 0;
    for (int i = 0; i < w->k->n; i++) any |= writer_is_vector(w, i);
    for (int i = 0; i < w->k->n_roots; i++) any |= writer_root_is_vector(w, i);
    if (!any) w->vec = 1;
    if (w->vec > 1) w->vec = choose(w, GENE_VEC, w->vec, 1, w->vec);
}

int writer_passes(const Writer *w)
{
    int n = 0;
    for (int i = 0; i < w->k->n; i++)
        if (is_fold(w, i) && w->k->step[i].level > n) n = w->k->step[i].level;
    return n;
}

static void choose_lanes(Writer *w)
{
    int64_t columns = writer_product(w, w->columns).at[0],
            rows = writer_product(w, w->k->rows).at[0];
    int kept = 0;
    if (w->part >= 0)
        columns = (columns + node_of(w, w->k->root[0].step)->parts - 1) /
                  node_of(w, w->k->root[0].step)->parts;
    if (w->strip >= 0) {
        w->lanes = 1;
        while (w->lanes < STRIP_LANES &&
               (rows * w->lanes < 132 * 1024 || columns / w->lanes > KEEP) &&
               w->lanes * 2 <= columns)
            w->lanes *= 2;
    } else {
        int64_t each = rows < ENOUGH_ROWS ? w->vec : 4 * w->vec;
        w->lanes = 1;
        while (w->lanes < MOST_LANES && w->lanes * each < columns) w->lanes *= 2;
    }
    w->lanes = choose(w, GENE_LANES, w->lanes, 1, w->strip >= 0 ? STRIP : MOST_LANES);
    for (int i = 0; i < w->k->n; i++)
        if (is_load(w, i) && in_columns(w, i) &&
            (w->strip >= 0 || writer_is_vector(w, i) || w->vec == 1))
            w->kept[i] = 1, kept++;
    int64_t a_thread = (columns + (int64_t)w->lanes * w->vec - 1) / ((int64_t)w->lanes * w->vec);
    w->items = kept && a_thread * w->vec * kept <= 4 * KEEP ? (int)a_thread : 0;
    int fits = a_thread * w->vec * kept <= 2 * KEEP;
    /* One pass, or passes over other columns, reads each element once. */
    unsigned over = 0;
    int same = 1;
    for (int i = 0; i < w->k->n; i++) {
        if (!is_fold(w, i)) continue;
        if (over && over != w->k->step[i].over) same = 0;
        over = w->k->step[i].over;
    }
    int reads = writer_passes(w) + (w->k->root[0].step >= 0 && in_columns(w, w->k->root[0].step));
    if (!same || (over && over != w->columns) || reads < 2) w->items = 0;
    if (w->items && choose(w, GENE_KEEP, fits ? KEEP_REGISTERS : KEEP_NONE, KEEP_NONE,
                           KEEP_REGISTERS) == KEEP_NONE)
        w->items = 0;
    if (!w->items) memset(w->kept, 0, (size_t)w->k->n);
}

static void find_width(Writer *w)
{
    for (int i = 0; i < w->k->n; i++)
        if (is_load(w, i)) w->wide |= node_count(node_of(w, i)).at[0] >= 1 << 30;
    for (int r = 0; r < w->k->n_roots; r++)
        w->wide |= node_count(&w->k->nodes->node[w->k->root[r].node]).at[0] >= 1 << 30;
}

void writer_schedule(Writer *w)
{
    w->lanes = w->each = 1;
    w->block = BLOCK;
    find_width(w);
    choose_axes(w);
    choose_vector(w);
    if (w->k->has_folds) choose_lanes(w);
    if (w->k->has_folds ? w->strip < 0 && w->lanes <= 32 : w->columns != 0)
        w->block = choose(w, GENE_BLOCK, BLOCK, 64, 1024);
    if (!w->k->has_folds && w->columns) w->each = choose(w, GENE_ITEMS, 1, 1, 8);
}
