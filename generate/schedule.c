/* The schedule of a kernel: its genes, whose defaults follow from the timed sizes. */
#include "generate/estimate.h"
#include "generate/fold_text.h"
#include "generate/writer.h"

#include <string.h>

/* KEEP: words of a row that a thread keeps at most (2026-11-29: 32 of 1,024 threads leave as many for the
 * rest; 512 threads have twice as many). FLIGHT: bytes that a thread loads before it uses any. */
/* SINGLE: elements that a thread takes at least one by one (2026-11-30, sim:h100: filters of 2,304 elements
 * with 1,024 threads a row 82 us, with 256 or 512 62 to 64 us). */
enum {
    SINGLE = 8,
    MOST_LANES = 1024,
    STREAM_LANES = 512,
    KEEP = 32,
    ENOUGH_ROWS = 1056,
    FEW_ROWS = 132
};
/* SCAN_LANES: with vectors of 16 bytes at most (2026-11-30, H200: a masked sum of 32,768 columns takes 2,427
 * us, with 512 threads 2,615, and with vectors of eight floats 2,781 and 2,860). */
/* STREAM_LANES: of a long row that is read once (2026-11-30, H200: an L2 norm of 65,535 columns, which is
 * read twice, takes 6,888 us with 1,024 threads and 7,903 with 512, since fewer rows wait in L2); also where
 * they keep it and there are many (2026-11-30, H200: cross entropy with smoothed labels of 8,192 x 32,000
 * takes 460 us, 630 with 1,024 threads). POINT_BLOCK: threads where nothing is folded (2026-11-30, H200:
 * ReLU of 6 GB 2,998 us, 3,004 with 256; a rotary embedding 80.7, 82.7). KEPT_WORK: operations; a value of
 * float32 may take twice the registers of what it is made of. LINE: bytes that the threads of a row store by
 * one instruction, where it has as many (2026-11-30, sim:h200: rows of 32 codes of 32 bits take 57 us with
 * eight threads, 84 with two). */
enum {
    LINE = 128,
    KEPT_WORK = 8,
    MOST_ALONE = 128,
    FEW_COLUMNS = 32,
    FLIGHT = 64,
    STRIP = 32,
    STRIP_LANES = 16,
    SCAN_RUN = 8,
    SCAN_LANES = 256,
    BLOCK = 256,
    POINT_BLOCK = 128,
    LATE_LANES = 256,
    LATE_WORK = 25, /* softmax has 24 */
    FULL_GPU = 132 * 2048
};

/* A gene of the kernel. It is named as what it writes first. */
int writer_choose(const Writer *w, Gene gene, int by_default, int least, int most)
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

/* 1: at the timed sizes elements that are neighbours along an axis are whole vectors of memory. */
static int whole_vectors(const Writer *w, const Index *at, int along)
{
    const Size by = size_number(w->vec);
    if (along < 0 || (at->through >> along & 1) || !size_is(at->by[along], 1)) return 0;
    if (at->text[0] || (size_constant(at->plus) && !size_divides(by, at->plus))) return 0;
    for (int i = 0; i < w->k->axes.n; i++)
        if (i != along && !size_is(at->by[i], 0) && at->by[i].at[0] % w->vec) return 0;
    return at->plus.at[0] % w->vec == 0;
}

/* 1: a size is a whole number of `by` at the timed sizes. */
static int is_multiple(Size s, int64_t by)
{
    return s.at[0] % by == 0;
}

int writer_spacing(const Writer *w, int step, Index *base)
{
    const Kernel *k = w->k;
    *base = k->step[step].at;
    if (k->nodes->plain || w->last < 0 || w->strip >= 0 || !is_load(w, step) || *base->text ||
        !size_constant(base->by[w->last]))
        return 0;
    const int64_t spacing = base->by[w->last].at[0], span = spacing * w->vec;
    int64_t most = 0;
    if (spacing != 2 && spacing != 4) return 0;
    if (size_constant(base->plus)) most = base->plus.at[0] % spacing;
    if (most < 0) return 0;
    base->plus = size_plus(base->plus, size_number(-most));
    for (int i = 0; i < k->axes.n; i++) {
        const Size by = base->by[i], n = k->axes.size[i];
        if (i == w->last || size_is(by, 0) || is_multiple(by, span)) continue;
        if (!(k->looped >> i & 1) || !size_constant(by) || !size_constant(n) || by.at[0] < 0)
            return 0;
        most += by.at[0] * (n.at[0] - 1);
        base->by[i] = size_number(0);
    }
    return most < spacing && is_multiple(base->plus, span) &&
                   is_multiple(node_count(node_of(w, step)), span)
               ? (int)spacing
               : 0;
}

