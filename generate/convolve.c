/* Which op lines are convolutions that a kernel can compute, which of its tiles and copies is fastest, and
 * what of the graph around them it computes, too; the texts of the kernels. The loops are in convolve.cu.
 * Over 800 lines: what is chosen and what is written are of the same tiles. */
#include "generate/convolve.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/embed.h"
#include "base/memory.h"
#include "generate/depthwise.h"
#include "generate/estimate.h"
#include "generate/fold_text.h"
#include "generate/layout.h"

/* Of convolve.cu. STAGING: bytes of results on their way; FOLDED_LINE: of folds of an output. */
enum {
    LINE = 128,
    QUAD = 4,
    TERMS = 32,
    THREADS = 256,
    COLUMNS = 128,
    WIDE = 256,
    COPIER = 32,
    STAGING = 32768,
    FOLDED_LINE = 32,
    ALIGN = 1024,
    MOST_STAGES = 8,
    LEAST_FILTERS = 4,
    MOST_BOX = 256
};
enum { SMS = 132, RESIDENT = 2, NEAR = 40 };
enum {
    MOST_IMAGE = 1 << 28,
    SHARED_FOR_STAGES = 98304,
    MOST_SHARED = 115712,
    MOST_SHARED_ALONE = 232448
};
/* What takes how long on an H200 (2026-11-30, KernelBench's convolutions of two dimensions of 32 to 128
 * filters): flops a second by rows and columns of a tile, and what a tile takes beside its sums, where
 * threads copy (by its simulation) and by tensor maps, of each tap; what tiles of 64 by 256 take whose taps
 * read one box, of twice or four times four channels; bytes a second, and launches. Shares of the library's
 * time, of which the model errs by a tenth: enough; by tensor maps most_maps, where pointwise operators
 * follow (k2_1 and k2_31 gained 10%, k2_54 lost 6%), most_strided, where the outputs of a class lie apart
 * (k2_2 gained 10%, k2_5 lost 2%), and most_alone where nothing follows. apart_store: for an output of a
 * class where threads copy (k2_91 and k2_93 took 1,340 and 1,360 us for 275 million, 720 and 810 by the rest
 * of the model), apart_read: for an element that is read beside it (k2_26: 2,480 us, cuDNN's 1,276). */
static const double async_rate[2] = {2.2e14, 2.8e14}, async_tile = 1.5e-6,
                    maps_rate[2][2] = {{2.1e14, 2.25e14}, {3.6e14, 4.7e14}},
                    maps_tile[2][2] = {{1.5e-6, 2.4e-6}, {2.2e-6, 8.9e-6}},
                    halo_rate[2] = {3.2e14, 4.9e14}, halo_tile = 1.5e-6, halo_store = 4.1e-6,
                    bytes_rate = 3.3e12, launches = 8e-6, enough = 0.75, most_maps = 0.85,
                    most_strided = 0.78, most_alone = 1, apart_store = 2e-12, apart_read = 5e-12;

typedef struct {
    Convolution at[SIZE_BINDINGS];
} Bindings;

static int read_bindings(const Nodes *n, int line, Bindings *b)
{
    for (int k = 0; k < SIZE_BINDINGS; k++)
        if (!convolution_read(&n->sizes->bound[k]->calls[line].call, &b->at[k])) return 0;
    return 1;
}

/* Strides and the like are numbers, and the same at every binding. */
static int is_plain(const Bindings *b)
{
    for (int k = 0; k < SIZE_BINDINGS; k++) {
        const Convolution *v = &b->at[k];
        if (v->groups != 1 || !v->batched || !convolution_by_library(v)) return 0;
        for (int d = 0; d < WINDOW_DIMS; d++) {
            const Window *w = &v->w[d], *first = &b->at[0].w[d];
            if (w->stride != first->stride || w->padding != first->padding ||
                w->dilation != first->dilation ||
                (v->transposed && w->stride > 1 && w->dilation > 1))
                return 0;
        }
    }
    return 1;
}

/* ---- sizes ---- */

typedef struct {
    Size in[WINDOW_DIMS], out[WINDOW_DIMS], kernel[WINDOW_DIMS], channels, images, places, outputs,
        taps, filters;
} Shape;

static Shape shape_of(const Bindings *b)
{
    Shape s;
    s.places = s.outputs = s.taps = size_number(1);
    for (int d = 0; d < WINDOW_DIMS; d++) {
        for (int k = 0; k < SIZE_BINDINGS; k++) {
            s.in[d].at[k] = b->at[k].w[d].in;
            s.out[d].at[k] = b->at[k].w[d].out;
            s.kernel[d].at[k] = b->at[k].w[d].kernel;
        }
        s.places = size_times(s.places, s.in[d]);
        s.outputs = size_times(s.outputs, s.out[d]);
        s.taps = size_times(s.taps, s.kernel[d]);
    }
    for (int k = 0; k < SIZE_BINDINGS; k++) {
        s.channels.at[k] = b->at[k].in;
        s.filters.at[k] = b->at[k].out;
        s.images.at[k] = b->at[k].batch;
    }
    return s;
}

static void set_sizes(const Shape *s, MatrixProduct *out)
{
    out->count[PRODUCT_BATCH] = s->images;
    out->count[PRODUCT_ROWS] = s->filters;
    out->count[PRODUCT_COLUMNS] = s->outputs;
    out->count[PRODUCT_DEPTH] = size_times(s->channels, s->taps);
    Size *step = out->side[PRODUCT_C].step;
    step[PRODUCT_COLUMNS] = size_number(1);
    step[PRODUCT_ROWS] = s->outputs;
    step[PRODUCT_BATCH] = size_times(s->outputs, s->filters);
}

int convolve_read(const Nodes *n, int node, MatrixProduct *out)
{
    const Node *x = &n->node[node];
    Bindings b;
    memset(out, 0, sizeof *out);
    if (x->kind != NODE_KEPT || x->dtype != DTYPE_F32 || x->last || !n->kept[x->line] ||
        !(n->sizes->task->tf32 & TF32_CUDNN) || !read_bindings(n, x->line, &b) || !is_plain(&b))
        return 0;
    const Convolution *v = &b.at[0];
    const int *in = n->kept[x->line];
    const Shape s = shape_of(&b);
    if (v->x->dtype != DTYPE_F32 || in[v->x_index] < 0 || in[v->weight_index] < 0 ||
        s.places.at[0] * (s.channels.at[0] + QUAD) > MOST_IMAGE || s.outputs.at[0] > MOST_IMAGE)
        return 0;
    *out = (MatrixProduct){
        .of = node, .dtype = DTYPE_F32, .convolution = CONVOLUTION, .alpha = 1, .beta = 1};
    out->side[PRODUCT_A].node = in[v->weight_index];
    out->side[PRODUCT_B].node = in[v->x_index];
    out->side[PRODUCT_D].node = v->bias ? in[v->bias_index] : -1;
    out->side[PRODUCT_D].step[PRODUCT_ROWS] = size_number(1);
    set_sizes(&s, out);
    return 1;
}

