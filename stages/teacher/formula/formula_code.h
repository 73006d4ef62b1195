/* CUDA expressions of a formula's values. Arithmetic is in float. Inside a scope, such as the body of a
 * loop, what an operator computes for another one becomes a variable under its own name: a statement an
 * operator, as the prompt's formula has a line an operator. */
#ifndef STAGES_TEACHER_FORMULA_FORMULA_CODE_H
#define STAGES_TEACHER_FORMULA_FORMULA_CODE_H

#include "base/buffer.h"
#include "stages/teacher/formula/row_formula.h"

typedef struct {
    const Formula *f;
    const unsigned char *member; /* by value: 1: it is computed here; others are in memory */
    int result;                  /* the value that goes to memory */
    Buffer *out;                 /* statements go here, each with `indent` before it */
    const char *indent;
    const char *full, *row, *col; /* indices of an element, as texts */
    const char *rows;             /* the number of rows, as a text */
    int first;        /* 1: `first` is the row's first channel, and `full` starts at the row */
    int bare;         /* 1: a load is a parameter of its own name */
    const char *lane; /* not NULL: elements of a row are NAME4[lane] */
    int lane_floats;  /* 1: they are floats whatever lies in memory */
    unsigned long long lanes;            /* bit v: such a load was used */
    char *text[FORMULA_VALUES];          /* of values that have one here */
    unsigned char outer[FORMULA_VALUES]; /* 1: it stays when the scope is left */
    int uses[FORMULA_VALUES];
} CodeScope;

void code_enter(CodeScope *s, const Formula *f, const unsigned char *member, int result,
                Buffer *out);
void code_leave(CodeScope *s); /* forgets what is not outer */
void code_close(CodeScope *s); /* in every case */

/* Says how a value is written from here on. */
void code_set(CodeScope *s, int value, int outer, const char *text);

/* Counts what `value` uses, so that code_value knows which values need a variable. */
void code_count(CodeScope *s, int value);

/* The expression of a value, for which statements may be written. It stays valid in the scope. */
const char *code_value(CodeScope *s, int value);
/* Whether a text needs no brackets as a factor. */
int code_is_term(const char *text);
/* As an operand: a variable if an operator computes it here. */
const char *code_operand(CodeScope *s, int value);
/* As a variable or constant that may be named twice. */
const char *code_name(CodeScope *s, int value);

int code_is_load(const CodeScope *s, int value);

/* "float", "half": of a value in memory. */
const char *code_type(const FormulaValue *v);

/* The name of a load's memory in the plan, or of the memory that a value is stored in. */
const char *code_memory(const Formula *f, int value);

#endif
