/* Sums over a convolution's places: an element of the input meets a tap of the filter in one place of the
 * result or, beyond its border, in none. So the sum of a result over a dimension is one over taps, of the tap
 * and the sum of all elements that meet it. What is not folded stays a convolution, with the taps of folded
 * dimensions as channels. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "generate/rewrite/summed_text.h"

/* EACH: an element that is added to the sum of a tap takes as long as so many products of a convolution. */
enum { SPACE = 3, TEXT = 256, EACH = 48 };

typedef struct {
    int transposed, n; /* dimensions of a window */
    int64_t stride[SPACE], pad[SPACE], more[SPACE], apart[SPACE], taps[SPACE];
    int folded[SPACE], bound[SPACE]; /* bound: some elements meet no place by some tap */
    int n_bound;
} Window;

/* Appends ", %d" to a list. */
static void list(char *out, int64_t number)
{
    size_t n = strlen(out);
    snprintf(out + n, TEXT - n, "%s%lld", n ? ", " : "", (long long)number);
}

static int read_window(const Lines *l, const Summed *s, Window *w)
{
    const GraphCall *c = &l->bound->calls[s->product];
    *w = (Window){.transposed = op_argument(c->call.op, "output_padding") >= 0,
                  .n = c->call.result[0].rank - 2};
    if (lines_numbers(l, s->product, "stride", w->n, w->stride) ||
        lines_numbers(l, s->product, "padding", w->n, w->pad) ||
        lines_numbers(l, s->product, "dilation", w->n, w->apart) ||
        (w->transposed && lines_numbers(l, s->product, "output_padding", w->n, w->more)))
        return -1;
    for (int d = 0; d < w->n; d++) {
        const int64_t wide = w->apart[d] * ((w->taps[d] = c->call.tensor[1].size[2 + d]) - 1);
        for (int k = 1; k < SIZE_BINDINGS; k++)
            if (l->sizes->bound[k]->calls[s->product].call.tensor[1].size[2 + d] != w->taps[d])
                return -1;
        w->folded[d] = s->dims >> (2 + d) & 1;
        w->bound[d] = w->folded[d] && (w->transposed ? w->pad[d] > 0 : wide > w->pad[d]);
        w->n_bound += w->bound[d];
    }
    return 0;
}

/* 1: the sums of bound taps, for each of which the input is read, take less than the convolution. */
static int is_less(const Lines *l, const Summed *s, const Window *w)
{
    int64_t taps = 1, sums = w->n_bound ? EACH : 0;
    for (int d = 0; d < w->n; d++) {
        taps *= w->taps[d];
        if (w->bound[d]) sums *= w->taps[d];
    }
    return sums <= taps * l->bound->calls[s->product].call.result[0].size[1];
}

/* A range as a tensor that has `behind` dimensions of size 1 behind it. */
static void put_range(Lines *l, const char *n, int behind, int64_t by, char out[GRAPH_NAME])
{
    char range[GRAPH_NAME], shape[TEXT] = "";
    list(shape, -1);
    for (int i = 0; i < behind; i++) list(shape, 1);
    lines_make(l, range, "aten.arange.default(%s, dtype=torch.int32)", n);
    lines_make(l, out, "aten.view.default(%s, [%s])", range, shape);
    if (by == 1) return;
    snprintf(range, sizeof range, "%s", out);
    lines_make(l, out, "aten.mul.Tensor(%s, %lld)", range, (long long)by);
}

/* Whether an element meets a place of the result by a tap, along dimension d, of which `tap` dimensions of
 * taps come before. */
static void put_meets(Lines *l, const Summed *s, const Window *w, int d, int tap,
                      char out[GRAPH_NAME])
{
    const GraphCall *c = &l->bound->calls[s->product];
    char element[GRAPH_NAME], taps[GRAPH_NAME], place[GRAPH_NAME], moved[GRAPH_NAME], n[SIZE_TEXT];
    lines_size(l, c->in[0], 2 + d, n);
    put_range(l, n, w->n - 1 - d, w->transposed ? w->stride[d] : 1, element);
    snprintf(n, sizeof n, "%lld", (long long)w->taps[d]);
    put_range(l, n, w->n_bound + w->n - 1 - tap, w->apart[d], taps);
    lines_make(l, place, "aten.%s.Tensor(%s, %s)", w->transposed ? "add" : "sub", element, taps);
    lines_make(l, moved, "aten.%s.Tensor(%s, %lld)", w->transposed ? "sub" : "add", place,
               (long long)w->pad[d]);
    lines_make(l, element, "aten.ge.Scalar(%s, 0)", moved);
    lines_size(l, l->graph->first[s->product], 2 + d, n);
    lines_make(l, taps, "aten.sub.Tensor(%s, %s)", moved, n);
    lines_make(l, place, "aten.lt.Scalar(%s, 0)", taps);
    lines_make(l, out, "aten.logical_and.default(%s, %s)", element, place);
}

