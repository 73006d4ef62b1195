/* Recurrent networks of LSTM, GRU and plain cells: layers, each in one direction or two. A cell is one
 * layer in one direction. */
#ifndef OPS_NN_OP_RECURRENT_H
#define OPS_NN_OP_RECURRENT_H

#include "ops/op.h"

typedef enum { CELL_TANH, CELL_RELU, CELL_GRU, CELL_LSTM } CellKind;

typedef struct {
    CellKind kind;
    int gates, layers, directions, biases, batch_first;
    int64_t steps, batch, in, hidden;
    const OpTensor *x, *h, *c; /* c: of an LSTM, else NULL */
    int x_index, h_index, c_index;
    const OpValue *params;
} Recurrent;

/* 1: a call is of recurrent layers, and *out borrows from it. */
int recurrent_of_call(const OpCall *c, Recurrent *out);

/* The parameters of a cell by their indices in OpCall.tensor; biases may be -1. */
typedef struct {
    int64_t in; /* elements of its input at a step */
    int input, hidden, input_bias, hidden_bias;
} Cell;
Cell recurrent_cell(const Recurrent *r, int layer, int direction);

/* Appends for each cell the product of all inputs, and a launch a step. */
int recurrent_plain(const Recurrent *r, const OpCall *c, OpPlain *out, Error *err);

#endif
