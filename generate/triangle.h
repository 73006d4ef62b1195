/* Triangles of matrices: conditions on how far a column is from its row, and what they leave of elements. */
#ifndef GENERATE_TRIANGLE_H
#define GENERATE_TRIANGLE_H

#include "generate/node.h"

/* The columns from row + least to row + most. Far beyond all matrices there is no bound. */
enum { BAND_FAR = 1 << 30 };
typedef struct {
    int64_t least, most;
} Band;

int triangle_is_point(const Nodes *n, int node, const char *text);
/* A part of a node in which coordinates of the last two dimensions are the node's own; -1: there is none. */
int triangle_inside(const Nodes *n, int node);
/* 1: the node is a number, by the last two coordinates, within a band without one of its bounds, and 0
 * elsewhere; a condition is 1. */
int triangle_read(const Nodes *n, int node, Band *out, double *value);
/* The band outside of which all elements of a tensor are 0. */
Band triangle_zeros(const Nodes *n, int node);
/* The band outside of which no element of `node` depends on the elements of `of` at its own place; elements
 * elsewhere it does not depend on. 0: it may need all of them. */
int triangle_needed(const Nodes *n, int node, int of, Band *out);
int band_is_all(Band b);

#endif
