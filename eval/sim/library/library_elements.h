/* Elements in simulated memory, and the taps of a convolution that meet an input. */
#ifndef EVAL_SIM_LIBRARY_LIBRARY_ELEMENTS_H
#define EVAL_SIM_LIBRARY_LIBRARY_ELEMENTS_H

#include <string.h>

#include "eval/sim/exec/handlers.h"
#include "eval/sim/library/library_shape.h"
#include "tasks/derive/tf32.h"

/* Elements of one dtype: float32, float16 or bfloat16. tf32: factors that are rounded to it. */
typedef struct {
    unsigned char *p;
    int dtype, tf32;
} Elements;

static inline double element_get(const Elements *e, int64_t i)
{
    float f;
    uint16_t h;
    if (e->dtype == DTYPE_F32) {
        memcpy(&f, e->p + 4 * i, sizeof f);
        return (double)(e->tf32 ? tf32_nearest_float(f) : f);
    }
    memcpy(&h, e->p + 2 * i, sizeof h);
    return (double)(e->dtype == DTYPE_F16 ? half_to_float(h) : bf16_to_float(h));
}

static inline void element_put(const Elements *e, int64_t i, double v)
{
    float f = (float)v;
    uint16_t h;
    if (e->dtype == DTYPE_F32) {
        memcpy(e->p + 4 * i, &f, sizeof f);
        return;
    }
    h = (uint16_t)(e->dtype == DTYPE_F16 ? half_from_double(v) : bf16_from_double(v));
    memcpy(e->p + 2 * i, &h, sizeof h);
}

static inline uint64_t element_bytes(int dtype)
{
    return dtype == DTYPE_F32 ? 4 : 2;
}

/* Elements between neighbours of a convolution's tensors: entries of the batch, channels, and places of a
 * plane; of the weight its first and second dimension, and taps. */
typedef struct {
    int64_t entry, channel, place;
} LibrarySteps;

static inline LibrarySteps steps_of(const LibraryConvolution *c, int64_t channels, int64_t places)
{
    return c->last ? (LibrarySteps){channels * places, 1, channels}
                   : (LibrarySteps){channels * places, places, 1};
}

static inline int64_t convolution_plane(const LibraryConvolution *c)
{
    return c->d[0].in * c->d[1].in * c->d[2].in;
}

static inline int64_t convolution_kernel(const LibraryConvolution *c)
{
    return c->d[0].kernel * c->d[1].kernel * c->d[2].kernel;
}

static inline LibrarySteps x_steps(const LibraryConvolution *c)
{
    return steps_of(c, c->in, convolution_plane(c));
}

static inline LibrarySteps weight_steps(const LibraryConvolution *c)
{
    return steps_of(c, (c->transposed ? c->out : c->in) / c->groups, convolution_kernel(c));
}

/* The place of the weights of a group's pair of an input and an output channel, both counted over all
 * groups. */
static inline int64_t weight_pair(const LibraryConvolution *c, const LibrarySteps *s, int64_t in,
                                  int64_t out)
{
    return c->transposed ? in * s->entry + out % (c->out / c->groups) * s->channel
                         : out * s->entry + in % (c->in / c->groups) * s->channel;
}

/* The input that output o and tap k of dimension d meet; -1: none. */
static inline int64_t tap_input(const LibraryConvolution *c, int d, int64_t o, int64_t k)
{
    int64_t i = c->transposed ? o + c->d[d].padding - k * c->d[d].dilation
                              : o * c->d[d].stride - c->d[d].padding + k * c->d[d].dilation;
    if (c->transposed) {
        if (i < 0 || i % c->d[d].stride) return -1;
        i /= c->d[d].stride;
    }
    return i < c->d[d].in ? i : -1;
}

/* The taps of a dimension that meet an input for one output, and these inputs. */
typedef struct {
    int64_t n, *tap, *input;
} Taps;

static inline void taps_find(const LibraryConvolution *c, int d, int64_t o, Taps *t)
{
    t->n = 0;
    for (int64_t k = 0; k < c->d[d].kernel; k++) {
        int64_t i = tap_input(c, d, o, k);
        if (i < 0) continue;
        t->tap[t->n] = k;
        t->input[t->n++] = i;
    }
}

#endif
