/* Single elements of an operator's results: which elements of its inputs each one needs, and its value.
 * Elements are named by their flat index in C order, of inputs and results alike, whatever their
 * strides are. An operator without these functions is computed whole. */
#ifndef OPS_OP_ELEMENT_H
#define OPS_OP_ELEMENT_H

#include "ops/op.h"

typedef struct {
    int result;
    int64_t n;
    const int64_t *at; /* n elements; sorted by row, then by index */
} OpSome;

/* What is needed is named to add: n elements of an input, `step` apart. again: n times an element is needed
 * that add has got, which is work as well. known: by input, its elements where they are there before, else
 * NULL; indices are looked up there. */
typedef struct {
    void *of;
    void (*add)(void *of, int tensor, int64_t first, int64_t step, int64_t n);
    void (*again)(void *of, int64_t n);
    const double *const *known;
} OpNeeds;

/* The elements of an argument: one of the two is there. */
typedef struct {
    const double *wide;
    const float *narrow;
} OpNumbers;

/* The call has been inferred. compute reads the needed elements alone of in[]; y has s->n elements.
 * Equal elements get equal bits in whatever company they are asked for. rows: of n elements of a result;
 * those of one row share what they need, and are asked for together; NULL: each stands alone.
 * compute_mixed: as compute, with the same bits, of arguments that may be floats; NULL: there is none. */
struct OpElements {
    void (*needs)(const OpCall *c, const OpSome *s, const OpNeeds *out);
    void (*compute)(const OpCall *c, const double *const *in, const OpSome *s, double *y);
    void (*rows)(const OpCall *c, int result, const int64_t *at, int64_t n, int64_t *row);
    void (*compute_mixed)(const OpCall *c, const OpNumbers *in, const OpSome *s, double *y);
};

#endif