/* ---- which is faster ---- */

static int tile_rows(const MatrixProduct *m)
{
    return m->count[PRODUCT_ROWS].at[0] > 64 ? 128 : 64;
}

/* Outputs of the largest class along a dimension. */
static double most_along(const Convolution *v, int d)
{
    return ceil((double)v->w[d].out / (v->transposed ? (double)v->w[d].stride : 1));
}

/* Of the outputs of a transposed one, which read by the same taps. */
static double classes_of(const Convolution *v)
{
    double classes = 1;
    for (int d = 0; d < WINDOW_DIMS && v->transposed; d++) classes *= (double)v->w[d].stride;
    return classes;
}

/* The tiles of the largest class of an image. */
static double tiles_of(const Convolution *v, const MatrixProduct *m)
{
    double outputs = 1, boxes = 1;
    for (int d = 0; d < WINDOW_DIMS; d++) {
        outputs *= most_along(v, d);
        boxes *= ceil(most_along(v, d) / m->box[d]);
    }
    return m->copy == COPY_TENSOR ? boxes : ceil(outputs / m->tile);
}

/* 1: the windows of a pool are whole in the tiles, and in the 64 outputs of them that a warp has at once. */
static int has_windows(const MatrixProduct *m)
{
    const int *w = m->window, plane = m->box[1] * m->box[2];
    int whole = 1;
    for (int d = 0; d < WINDOW_DIMS; d++) whole &= m->box[d] % w[d] == 0;
    return whole && (w[0] == 1 || 64 % (w[0] * plane) == 0) &&
           (w[1] == 1 || 64 % (w[1] * m->box[2]) == 0);
}

/* What all taps read of the input comes at once, for tiles of 64 filters: two blocks have room for it. Lines
 * of 8 outputs lie below one another. Returns 1 where that is so. */
static int choose_halo(const Bindings *b, MatrixProduct *m)
{
    const Convolution *v = &b->at[0];
    const Shape s = shape_of(b);
    const int high = (int)m->tile / 8;
    int64_t halo[3], taps = 1;
    m->quads = 0;
    for (int d = 0; d < WINDOW_DIMS; d++) {
        const int64_t by = v->transposed ? v->w[d].stride : 1, n = (v->w[d].kernel + by - 1) / by;
        if (!size_constant(s.kernel[d])) return 0;
        halo[d] = (n - 1) * v->w[d].dilation;
        if (d) taps *= n;
    }
    const int64_t plane = (high + halo[1]) * (8 + halo[2]) * 16;
    if (tile_rows(m) > 64 || m->tile < WIDE || taps < 2 || v->w[1].out < 2 ||
        halo[2] > MOST_BOX / QUAD - 8 || high + halo[1] > MOST_BOX)
        return 0;
    for (int quads = v->in > 2 * QUAD ? 4 : 2; quads; quads -= 2) {
        if (2 * quads * plane + LEAST_FILTERS * quads * 64 * 16 > MOST_SHARED - 3 * ALIGN) continue;
        m->quads = quads;
        m->box[0] = 1, m->box[1] = high, m->box[2] = 8;
        for (int d = 0; d < WINDOW_DIMS; d++) m->halo[d] = (int)halo[d];
        if (!m->window[0] || has_windows(m)) return 1;
    }
    m->quads = 0;
    return 0;
}

/* The box of outputs that leaves fewest beside the image; among equal ones the widest. With a pool behind it
 * one that has its windows, if there is any. */
static void choose_box(const Bindings *b, MatrixProduct *m)
{
    const Convolution *v = &b->at[0];
    double best = HUGE_VAL;
    m->copy = COPY_TENSOR;
    if (choose_halo(b, m)) return;
    memset(m->box, 0, sizeof m->box);
    for (int wide = m->tile; wide >= 8; wide /= 2)
        for (int high = m->tile / wide; high; high /= 2) {
            MatrixProduct x = *m;
            x.box[0] = m->tile / wide / high, x.box[1] = high, x.box[2] = wide;
            const double tiles = tiles_of(v, &x);
            if (tiles >= best || (m->window[0] && !has_windows(&x))) continue;
            best = tiles;
            memcpy(m->box, x.box, sizeof m->box);
        }
    if (m->box[0] || !m->window[0]) return;
    m->window[0] = 0;
    choose_box(b, m);
}

/* Neighbouring outputs of a class read neighbours, which a tensor map has as a box. */
static int is_mapped(const Convolution *v)
{
    int same = 1;
    for (int d = 0; d < WINDOW_DIMS; d++) same &= v->transposed || v->w[d].stride == 1;
    return same;
}

/* In which the input is packed. */
static double pack_seconds(const Bindings *b)
{
    const Convolution *v = &b->at[0];
    const double quads = ceil((double)v->in / QUAD);
    return 4 * (double)(v->batch * shape_of(b).places.at[0]) * (quads * QUAD + (double)v->in) /
           bytes_rate;
}

/* Outputs of the convolution for each result. */
static double window_of(const Convolution *v, const MatrixProduct *m)
{
    if (m->copy != COPY_TENSOR || !m->window[0]) return 1;
    return m->window[0] * m->window[1] * m->window[2] * (m->by_classes ? classes_of(v) : 1);
}

static double seconds(const Bindings *b, const MatrixProduct *m)
{
    const Convolution *v = &b->at[0];
    const Shape s = shape_of(b);
    const int rows = tile_rows(m), maps = m->copy == COPY_TENSOR;
    double taps = 1;
    for (int d = 0; d < WINDOW_DIMS; d++)
        taps *= ceil((double)v->w[d].kernel / (v->transposed ? (double)v->w[d].stride : 1));
    const double quads = ceil((double)v->in / QUAD), each = m->quads ? m->quads : 8,
                 fill = fmin(1, (double)v->out / rows);
    double depth = maps ? taps * ceil(quads / each) * each * QUAD : ceil(taps * quads / 8) * TERMS,
           images = (double)v->batch,
           items = ceil((double)v->out / rows) * tiles_of(v, m) * images * classes_of(v),
           packed = pack_seconds(b) * bytes_rate,
           result = 4 * images * (double)(s.outputs.at[0] * v->out) / window_of(v, m),
           rate = m->quads ? halo_rate[m->quads > 2]
                  : maps   ? maps_rate[rows > 64][m->tile == WIDE]
                           : async_rate[rows > 64],
           tile = m->quads ? halo_tile + halo_store * fill / window_of(v, m)
                  : maps   ? maps_tile[rows > 64][m->tile == WIDE]
                           : async_tile,
           sums = ceil(items / SMS) * (2. * rows * m->tile * depth / (rate / SMS) + tile);
    return fmax(sums, (packed / 2 + result) / bytes_rate) + packed / bytes_rate + launches;
}

