/* Text of plain kernels: heads with their launches, strided index expressions, literals. A kernel's
 * name is STEM_N, where N counts the launches of the OpPlain, so that kernels of many operators can be
 * in one source. After the first error b->full or text_end says so; text in between is dropped. */
#ifndef OPS_OP_TEXT_H
#define OPS_OP_TEXT_H

#include "ops/op.h"

/* The type in which elements of d are computed: float, double or long long. */
const char *text_type(Dtype d);
const char *text_cast(Dtype from, Dtype to); /* "(float)" where a half type is on one side */
void text_number(Buffer *b, double v);       /* a literal, also of NaN and infinities */

/* A list of operands in which no name is twice. A name that does not fit is dropped: the kernel then does not
 * compile. */
typedef struct {
    char text[256]; /* "x0 x1 t0 y0" */
} TextOperands;
void text_operand(TextOperands *o, char kind, int index);
void text_operand_named(TextOperands *o, const char *name); /* "": nothing */

/* What a kernel is launched with. operands are names as in OpLaunch.arguments, "x0 x1 y0 t0"; NULL stands for
 * all inputs and results. Inputs are const. A size that eager PyTorch's kernel learns at run time is an
 * operand too: "width=512" is an int in the text, "width:512" a long long. A last "t" is the round of a
 * repeated launch, an int. */
typedef struct {
    const char *stem, *operands;
    int64_t blocks;
    int threads;
} TextHead;

/* Begins a kernel of out->call: its launch, and its text up to the brace. NULL: *err says why. The launch can
 * be changed until text_end. */
OpLaunch *text_begin(OpPlain *out, const TextHead *h, Error *err);
/* As text_begin, for one thread each of n elements, four of them a thread: the text goes on within a
 * loop in which `i` is the element. text_walk has two of a thread, or four of types of less than four
 * bytes, as eager PyTorch's loop over strided tensors. */
OpLaunch *text_each(OpPlain *out, const char *stem, const char *operands, int64_t n, Error *err);
OpLaunch *text_walk(OpPlain *out, const char *stem, const char *operands, int64_t n, Error *err);
/* Closes the braces and counts the launch. */
int text_end(OpPlain *out, Error *err);
int text_each_end(OpPlain *out, Error *err);

/* Adds scratch memory tK and returns K, or -1. */
int text_scratch(OpPlain *out, Dtype dtype, int64_t elements, Error *err);

/* Adds a library call after the kernels so far. size: of its arguments, which the caller writes. NULL:
 * *err says that there are too many. */
char *text_library(OpRoute *out, const char *library, size_t *size, Error *err);

/* Where a tensor's elements lie one behind the other in C order, as a library's argument: "x0 + 12", or
 * scratch memory to which a kernel copies them. */
int text_dense(OpPlain *out, const char *name, const OpTensor *t, char *place, size_t size,
               Error *err);

/* A strided view: the element at coordinates d lies at offset + the sum of step[d] times the d-th. */
typedef struct {
    int64_t offset;
    int rank;
    const int64_t *size, *step;
} Strided;

/* The place of the element with the flat index `i` in C order of the sizes. i is an expression, in brackets
 * where it needs them. */
void text_strided(Buffer *b, const Strided *s, const char *i);
/* The same of a tensor that is broadcast to `size`. */
void text_index(Buffer *b, const OpTensor *t, int rank, const int64_t *size, const char *i);
/* Drops dimensions of size 1 and merges neighbours that one step walks through: the new rank. */
int text_is_wide(const OpTensor *t); /* 1: a place in the tensor may not fit an int */
int op_merge(int rank, const int64_t *size, const int64_t *step, int64_t *n, int64_t *s);
/* The steps of a broadcast tensor through `size`: its strides, 0 where it is repeated. */
void op_steps(const OpTensor *t, int rank, int64_t *step);

/* Once a source: op_block_reduce(v, f, shared): f over the values of all threads of the block, for
 * all of them. `shared` has 32 elements of the value's type. */
void text_block_reduce(OpPlain *out);

#endif
