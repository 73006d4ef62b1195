/* Texts of the kernels that pack what convolutions read, and of those that lay it out as they compute it. The
 * loops are in packing.cu. */
#include "generate/packing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/embed.h"
#include "base/memory.h"

/* Of packing.cu. */
enum { QUAD = 4, THREADS = 256, PACKED = 512 };

EMBED(generate_packing, "generate/packing.cu")

void packing_help(KernelText *t)
{
    product_help(t, HELP_PACK_PLACES, generate_packing, "pack");
}

/* ---- in C order before ---- */

static const char *name_of(const ProductWriter *w, ProductOperand x)
{
    return w->k->nodes->node[w->m->side[x].node].name;
}

static int is_packed(const ProductWriter *w)
{
    return w->k->nodes->node[w->m->side[PRODUCT_B].node].packed;
}

const char *packing_input_name(const ProductWriter *w)
{
    return is_packed(w) ? name_of(w, PRODUCT_B) : "packed_input";
}

/* How a block packs an input: the function's name, and so many channels of so many places. */
typedef struct {
    char function[24];
    int channels, places;
} Packing;

static Packing packing_of(PackedLayout layout, int64_t channels)
{
    const int64_t quads = (channels + QUAD - 1) / QUAD;
    const int many = quads > 4 ? 8 : quads > 2 ? 4 : (int)quads;
    Packing p = {"pack_quads", QUAD, THREADS};
    if (layout == PACKED_QUADS) return p;
    snprintf(p.function, sizeof p.function, "pack_places<%d>", many);
    p.channels = QUAD * many, p.places = PACKED / many;
    return p;
}

PackedLayout packing_layout(const MatrixProduct *m)
{
    return m->convolution == DEPTHWISE ? PACKED_WHOLE : m->quads ? PACKED_QUADS : PACKED_PLACES;
}

int packing_put_input(ProductWriter *w, const PackingTexts *t)
{
    const PackedLayout layout = packing_layout(w->m);
    const Packing p =
        packing_of(layout, w->k->nodes->node[w->m->side[PRODUCT_B].node].size[1].at[0]);
    char size[4 * SIZE_TEXT], source[512];
    if (is_packed(w)) return 0;
    snprintf(source, sizeof source,
             "extern \"C\" __global__ void __launch_bounds__(%d) pack_input_@(const float "
             "*__restrict__ from, float *__restrict__ to, int channels, int places)\n{\n"
             "    %s(PackMemory<%d>{from, channels, places}, to, channels, places);\n}\n\n",
             THREADS, p.function, layout != PACKED_WHOLE);
    const int number = kernel_put_source(w->t, source);
    buffer_printf(
        w->t->plan,
        "//@ launch pack_input_%d<<<ceil_div(%s, %d) * ceil_div(%s, %d) * (%s), %d>>>(%s, "
        "packed_input, %s, %s)\n",
        number, t->places, p.places, t->channels, p.channels, t->images, THREADS,
        name_of(w, PRODUCT_B), t->channels, t->places);
    snprintf(size, sizeof size, "(%s) * (%s) * ceil_div(%s, 4) * 4", t->images, t->places,
             t->channels);
    return product_share(w, PACKED_INPUT, size);
}

/* Filters of one launch: a GPU is full, and L2 has them until they are read. */
static const double most_packed = 24e6;

/* The launch that packs filters as well, which are the task's input, or a new one. */
static TextPack *pack_for(ProductWriter *w)
{
    KernelText *t = w->t;
    const MatrixProduct *m = w->m;
    const int given = w->k->nodes->node[m->side[PRODUCT_A].node].kind == NODE_INPUT;
    const double bytes =
        given ? 4. * (double)m->count[PRODUCT_ROWS].at[0] * (double)m->count[PRODUCT_DEPTH].at[0]
              : most_packed;
    TextPack *p = t->n_packs ? &t->pack[t->n_packs - 1] : NULL;
    if (!p || p->n == TEXT_PACKED || p->bytes + bytes > most_packed) {
        t->pack = memory_grow(t->pack, (size_t)t->n_packs + 1, sizeof *t->pack);
        p = &t->pack[t->n_packs++];
        *p = (TextPack){.at = t->plan->len};
    }
    p->bytes += bytes;
    return p;
}

int packing_put_filters(ProductWriter *w, const PackingTexts *t, int transposed)
{
    TextPack *p = pack_for(w);
    char size[4 * SIZE_TEXT];
    w->packed = p->n++;
    snprintf(p->of[w->packed].name, GRAPH_NAME, "%s", name_of(w, PRODUCT_A));
    snprintf(p->of[w->packed].filters, SIZE_TEXT, "%s", t->filters);
    snprintf(p->of[w->packed].channels, SIZE_TEXT, "%s", t->channels);
    snprintf(p->of[w->packed].taps, SIZE_TEXT, "%s", t->taps);
    p->of[w->packed].beside = w->m->quads > 0;
    p->of[w->packed].transposed = transposed;
    snprintf(size, sizeof size, "(%s) * (%s) * ceil_div(%s, 4) * 4", t->filters, t->taps,
             t->channels);
    return product_share(w, PACKED_FILTERS + w->packed, size);
}