/* With what reads the result behind it: a pool writes less. */
static double library_seconds_of(const Bindings *b, const MatrixProduct *m)
{
    const Convolution *v = &b->at[0];
    const Shape s = shape_of(b);
    const double input = (double)(v->batch * v->in * s.places.at[0]),
                 result = (double)(v->batch * v->out * s.outputs.at[0]);
    double first = layout_library_time(v, 1, 0),
           last = layout_library_time(v, 1, 1) + 1e-6 * layout_us(8 * input);
    const int *w = m->window;
    const double share = w[0] ? 1. / (w[0] * w[1] * w[2] * (m->by_classes ? classes_of(v) : 1)) : 1;
    return fmin(first, last) + 1e-6 * layout_us(4 * result * (1 + share));
}

double convolve_us(const Nodes *n, const MatrixProduct *m)
{
    Bindings b;
    if (!read_bindings(n, n->node[m->of].line, &b)) return 0;
    return 1e6 *
           (seconds(&b, m) - (n->node[m->side[PRODUCT_B].node].packed ? pack_seconds(&b) : 0));
}

/* A fold reads what is made of a node, and may have it in the library's order. */
static int is_folded(const Nodes *n, int of)
{
    unsigned char *seen = memory_array((size_t)n->n, 1);
    for (int i = 0; i < n->n; i++)
        if (n->node[i].kind == NODE_FOLD || n->node[i].kind == NODE_SCAN)
            node_mark(n, n->node[i].arg[0], seen);
    const int folded = seen[of];
    free(seen);
    return folded;
}

/* Below which share of the library's time a kernel is chosen. */
static double enough_of(const Nodes *n, const Convolution *v, const MatrixProduct *m)
{
    int result = 0;
    if (m->copy != COPY_TENSOR || (!m->quads && v->out % tile_rows(m))) return enough;
    if (m->window[0]) return m->by_classes ? 0 : most_maps; /* k2_78 took 2,414 us, cuDNN's 2,062 */
    if (classes_of(v) > 1) return most_strided;
    for (int i = 0; i < n->graph->n_outputs; i++) result |= n->output[i] == m->of;
    return result ? most_alone : most_maps;
}

/* The tile, and how it is copied, by which the kernel is fastest. Returns its seconds. */
static double choose_tile(const Bindings *b, MatrixProduct *m, int maps)
{
    m->tile = COLUMNS, m->copy = COPY_ASYNC;
    double best = seconds(b, m);
    for (int tile = COLUMNS; tile <= WIDE && maps; tile *= 2) {
        MatrixProduct x = *m;
        x.tile = tile;
        choose_box(b, &x);
        const double time = seconds(b, &x);
        if (time < best) best = time, *m = x;
    }
    return best;
}

/* ---- what is made of a convolution alone ---- */

static int arguments(const Nodes *n, int node)
{
    const Node *x = &n->node[node];
    return x->kind == NODE_KEPT ? n->sizes->bound[0]->calls[x->line].call.n_tensors : 3;
}

/* The node's argument number i, or its line's tensor; -1: none. */
static int argument(const Nodes *n, int node, int i)
{
    const Node *x = &n->node[node];
    return x->kind == NODE_KEPT ? n->kept[x->line][i] : x->arg[i];
}

static void mark_live(const Nodes *n, int node, unsigned char *live)
{
    if (node < 0 || live[node]) return;
    live[node] = 1;
    for (int i = 0; i < arguments(n, node); i++) mark_live(n, argument(n, node, i), live);
}

/* How often a node is read on the way to the graph's outputs. */
static int count_reads(const Nodes *n, int node)
{
    unsigned char *live = memory_array((size_t)n->n, 1);
    int reads = 0;
    for (int i = 0; i < n->graph->n_outputs; i++) {
        reads += n->output[i] == node;
        mark_live(n, n->output[i], live);
    }
    for (int i = 0; i < n->n; i++)
        for (int a = 0; live[i] && a < arguments(n, i); a++) reads += argument(n, i, a) == node;
    free(live);
    return reads;
}

/* The node of the same elements in the same order that a view has; -1: it has others. */
static int whole(const Nodes *n, int view)
{
    const Node *x = &n->node[view];
    Size step = size_number(1);
    for (int d = x->rank - 1; d >= 0; d--) {
        if (!size_is(x->size[d], 1) && !size_same(x->step[d], step)) return -1;
        step = size_times(step, x->size[d]);
    }
    return size_is(x->offset, 0) && size_same(step, node_count(&n->node[x->arg[0]])) ? x->arg[0]
                                                                                     : -1;
}

/* The one argument of a point that may be made of a convolution; -1: none, or several. */
static int main_argument(const Nodes *n, const Node *x)
{
    int found = -1;
    for (int i = 0; i < 3; i++) {
        if (x->arg[i] < 0 || !node_same_shape(x, &n->node[x->arg[i]])) continue;
        const Node *a = &n->node[x->arg[i]];
        if (a->stored && a->kind != NODE_KEPT) continue;
        if (found >= 0) return -1;
        found = x->arg[i];
    }
    return found;
}

/* The kept node of which pointwise operators make a node, which may lie in memory, and nothing else; -1:
 * none. */
static int kept_below(const Nodes *n, int node)
{
    for (int depth = 0; depth < NEAR && node >= 0; depth++) {
        const Node *x = &n->node[node];
        if (count_reads(n, node) != 1) return -1;
        if (x->kind == NODE_KEPT) return node;
        if ((depth && x->stored) || (x->kind != NODE_VIEW && x->kind != NODE_POINT)) return -1;
        node = x->kind == NODE_VIEW ? whole(n, node) : main_argument(n, x);
    }
    return -1;
}

/* ---- the route ---- */

/* A depthwise convolution with a kernel reads what is made of a convolution. */
static int before_depthwise(const Nodes *n, int of)
{
    MatrixProduct m;
    for (int i = 0; i < n->n; i++)
        if (depthwise_read(n, i, &m) && kept_below(n, m.side[PRODUCT_B].node) == of) return 1;
    return 0;
}

/* 1: a fold within the convolution's kernel takes its outputs, and no kernel stores them. */
static int is_taken(const Nodes *n, int of)
{
    int taken = 0;
    for (int i = 0; i < n->n && !taken; i++)
        taken = n->node[i].kind == NODE_FOLD && n->node[i].fold <= FOLD_MIN &&
                n->node[i].pair < 0 && kept_below(n, n->node[i].arg[0]) == of;
    return taken;
}

/* 1: a node is made of another one elementwise, or of places of it. */
static int is_made(const Nodes *n, int node, int of)
{
    unsigned char *seen = memory_array((size_t)n->n, 1);
    node_mark(n, node, seen);
    const int made = seen[of];
    free(seen);
    return made;
}

