/* Kernels that move elements from one order to another, with pointwise work on the way. The result varies
 * fastest along one axis, `across`, and some of what is read along another, `down`. A block has a tile of
 * both: it reads such tensors along `down` into shared memory, and takes them from there along `across`. */
#include <stdio.h>
#include <string.h>

#include "generate/estimate.h"
#include "generate/layout.h"
#include "generate/writer.h"

/* Elements of a tile; of fewer along an axis none is worth it. */
enum {
    TILE = 4096,
    SIDE = 64,
    LEAST_SIDE = 4,
    LEAST_AXIS = 3,
    LEAST_HEIGHT = 32,
    LONGEST = 256,
    MOST_TILES = 3
};

/* width: of the tile, along `across`. piece: the axis `down`, and those before it where all that is moved
 * lies in one piece along them; of several the loops have a flat number, `flat`. */
typedef struct {
    Writer w;
    int across, down, width, height;
    unsigned piece;
    unsigned char moved[KERNEL_STEPS];
} Tiles;

static int is_read(const Kernel *k, int step)
{
    return k->nodes->node[k->step[step].node].stored && k->step[step].arg[0] < 0;
}

static int is_axis(const Kernel *k, int axis)
{
    return k->axes.size[axis].at[0] >= LEAST_AXIS && !size_is(k->axes.size[axis], 1);
}

/* The axis along which neighbours of an element lie side by side; -1: none. */
static int walked(const Kernel *k, const Index *at)
{
    for (int i = 0; i < k->axes.n && !*at->text; i++)
        if (size_is(at->by[i], 1) && is_axis(k, i)) return i;
    return -1;
}

/* The same, where the place has a coordinate of the loops in place of the axis: that of a joined tensor,
 * which begins elsewhere than the result. */
static int walked_loop(const Kernel *k, const Index *at)
{
    const int axis = walked(k, at);
    if (axis < 0 || k->bound[axis] < 0) return axis;
    const Step *s = &k->step[k->bound[axis]];
    const int loop = s->place ? walked(k, &s->at) : -1;
    return loop >= 0 && k->bound[loop] < 0 ? loop : -1;
}

/* 1: the place depends on the axis, directly or by coordinates of the loops, as those of joined tensors. */
static int depends_on(const Kernel *k, const Index *at, int axis)
{
    const unsigned all = index_axes(at);
    int depends = all >> axis & 1;
    for (int i = 0; i < k->axes.n; i++) {
        if (!(all >> i & 1) || k->bound[i] < 0) continue;
        const Step *s = &k->step[k->bound[i]];
        if (s->place && kernel_loops(k, &s->at) == index_axes(&s->at))
            depends |= index_axes(&s->at) >> axis & 1;
    }
    return depends;
}

/* The step reads along another axis than `across`, which it depends on. Terms of a looped fold lie together,
 * and neighbours along `across` have the next ones. */
static int is_moved(const Kernel *k, int step, int across)
{
    const Index *at = &k->step[step].at;
    int axis = is_read(k, step) ? walked(k, at) : -1;
    return axis >= 0 && axis != across && !(k->looped >> axis & 1) && !size_is(at->by[across], 0);
}

/* The same along an axis of the results, also where coordinates lie between. */
static int is_turned(const Kernel *k, int step, int across)
{
    const Index *at = &k->step[step].at;
    const int axis = is_read(k, step) ? walked_loop(k, at) : -1;
    return axis >= 0 && axis != across && index_axes(&k->root[0].at) >> axis & 1 &&
           depends_on(k, at, across);
}

/* 1: neighbours along the axis read neighbouring elements, also where a step's number is the place. */
static int reads_along(const Kernel *k, int step, int axis)
{
    const Index one = index_axis(walked(k, &k->step[step].at), size_number(1));
    return kernel_loops(k, &one) >> axis & 1;
}

/* A fold should lie in memory where it is folded for several results, or where its own order, which the
 * results have not, is that of what it reads. */
int layout_apart(const Kernel *k)
{
    int across = k->n_roots == 1 ? walked(k, &k->root[0].at) : -1;
    if (!k->has_folds || across < 0) return -1;
    const int several = k->rows != index_axes(&k->root[0].at);
    for (int f = 0; f < k->n; f++) {
        int own = walked(k, &k->step[f].at);
        if (k->nodes->node[k->step[f].node].kind != NODE_FOLD || k->step[f].arg[0] < 0 ||
            k->step[f].looped)
            continue;
        if (!several && (own < 0 || own == across)) continue;
        for (int i = 0; i < k->n; i++)
            if (is_moved(k, i, across) && (several || reads_along(k, i, own)))
                return k->step[f].node;
    }
    return -1;
}

