/* Which inputs a window meets. A count of what is used is never too high: it bounds from below what a
 * kernel reads. */
#include "ops/op_window.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

void window_none(Window *w)
{
    *w = (Window){.in = 1, .out = 1, .kernel = 1, .stride = 1, .dilation = 1};
}

int64_t window_input(const Window *w, int64_t o, int64_t k)
{
    int64_t i;
    if (w->transposed) {
        i = o + w->padding - k * w->dilation;
        if (i < 0 || i % w->stride) return -1;
        i /= w->stride;
    } else {
        i = o * w->stride - w->padding + k * w->dilation;
    }
    return i >= 0 && i < w->in ? i : -1;
}

enum { MARKED = 1 << 26, MAX_TAPS = 4096 };

/* The walk i of `from` steps for which i * stride + shift lies in [0, to): [*low, *high). */
static void meets(const Window *w, int64_t from, int64_t to, int64_t shift, int64_t *low,
                  int64_t *high)
{
    *low = shift < 0 ? (-shift + w->stride - 1) / w->stride : 0;
    *high = to - 1 - shift < 0 ? 0 : (to - 1 - shift) / w->stride + 1;
    if (*high > from) *high = from;
    if (*low > *high) *low = *high;
}

/* The inputs that are used, each marked, tap by tap. */
static double marked(const Window *w)
{
    const int64_t step = w->transposed ? 1 : w->stride;
    int64_t from = w->transposed ? w->in : w->out, to = w->transposed ? w->out : w->in, low, high;
    char *input = memory_alloc((size_t)w->in);
    double n = 0;
    for (int64_t k = 0; k < w->kernel; k++) {
        const int64_t shift = k * w->dilation - w->padding;
        meets(w, from, to, shift, &low, &high);
        char *first = input + (w->transposed ? low : low * step + shift);
        if (step == 1)
            memset(first, 1, (size_t)(high - low));
        else
            for (int64_t i = 0; i < high - low; i++) first[i * step] = 1;
    }
    for (int64_t i = 0; i < w->in; i++) n += input[i];
    free(input);
    return n;
}

WindowUse window_use(const Window *w, int pairs_alone)
{
    int64_t from = w->transposed ? w->in : w->out, to = w->transposed ? w->out : w->in, low, high;
    WindowUse u = {0};
    for (int64_t k = 0; k < w->kernel && k < MAX_TAPS; k++) {
        meets(w, from, to, k * w->dilation - w->padding, &low, &high);
        u.pairs += (double)(high - low);
        u.taps += high > low;
        if ((double)(high - low) > u.inputs) u.inputs = (double)(high - low);
    }
    double all = (double)w->out * (double)w->kernel;
    if (!pairs_alone && all < MARKED && w->in < MARKED) u.inputs = marked(w);
    return u;
}

int window_argument(const OpCall *c, const char *name, int i, int64_t least, int64_t *out,
                    Error *err)
{
    const OpValue *v = &c->arg[op_argument(c->op, name)];
    if (i >= v->n)
        return error_set(err, ERROR_INVALID, "%s: expected a size for each dimension, found %d",
                         name, v->n);
    *out = v->integer[i];
    if (*out < least || *out > INT32_MAX)
        return error_set(err, ERROR_INVALID, "%s: expected a size of at least %lld, found %lld",
                         name, (long long)least, (long long)*out);
    return 0;
}