/* How many tensors as large as the result pointwise operators behind it read. */
static int read_beside(const Nodes *n, int of)
{
    int count = 0;
    for (int i = 0; i < n->n; i++)
        for (int a = 0; a < 3 && n->node[i].kind == NODE_POINT; a++) {
            const int arg = n->node[i].arg[a];
            count += arg >= 0 && node_same_shape(&n->node[arg], &n->node[of]) &&
                     is_made(n, i, of) && !is_made(n, arg, of);
        }
    return count;
}

/* What the outputs of a class, which lie apart, take more to store, and what is read beside them. */
static double apart_seconds(const Nodes *n, const Bindings *b, const MatrixProduct *m)
{
    const Convolution *v = &b->at[0];
    const double outputs = (double)(v->batch * v->out * shape_of(b).outputs.at[0]);
    if (classes_of(v) == 1 || m->copy == COPY_TENSOR || is_taken(n, m->of)) return 0;
    return outputs * (apart_store + read_beside(n, m->of) * apart_read);
}

/* Sets the windows of a pool, a fold, that lie side by side, and how many there are. Returns what is pooled;
 * -1: it is no such pool. */
static int read_pool(const Nodes *n, int fold, MatrixProduct *m)
{
    const Node *f = &n->node[fold];
    if (f->kind != NODE_FOLD || f->fold > FOLD_MIN || f->pair >= 0 || f->dtype != DTYPE_F32)
        return -1;
    const Node *x = &n->node[f->arg[0]];
    const int dims = (x->rank - 2) / 2;
    if (x->kind != NODE_VIEW || x->stored || !size_is(x->offset, 0) || dims < 1 ||
        x->rank != 2 + 2 * dims || f->dims != ((1u << dims) - 1) << (2 + dims))
        return -1;
    const Node *a = &n->node[x->arg[0]];
    Size step = size_number(1);
    if (a->rank != 2 + dims || a->dtype != DTYPE_F32) return -1;
    for (int d = 0; d < WINDOW_DIMS; d++) m->window[d] = 1, m->pooled[d] = size_number(1);
    for (int d = a->rank - 1; d >= 0; d--) {
        const Size size = d < 2 ? size_number(1) : x->size[d + dims];
        if (!size_same(x->step[d], size_times(step, size)) || !size_constant(size) ||
            (d < 2 ? !size_same(x->size[d], a->size[d]) : !size_same(x->step[d + dims], step)))
            return -1;
        if (d >= 2) {
            m->window[WINDOW_DIMS - 2 - dims + d] = (int)size.at[0];
            m->pooled[WINDOW_DIMS - 2 - dims + d] = x->size[d];
        }
        step = size_times(step, a->size[d]);
    }
    return x->arg[0];
}

/* Sets the windows of the pool behind a convolution, which nothing else reads. Those of one with classes have
 * an output of each of them. */
static void find_pool(const Nodes *n, const Bindings *b, MatrixProduct *m)
{
    const Convolution *v = &b->at[0];
    m->by_classes = classes_of(v) > 1;
    m->window[0] = 0;
    for (int i = 0; i < n->n && !n->plain; i++) {
        const int of = read_pool(n, i, m);
        int fits = of >= 0 && (!n->node[of].stored || of == m->of) && kept_below(n, of) == m->of;
        for (int d = 0; d < WINDOW_DIMS && fits && m->by_classes; d++) {
            fits = m->window[d] == v->w[d].stride;
            m->window[d] = 1;
        }
        if (fits) return;
        m->window[0] = 0;
    }
}

static int default_route(const Nodes *n, const Bindings *b, MatrixProduct *m)
{
    MatrixProduct before;
    const int kept = kept_below(n, m->side[PRODUCT_B].node),
              packed = kept >= 0 && depthwise_read(n, kept, &before);
    const double time = choose_tile(
                            b, m, is_mapped(&b->at[0]) && (m->window[0] || !is_folded(n, m->of))) -
                        (packed ? pack_seconds(b) : 0) + apart_seconds(n, b, m),
                 share =
                     packed || before_depthwise(n, m->of) ? most_alone : enough_of(n, &b->at[0], m);
    return time < share * library_seconds_of(b, m) ? ROUTE_TENSOR : ROUTE_LIBRARY;
}

void convolve_choose(const Nodes *n, const char *key, MatrixProduct *m)
{
    Bindings b;
    if (!read_bindings(n, n->node[m->of].line, &b)) return;
    find_pool(n, &b, m);
    const int mapped = is_mapped(&b.at[0]), route = default_route(n, &b, m);
    m->parts = 1;
    m->route = genes_choose(
        n->genes, key, &(GenePoint){.gene = GENE_ROUTE, .by_default = route, .most = ROUTE_TENSOR});
    if (m->route == ROUTE_LIBRARY) return;
    m->copy = genes_choose(n->genes, key,
                           &(GenePoint){.gene = GENE_COPY,
                                        .by_default = m->copy,
                                        .least = COPY_ASYNC,
                                        .most = mapped ? COPY_TENSOR : COPY_ASYNC});
    m->tile = genes_choose(n->genes, key,
                           &(GenePoint){.gene = GENE_TILE,
                                        .by_default = m->copy == COPY_TENSOR ? m->tile : COLUMNS,
                                        .least = COLUMNS,
                                        .most = m->copy == COPY_TENSOR ? WIDE : COLUMNS,
                                        .step = COLUMNS});
    if (m->copy == COPY_TENSOR)
        choose_box(&b, m);
    else
        memset(m->box, 0, sizeof m->box), m->quads = m->window[0] = 0;
}

/* Results have shared memory of their own where a block makes several items: its stages are filled again. */
static int staging_of(const MatrixProduct *m)
{
    return m->stat[0]                                 ? STAGING
           : m->folded && m->folded != FOLDED_WINDOWS ? FOLDED_LINE * (int)m->tile
                                                      : 0;
}

/* A block's threads, how many a multiprocessor has of it, and its stages and bytes of shared memory. */
typedef struct {
    int threads, resident, stages, shared;
} Blocks;

static int64_t halo_bytes(const MatrixProduct *m)
{
    const int64_t plane = (m->box[1] + m->halo[1]) * (m->box[2] + m->halo[2]) * 16;
    return 2 * ((m->quads * plane + 127) / 128 * 128);
}

static Blocks blocks_of(const MatrixProduct *m)
{
    const int rows = tile_rows(m), own = staging_of(m),
              stage = m->quads ? m->quads * rows * 16 : LINE * (rows + (int)m->tile),
              input = m->quads ? (int)halo_bytes(m) : 0;
    if (m->copy != COPY_TENSOR)
        return (Blocks){THREADS, RESIDENT, SHARED_FOR_STAGES / stage,
                        SHARED_FOR_STAGES / stage * stage + ALIGN};
    /* a block with two numbers for each of its sums has all registers */
    const int twice = m->folded == FOLDED_WINDOWS && m->by_classes,
              alone = (m->tile == WIDE && (own || twice || rows > 64)) || (twice && rows > 64),
              room = (alone ? MOST_SHARED_ALONE : MOST_SHARED) - 2 * ALIGN - own - input,
              stages = room / stage < MOST_STAGES ? room / stage : MOST_STAGES,
              least =
                  m->quads && stages * stage + input < STAGING ? STAGING : stages * stage + input;
    return (Blocks){THREADS + COPIER, alone ? 1 : RESIDENT, stages, least + own + ALIGN};
}