/* A length is cut into whole pieces: how long these are together. */
static int64_t rounded_up(int64_t n, int piece)
{
    return (n + piece - 1) / piece * piece;
}

/* The longest side, a power of two from `least` to `most`, that leaves hardly more of the last tile empty
 * than shorter ones. */
static int choose_side(int64_t n, int least, int most)
{
    int best = most;
    for (int side = most / 2; side >= least; side /= 2)
        if (9 * rounded_up(n, side) < 8 * rounded_up(n, best)) best = side;
    return best;
}

/* Adds the axes before `down` along which everything that is moved lies in one piece, where tiles of one axis
 * would be half empty at its end. */
static void find_piece(Tiles *t, int height)
{
    const Kernel *k = t->w.k;
    Size all = k->axes.size[t->down];
    t->piece = 1u << t->down;
    if (all.at[0] % height == 0 || rounded_up(all.at[0], height) > 4 * all.at[0]) return;
    for (int a = t->down - 1; a >= 0; a--) {
        int same = a != t->across && k->bound[a] < 0;
        if (size_is(k->axes.size[a], 1)) continue;
        for (int i = 0; i < k->n; i++) same &= !t->moved[i] || size_same(k->step[i].at.by[a], all);
        if (!same) return;
        t->piece |= 1u << a;
        all = size_times(all, k->axes.size[a]);
    }
}

/* Bytes of the smallest element that is moved. A warp's reads of few channels of small elements lie in so few
 * lines that these need no tile (2026-12-01, sim:h200: 9.6 MB of bytes in three channels take 16.7 us
 * without, 20.2 by tiles, on an H200 19.5; 25 MB of float32 18.5 and 16.8). */
static size_t least_size(const Tiles *t)
{
    size_t least = 8;
    for (int i = 0; i < t->w.k->n; i++) {
        const size_t size = dtype_size(node_of(&t->w, i)->dtype);
        if (t->moved[i] && size < least) least = size;
    }
    return least;
}

/* 1: the kernel is of this kind. */
static int find_tiles(Tiles *t)
{
    Kernel *k = t->w.k;
    int best = 0, n = 0, count[INDEX_AXES] = {0};
    t->across = k->n_roots == 1 && !k->has_folds && !k->looped ? walked(k, &k->root[0].at) : -1;
    if (t->across < 0) return 0;
    for (int i = 0; i < k->n; i++)
        if (is_turned(k, i, t->across)) count[walked_loop(k, &k->step[i].at)]++;
    for (int i = 0; i < k->axes.n; i++)
        if (count[i] > best) best = count[i], t->down = i;
    if (!best) return 0;
    for (int i = 0; i < k->n; i++) {
        t->moved[i] = is_turned(k, i, t->across) && walked_loop(k, &k->step[i].at) == t->down &&
                      n < MOST_TILES;
        n += t->moved[i];
    }
    const int64_t across = k->axes.size[t->across].at[0];
    for (t->width = LEAST_SIDE; t->width < SIDE && t->width < across;) t->width *= 2;
    t->width = choose_side(across, LEAST_HEIGHT, t->width);
    int most = (n > 1 ? TILE / 2 : TILE) / t->width;
    if (most > LONGEST) most = LONGEST;
    find_piece(t, most);
    const int64_t down = writer_product(&t->w, t->piece).at[0];
    const int least = down < LEAST_HEIGHT / 2 ? LEAST_SIDE : LEAST_HEIGHT;
    if (down < LEAST_HEIGHT / 4 && least_size(t) < 4) return 0;
    for (t->height = least; t->height < most && t->height < down;) t->height *= 2;
    t->height = choose_side(down, least, t->height);
    for (; t->height < LEAST_HEIGHT && t->width < LONGEST && t->width < across;) t->width *= 2;
    return 1;
}

/* The name of the number along `down`. */
static const char *down_name(const Tiles *t)
{
    return t->piece & (t->piece - 1) ? "flat" : t->w.k->axes.name[t->down];
}

/* The axes of a flat number, where there are several. */
static void put_piece(Tiles *t, const char *indent)
{
    if (t->piece & (t->piece - 1))
        writer_axes(&t->w, t->piece, "flat", t->w.wide ? "long long" : "int", indent);
}

/* Begins a loop over the thread's places of the tile, in which one axis, the `fast` one, stays. A thread has
 * V neighbours along `across`. */