/* The sums of the elements that meet a tap: batch, channels, bound taps, what is not folded. */
static void put_sums(Lines *l, const Summed *s, const Window *w, char out[GRAPH_NAME])
{
    char x[GRAPH_NAME], next[GRAPH_NAME], meets[GRAPH_NAME] = "", own[GRAPH_NAME], dims[TEXT] = "";
    int tap = 0;
    snprintf(x, sizeof x, "%s", lines_name(l, l->bound->calls[s->product].in[0]));
    for (int i = 0; i < w->n_bound; i++) {
        lines_make(l, next, "aten.unsqueeze.default(%s, 2)", x);
        snprintf(x, sizeof x, "%s", next);
    }
    for (int d = 0; d < w->n; d++) {
        if (w->folded[d]) list(dims, 2 + w->n_bound + d);
        if (!w->bound[d]) continue;
        put_meets(l, s, w, d, tap++, own);
        if (*meets) {
            lines_make(l, next, "aten.logical_and.default(%s, %s)", meets, own);
            snprintf(own, sizeof own, "%s", next);
        }
        snprintf(meets, sizeof meets, "%s", own);
    }
    if (*meets) {
        lines_make(l, next, "aten.where.ScalarOther(%s, %s, 0.0)", meets, x);
        snprintf(x, sizeof x, "%s", next);
    }
    lines_make(l, out, "aten.sum.dim_IntList(%s, [%s])", x, dims);
}

/* The filter, with sums over taps that meet the same elements. */
static void put_filter(Lines *l, const Summed *s, const Window *w, char out[GRAPH_NAME])
{
    char dims[TEXT] = "";
    const char *own = lines_name(l, l->bound->calls[s->product].in[1]);
    for (int d = 0; d < w->n; d++)
        if (w->folded[d] && !w->bound[d]) list(dims, 2 + d);
    if (*dims)
        lines_make(l, out, "aten.sum.dim_IntList(%s, [%s])", own, dims);
    else
        snprintf(out, GRAPH_NAME, "%s", own);
}

/* Where every dimension is folded: a product of the sums and the filter. */
static void put_whole(Lines *l, const Window *w, const char *sums, const char *filter,
                      char out[GRAPH_NAME])
{
    char a[GRAPH_NAME], b[GRAPH_NAME], terms[GRAPH_NAME], dims[TEXT] = "";
    list(dims, w->transposed ? 1 : 2);
    for (int i = 0; i < w->n_bound; i++) list(dims, 3 + i);
    lines_make(l, a, "aten.unsqueeze.default(%s, %d)", sums, w->transposed ? 2 : 1);
    lines_make(l, b, "aten.unsqueeze.default(%s, 0)", filter);
    lines_make(l, terms, "aten.mul.Tensor(%s, %s)", a, b);
    lines_make(l, out, "aten.sum.dim_IntList(%s, [%s])", terms, dims);
}

/* The filter with bound taps behind or before its channels, as channels. */
static void put_channels(Lines *l, const Window *w, const char *filter, char out[GRAPH_NAME])
{
    char order[TEXT] = "", moved[GRAPH_NAME];
    int at = 2;
    list(order, 0);
    if (!w->transposed) list(order, 1);
    for (int pass = 0; pass < 2; pass++) {
        for (int d = 0, own = at; d < w->n; d++) {
            if (w->folded[d] && !w->bound[d]) continue;
            if (w->folded[d] != pass) list(order, own);
            own++;
        }
        if (!pass && w->transposed) list(order, 1);
    }
    lines_make(l, moved, "aten.permute.default(%s, [%s])", filter, order);
    lines_make(l, out, "aten.flatten.using_ints(%s, %d, %d)", moved, !w->transposed,
               !w->transposed + w->n_bound);
}

static void put_rest(Lines *l, const Window *w, const char *sums, const char *filter,
                     char out[GRAPH_NAME])
{
    char x[GRAPH_NAME], taps[GRAPH_NAME], of[4][TEXT] = {"", "", "", ""};
    int n = 0;
    for (int d = 0; d < w->n; d++) {
        if (w->folded[d]) continue;
        list(of[0], w->stride[d]), list(of[1], w->pad[d]);
        list(of[2], w->apart[d]), list(of[3], w->more[d]);
        n++;
    }
    snprintf(x, sizeof x, "%s", sums);
    snprintf(taps, sizeof taps, "%s", filter);
    if (w->n_bound) {
        lines_make(l, x, "aten.flatten.using_ints(%s, 1, %d)", sums, 1 + w->n_bound);
        put_channels(l, w, filter, taps);
    }
    if (w->transposed)
        lines_make(l, out,
                   "aten.conv_transpose%dd.%s(%s, %s, None, [%s], [%s], output_padding=[%s], "
                   "dilation=[%s])",
                   n, n == 1 ? "default" : "input", x, taps, of[0], of[1], of[3], of[2]);
    else
        lines_make(l, out, "aten.conv%dd.default(%s, %s, None, [%s], [%s], [%s])", n, x, taps,
                   of[0], of[1], of[2]);
}