const char *packing_filters_name(const ProductWriter *w)
{
    return product_buffer(PACKED_FILTERS + w->packed);
}

static void put_pack_source(const TextPack *p, Buffer *to)
{
    buffer_printf(to, "extern \"C\" __global__ void __launch_bounds__(%d) pack_filters_@(",
                  THREADS);
    for (int i = 0; i < p->n; i++)
        buffer_printf(to,
                      "%sconst float *__restrict__ from_%d, float *__restrict__ to_%d, int "
                      "filters_%d, int channels_%d, int taps_%d",
                      i ? ", " : "", i, i, i, i, i);
    buffer_puts(to, ")\n{\n");
    for (int i = 0; i < p->n; i++) {
        if (p->n > 1) buffer_printf(to, "    if (blockIdx.y == %d)\n    ", i);
        buffer_printf(to, "    pack_filters<%d>(from_%d, to_%d, filters_%d, channels_%d, taps_%d, ",
                      p->of[i].beside, i, i, i, i, i);
        if (p->of[i].transposed)
            buffer_printf(to, "taps_%d, (long long)filters_%d * taps_%d);\n", i, i, i);
        else
            buffer_printf(to, "(long long)channels_%d * taps_%d, taps_%d);\n", i, i, i);
    }
    buffer_puts(to, "}\n\n");
}

static void put_pack_launch(const TextPack *p, int number, Buffer *to)
{
    buffer_printf(to, "//@ launch pack_filters_%d<<<%s", number, p->n > 1 ? "dim3(" : "");
    for (int i = 1; i < p->n; i++) buffer_puts(to, "max(");
    for (int i = 0; i < p->n; i++)
        buffer_printf(to, "%sceil_div((%s) * (%s) * ceil_div(%s, 4), %d)%s", i ? ", " : "",
                      p->of[i].filters, p->of[i].taps, p->of[i].channels, THREADS, i ? ")" : "");
    if (p->n > 1) buffer_printf(to, ", %d)", p->n);
    buffer_printf(to, ", %d>>>(", THREADS);
    for (int i = 0; i < p->n; i++)
        buffer_printf(to, "%s%s, %s, %s, %s, %s", i ? ", " : "", p->of[i].name,
                      product_buffer(PACKED_FILTERS + i), p->of[i].filters, p->of[i].channels,
                      p->of[i].taps);
    buffer_puts(to, ")\n");
}

void packing_put_launches(KernelText *t)
{
    for (int i = t->n_packs - 1; i >= 0; i--) { /* those behind move */
        const TextPack *p = &t->pack[i];
        Buffer source, line;
        buffer_init(&source, 1 << 16), buffer_init(&line, 1 << 16);
        put_pack_source(p, &source);
        put_pack_launch(p, kernel_put_source(t, source.data), &line);
        t->number++;
        const size_t end = t->plan->len;
        buffer_puts(t->plan, line.data);
        if (!t->plan->full) {
            memmove(t->plan->data + p->at + line.len, t->plan->data + p->at, end - p->at);
            memcpy(t->plan->data + p->at, line.data, line.len);
        }
        buffer_release(&source), buffer_release(&line);
    }
    free(t->pack);
    t->pack = NULL, t->n_packs = 0;
}

/* ---- as it is computed ---- */

/* What rows and outputs share is computed whether they are there or not: a compiler then does so once. */
void packing_put_store(ProductWriter *w, const char *rows, const char *columns)
{
    const int whole = w->m->packed == PACKED_WHOLE;
    char place[160];
    if (w->m->packed == PACKED_QUADS)
        snprintf(place, sizeof place, "(batch * quads + row / 4) * %s + place", columns);
    else
        snprintf(place, sizeof place, "(batch * %s + place) * quads + row / 4", columns);
    buffer_printf(
        &w->body,
        "    const auto store = %s([&](long long batch, long long row, int "
        "place, float4 sums) {\n"
        "        const long long quads = (%s + 3) / 4;\n"
        "        const auto one = [&](int i, float sum) {\n"
        "            const float all = value(batch, min(row + i, %s - 1ll), max(place, 0), "
        "sum);\n"
        "            return row + i < %s ? %sall%s : 0.f;\n        };\n"
        "        const float4 all = make_float4(one(0, sums.x), one(1, sums.y), one(2, "
        "sums.z), one(3, sums.w));\n"
        "        if (row < %s && place >= 0) *(float4 *)(%s + 4 * (%s)) = all;\n    });\n",
        w->m->convolution == DEPTHWISE ? "" : "convolve_quads", rows, rows, rows,
        whole ? "" : "tf32(", whole ? "" : ")", rows, w->out, place);
}

static Size places_of(const Node *x)
{
    Size places = size_number(1);
    for (int d = 2; d < x->rank; d++) places = size_times(places, x->size[d]);
    return places;
}