static void put_loop(Tiles *t, int fast)
{
    Writer *w = &t->w;
    const Axes *a = &w->k->axes;
    const int last = fast == t->across, side = last ? t->width : t->height;
    const char *type = w->wide ? "long long" : "int", *across = a->name[t->across],
               *down = down_name(t), *per = last ? " / V" : "";
    buffer_printf(&w->body, "    {\n    const int %s = threadIdx.x %% (%d%s)%s;\n",
                  last ? "row" : "c", side, per, last ? " * V" : "");
    if (last && w->vec > 1)
        buffer_printf(&w->body, "    const %s from_%s = chunk + row, %s = from_%s;\n", type, across,
                      across, across);
    else
        buffer_printf(&w->body, "    const %s %s = %s;\n", type, last ? across : down,
                      last ? "chunk + row" : "first + c");
    if (!last) put_piece(t, "    ");
    buffer_printf(&w->body,
                  "#pragma unroll\n    for (int k = 0; k < %d%s; k++) {\n"
                  "        const int %s = threadIdx.x / (%d%s) + k * (%d / (%d%s));\n",
                  t->width * t->height / w->block, per, last ? "c" : "row", side, per, w->block,
                  side, per);
    buffer_printf(&w->body, "        const %s %s = %s;\n        const bool inside = %s < %s", type,
                  last ? down : across, last ? "first + c" : "chunk + row", down,
                  writer_size(w, writer_product(w, t->piece)));
    buffer_printf(&w->body, " && %s < %s;\n", across, writer_size(w, a->size[t->across]));
}

/* 1: a moved load has a condition whose coordinates are those of the loops: as that of a joined tensor. */
static int is_conditional(const Tiles *t, int step)
{
    const Kernel *k = t->w.k;
    const Condition *c = &k->condition[k->step[step].inside];
    int known = t->moved[step] && c->n;
    for (int i = 0; i < c->n; i++) {
        const Step *s = &k->step[c->term[i].step];
        known &= s->place && kernel_loops(k, &s->at) == index_axes(&s->at);
    }
    return known;
}

static int is_term(const Kernel *k, int of, int step)
{
    const Condition *c = &k->condition[k->step[of].inside];
    for (int i = 0; i < c->n; i++)
        if (c->term[i].step == step) return 1;
    return 0;
}

/* The coordinates that the places and conditions of moved loads have. */
static void put_places(Tiles *t)
{
    const Kernel *k = t->w.k;
    for (int s = 0; s < k->n; s++) {
        int needed = 0;
        for (int i = 0; i < k->n; i++) needed |= is_conditional(t, i) && is_term(k, i, s);
        for (int i = 0; i < k->n; i++)
            for (int a = 0; a < k->axes.n && t->moved[i]; a++)
                needed |= k->bound[a] == s && index_axes(&k->step[i].at) >> a & 1;
        if (needed && in_columns(&t->w, s)) writer_step(&t->w, s, "        ");
    }
}

static void put_tile_loads(Tiles *t)
{
    Writer *w = &t->w;
    const int places = t->width * t->height / w->block;
    for (int i = 0; i < w->k->n; i++)
        if (t->moved[i])
            buffer_printf(&w->body, "    %s from_%d[%d]%s;\n", dtype_ctype(node_of(w, i)->dtype), i,
                          places, is_conditional(t, i) ? " = {}" : "");
    put_loop(t, t->down);
    put_places(t);
    for (int i = 0; i < w->k->n; i++) {
        if (!t->moved[i]) continue;
        buffer_puts(&w->body, "        if (inside");
        if (is_conditional(t, i)) buffer_puts(&w->body, " && ");
        if (is_conditional(t, i)) writer_condition(w, i);
        buffer_printf(&w->body, ") from_%d[k] = %s[", i,
                      kernel_tensor(w->k, w->k->step[i].node, 0));
        writer_index(w, &w->k->step[i].at);
        buffer_puts(&w->body, "];\n");
    }
    buffer_printf(&w->body,
                  "    }\n#pragma unroll\n    for (int k = 0; k < %d; k++) {\n"
                  "        const int row = threadIdx.x / %d + k * (%d / %d);\n",
                  places, t->height, w->block, t->height);
    for (int i = 0; i < w->k->n; i++)
        if (t->moved[i]) buffer_printf(&w->body, "        keep%d[row][c] = from_%d[k];\n", i, i);
    buffer_puts(&w->body, "    }\n    }\n    __syncthreads();\n");
}

static void put_tile_results(Tiles *t)
{
    Writer *w = &t->w;
    put_loop(t, t->across);
    buffer_puts(&w->body, "        if (!inside) continue;\n");
    put_piece(t, "        ");
    writer_elements(w, "        ");
    buffer_puts(&w->body, "    }\n    }\n");
}

