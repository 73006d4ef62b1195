/* Kernels of a formula. The values that are computed are cut into groups, one kernel each; a group has one
 * result that goes to memory. Each kind of group has a writer, which draws its schedule and emits the
 * kernel and its launch. */
#ifndef STAGES_TEACHER_TEMPLATE_FORMULA_H
#define STAGES_TEACHER_TEMPLATE_FORMULA_H

#include "stages/teacher/formula/formula_code.h"
#include "stages/teacher/template_grammar.h"

typedef struct {
    Grammar *g;
    const Formula *f;
    int n, value[FORMULA_VALUES]; /* what it computes, in order */
    unsigned char member[FORMULA_VALUES];
    int result;
    int n_loads, load[FORMULA_VALUES]; /* values that are read from memory */
    char name[64];
    int number; /* of the kernel, from 1 */
} FormulaKernel;

/* Writers. */
void template_flat(FormulaKernel *k);
void template_fold(FormulaKernel *k);
void template_scan(FormulaKernel *k);
void template_total(FormulaKernel *k);
void template_product(FormulaKernel *k);
void template_window(FormulaKernel *k);

/* A size of a kernel: the name of its parameter and the text in the plan. */
typedef struct {
    const char *name, *text;
} KernelSize;

/* Sets "params", "args" (of the launch) and "kernel": pointers, then the sizes up to a NULL name. */
void kernel_signature(FormulaKernel *k, const KernelSize *sizes);
/* rows and cols of a space and, where they are needed, channels, plane and inner (row_formula.h). */
enum { KERNEL_ROW_SIZES = 6 };
void kernel_row_sizes(const FormulaKernel *k, const FormulaSpace *s,
                      KernelSize sizes[KERNEL_ROW_SIZES]);
/* The texts of the row and the column of element i of a space. */
const char *kernel_row_of(const FormulaSpace *s);
const char *kernel_col_of(const FormulaSpace *s);
int kernel_has(const FormulaKernel *k, Domain d); /* a load of this kind */
const FormulaSpace *kernel_space(const FormulaKernel *k);
/* "rows * cols", without ones. The buffer is the caller's. */
const char *kernel_count(const FormulaSpace *s, char out[2 * FORMULA_TEXT]);

/* The text of a value. `known` (-1: none) is written as `text`. Where statements are needed they become a
 * device function, whose name ends with the kernel's number from the second kernel on. */
typedef struct {
    int value, known;
    const char *text, *function;
} KernelText;

/* Sets `name` to the text at an element, of which `at` has the indices: full, row, col, lane, first. */
void kernel_set(FormulaKernel *k, const char *name, const CodeScope *at, KernelText x);
/* The usual indices of an element, for kernel_set. */
CodeScope kernel_place(const FormulaKernel *k);
void kernel_scope(const FormulaKernel *k, CodeScope *s, Buffer *out);

/* 4 elements of a row as floats, from and to memory: emits the helpers for a type. */
void kernel_vector_helpers(FormulaKernel *k, const char *type, int store);

/* Draws how the formula is cut, and writes all kernels. */
void template_formula(Grammar *g, const Formula *f);

#endif
