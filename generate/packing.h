/* What convolutions' kernels read: inputs and filters rounded to TF32, four channels of a place together, in
 * one of two layouts. A kernel packs them, or the one that computes an input lays it out so. */
#ifndef GENERATE_PACKING_H
#define GENERATE_PACKING_H

#include "generate/product_text.h"

/* Beside four channels of a place lie the place's next channels, or the same channels of the next place.
 * PACKED_WHOLE: as PACKED_PLACES, and nothing is rounded. */
typedef enum { PACKED_NOT, PACKED_PLACES, PACKED_QUADS, PACKED_WHOLE } PackedLayout;

/* Sizes of a convolution in the plan. */
typedef struct {
    char channels[SIZE_TEXT], images[SIZE_TEXT], places[SIZE_TEXT], taps[SIZE_TEXT],
        filters[SIZE_TEXT], outputs[SIZE_TEXT];
} PackingTexts;

/* Appends the functions that pack to the source, once. */
void packing_help(KernelText *t);
/* Appends the launch that packs a convolution's input, unless it is packed, and notes its filters. */
int packing_put_input(ProductWriter *w, const PackingTexts *t);
int packing_put_filters(ProductWriter *w, const PackingTexts *t, int transposed);
/* Puts the launches that pack filters into the whole plan. */
void packing_put_launches(KernelText *t);
/* The names of the packed input and of the filters in the plan. */
const char *packing_filters_name(const ProductWriter *w);
const char *packing_input_name(const ProductWriter *w);
/* The layout in which a convolution reads its input. */
PackedLayout packing_layout(const MatrixProduct *m);
/* A function `store` that lays results of a convolution out for the next one. */
void packing_put_store(ProductWriter *w, const char *rows, const char *columns);
/* Appends the number of elements of a packed node, channels its second dimension. */
int packing_put_count(const Nodes *n, int node, Buffer *out, Error *err);
/* 1: the kernel's result has channels and places along axes of their own. */
int packing_fits(const Kernel *k);
/* Writes such a kernel, whose result is read so, element by element. */
int packing_write(Kernel *k, PackedLayout layout, KernelText *t, Error *err);

#endif