/* ---- folds ---- */

/* A block has a tile of an image of so many; of a larger one several. */
enum { MOST_PARTS = 512 };

/* Which lines of a product a fold is over: all filters, or all outputs of an image. */
static int folded_lines(const Nodes *n, const Node *f, const MatrixProduct *m)
{
    const Node *x = &n->node[f->arg[0]];
    int over = 0;
    Size count = size_number(1);
    if (f->dims == 2 && node_same_shape(x, &n->node[m->of])) return PRODUCT_ROWS;
    for (int d = 0; d < x->rank; d++) {
        if (size_is(x->size[d], 1)) continue;
        if (!(f->dims >> d & 1) && over) return 0;
        over |= f->dims >> d & 1;
        if (!over) count = size_times(count, x->size[d]);
    }
    return over && size_same(count, size_times(m->count[PRODUCT_BATCH], m->count[PRODUCT_ROWS]))
               ? PRODUCT_COLUMNS
               : 0;
}

int convolve_folded(const Nodes *n, int fold, MatrixProduct *out)
{
    const Node *f = &n->node[fold];
    if (n->plain || f->kind != NODE_FOLD || f->fold > FOLD_MIN || f->pair >= 0 ||
        f->dtype != DTYPE_F32)
        return -1;
    MatrixProduct pool;
    const int pooled = read_pool(n, fold, &pool), body = pooled < 0 ? f->arg[0] : pooled,
              is_own = n->node[body].dtype == DTYPE_F32 &&
                       (!n->node[body].stored || n->node[body].kind == NODE_KEPT),
              kept = is_own ? kept_below(n, body) : -1;
    if (kept < 0 || !convolve_read(n, kept, out)) return -1;
    product_choose(n, out, 0);
    out->fold = f->fold;
    out->parts = f->parts;
    out->folded = out->route == ROUTE_LIBRARY ? 0
                  : pooled < 0                ? folded_lines(n, f, out)
                  : out->window[0]            ? FOLDED_WINDOWS
                                              : 0;
    return out->folded ? body : -1;
}

int convolve_pools(const Nodes *n, int fold)
{
    MatrixProduct m;
    return !n->node[fold].parts && read_pool(n, fold, &m) >= 0 &&
           convolve_folded(n, fold, &m) >= 0 && m.folded == FOLDED_WINDOWS;
}

int convolve_around(const Nodes *n, int kept, int input)
{
    MatrixProduct m;
    const int before = kept_below(n, input);
    if (before < 0 || !convolve_read(n, before, &m)) return 0;
    product_choose(n, &m, 0);
    if (m.route == ROUTE_LIBRARY) return 0;
    for (int i = 0; i < n->n; i++) {
        if (!convolve_read(n, i, &m) || kept_below(n, m.side[PRODUCT_B].node) != kept) continue;
        product_choose(n, &m, 0);
        return m.route != ROUTE_LIBRARY;
    }
    return 0;
}

PackedLayout convolve_packed(const Nodes *n, int node)
{
    const Node *x = &n->node[node];
    PackedLayout layout = PACKED_NOT;
    int readers = 0, output = 0;
    MatrixProduct m;
    for (int i = 0; i < n->graph->n_outputs; i++) output |= n->output[i] == node;
    if (n->plain || output || x->last || x->dtype != DTYPE_F32) return PACKED_NOT;
    for (int i = 0; i < n->n; i++) {
        if (n->node[i].kind != NODE_KEPT || !product_read(n, i, &m) || !m.convolution ||
            m.side[PRODUCT_B].node != node)
            continue;
        product_choose(n, &m, 0);
        const PackedLayout own = packing_layout(&m);
        if (m.route == ROUTE_LIBRARY || (readers && own != layout)) return PACKED_NOT;
        layout = own;
        readers++;
    }
    return readers && readers == count_reads(n, node) ? layout : PACKED_NOT;
}

int convolve_parts(const Nodes *n, int fold)
{
    MatrixProduct m;
    Bindings b;
    if (n->node[fold].parts || convolve_folded(n, fold, &m) < 0 ||
        !read_bindings(n, n->node[m.of].line, &b))
        return 0;
    return m.folded != PRODUCT_COLUMNS
               ? 1
               : (int)fmin(tiles_of(&b.at[0], &m) * classes_of(&b.at[0]), MOST_PARTS);
}

/* ---- statistics ---- */

enum { NEAR_STEPS = 12, LARGE_PASS = 25000000, FOLDING = 4 * SMS };
/* Of sim:h200 (2026-11-30): seconds of an instruction for an element, needless rows of tiles counted; bytes a
 * second of a block that folds a row; instructions of an element beside those that make it; and seconds of
 * the kernels that join the parts. */
static const double instruction_time = 3.2e-14, row_rate = 1e10, measured_work = 8,
                    statistics_time = 6e-6;

/* The kept node of which a node is made elementwise, beside other tensors that lie in memory; -1: none. *of:
 * the first node on the way that has its shape. */
static int made_of(const Nodes *n, int node, int depth, int *of)
{
    const Node *x = &n->node[node];
    int found = -1, of_arg = -1;
    if (x->kind == NODE_KEPT) {
        *of = node;
        return node;
    }
    if (depth > NEAR_STEPS || x->stored || (x->kind != NODE_VIEW && x->kind != NODE_POINT))
        return -1;
    if (x->kind == NODE_VIEW)
        return whole(n, node) < 0 ? -1 : made_of(n, whole(n, node), depth + 1, of);
    for (int i = 0; i < 3; i++) {
        if (x->arg[i] < 0 || !node_same_shape(x, &n->node[x->arg[i]])) continue;
        const Node *a = &n->node[x->arg[i]];
        if (a->stored && a->kind != NODE_KEPT) continue;
        const int kept = made_of(n, x->arg[i], depth + 1, &of_arg);
        if (kept < 0 || (found >= 0 && found != kept)) return -1;
        found = kept;
    }
    *of = found >= 0 && node_same_shape(x, &n->node[found]) ? node : of_arg;
    return found;
}