unsigned writer_stored(const Writer *w)
{
    unsigned axes = 0;
    for (int r = 0; r < w->k->n_roots; r++) axes |= index_axes(&w->k->root[r].at);
    return w->columns & axes;
}

static int is_late(const Writer *w, int step);

int writer_shifted(const Writer *w, int step)
{
    const Kernel *k = w->k;
    const Index *at = &k->step[step].at;
    int found = -1;
    if (k->nodes->plain || w->last < 0 || !is_load(w, step) || !size_is(at->by[w->last], 0))
        return -1;
    for (int i = 0; i < k->axes.n; i++) {
        if (size_is(at->by[i], 0) || k->bound[i] < 0) continue;
        if (found >= 0) return -1;
        found = i;
    }
    if (found < 0 || !whole_vectors(w, at, found) || k->axes.size[found].at[0] % w->vec) return -1;
    const Step *place = &k->step[k->bound[found]];
    for (int i = 0; i < k->axes.n; i++)
        if (k->bound[i] >= 0 && index_axes(&place->at) >> i & 1) return -1;
    return place->place && (whole_vectors(w, &place->at, w->last) || writer_beside(w, step)) ? found
                                                                                             : -1;
}

int writer_beside(const Writer *w, int step)
{
    enum { FAR = 64 };
    const Kernel *k = w->k;
    const Step *s = &k->step[step], *place = NULL;
    for (int i = 0; i < k->axes.n; i++)
        if (!size_is(s->at.by[i], 0) && k->bound[i] >= 0) place = &k->step[k->bound[i]];
    if (!place || !is_load(w, step) || *place->at.text || !size_constant(place->at.plus)) return 0;
    const int64_t by = place->at.plus.at[0];
    for (int i = 0; i < k->axes.n; i++)
        if (!size_is(place->at.by[i], i == w->last)) return 0;
    return by % w->vec && by > -FAR && by < FAR ? (int)by : 0;
}

int writer_is_later(const Writer *w, int step)
{
    const Kernel *k = w->k;
    const Index *at = &k->step[step].at;
    const unsigned all = index_axes(at);
    if (w->vec < 2 || k->nodes->plain || w->last < 0 || w->strip >= 0 || k->scan >= 0 ||
        !is_load(w, step) || (w->moved && w->moved[step]) || k->n_looped || !is_late(w, step) ||
        writer_shifted(w, step) >= 0 || !whole_vectors(w, at, w->last))
        return 0;
    for (int i = 0; i < k->axes.n; i++)
        if (all >> i & 1 && k->bound[i] >= 0 && k->step[k->bound[i]].axes >> w->last & 1) return 0;
    return 1;
}

int writer_is_vector(const Writer *w, int step)
{
    if (w->vec < 2 || !is_load(w, step)) return 0;
    Index base;
    return writer_shifted(w, step) >= 0 || writer_is_later(w, step) ||
           (!is_late(w, step) &&
            (whole_vectors(w, &w->k->step[step].at, w->last) || writer_spacing(w, step, &base)));
}

int writer_root_is_vector(const Writer *w, int r)
{
    return w->vec > 1 && whole_vectors(w, &w->k->root[r].at, w->last);
}

/* Of the elements that columns read and write: in how many bytes an axis walks in steps of 1. */
static int64_t walks(const Writer *w, int axis)
{
    int64_t n = 0;
    for (int i = 0; i < w->k->n; i++)
        if (is_load(w, i) && in_columns(w, i) && size_is(w->k->step[i].at.by[axis], 1))
            n += node_count(node_of(w, i)).at[0] * (int64_t)dtype_size(node_of(w, i)->dtype);
    for (int i = 0; i < w->k->n_roots; i++)
        if (size_is(w->k->root[i].at.by[axis], 1)) {
            const Node *x = &w->k->nodes->node[w->k->root[i].node];
            n += node_count(x).at[0] * (int64_t)dtype_size(x->dtype);
        }
    return n;
}

static int load_size(const Writer *w, int widest)
{
    int bytes = widest ? 1 : 8;
    for (int i = 0; i < w->k->n; i++) {
        const int size = (int)dtype_size(node_of(w, i)->dtype);
        if (is_load(w, i) && in_columns(w, i) && (widest ? size > bytes : size < bytes))
            bytes = size;
    }
    return bytes;
}

/* Bytes of the widest element that is stored in vectors. A vector of more than 16 bytes is stored by two
 * instructions, each of which writes half of each sector. */
