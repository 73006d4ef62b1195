/* One operator as a line of text. A task's graph is a list of such lines, and a plan's `//@ op` holds
 * one:
 *
 *   h = aten.conv2d(x, weight, bias, stride=[1, 1], padding=[pad, pad])
 *   values, indices = aten.max.dim(h, 1, True)
 *
 * The name is an ATen name; without an overload it is the one entry of the library whose name begins
 * so, else the .default one, else the .Tensor one. Arguments are positional, then by keyword. An argument is
 *
 *   a name of a tensor, [x, h] for a list of tensors
 *   an integer expression of base/expr.h over axes, [n, 4 * c] for a list of them
 *   a float literal (1e-5, inf, -inf, nan), True, False, None, 'text', torch.float32
 *
 * Names of tensors and axes are in one scope and differ. */
#ifndef TASKS_GRAPH_OP_LINE_H
#define TASKS_GRAPH_OP_LINE_H

#include "base/expr.h"
#include "base/words.h"
#include "ops/op.h"

enum { OP_LINE_MAX = 4096 }; /* bytes of a line */

typedef struct {
    const char *p; /* into the line, which must outlive the OpLine */
    size_t len;
} OpText;

static inline int op_text_is(OpText t, const char *word)
{
    return word_is(t.p, t.len, word);
}

typedef struct {
    OpText result[OP_MAX_RESULTS];
    int n_results;
    const Op *op;
    OpText keyword[OP_MAX_ARGS]; /* len 0: positional */
    OpText value[OP_MAX_ARGS];   /* a list with its brackets */
    int n_args;
} OpLine;

/* What the names of a line mean. */
typedef struct {
    void *ctx;
    ExprLookup *axis;
    /* The tensor of a name: fills *out and returns an id that the caller chooses (0 or more), or -1
     * when no tensor has this name. */
    int (*tensor)(void *ctx, const char *name, size_t len, OpTensor *out);
} OpScope;

/* Parses text[0..len) and finds its operator. An error names the column. */
int op_line_parse(const char *text, size_t len, OpLine *out, Error *err);

/* Binds the arguments in a scope and infers the results. id[i]: the scope's id of call->tensor[i]. */
int op_line_call(const OpLine *l, const OpScope *scope, OpCall *call, int id[OP_MAX_TENSORS],
                 Error *err);

#endif