int packing_put_count(const Nodes *n, int node, Buffer *out, Error *err)
{
    const Node *x = &n->node[node];
    char others[SIZE_TEXT], channels[SIZE_TEXT];
    if (size_text(n->sizes, size_times(x->size[0], places_of(x)), others, err) ||
        size_text(n->sizes, x->size[1], channels, err))
        return -1;
    buffer_printf(out, "(%s) * ceil_div(%s, %d) * %d", others, channels, QUAD, QUAD);
    return 0;
}

int packing_fits(const Kernel *k)
{
    const Node *x = &k->nodes->node[k->root[0].node];
    const Size places = places_of(x), plane = size_times(x->size[1], places);
    int fits = x->rank > 2 && k->n_roots == 1;
    for (int i = 0; i < k->axes.n && fits; i++) {
        const Size by = k->root[0].at.by[i], end = size_times(by, k->axes.size[i]);
        fits = (size_divides(places, by) || size_divides(end, places)) &&
               (size_divides(plane, by) || size_divides(end, plane));
    }
    return fits;
}

/* Neighbouring axes of a line, or of its columns, become one. */
static void join_axes(Kernel *k, Size places)
{
    for (int i = 0; i < k->axes.n; i++)
        k->rows |= (unsigned)size_divides(places, k->root[0].at.by[i]) << i;
    kernel_merge(k);
}

typedef struct {
    char channels[32], places[32], out[GRAPH_NAME + 2];
} PackingNames;

static int find_names(Kernel *k, PackingNames *n, Error *err)
{
    const Node *x = &k->nodes->node[k->root[0].node];
    const char *channels = kernel_size(k, x->size[1], err);
    snprintf(n->out, sizeof n->out, "%s", kernel_tensor(k, k->root[0].node, 1));
    if (channels) snprintf(n->channels, sizeof n->channels, "%s", channels);
    const char *places = channels ? kernel_size(k, places_of(x), err) : NULL;
    if (places) snprintf(n->places, sizeof n->places, "%s", places);
    return places ? 0 : -1;
}

/* A function `rounded` of an element, as the layout has it. */
static int put_element(Kernel *k, KernelText *t, const PackingNames *n, Buffer *to, Error *err)
{
    const Node *x = &k->nodes->node[k->root[0].node];
    const char *type = kernel_is_wide(k) ? "long long" : "int";
    buffer_printf(to,
                  "    const auto value = [&](%s batch, int row, int column) {\n"
                  "        const %s line = batch * %s + row;\n",
                  type, type, n->channels);
    const KernelElement e = {
        .width = places_of(x), .rows = x->size[1], .is_small = !kernel_is_wide(k)};
    if (kernel_put_element(k, t, &e, to, err)) return -1;
    buffer_puts(to, "    };\n");
    if (k->nodes->node[k->root[0].node].packed != PACKED_WHOLE)
        buffer_printf(to,
                      "    const auto rounded = [&](%s batch, int row, int column) {\n"
                      "        return tf32(value(batch, row, column));\n    };\n",
                      type);
    return 0;
}

static int put_launch(Kernel *k, const Packing *p, int number, Buffer *plan, Error *err)
{
    const Node *x = &k->nodes->node[k->root[0].node];
    char images[SIZE_TEXT], channels[SIZE_TEXT], places[SIZE_TEXT];
    SizeTable *sizes = k->nodes->sizes;
    if (size_text(sizes, x->size[0], images, err) || size_text(sizes, x->size[1], channels, err) ||
        size_text(sizes, places_of(x), places, err))
        return -1;
    buffer_printf(plan, "//@ launch kernel_%d<<<ceil_div(%s, %d) * ceil_div(%s, %d) * (%s), %d>>>(",
                  number, places, p->places, channels, p->channels, images, THREADS);
    if (kernel_put_arguments(k, plan, err)) return -1;
    buffer_puts(plan, ")\n");
    return 0;
}

int packing_write(Kernel *k, PackedLayout layout, KernelText *t, Error *err)
{
    const Node *x = &k->nodes->node[k->root[0].node];
    const Packing p = packing_of(layout, x->size[1].at[0]);
    PackingNames n;
    Buffer body, types;
    join_axes(k, places_of(x));
    packing_help(t);
    buffer_init(&body, 1 << 20), buffer_init(&types, 1 << 16);
    int rc = find_names(k, &n, err) || put_element(k, t, &n, &body, err) ? -1 : 0;
    if (!rc) {
        kernel_put_parameters(k, 1, kernel_is_wide(k), &types);
        char *source = memory_printf("extern \"C\" __global__ void __launch_bounds__(%d) "
                                     "kernel_@(%s)\n{\n%s    %s(%s, %s, %s, %s);\n}\n\n",
                                     THREADS, types.data, body.data, p.function,
                                     layout == PACKED_WHOLE ? "value" : "rounded", n.out,
                                     n.channels, n.places);
        rc = put_launch(k, &p, kernel_put_source(t, source), t->plan, err);
        free(source);
    }
    buffer_release(&body), buffer_release(&types);
    return rc;
}
