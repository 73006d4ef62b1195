/* Operators that lines write as others: stacks of more tensors than an operator takes, an einsum of more
 * than two tensors, a copy into a constant whose contents are not known. */
#ifndef TASKS_IMPORT_REWRITE_H
#define TASKS_IMPORT_REWRITE_H

#include "tasks/import/lines.h"

typedef struct {
    Program *p;
    Lines *out;
    Error *err;
} Writer;

/* 1: the node has its lines; 0: it is written as it stands; -1: *err. */
int rewrite_call(Writer *w, const json_t *node, const char *op, const char *result);

/* The contents of a constant are not known; 1: the first node that names it gives it new ones. */
int rewrite_overwrites(const Program *p, const ProgramInput *x);
/* What a constant is made of: "full", "tril", "triu", or NULL: it is an input. */
const char *rewrite_pattern(const ProgramInput *x);

/* As rewrite_call, of cells of recurrent networks, images of another size, indices with None,
 * variance and mean at once, and compositions such as cdist, meshgrid and a whole number's power. */
int rewrite_cell(Writer *w, const json_t *node, const char *op);

/* Argument i of a node, and the name of the tensor that it is, or NULL. */
const json_t *rewrite_argument(const json_t *node, size_t i);
const char *rewrite_tensor(const json_t *node, size_t i);

/* Of a bag of embeddings only the first result is written; refuses one whose other results are used, or whose
 * offsets are an input. */
int rewrite_bags(Writer *w, const json_t *node);

#endif
