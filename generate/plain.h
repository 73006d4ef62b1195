/* Plain kernels: the same expressions, fusions and sizes as the other kernels of the generator, as short text
 * that a small model can learn to write. They are what the built-in teacher draws, and where its mistakes are
 * made: at a place where the text is written the writer asks plain_slips. */
#ifndef GENERATE_PLAIN_H
#define GENERATE_PLAIN_H

#include "generate/kernel.h"

/* A beginner's mistake. A row of the table in plain.c each. */
typedef enum {
    SLIP_NONE,
    SLIP_GUARD,    /* a predicate is left out */
    SLIP_BARRIER,  /* a barrier is left out */
    SLIP_WAIT,     /* copies are not waited for */
    SLIP_AXES,     /* an index has two axes in each other's place */
    SLIP_IDENTITY, /* a fold begins at a number that changes it */
    SLIP_PARTIAL,  /* a partial result is taken for the whole one */
    SLIP_CONSTANT,
    SLIP_BOUND,  /* a loop takes one element too many */
    SLIP_BLOCKS, /* too few blocks: a division that rounds down */
    SLIP_NAME,   /* a name without a definition */
    SLIPS
} Slip;

/* What plain kernels are written by, and what is found on the way. */
typedef struct Plain {
    Slip slip;         /* the mistake to make; SLIP_NONE: none */
    int at;            /* at which of its places */
    int places[SLIPS]; /* how many places each could be made at so far */
    int (*write)(Kernel *k, KernelText *t, Error *err); /* of a kernel, as kernel_write */
} Plain;

const char *slip_name(Slip s); /* NULL past the end */
/* 1: the mistake is made here. plain NULL: none is. */
int plain_slips(Plain *p, Slip s);
int plain_slips_at(Plain *p, double number);  /* 1: the constant is wrong here */
Index plain_index(Plain *p, const Index *at); /* the index, or one with swapped axes */

/* Sorts the parameters: what is read, in the graph's order, what is written, and sizes in its order. */
void plain_order(Kernel *k);

/* The headers that a source needs. Those of half types are in each that is not plain. */
void plain_headers(const char *source, int is_plain, Buffer *to);

/* 1: the word of a point's text is a factor of 1, as in "p0 * b", which is left out. */
int plain_is_one(const Node *x, const char *word, size_t len);
/* The length of what is nothing in a point's text: " * p0" where p0 is 1, " - p0" where it is 0; or 0. */
size_t plain_nothing(const Node *x, const char *at);

#endif
