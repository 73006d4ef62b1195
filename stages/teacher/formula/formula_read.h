/* What the reading of a graph shares: graph values and the formula values that they became. Functions
 * that return a value or a space return -1 on an error. */
#ifndef STAGES_TEACHER_FORMULA_FORMULA_READ_H
#define STAGES_TEACHER_FORMULA_FORMULA_READ_H

#include "stages/teacher/formula/row_formula.h"

typedef struct {
    Formula *f;
    GraphBound *b;
    int *of; /* by graph value that owns its memory: the formula's value; -1: none, or an input */
    char op[32]; /* of the node that is read */
    int n_sizes;
    struct {
        int64_t n;
        char text[FORMULA_TEXT];
    } size[FORMULA_NUMBERS];
} FormulaReader;

/* Notes the text of a size. */
void formula_size(FormulaReader *r, int64_t n, const char *text);
int formula_size_text(FormulaReader *r, int64_t n, char out[FORMULA_TEXT], Error *err);

/* The space of a tensor's elements; one of that size is made unless it is there. */
int formula_space(FormulaReader *r, const OpTensor *t, Error *err);

/* Adds a value, with a name that no other has. */
int formula_add(FormulaReader *r, ValueKind kind, const char *name, Error *err);

/* The value of a graph's value as an operand of a result like `like` in a space. */
int formula_operand(FormulaReader *r, int value, const OpTensor *like, int space, Error *err);

int formula_point(FormulaReader *r, const GraphCall *c, const char *name, Error *err);
/* Reads an operator that is not pointwise, as one value or several; returns the result's. */
int formula_composite(FormulaReader *r, const GraphCall *c, const char *name, Error *err);
/* Products and windows (formula_product.c). */
int formula_product(FormulaReader *r, const GraphCall *c, const char *name, Error *err);
int formula_window(FormulaReader *r, const GraphCall *c, const char *name, Error *err);

/* A new pointwise value over a and b (-1: none) in the place of a, or of b if that has more elements. */
int formula_make(FormulaReader *r, const char *name, const char *text, int a, int b, Error *err);

#endif
