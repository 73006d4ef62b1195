/* Recurrent layers as kernels: an op line of an LSTM, a GRU or a plain recurrent network becomes, for each
 * layer, a product of the inputs of all steps by an op line, and a kernel that runs all steps. */
#ifndef GENERATE_RECURRENCE_H
#define GENERATE_RECURRENCE_H

#include "generate/kernel.h"
#include "ops/nn/op_recurrent.h"

/* How kernels compute a layer. Blocks of a cluster, or of a team, have ROWS rows of the batch at a time. */
typedef struct {
    int teams;        /* of a direction, blocks of one cooperative launch; 0: clusters */
    int warps, units; /* of a block; of a warp */
    int held;         /* of the weights of a unit in registers, of 128 each */
    int rows;
    double us; /* of a layer, by the timed sizes */
} RecurrenceShape;

typedef struct {
    int line;
    Recurrent call; /* at the timed sizes */
    Size steps, batch;
    int hidden; /* units of a layer, a number */
    RecurrenceShape shape;
} Recurrence;

/* 1: a kept node is a result of recurrent layers that kernels can compute. */
int recurrence_read(const Nodes *n, int node, Recurrence *out);
/* Not 0: the schedule has kernels for them, of r->shape; by default where these are faster, by the timed
 * sizes. */
int recurrence_choose(const Nodes *n, Recurrence *r);
double recurrence_us(const Recurrence *r); /* of all layers */

/* Tensors and results in the plan. tensor: by index in the call; of those that recurrence_multiplies it is
 * the name of a tensor, of the others that of memory in C order. result: of y, h and c; NULL: nothing reads
 * it. */
typedef struct {
    const char *tensor[OP_MAX_TENSORS], *result[OP_MAX_RESULTS];
} RecurrenceNames;
/* 1: an op line reads a tensor of the call, to multiply the inputs of a layer; 0: a kernel does. */
int recurrence_multiplies(const Recurrence *r, int tensor);
/* Appends the kernels and what launches them. *n_lines grows by the op lines between them. */
int recurrence_write(const Recurrence *r, const RecurrenceNames *names, SizeTable *sizes,
                     KernelText *t, int *n_lines, Error *err);

#endif