static int stored_size(const Writer *w)
{
    int bytes = 1;
    for (int r = 0; r < w->k->n_roots; r++) {
        const int size = (int)dtype_size(w->k->nodes->node[w->k->root[r].node].dtype);
        if (size > bytes && writer_root_is_vector(w, r)) bytes = size;
    }
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

/* 1: neighbouring rows along w->along read elements that lie side by side. */
static int shares_taps(const Writer *w)
{
    for (int i = 0; i < w->k->n; i++) {
        const Step *s = &w->k->step[i];
        if ((is_load(w, i) || s->place) && size_is(s->at.by[w->along], 1) && s->axes & w->columns)
            return 1;
    }
    return 0;
}

/* 1: all that differs from column to column lies side by side along `last`. */
static int reads_along_columns(const Writer *w)
{
    int any = 0;
    for (int i = 0; i < w->k->n; i++) {
        if (!is_load(w, i) || !in_columns(w, i)) continue;
        if (*w->k->step[i].at.text || !size_is(w->k->step[i].at.by[w->last], 1)) return 0;
        any = 1;
    }
    return any;
}

/* 1: a thread may fold a row by itself: its columns are a small number, or few at the timed sizes where
 * neighbouring threads have neighbouring rows and each reads its columns in vectors. */
static int has_few_columns(const Writer *w)
{
    const Size columns = writer_product(w, w->columns);
    if (size_constant(columns)) return columns.at[0] <= MOST_ALONE;
    return w->strip >= 0 && w->last >= 0 && columns.at[0] <= FEW_COLUMNS && reads_along_columns(w);
}

/* 1: no element that is read lies beside one of the next row, and strips of rows would leave a GPU idle. */
static int has_few_strips(const Writer *w)
{
    for (int i = 0; i < w->k->n; i++)
        if (is_load(w, i) && in_columns(w, i) && size_is(w->k->step[i].at.by[w->strip], 1))
            return 0;
    return w->k->has_folds && w->k->scan < 0 && !w->k->nodes->plain &&
           writer_product(w, w->k->rows).at[0] < FEW_ROWS * STRIP;
}

static void choose_axes(Writer *w)
{
    const Kernel *k = w->k;
    w->last = w->strip = -1;
    w->part = part_axis(k);
    for (int i = 0; i < k->axes.n; i++)
        if (!size_is(k->axes.size[i], 1) && k->bound[i] < 0 && !(k->looped >> i & 1) &&
            !(k->has_folds && k->rows >> i & 1))
            w->columns |= 1u << i;
    for (int i = 0; i < k->axes.n; i++) {
        if (size_is(k->axes.size[i], 1) || k->bound[i] >= 0 || i == w->part || k->looped >> i & 1)
            continue;
        int *best = w->columns >> i & 1 ? &w->last : &w->strip;
        if (*best < 0 || walks(w, i) >= walks(w, *best)) *best = i;
    }
    if (w->strip >= 0 && w->last >= 0 &&
        (walks(w, w->strip) <= walks(w, w->last) || has_few_strips(w)))
        w->strip = -1;
    if (w->strip >= 0 && k->axes.size[w->strip].at[0] < 8) w->strip = -1;
    w->alone = k->has_folds && k->scan < 0 && w->part < 0 && has_few_columns(w) &&
               writer_product(w, k->rows).at[0] >= FULL_GPU / 8;
    w->along = w->strip;
    for (int i = 0; i < k->axes.n; i++)
        if (w->along < 0 && k->rows >> i & 1 && size_is(k->root[0].at.by[i], 1)) w->along = i;
    w->alone = w->alone && w->along >= 0 && alone_fits(w);
    w->each = w->alone && k->axes.size[w->along].at[0] >= 8 && shares_taps(w) ? 4 : 1;
    if (w->alone || (k->scan >= 0 && w->last != k->scan)) w->strip = -1;
}

/* Where nothing is folded and the last axis is long, a block takes a piece of it: places need no division,
 * and what is the same for a whole row is computed once. */
static void choose_slices(Writer *w)
{
    Kernel *k = w->k;
    if (k->has_folds || w->last < 0 || k->axes.size[w->last].at[0] < LONG_SLICE) return;
    const unsigned last = 1u << w->last, rows = w->columns & ~last;
    if (!rows) return;
    for (int r = 0; r < k->n_roots; r++)
        if (!(k->step[k->root[r].step].axes & last)) return;
    w->slices = 1;
    w->columns = last;
    k->rows = rows;
}

static int stores_columns(const Writer *w)
{
    int any = 0;
    for (int r = 0; r < w->k->n_roots; r++) any |= in_columns(w, w->k->root[r].step);
    return any;
}

/* Steps of a row that is scanned, where those of other rows lie beside them: a thread takes so many that
 * follow one another. */
static void choose_run(Writer *w)
{
    int loads = 1, most = w->k->looped ? 1 : SCAN_RUN;
    for (int i = 0; i < w->k->n; i++) {
        loads += is_load(w, i) && in_columns(w, i);
        if (is_fold(w, i)) most = 1; /* its pass takes one element at a time */
    }
    while (most > 1 && (most * loads > KEEP || w->k->axes.size[w->last].at[0] % most)) most /= 2;
    w->vec = writer_choose(w, GENE_VEC, most, 1, most);
}

static void choose_vector(Writer *w)
{
    int most = 16 / load_size(w, 0);
    w->vec = 1;
    if (w->k->scan >= 0 && w->strip >= 0) {
        choose_run(w);
        return;
    }
    if (w->strip >= 0 || (w->alone && w->each > 1) || w->last < 0 || most < 2) return;
    for (int i = 0; i < w->k->n; i++)
        if (is_fold(w, i) && !(w->k->step[i].over >> w->last & 1)) return;
    if (stores_columns(w) && !(writer_stored(w) >> w->last & 1)) return;
    int vec = most > 8 ? 8 : most;
    while (vec > 1 && w->k->axes.size[w->last].at[0] % vec) vec /= 2;
    w->vec = vec;
    int any = 0;
    for (int i = 0; i < w->k->n; i++) any |= writer_is_vector(w, i);
    for (int i = 0; i < w->k->n_roots; i++) any |= writer_root_is_vector(w, i);
    if (!any) w->vec = 1;
    const int full = w->k->scan >= 0 ? 16 / load_size(w, 1) : 16 / stored_size(w),
              by_default = full < w->vec ? full : w->vec;
    if (w->vec > 1) w->vec = writer_choose(w, GENE_VEC, by_default, 1, w->vec);
}

/* 1: whether a step's elements are there differs from column to column. */
static int is_inside_columns(const Writer *w, int step)
{
    const Condition *c = &w->k->condition[w->k->step[step].inside];
    for (int t = 0; t < c->n; t++)
        if (in_columns(w, c->term[t].step)) return 1;
    return 0;
}

int writer_is_packed(const Writer *w, int step)
{
    if (writer_is_loop(w, step) || (w->kept[step] == 2 && writer_is_value(w, step))) return 1;
    if (is_within_loop(w, step)) return 0;
    if (w->vec > 1 && in_columns(w, step) && !(w->moved && w->moved[step]) &&
        writer_shifted(w, step) >= 0)
        return 1;
    return is_load(w, step) && in_columns(w, step) && !is_late(w, step) &&
           !is_inside_columns(w, step) && !(w->moved && w->moved[step]) &&
           (w->k->nodes->plain ? writer_is_vector(w, step)
                               : w->strip >= 0 || w->vec == 1 || writer_is_vector(w, step));
}

/* 1: its text has the step's index. */
static int has_place(const Writer *w, int step)
{
    return is_load(w, step) || w->k->step[step].place || node_of(w, step)->kind == NODE_COORD;
}

int writer_is_guarded(const Writer *w, int step)
{
    return w->k->step[step].inside && !w->k->step[step].place && !is_load(w, step) &&
           node_of(w, step)->kind == NODE_PAD;
}

/* 1: a load whose place, or whether it is there, is known late: from a step that differs in columns. */
static int is_late(const Writer *w, int step)
{
    const Step *s = &w->k->step[step];
    unsigned all = index_axes(&s->at);
    for (int i = 0; i < w->k->axes.n; i++)
        if (all >> i & 1 && w->k->bound[i] >= 0 && in_columns(w, w->k->bound[i])) return 1;
    return 0;
}

/* What a step needs, and itself. */
void writer_close(const Writer *w, int step, unsigned char *set)
{
    if (set[step]) return;
    set[step] = 1;
    if (is_fold(w, step) || writer_is_scan(w, step) || writer_is_loop(w, step) ||
        w->kept[step] == 2)
        return;
    const Step *s = &w->k->step[step];
    const Condition *c = &w->k->condition[s->inside];
    unsigned all = index_axes(&s->at);
    for (int i = 0; i < 3; i++)
        if (s->arg[i] >= 0) writer_close(w, s->arg[i], set);
    for (int i = 0; i < w->k->axes.n && has_place(w, step); i++)
        if (all >> i & 1 && w->k->bound[i] >= 0) writer_close(w, w->k->bound[i], set);
    for (int i = 0; i < c->n && writer_is_guarded(w, step); i++)
        writer_close(w, c->term[i].step, set);
}

int writer_takes_part(const Writer *w, const Pass *p, int step)
{
    return is_fold(w, step) && w->k->step[step].level == p->level &&
           w->k->step[step].over == p->over;
}

void writer_needed(const Writer *w, const Pass *p, unsigned char *set)
{
    memset(set, 0, KERNEL_STEPS);
    for (int i = 0; i < w->k->n && p->level; i++)
        if (writer_takes_part(w, p, i)) writer_close(w, w->k->step[i].arg[0], set);
    for (int i = 0; i < w->k->n_roots && !p->level; i++)
        if (in_columns(w, w->k->root[i].step)) writer_close(w, w->k->root[i].step, set);
}

/* n[i]: in how many passes over a row a step is needed, where what is kept is computed once. */
static void count_passes(Writer *w, int *n)
{
    unsigned char set[KERNEL_STEPS], kept[KERNEL_STEPS];
    const int most = writer_passes(w);
    memcpy(kept, w->kept, (size_t)w->k->n);
    memset(n, 0, (size_t)w->k->n * sizeof *n);
    for (int pass = 1; pass <= most + 1; pass++) {
        Pass p = {pass > most ? 0 : pass, w->columns};
        writer_needed(w, &p, set);
        for (int i = 0; i < w->k->n; i++) {
            n[i] += set[i];
            if (set[i] && w->kept[i] && writer_is_value(w, i)) w->kept[i] = 2;
        }
    }
    memcpy(w->kept, kept, (size_t)w->k->n);
}

/* The bytes of a thread's packs, of all loads together. */
static int pack_bytes(const Writer *w)
{
    int n = 0;
    for (int i = 0; i < w->k->n; i++)
        if (writer_is_packed(w, i)) n += w->vec * (int)dtype_size(node_of(w, i)->dtype);
    return n;
}

int writer_passes(const Writer *w)
{
    int n = 0;
    for (int i = 0; i < w->k->n; i++)
        if (is_fold(w, i) && w->k->step[i].level > n) n = w->k->step[i].level;
    return n;
}

/* 1: an element of a row is read in more than one pass over the same columns. */
static int reads_again(const Writer *w)
{
    unsigned over = 0;
    for (int i = 0; i < w->k->n; i++) {
        if (!is_fold(w, i)) continue;
        if (over && over != w->k->step[i].over) return 0;
        over = w->k->step[i].over;
    }
    return over == w->columns && writer_passes(w) + stores_columns(w) > 1;
}

static int64_t timed_columns(const Writer *w)
{
    int64_t columns = writer_product(w, w->columns).at[0];
    int parts = w->part >= 0 ? w->k->nodes->node[w->k->root[0].node].parts : 1;
    return (columns + parts - 1) / parts;
}

/* Vectors of a row of a thread. */
static int64_t a_thread(const Writer *w)
{
    int64_t step = (int64_t)w->lanes * w->vec;
    return (timed_columns(w) + step - 1) / step;
}

static int value_size(const Writer *w, int step)
{
    return strcmp(writer_type(w, step), "float") ? 8 : 4;
}

/* 1: a later step of the row needs as many passes: that one may be kept. */
static int is_on_the_way(const Writer *w, int step, const int *n)
{
    for (int i = step + 1; i < w->k->n; i++)
        for (int a = 0; a < 3; a++)
            if (w->k->step[i].arg[a] == step && n[i] > 1 && in_columns(w, i) && !is_fold(w, i))
                return 1;
    return 0;
}

/* What several passes need is computed once, and stays in registers in place of what it is computed from,
 * where that takes no more of them, or long to compute. */
static void choose_values(Writer *w)
{
    unsigned char set[KERNEL_STEPS];
    int n[KERNEL_STEPS];
    count_passes(w, n);
    for (int i = 0; i < w->k->n && !w->k->nodes->plain; i++) {
        double work = 0;
        int bytes = 0;
        if (n[i] < 2 || !in_columns(w, i) || !writer_is_value(w, i) || is_on_the_way(w, i, n))
            continue;
        memset(set, 0, sizeof set);
        writer_close(w, i, set);
        for (int a = 0; a <= i; a++) {
            if (!set[a] || !in_columns(w, a)) continue;
            if (is_load(w, a))
                bytes += (int)dtype_size(node_of(w, a)->dtype);
            else
                work += point_work(node_of(w, a)->text);
        }
        w->kept[i] = work > KEPT_WORK || value_size(w, i) <= bytes;
    }
}

/* Marks what stays in registers, and the loads that come before it. */
static void choose_kept(Writer *w)
{
    unsigned char first[KERNEL_STEPS] = {0};
    int n[KERNEL_STEPS];
    count_passes(w, n);
    for (int i = 0; i < w->k->n; i++)
        if (w->kept[i] && writer_is_value(w, i)) writer_close(w, i, first);
    for (int i = 0; i < w->k->n; i++)
        if (!writer_is_value(w, i))
            w->kept[i] = w->keep && writer_is_packed(w, i) && (n[i] > 1 || first[i]);
        else if (!w->keep)
            w->kept[i] = 0;
}

static int most_kept(Writer *w)
{
    int bytes = 0, n[KERNEL_STEPS];
    count_passes(w, n);
    for (int i = 0; i < w->k->n; i++)
        if (n[i] > 1 && w->kept[i] && writer_is_value(w, i))
            bytes += w->vec * value_size(w, i);
        else if (n[i] > 1 && writer_is_packed(w, i))
            bytes += w->vec * (int)dtype_size(node_of(w, i)->dtype);
    int words = (bytes + 3) / 4, most = w->lanes > STREAM_LANES ? KEEP : 2 * KEEP;
    return words ? most / words : 0;
}

/* Threads of a row that is scanned. Where its elements lie apart, no more than it takes to fill the GPU. */
static void choose_scan(Writer *w)
{
    int64_t columns = timed_columns(w), rows = writer_product(w, w->k->rows).at[0];
    int near = 0, lanes = 1;
    const int most = w->strip >= 0 ? STRIP_LANES : SCAN_LANES;
    for (int i = 0; i < w->k->n_roots; i++) near |= size_is(w->k->root[i].at.by[w->k->scan], 1);
    while (lanes < most && (int64_t)lanes * 2 * w->vec < columns &&
           (near || rows * lanes < FULL_GPU / 4))
        lanes *= 2;
    w->lanes = writer_choose(w, GENE_LANES, lanes, 1, w->strip >= 0 ? STRIP : MOST_LANES);
    w->keep = 0;
    memset(w->kept, 0, (size_t)w->k->n);
}

/* 1: the pass that stores a row computes for long. A block that keeps its row in many registers is alone on a
 * multiprocessor, and moves nothing meanwhile (2026-11-30, H200: GroupNorm and SiLU of 32,768 columns: 80 us
 * with 1,024 threads that keep them, 55 us with 256 that read twice). */
static int stores_late(const Writer *w)
{
    const Pass p = {0, w->columns};
    unsigned char set[KERNEL_STEPS];
    double work = 0;
    writer_needed(w, &p, set);
    for (int i = 0; i < w->k->n; i++)
        if (set[i] && in_columns(w, i) && !is_load(w, i) && !is_fold(w, i))
            work += point_work(node_of(w, i)->text);
    return work > LATE_WORK;
}

int64_t writer_longest_pass(const Writer *w)
{
    const unsigned stored = writer_stored(w);
    unsigned all = stored;
    int64_t most = stored ? writer_product(w, stored).at[0] : 0;
    for (int i = 0; i < w->k->n; i++) {
        if (!is_fold(w, i) || w->k->step[i].looped) continue;
        const unsigned over = w->k->step[i].over & w->columns;
        const int64_t n = writer_product(w, over).at[0];
        if (n > most) most = n;
        all |= over;
    }
    return w->part < 0 && all == w->columns && most ? most : timed_columns(w);
}

/* 1: threads of one warp join exponential sums of a row that is not stored: each join has two exponentials,
 * and half as many threads have fewer joins (2026-11-30, H200: PPO with the entropy of 32,768 rows of 512:
 * 38.9 us with 32 threads a row, 34.5 with 16; a softmax that is stored gains nothing by the model). */
static int joins_for_long(const Writer *w)
{
    int sums = 0;
    for (int i = 0; i < w->k->n; i++) sums |= is_fold(w, i) && node_of(w, i)->fold == FOLD_EXPSUM;
    return sums && w->strip < 0 && w->lanes > 4 && w->lanes <= 32 && !stores_columns(w) &&
           writer_product(w, w->k->rows).at[0] >= ENOUGH_ROWS;
}

/* Elements of a row that lie apart, of a thread that keeps them. All loads of these come before the first is
 * used (2026-12-01, sim:h200: logsumexp behind GroupNorm, 64 elements of five loads, 632 us with 32 a thread,
 * 424 with 16, 331 with 8). */
static int most_kept_apart(const Writer *w)
{
    const int words = (pack_bytes(w) + 3) / 4;
    return words > 2 && reads_again(w) ? 2 * KEEP / words : KEEP;
}

static void choose_lanes(Writer *w)
{
    if (reads_again(w)) choose_values(w);
    int64_t columns = writer_longest_pass(w), rows = writer_product(w, w->k->rows).at[0];
    int lanes = 1;
    if (turned_fits(w)) {
        lanes = 1;
    } else if (w->strip >= 0) {
        const int most = most_kept_apart(w);
        while (lanes < STRIP_LANES && lanes * 2 <= columns &&
               (rows * lanes < 132 * 1024 || columns / lanes > most))
            lanes *= 2;
    } else {
        int64_t each = rows < ENOUGH_ROWS ? w->vec : w->vec > 1 ? 4 * w->vec : SINGLE;
        while (lanes < MOST_LANES && lanes * each < columns) lanes *= 2;
        while (w->vec > 1 && lanes < LINE && stores_columns(w) && lanes * w->vec < columns &&
               lanes * w->vec * stored_size(w) < LINE)
            lanes *= 2;
    }
    w->lanes = w->alone ? 1 : lanes;
    if (w->strip < 0 && lanes > STREAM_LANES && rows > FEW_ROWS && !reads_again(w))
        w->lanes = STREAM_LANES;
    if (w->strip < 0 && w->lanes > STREAM_LANES && rows >= ENOUGH_ROWS) {
        w->lanes = STREAM_LANES;
        if (a_thread(w) > most_kept(w)) w->lanes = lanes;
    }
    if (joins_for_long(w)) w->lanes /= 2;
    const int late = w->strip < 0 && w->lanes > LATE_LANES && reads_again(w) && stores_late(w);
    if (late) w->lanes = LATE_LANES;
    const int most = w->strip >= 0 ? STRIP : MOST_LANES;
    w->lanes = writer_choose(w, GENE_LANES, w->lanes, 1, w->alone ? 1 : most);
    w->turned = w->lanes == 1 && turned_fits(w);
    int fits = a_thread(w) <= most_kept(w) && !late;
    w->keep = reads_again(w) && a_thread(w) <= 2 * most_kept(w) ? (int)a_thread(w) : 0;
    if (w->keep && writer_choose(w, GENE_KEEP, fits ? KEEP_REGISTERS : KEEP_NONE, KEEP_NONE,
                                 KEEP_REGISTERS) == KEEP_NONE)
        w->keep = 0;
    choose_kept(w);
}

/* 1: functions of the row's elements take so long that a thread does better with two vectors (2026-11-30,
 * H200, microseconds of 13 GB with one and with two: SELU 3,083 and 3,017, softplus 3,182 and 3,018, GELU
 * 3,048 and 3,016, ELU 3,060 and 3,030; but tanh 2,987 and 3,017, sigmoid 2,985 and 3,020). */
static int takes_long(const Writer *w)
{
    static const char *const functions[] = {"erf(", "expm1(", "log", "pow("};
    for (int i = 0; i < w->k->n; i++)
        for (size_t f = 0; f < sizeof functions / sizeof *functions && writer_calls(w, i); f++)
            if (in_columns(w, i) && strstr(node_of(w, i)->text, functions[f])) return 1;
    return 0;
}

/* Bytes that a thread loads before it uses any. Where nothing is folded, blocks are many, and it loads
 * one vector; two where threads compute, where they compute places, or in a piece of a row, where place and
 * channel are the same for both (2026-11-30, H200, microseconds with one vector a thread, two and four: an
 * embedding of 32 bytes a vector 31.7, 29.3, 30.1; BatchNorm 2,037, 2,019, 2,026; scaled rows 34.3, 33.2,
 * 34.5; but a rotary embedding of 64 bytes a vector 80.7, 91.5, 130.8). */
static int bytes_in_flight(const Writer *w)
{
    if (w->slices) return 2 * FLIGHT;
    if (w->k->has_folds || w->columns & (w->columns - 1)) return FLIGHT;
    return takes_long(w) ? FLIGHT / 2 : 0;
}

static void choose_items(Writer *w)
{
    enum { ELEMENTS = 8 };
    int bytes = pack_bytes(w), items = 1;
    const Size all = writer_product(w, w->columns | (w->slices ? w->k->rows : 0));
    const int flight = bytes_in_flight(w);
    int64_t most = w->k->has_folds ? a_thread(w) : all.at[0] / (FULL_GPU * w->vec);
    if (!w->k->has_folds && most > ELEMENTS / w->vec) most = ELEMENTS / w->vec;
    if (w->slices && most > timed_columns(w) / (w->vec * POINT_BLOCK))
        most = timed_columns(w) / (w->vec * POINT_BLOCK);
    /* Rows whose elements lie apart: sums of 8 GB over 4,096 rows take 2,028 us with four loads, 2,416 with
     * eight; the place of the largest takes 2,182 and 2,407 (H200, 2026-12-01). */
    if (most > (w->strip >= 0 ? 4 : 8)) most = w->strip >= 0 ? 4 : 8;
    while (bytes && 2 * items * bytes <= flight && 2 * items <= most) items *= 2;
    w->items = w->keep || w->alone || (w->k->scan >= 0 && w->strip >= 0)
                   ? 1
                   : writer_choose(w, GENE_ITEMS, items, 1, 8);
}

int kernel_is_wide(const Kernel *k)
{
    int wide = 0;
    for (int i = 0; i < k->n; i++) {
        const Node *x = &k->nodes->node[k->step[i].node];
        if (x->stored && k->step[i].arg[0] < 0) wide |= node_count(x).at[0] >= 1 << 30;
    }
    for (int r = 0; r < k->n_roots; r++)
        wide |= node_count(&k->nodes->node[k->root[r].node]).at[0] >= 1 << 30;
    return wide;
}

void writer_schedule(Writer *w)
{
    w->lanes = w->items = 1;
    w->block = BLOCK;
    w->wide = kernel_is_wide(w->k);
    choose_axes(w);
    choose_slices(w);
    choose_vector(w);
    if (w->k->scan >= 0)
        choose_scan(w);
    else if (w->k->has_folds)
        choose_lanes(w);
    if (w->columns) choose_items(w);
    if (w->k->has_folds ? w->strip < 0 && w->lanes <= 32 : w->columns != 0)
        w->block = writer_choose(w, GENE_BLOCK, w->k->has_folds ? BLOCK : POINT_BLOCK, 64, 1024);
}

int writer_threads(const Writer *w)
{
    if (w->turned) return 32 * TURNED_WARPS;
    if (w->strip >= 0) return 32 * w->lanes;
    return w->k->has_folds && w->lanes > 32 ? w->lanes : w->block;
}

void writer_axes_plain(Writer *w)
{
    w->lanes = w->items = w->vec = 1;
    w->block = BLOCK;
    w->wide = kernel_is_wide(w->k);
    choose_axes(w);
    w->alone = 0;
}

int writer_schedule_plain(Writer *w)
{
    const int apart = w->strip >= 0;
    int lanes = 1;
    choose_vector(w);
    w->strip = -1;
    while (w->k->has_folds && !apart && lanes < STREAM_LANES &&
           lanes * 4 * w->vec < timed_columns(w))
        lanes *= 2;
    w->block = writer_choose(w, GENE_BLOCK, lanes > 32 ? lanes : BLOCK, 64, 1024);
    return lanes;
}

void writer_schedule_tiles(Writer *w, int across)
{
    w->lanes = w->items = 1;
    w->block = BLOCK;
    w->wide = kernel_is_wide(w->k);
    choose_axes(w);
    w->last = across;
    w->strip = -1;
    choose_vector(w);
}

void writer_element_axes(Writer *w, const KernelElement *e)
{
    unsigned of[3] = {0}; /* batch, row, column */
    const Axes *a = &w->k->axes;
    const Size plane = size_times(e->rows, e->width);
    const char *type = e->is_small ? "int" : "long long";
    int apart = !size_is(e->rows, 0);
    for (int i = 0; i < a->n; i++) {
        const Size by = w->k->root[0].at.by[i];
        if (w->k->bound[i] >= 0 || size_is(a->size[i], 1)) continue;
        const int line = size_divides(e->width, by), batch = apart && size_divides(plane, by);
        of[line ? !batch : 2] |= 1u << i;
        apart &= !line || batch || size_divides(size_times(by, a->size[i]), plane);
    }
    if (apart) writer_axes(w, of[0], "batch", type, "        ");
    writer_axes(w, apart ? of[1] : of[0] | of[1], apart ? "row" : "line", type, "        ");
    if (e->between) buffer_puts(&w->body, e->between);
    writer_axes(w, of[2], "column", type, "        ");
}