/* By how many places of the result the sum is divided, or its bias multiplied. */
static void put_places(Lines *l, const Summed *s, const Window *w, const char *op,
                       char y[GRAPH_NAME])
{
    char n[SIZE_TEXT], x[GRAPH_NAME];
    for (int d = 0; d < w->n; d++) {
        if (!w->folded[d]) continue;
        lines_size(l, l->graph->first[s->product], 2 + d, n);
        snprintf(x, sizeof x, "%s", y);
        lines_make(l, y, "aten.%s.Tensor(%s, %s)", op, x, n);
    }
}

static void put_bias(Lines *l, const Summed *s, const Window *w, char y[GRAPH_NAME])
{
    const GraphCall *c = &l->bound->calls[s->product];
    char bias[GRAPH_NAME], x[GRAPH_NAME], shape[TEXT] = "";
    if (c->call.n_tensors < 3) return;
    list(shape, -1);
    for (int d = 0; d < w->n; d++)
        if (!w->folded[d]) list(shape, 1);
    lines_make(l, bias, "aten.view.default(%s, [%s])", lines_name(l, c->in[2]), shape);
    if (!lines_is(l, l->at, "mean")) put_places(l, s, w, "mul", bias);
    snprintf(x, sizeof x, "%s", y);
    lines_make(l, y, "aten.add.Tensor(%s, %s)", x, bias);
}

int sums_of_convolution(Lines *l, const Summed *s)
{
    const GraphCall *sum = &l->bound->calls[l->at];
    Window w;
    char sums[GRAPH_NAME], filter[GRAPH_NAME], y[GRAPH_NAME], x[GRAPH_NAME];
    int whole = 1;
    if (read_window(l, s, &w) || !is_less(l, s, &w)) return 1;
    for (int d = 0; d < w.n; d++) whole &= w.folded[d];
    put_sums(l, s, &w, sums);
    put_filter(l, s, &w, filter);
    if (whole)
        put_whole(l, &w, sums, filter, y);
    else
        put_rest(l, &w, sums, filter, y);
    if (lines_is(l, l->at, "mean")) put_places(l, s, &w, "div", y);
    put_bias(l, s, &w, y);
    sums_put_chain(l, s, y);
    for (int d = 0; d < w.n && sum->call.result[0].rank == w.n + 2; d++) {
        if (!w.folded[d]) continue;
        snprintf(x, sizeof x, "%s", y);
        lines_make(l, y, "aten.unsqueeze.default(%s, %d)", x, 2 + d);
    }
    lines_end(l, "aten.clone.default(%s)", y);
    return l->failed ? -1 : 0;
}

/* ---- averages ---- */

/* A line's call with another tensor as its first argument; NULL: it is not written as the first one. */
static char *call_of(const Lines *l, int line, const char *x)
{
    const char *text = l->graph->text[line], *call = strstr(text, "aten."),
               *given = call ? strchr(call, '(') : NULL,
               *name = lines_name(l, l->bound->calls[line].in[0]);
    const size_t n = strlen(name);
    if (!given || strncmp(given + 1, name, n) != 0 || (given[n + 1] != ',' && given[n + 1] != ')'))
        return NULL;
    return memory_printf("%.*s(%s%s", (int)(given - call), call, x, given + 1 + n);
}

int averages_of_convolution(Lines *l, int convolution)
{
    char y[GRAPH_NAME];
    int64_t stride;
    char *pool = NULL, *after = NULL;
    for (int k = 0; k < SIZE_BINDINGS; k++)
        if (graph_pooled(l->sizes->bound[k], l->at, &stride) != convolution) return 1;
    pool = call_of(l, l->at, lines_name(l, l->bound->calls[convolution].in[0]));
    if (pool) after = call_of(l, convolution, "");
    if (after) {
        free(after);
        lines_make(l, y, "%s", pool);
        after = call_of(l, convolution, y);
        lines_end(l, "%s", after);
    }
    const int rc = after ? 0 : 1;
    free(after);
    free(pool);
    return rc;
}