/* What a fold's row has of channels; 0 at every binding: it has not all places of some. */
static Size channels_of(const Nodes *n, const Node *f, const MatrixProduct *m)
{
    const Node *x = &n->node[f->arg[0]];
    int over = 0;
    for (int d = 0; d < x->rank; d++) {
        if (size_is(x->size[d], 1)) continue;
        if (!(f->dims >> d & 1) && over) return size_number(0);
        over |= f->dims >> d & 1;
    }
    const Size row = size_over(node_count(x), node_count(f)), places = m->count[PRODUCT_COLUMNS];
    if (!over || !size_divides(places, row) ||
        !size_divides(size_over(row, places), m->count[PRODUCT_ROWS]))
        return size_number(0);
    return size_over(row, places);
}

/* Instructions that make an element of a node of the convolution's result. */
static double work_of(const Nodes *n, int node, int depth)
{
    const Node *x = &n->node[node];
    double work = x->kind == NODE_POINT ? point_work(x->text) : 0;
    if (x->stored || x->kind == NODE_KEPT || depth > NEAR_STEPS) return 0;
    for (int i = 0; i < 3; i++)
        if (x->arg[i] >= 0) work += work_of(n, x->arg[i], depth + 1);
    return work;
}

/* A pass that folds the results first reads them, and what reads them behind it once more, where they are too
 * many for L2. */
static int saves_time(const Nodes *n, const MatrixProduct *m, Size channels, int of)
{
    const double rows = (double)(m->count[PRODUCT_BATCH].at[0] * m->count[PRODUCT_ROWS].at[0]),
                 columns = (double)m->count[PRODUCT_COLUMNS].at[0],
                 row = columns * (double)channels.at[0], folds = rows / (double)channels.at[0],
                 tile = tile_rows(m),
                 needless = tile * ceil((double)m->count[PRODUCT_ROWS].at[0] / tile) /
                            (double)m->count[PRODUCT_ROWS].at[0];
    if (4 * fmin(folds, RESIDENT * SMS) * row < LARGE_PASS) return 0;
    const double pass = fmax(4 * rows * columns / bytes_rate,
                             ceil(folds / FOLDING) * 4 * row / row_rate),
                 cost = rows * columns * needless * instruction_time *
                        (measured_work + work_of(n, of, 0));
    return pass > cost + statistics_time;
}

/* Parts of a channel's statistics, which the convolution's kernel makes, as those of the fold's rows. */
static int add_statistics(Nodes *n, int spread, const MatrixProduct *m, Size channels, int of)
{
    Node x = n->node[spread];
    Size size[OP_MAX_RANK];
    const int rank = x.rank;
    memcpy(size, x.size, sizeof size);
    size[rank] = size_times(channels, size_number(m->parts));
    x.rank = 3;
    x.size[0] = m->count[PRODUCT_BATCH], x.size[1] = m->count[PRODUCT_ROWS];
    x.size[2] = size_number(m->parts);
    x.parts = m->parts, x.by = m->of, x.arg[0] = of, x.stored = 1;
    x.value = x.pair = x.whole = -1;
    x.name[0] = 0;
    return node_reshape(n, node_add(n, &x), rank + 1, size);
}

static void measure(Nodes *n, int spread)
{
    MatrixProduct m, other;
    Bindings b;
    const Node f = n->node[spread];
    int of;
    if (f.kind != NODE_FOLD || f.fold != FOLD_SPREAD || f.pair < 0 || f.dtype != DTYPE_F32 ||
        f.rank == OP_MAX_RANK || f.parts || n->node[f.arg[0]].dtype != DTYPE_F32)
        return;
    const int kept = made_of(n, f.arg[0], 0, &of);
    if (kept < 0 || n->node[of].dtype != DTYPE_F32 || !convolve_read(n, kept, &m) ||
        convolve_measured(n, kept, &other) >= 0)
        return;
    const Size channels = channels_of(n, &f, &m);
    product_choose(n, &m, 0);
    if (size_is(channels, 0) || m.route == ROUTE_LIBRARY ||
        !read_bindings(n, n->node[kept].line, &b))
        return;
    char key[GRAPH_NAME];
    node_key(n, spread, key);
    if (!genes_choose(n->genes, key,
                      &(GenePoint){.gene = GENE_LESS,
                                   .by_default = saves_time(n, &m, channels, of),
                                   .most = 1}))
        return;
    /* a block makes one tile, but of a large image several */
    m.parts = (int)fmin(tiles_of(&b.at[0], &m) * classes_of(&b.at[0]), MOST_PARTS);
    int part[3];
    const Size columns = size_over(node_count(&n->node[f.arg[0]]), node_count(&f));
    for (int i = 0; i < 3; i++) part[i] = add_statistics(n, spread, &m, channels, of);
    kernel_join_spread(n, spread, part, columns);
    n->node[spread].stored = n->node[f.pair].stored = 1;
}

void convolve_statistics(Nodes *n)
{
    const int given = n->n;
    for (int i = 0; i < given && !n->plain; i++) measure(n, i);
}

int convolve_measured(const Nodes *n, int kept, MatrixProduct *out)
{
    int of = -1, found = 0;
    for (int i = 0; i < n->n && found < 3; i++) {
        if (n->node[i].by != kept) continue;
        out->stat[found++] = i;
        out->parts = n->node[i].parts;
        of = n->node[i].arg[0];
    }
    return of;
}

/* ---- the text ---- */

EMBED(generate_convolve, "generate/convolve.cu")

static void put_three(ProductWriter *w, const Size *s)
{
    for (int d = 0; d < WINDOW_DIMS; d++)
        buffer_printf(&w->body, "%s%s", d ? ", " : "{", product_size(w, s[d]));
    buffer_puts(&w->body, "}, ");
}

static void put_shape(ProductWriter *w, const Bindings *b, const Shape *s)
{
    Size stride[WINDOW_DIMS], padding[WINDOW_DIMS], dilation[WINDOW_DIMS];
    for (int d = 0; d < WINDOW_DIMS; d++) {
        stride[d] = size_number(b->at[0].w[d].stride);
        padding[d] = size_number(b->at[0].w[d].padding);
        dilation[d] = size_number(b->at[0].w[d].dilation);
    }
    buffer_puts(&w->body, "    const Convolution shape = {");
    put_three(w, s->in);
    put_three(w, s->out);
    put_three(w, s->kernel);
    put_three(w, stride);
    put_three(w, padding);
    put_three(w, dilation);
    buffer_printf(&w->body, "(%s + 3) / 4, %d, {%d, %d, %d}};\n", product_size(w, s->channels),
                  b->at[0].transposed, w->m->box[0], w->m->box[1], w->m->box[2]);
    if (w->m->quads)
        buffer_printf(&w->body,
                      "    const ConvolveHalo<%d, %d, %d> source = {filters_map, input_map};\n",
                      w->m->quads, w->m->box[1] + w->m->halo[1], w->m->box[2] + w->m->halo[2]);
    else
        buffer_printf(&w->body, "    const Convolve%s;\n",
                      w->m->copy == COPY_TENSOR ? "Maps source = {filters_map, input_map}"
                                                : "Memory source = {packed_filters, packed_input}");
}

