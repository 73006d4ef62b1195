/* What readers of operators build nodes with. */
#ifndef GENERATE_NODE_BUILD_H
#define GENERATE_NODE_BUILD_H

#include "generate/node.h"

/* The node of an argument, by position and by name; -1: it is no tensor. */
int node_operand(const NodeCall *c, int arg);
int node_named(const NodeCall *c, const char *name);
/* 1: the numbers of an operator's arguments from `from` on are equal at every binding. */
int node_fixed(const NodeCall *c, int from);
/* A point that is computed in float, also of half types; the elements of a node with another type. */
int node_made(Nodes *n, const char *text, int a, int b);
int node_cast(Nodes *n, int a, Dtype to);
/* As node_point with a third operand; either of b and c may be -1. */
int node_point3(Nodes *n, const char *text, const int arg[3], Dtype dtype);
/* A fold whose result has the folded dimensions with size 1, if `keep`. */
int node_fold_to(Nodes *n, Fold how, int a, unsigned dims, int keep);
/* A number, without dimensions, which broadcasts. */
int node_number(Nodes *n, double v, Dtype dtype);
/* Element c of the result is a's element c - low where there is one, else `fill`. */
int node_pad(Nodes *n, int a, const Size *low, const Size *size, double fill);
/* A tensor's contents with new ones in a part of it, given at each binding; -1: it is no part by ranges. */
int node_with_part(Nodes *n, int old, int contents, const OpTensor *const part[SIZE_BINDINGS]);
/* 1: a is two tensors that are joined along a dimension, which are part[0] and part[1]. */
int node_joined_parts(const Nodes *n, int a, int dim, int part[2]);
/* a's elements along `axis` under the numbers in `by`. across: the result has by's dimensions in place of the
 * axis; else it has by's shape, and other coordinates are by's own. */
int node_gather(Nodes *n, int a, int by, int axis, int across);
/* The index of the largest element over the dimensions, the first of several, or of the first that is no
 * number. least: of the smallest one. a is float. */
int node_place_of_most(Nodes *n, int a, unsigned dims, int least);

/* Readers of families: as nodes_of_call. */
int node_select(Nodes *n, const NodeCall *c, Error *err);
int node_window(Nodes *n, const NodeCall *c, Error *err);
/* 0: done; 1: it is no einsum of two tensors, or stays an op line. */
int node_einsum(Nodes *n, const NodeCall *c);

#endif