static void put_head(Tiles *t)
{
    Writer *w = &t->w;
    const Axes *a = &w->k->axes;
    const char *type = w->wide ? "long long" : "int";
    for (int i = 0; i < w->k->n; i++)
        if (t->moved[i])
            buffer_printf(&w->body, "    __shared__ %s keep%d[%d][%d];\n",
                          dtype_ctype(node_of(w, i)->dtype), i, t->width, t->height + 1);
    buffer_printf(&w->body, "    const %s end = (%s + %d) / %d, ", type,
                  writer_size(w, writer_product(w, t->piece)), t->height - 1, t->height);
    buffer_printf(&w->body, "strips = (%s + %d) / %d;\n", writer_size(w, a->size[t->across]),
                  t->width - 1, t->width);
    buffer_printf(&w->body,
                  "    const %s first = blockIdx.x %% end * %d, "
                  "chunk = blockIdx.x / end %% strips * %d;\n",
                  type, t->height, t->width);
    writer_axes(w, w->columns & ~(1u << t->across | t->piece), "(blockIdx.x / end / strips)", type,
                "    ");
}

static int put_tile_launch(Tiles *t, int number)
{
    Writer *w = &t->w;
    Kernel *k = w->k;
    char down[SIZE_TEXT], across[SIZE_TEXT], others[SIZE_TEXT];
    Size rest = writer_product(w, w->columns & ~(1u << t->across | t->piece));
    if (size_text(k->nodes->sizes, writer_product(w, t->piece), down, w->err) ||
        size_text(k->nodes->sizes, k->axes.size[t->across], across, w->err) ||
        size_text(k->nodes->sizes, rest, others, w->err))
        return -1;
    buffer_printf(w->t->plan,
                  "//@ launch kernel_%d<<<ceil_div(%s, %d) * ceil_div(%s, %d) * (%s), %d", number,
                  down, t->height, across, t->width, others, w->block);
    buffer_puts(w->t->plan, ">>>(");
    if (kernel_put_arguments(k, w->t->plan, w->err)) return -1;
    buffer_puts(w->t->plan, ")\n");
    return 0;
}

static void put_body(Tiles *t)
{
    writer_row_steps(&t->w, 0);
    put_head(t);
    put_tile_loads(t);
    put_tile_results(t);
}

/* Names that copies of other tensors have too, so that their texts are equal. */
static void name_copy(Tiles *t)
{
    Kernel *k = t->w.k;
    kernel_tensor(k, k->step[0].node, 0);
    kernel_tensor(k, k->root[0].node, 1);
    put_body(t); /* this names the sizes */
    snprintf(k->tensor[0].name, sizeof k->tensor[0].name, "from");
    snprintf(k->tensor[1].name, sizeof k->tensor[1].name, "to");
    for (int i = 0; i < k->n_sizes; i++)
        snprintf(k->size[i].name, sizeof k->size[i].name, "size_%d", i);
    buffer_clear(&t->w.body);
}

static double bytes_of(const Node *x)
{
    return (double)node_count(x).at[0] * (double)dtype_size(x->dtype);
}

static int write_tiles(Tiles *t)
{
    const Kernel *k = t->w.k;
    double bytes = bytes_of(&k->nodes->node[k->root[0].node]);
    put_body(t);
    if (!t->w.failed) writer_source(&t->w, t->w.block);
    if (t->w.failed || put_tile_launch(t, t->w.number)) return -1;
    for (int i = 0; i < k->n; i++)
        if (is_read(k, i)) bytes += bytes_of(node_of(&t->w, i));
    if (t->w.t->estimate) estimate_add_product(t->w.t->estimate, k, layout_us(bytes), 1);
    return 1;
}

int layout_write(Kernel *k, KernelText *text, Error *err)
{
    unsigned char kept[KERNEL_STEPS] = {0}, defined[KERNEL_STEPS] = {0};
    Tiles t = {.w = {.k = k, .t = text, .err = err, .kept = kept, .defined = defined}};
    if (!find_tiles(&t)) return 0;
    k->scope.of = k, k->scope.axes = &k->axes;
    t.w.moved = t.moved;
    writer_schedule_tiles(&t.w, t.across);
    while (t.width * t.height < t.w.block * t.w.vec)
        if (t.height < LONGEST && t.height >= LEAST_HEIGHT)
            t.height *= 2;
        else
            t.width *= 2;
    buffer_init(&t.w.body, 1 << 20);
    if (k->n == 2) name_copy(&t);
    int rc = write_tiles(&t);
    buffer_release(&t.w.body);
    return rc;
}