static void put_fold(ProductWriter *w, const char *rows)
{
    const MatrixProduct *m = w->m;
    const int outputs = m->folded == PRODUCT_COLUMNS;
    char parts[16] = "";
    if (outputs) snprintf(parts, sizeof parts, "%d, ", m->parts);
    buffer_printf(&w->body,
                  "    convolve_fold_%s<%d, %d, %d>(shape, %s, source, %s"
                  "(float)%s,\n        [](float a, float b) { return %s; }, value, %s);\n",
                  outputs ? "outputs" : "filters", tile_rows(m), m->tile, blocks_of(m).stages, rows,
                  parts, fold_start(m->fold), fold_expression(m->fold), w->out);
}

/* A function `after` of a window's place and its fold. Names and parameters are the kernel's. */
static void put_after(ProductWriter *w, const char *rows)
{
    Kernel *k = w->join->after;
    const Size *n = w->m->pooled, plane = size_times(n[0], size_times(n[1], n[2]));
    buffer_puts(&w->body, "    const auto after = [&](long long batch, long long row, long long "
                          "column, float sum) {\n");
    if (!k) {
        buffer_puts(&w->body, "        return sum;\n    };\n");
        return;
    }
    buffer_printf(&w->body, "        const long long line = batch * %s + row;\n", rows);
    for (int i = 0; i < k->axes.n; i++)
        k->rows |= (unsigned)size_divides(plane, k->root[0].at.by[i]) << i;
    kernel_merge(k);
    kernel_share(k, w->k);
    const KernelElement e = {.n_given = 1,
                             .given = {w->join->pooled},
                             .width = plane,
                             .rows = w->m->count[PRODUCT_ROWS]};
    if (kernel_put_element(k, w->t, &e, &w->body, w->err)) w->failed = 1;
    kernel_share(w->k, k);
    buffer_puts(&w->body, "    };\n");
}

static void put_pool(ProductWriter *w, const char *rows)
{
    const MatrixProduct *m = w->m;
    put_after(w, rows);
    buffer_printf(&w->body, "    convolve_fold_%s<%d, %d, %d",
                  m->by_classes ? "classes" : "windows", tile_rows(m), m->tile,
                  blocks_of(m).stages);
    for (int d = 0; d < WINDOW_DIMS && !m->by_classes; d++)
        buffer_printf(&w->body, ", %d", m->window[d]);
    buffer_printf(&w->body, ">(shape, %s, source, ", rows);
    put_three(w, m->pooled);
    buffer_printf(&w->body,
                  "(float)%s,\n        [](float a, float b) { return %s; }, value, after, %s);\n",
                  fold_start(m->fold), fold_expression(m->fold), w->out);
}

/* The loop, behind the function that stores. */
static void put_call(ProductWriter *w, const char *rows)
{
    const MatrixProduct *m = w->m;
    const Blocks b = blocks_of(m);
    buffer_printf(&w->body, "    convolve%s<%d, %d, %d", m->stat[0] ? "_statistics" : "",
                  tile_rows(m), m->tile, b.stages);
    if (m->stat[0]) {
        buffer_printf(&w->body, ">(shape, %s, source, %d, value, {", rows, m->parts);
        for (int i = 0; i < 3; i++)
            buffer_printf(&w->body, "%s%s", i ? ", " : "", kernel_tensor(w->k, m->stat[i], 1));
        buffer_puts(&w->body, "}, ");
    } else {
        buffer_printf(&w->body, ">(shape, %s, source, ", rows);
    }
    buffer_puts(&w->body, "store);\n");
}

/* Two outputs of a filter. */
static void put_store(ProductWriter *w, const char *rows, const char *columns, const char *value)
{
    const char *type = dtype_ctype(w->k->nodes->node[w->k->root[0].node].dtype);
    buffer_printf(&w->body,
                  "    const auto store = [&](long long batch, long long row, int first, int "
                  "second, float2 sums) {\n"
                  "        if (row >= %s) return;\n"
                  "        %s *at = %s + (batch * %s + row) * %s;\n"
                  "        if (second == first + 1 && (%s | first) %% 2 == 0) {\n"
                  "            *(Pack<%s, 2> *)(at + first) = {%s(batch, row, first, sums.x), "
                  "%s(batch, row, second, sums.y)};\n"
                  "        } else {\n"
                  "            at[first] = %s(batch, row, first, sums.x);\n"
                  "            if (second >= 0) at[second] = %s(batch, row, second, sums.y);\n"
                  "        }\n    };\n",
                  rows, type, w->out, rows, columns, columns, type, value, value, value, value);
}

static void put_body(ProductWriter *w, const Bindings *b, const Shape *s)
{
    const char *value = "value";
    char rows[32], columns[32];
    snprintf(rows, sizeof rows, "%s", product_size(w, s->filters));
    snprintf(columns, sizeof columns, "%s", product_size(w, s->outputs));
    put_shape(w, b, s);
    product_put_value(w, rows);
    if (w->m->folded) {
        (w->m->folded == FOLDED_WINDOWS ? put_pool : put_fold)(w, rows);
        return;
    }
    if (w->m->stat[0]) {
        value = "result";
        product_put_result(w);
    }
    if (w->m->packed)
        packing_put_store(w, rows, columns);
    else
        put_store(w, rows, columns, value);
    put_call(w, rows);
}

/* ---- launches ---- */

static int read_texts(ProductWriter *w, const Shape *s, PackingTexts *t)
{
    SizeTable *sizes = w->k->nodes->sizes;
    return size_text(sizes, s->channels, t->channels, w->err) ||
                   size_text(sizes, s->images, t->images, w->err) ||
                   size_text(sizes, s->places, t->places, w->err) ||
                   size_text(sizes, s->taps, t->taps, w->err) ||
                   size_text(sizes, s->filters, t->filters, w->err) ||
                   size_text(sizes, s->outputs, t->outputs, w->err)
               ? -1
               : 0;
}

/* The kernel, or an equal one's number: in deep networks many are. */
static int put_source(const ProductWriter *w)
{
    const Blocks b = blocks_of(w->m);
    Buffer types;
    buffer_init(&types, 1 << 16);
    kernel_put_parameters(w->k, 1, product_is_wide(w), &types);
    char *source = memory_printf(
        "extern \"C\" __global__ void __launch_bounds__(%d, %d) kernel_@(%s, %s)\n{\n%s}\n\n",
        b.threads, b.resident, types.data,
        w->m->copy == COPY_TENSOR
            ? "const __grid_constant__ CUtensorMap filters_map, const __grid_constant__ "
              "CUtensorMap input_map"
            : "const float *__restrict__ packed_filters, const float *__restrict__ packed_input",
        w->body.data);
    const int number = kernel_put_source(w->t, source);
    free(source);
    buffer_release(&types);
    return number;
}

