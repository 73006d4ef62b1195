/* What the texts of plain kernels share. */
#ifndef GENERATE_DRAW_PLAIN_TEXT_H
#define GENERATE_DRAW_PLAIN_TEXT_H

#include "generate/plain.h"
#include "generate/writer.h"

enum { PLAIN_TEXT = 400 };

/* row, reduce, passes: as the genes of these names. trips: elements, or vectors, of a thread where nothing is
 * folded. */
typedef struct {
    Writer w;
    int row, reduce, passes, trips;
    const Index *flat; /* plain_flat, where nothing is folded */
} Plainer;

static inline Plain *plain_of(const Plainer *x)
{
    return x->w.k->nodes->plain;
}

/* The loop axes of a mask that have more than one element, and how many they are. */
unsigned plain_loops(const Kernel *k, unsigned mask, int *n);
/* The number of a mask's elements, as an expression. */
void plain_count(Plainer *x, unsigned mask, char out[PLAIN_TEXT]);
/* Defines the axes of a mask by a flat number. Does nothing where one axis is the number. */
void plain_axes(Plainer *x, unsigned mask, const char *flat, const char *indent);
/* The condition of a guard or a loop, unless a mistake leaves it out or lets it go too far. */
const char *plain_below(Plainer *x);
/* `to` with `value` added by a fold. */
void plain_join(Plainer *x, Fold f, const char *to, const char *value, const char *indent);
/* The results that all threads of a row have. */
void plain_results(Plainer *x, const char *guard);

/* Names axes, and the values of steps into `names`, which lives as long as the writer (plain_names.c). */
void plain_name_axes(Plainer *x);
void plain_name_values(Plainer *x, char (*names)[WRITER_NAME]);
/* Of a kernel without folds over rows and columns: the place of the i-th element; NULL: its result lies in
 * another order. */
const Index *plain_flat(const Plainer *x);

/* As kernel_write: Plain.write of all that is drawn. */
int plain_write(Kernel *k, KernelText *t, Error *err);
/* A product of two tensors by tiles in shared memory (plain_tile.c). 1: done; 0: it is none. */
int plain_tile(Plainer *x);

#endif
