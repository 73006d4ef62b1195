/* Where an element lies: a flat index in C order as a sum over the axes of a kernel's loops, with sizes for
 * coefficients. What is no such sum is a text. */
#ifndef GENERATE_INDEX_H
#define GENERATE_INDEX_H

#include "base/buffer.h"
#include "generate/index/size.h"

enum { INDEX_AXES = 30, INDEX_TEXT = 480 };

/* An axis that no term names has the coefficient 0. text: "" or a summand that is not affine, from 0 to
 * `most`; `through` has a bit for each axis that the text names. */
typedef struct {
    Size by[INDEX_AXES], plus, most;
    char text[INDEX_TEXT];
    unsigned through;
} Index;

typedef struct {
    int n;
    Size size[INDEX_AXES];
    char name[INDEX_AXES][16];
} Axes;

/* How a kernel writes axes and sizes. size returns the name of a parameter or a number; NULL: *err. */
typedef struct {
    const Axes *axes;
    void *of;
    const char *(*size)(void *of, Size s, Error *err);
} IndexScope;

Index index_none(void);
Index index_axis(int axis, Size by);
unsigned index_axes(const Index *a); /* bits of those that it depends on */
int index_same(const Index *a, const Index *b);

/* These return 0, or -1 with *err: a text is too long, or a size has no expression. */
int index_add(Index *to, const Index *a, Error *err);
int index_scale(const IndexScope *s, Index *a, Size by, Error *err);
/* The quotient and the rest of a division by d; either may be NULL. */
int index_divide(const IndexScope *s, const Index *a, Size d, Index *over, Index *rest, Error *err);
/* Writes it, in brackets where it is a sum. */
int index_write(const IndexScope *s, const Index *a, Buffer *out, Error *err);

#endif
