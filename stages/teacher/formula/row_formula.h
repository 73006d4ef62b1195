/* A task's graph as a formula over rows and columns. Each value has one element per place of a space
 * (rows x cols), per row, per column, per channel, or one in all. Leading dimensions are rows and the
 * last one is the columns; of four dimensions the last two are. Composite operators become their
 * parts: softmax is a maximum, an exponential, a sum and a quotient.
 *
 * Sizes are texts over the task's axes, as plans have them. They are found by binding the graph to
 * axes that are distinct primes, so that a size names its axis. With kept operators the axes are distinct
 * sizes that the graph allows, and an expression is found for a size that is no axis. */
#ifndef STAGES_TEACHER_FORMULA_ROW_FORMULA_H
#define STAGES_TEACHER_FORMULA_ROW_FORMULA_H

#include "tasks/task.h"

enum {
    FORMULA_VALUES = 64,
    FORMULA_SPACES = 8,
    FORMULA_NUMBERS = 48,
    FORMULA_WINDOWS = 4,
    FORMULA_TEXT = 160
};

typedef enum {
    VALUE_LOAD,    /* an element of an input, or of an earlier value that lies in memory */
    VALUE_POINT,   /* an expression over up to three values */
    VALUE_FOLD,    /* over the columns of a row */
    VALUE_SCAN,    /* the sum of the columns up to this one */
    VALUE_TOTAL,   /* a fold over everything */
    VALUE_PRODUCT, /* of two matrices */
    VALUE_WINDOW,  /* a convolution, or a pool */
    VALUE_KEPT     /* the result of an op line, in memory */
} ValueKind;

typedef enum { PER_ELEMENT, PER_ROW, PER_COL, PER_CHANNEL, PER_TASK, PER_TRANSPOSED } Domain;
typedef enum { FOLD_SUM, FOLD_MEAN, FOLD_MAX, FOLD_MIN, FOLD_VAR } Fold;

typedef struct {
    int64_t n_rows, n_cols;
    int64_t n_inner; /* elements from one column to the next; 1: a row lies in one piece */
    int64_t n_plane; /* elements of a channel where a row has several channels; 0: it has not */
    char rows[FORMULA_TEXT], cols[FORMULA_TEXT], channels[FORMULA_TEXT]; /* "": none */
    char inner[FORMULA_TEXT], plane[FORMULA_TEXT]; /* "": n_inner is 1, n_plane is 0 */
} FormulaSpace;

/* A window over the last two of four dimensions, or a pool over the last three of five. */
typedef struct {
    enum { WINDOW_CONV, WINDOW_DEPTHWISE, WINDOW_MAX, WINDOW_MEAN } kind;
    int dims;
    int64_t size, stride, padding; /* along each of the dimensions */
    char in_channels[FORMULA_TEXT], channels[FORMULA_TEXT],
        batch[FORMULA_TEXT];                        /* texts of sizes */
    char in[3][FORMULA_TEXT], out[3][FORMULA_TEXT]; /* depth, height, width; no depth of two dims */
} FormulaWindow;

typedef struct {
    ValueKind kind;
    char name[64], op[32]; /* op: the operator's name without aten. and overload */
    Dtype dtype;
    Domain domain;
    int space;
    int arg[3]; /* values; -1: number[i] or nothing. Of a product: left and right */
    double number[3];
    const char *text; /* of a point: over a, b, c and p0, p1, p2 */
    double p[3];
    Fold fold;
    int mean;                 /* of FOLD_VAR: the value of its mean; p[0] is the correction */
    int top;                  /* of the sum of exponentials of a softmax: its maximum; else -1 */
    int input, source;        /* of a load: one of them, the other is -1 */
    char inner[FORMULA_TEXT]; /* of a product: the common size */
    int window;               /* of a window: which one */
    int right_transposed;     /* of a product: the right matrix has a row for each column */
    int uses;       /* by values that are no loads, and by loads of it; the result has one more */
    int node, nth;  /* of a kept value: its operator in the graph, and which of the results */
    uint64_t takes; /* of a kept value: bit v: its op line takes the memory of value v */
    char *lines;    /* of a kept value: directives of the plan, each with a line's end */
} FormulaValue;

typedef struct {
    const Task *task;
    int n_values, n_spaces, result;
    FormulaValue value[FORMULA_VALUES];
    FormulaSpace space[FORMULA_SPACES];
    FormulaWindow window[FORMULA_WINDOWS]; /* of a formula without kept operators: one at most */
    int n_windows;
} Formula;

/* UNSUPPORTED says what is no formula. The task must outlive it. The caller frees *out. kept: products,
 * convolutions and what is no formula become op lines; something must be left to write. */
int formula_read(const Task *task, int kept, Formula **out, Error *err);
void formula_free(Formula *f);

/* The text of a pointwise operator as kernels have it, or NULL. */
const char *formula_point_text(const Op *op, const double *p);

#endif