/* As the halo's convolve_bring copies them: four channels of a place are neighbours. */
static int put_halo_maps(ProductWriter *w, const Shape *s, const PackingTexts *t)
{
    const MatrixProduct *m = w->m;
    char text[WINDOW_DIMS][SIZE_TEXT];
    for (int d = 0; d < WINDOW_DIMS; d++)
        if (size_text(w->k->nodes->sizes, s->in[d], text[d], w->err)) return -1;
    buffer_printf(w->t->plan,
                  "//@ map filters_map_%d = tensor(%s, size=[%s, ceil_div(%s, %d), (%s) * "
                  "%d], box=[1, %d, 256])\n"
                  "//@ map input_map_%d = tensor(%s, size=[%s, ceil_div(%s, %d), %s, %s, "
                  "%s * %d], box=[1, %d, 1, %d, %d])\n",
                  w->t->number, packing_filters_name(w), t->taps, t->channels, QUAD, t->filters,
                  QUAD, m->quads, w->t->number, packing_input_name(w), t->images, t->channels, QUAD,
                  text[0], text[1], text[2], QUAD, m->quads, m->box[1] + m->halo[1],
                  (m->box[2] + m->halo[2]) * QUAD);
    return 0;
}

/* As convolve_box copies them: TERMS channels of filters, and of a box of places. */
static int put_maps(ProductWriter *w, const Shape *s, const PackingTexts *t)
{
    const MatrixProduct *m = w->m;
    char text[SIZE_TEXT];
    if (m->quads) return put_halo_maps(w, s, t);
    buffer_printf(w->t->plan,
                  "//@ map filters_map_%d = tensor(%s, size=[%s, %s, ceil_div(%s, %d) * "
                  "%d], box=[%d, 1, %d], swizzle=%d)\n"
                  "//@ map input_map_%d = tensor(%s, size=[%s, ",
                  w->t->number, packing_filters_name(w), t->filters, t->taps, t->channels, QUAD,
                  QUAD, tile_rows(m), TERMS, LINE, w->t->number, packing_input_name(w), t->images);
    for (int d = 0; d < WINDOW_DIMS; d++) {
        if (size_text(w->k->nodes->sizes, s->in[d], text, w->err)) return -1;
        buffer_printf(w->t->plan, "%s, ", text);
    }
    buffer_printf(w->t->plan, "ceil_div(%s, %d) * %d], box=[1, %d, %d, %d, %d], swizzle=%d)\n",
                  t->channels, QUAD, QUAD, m->box[0], m->box[1], m->box[2], TERMS, LINE);
    return 0;
}

/* How many tiles of outputs an image has, of all classes. */
static int put_tiles(ProductWriter *w, const Convolution *v, const Shape *s, Buffer *to)
{
    const MatrixProduct *m = w->m;
    const int boxes = m->copy == COPY_TENSOR;
    char text[SIZE_TEXT];
    if (!boxes) buffer_puts(to, "ceil_div(");
    for (int d = 0; d < WINDOW_DIMS; d++) {
        const int64_t by = v->transposed ? v->w[d].stride : 1;
        if (size_text(w->k->nodes->sizes, s->out[d], text, w->err)) return -1;
        buffer_puts(to, d ? " * " : "");
        if (boxes) buffer_puts(to, "ceil_div(");
        buffer_printf(to, by > 1 ? "ceil_div(%s, %lld)" : "%s", text, (long long)by);
        if (boxes) buffer_printf(to, ", %d)", m->box[d]);
    }
    if (!boxes) buffer_printf(to, ", %d)", m->tile);
    if (m->folded != FOLDED_WINDOWS) buffer_printf(to, " * %d", (int)classes_of(v));
    return 0;
}

static int put_launch(ProductWriter *w, const Bindings *b, const Shape *s, const PackingTexts *t)
{
    const MatrixProduct *m = w->m;
    const Blocks blocks = blocks_of(m);
    const int maps = m->copy == COPY_TENSOR;
    Buffer grid;
    buffer_init(&grid, 1 << 14);
    w->number = put_source(w);
    buffer_printf(&grid, "(%s)", t->images);
    if (m->folded != PRODUCT_ROWS)
        buffer_printf(&grid, " * ceil_div(%s, %d)", t->filters, tile_rows(m));
    if (m->folded == PRODUCT_COLUMNS || m->stat[0])
        buffer_printf(&grid, " * %d", m->parts);
    else
        buffer_puts(&grid, " * ");
    int rc = m->folded == PRODUCT_COLUMNS || m->stat[0] ? 0 : put_tiles(w, &b->at[0], s, &grid);
    if (!rc && maps) rc = put_maps(w, s, t);
    buffer_printf(w->t->plan, "//@ launch kernel_%d<<<%s, %d, %d>>>(", w->number, grid.data,
                  blocks.threads, blocks.shared);
    buffer_release(&grid);
    if (rc || kernel_put_arguments(w->k, w->t->plan, w->err)) return -1;
    if (maps)
        buffer_printf(w->t->plan, ", filters_map_%d, input_map_%d)\n", w->t->number, w->t->number);
    else
        buffer_printf(w->t->plan, ", %s, %s)\n", packing_filters_name(w), packing_input_name(w));
    return 0;
}

int convolve_write(ProductWriter *w)
{
    static const int columns[] = {64, 128, 256};
    Bindings b;
    PackingTexts t;
    if (!read_bindings(w->k->nodes, w->k->nodes->node[w->m->of].line, &b)) return -1;
    const Shape s = shape_of(&b);
    if (read_texts(w, &s, &t)) return -1;
    for (int i = 0; i < 3 && !(w->t->helpers >> HELP_CONVOLVE & 1); i++)
        product_put_multiply(w->t->source, "tf32", columns[i]);
    product_help(w->t, HELP_CONVOLVE, generate_convolve, "convolve");
    if (w->m->copy == COPY_TENSOR) {
        product_put_stages(w->t);
        product_help(w->t, w->m->quads ? HELP_CONVOLVE_HALO : HELP_CONVOLVE_MAPS, generate_convolve,
                     w->m->quads ? "halo" : "maps");
    }
    if (w->m->folded) writer_help(&(Writer){.t = w->t}, HELP_ORDER);
    if (w->m->folded == FOLDED_WINDOWS)
        product_help(w->t, HELP_CONVOLVE_WINDOWS, generate_convolve, "windows");
    else if (w->m->folded)
        product_help(w->t, HELP_CONVOLVE_FOLDS, generate_convolve, "folds");
    if (w->m->stat[0])
        product_help(w->t, HELP_CONVOLVE_STATISTICS, generate_convolve, "statistics");
    packing_help(w->t);
    put_body(w, &b, &s);
    if (packing_put_input(w, &t) || packing_put_filters(w, &t, b.at[0].transposed) ||
        put_launch(w, &b, &s, &t))
        w->failed = 1;
    return w->failed ? -1 : 0;
}
