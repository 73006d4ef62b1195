/* What the reading of a graph shares: graph values and the formula values that they became. Functions
 * that return a value or a space return -1 on an error. */
#ifndef STAGES_TEACHER_FORMULA_FORMULA_READ_H
#define STAGES_TEACHER_FORMULA_FORMULA_READ_H

#include "stages/teacher/formula/row_formula.h"
#include "tasks/derive/derivation.h"

typedef enum {
    SPLIT_PLANES, /* of four and five dimensions all but two are the columns, else the last one is */
    SPLIT_LAST,   /* the last dimension is the columns */
    SPLIT_GROUPS,   /* all but the first are, of a group of channels (dimension 1) each */
    SPLIT_CHANNELS, /* of three dimensions and more, dimension 1 is */
    SPLITS
} Split;

typedef struct {
    Formula *f;
    GraphBound *b;
    int *of; /* by graph value that owns its memory: the formula's value; -1: none, or an input */
    char op[32]; /* of the node that is read */
    Split split;
    int64_t groups;    /* of SPLIT_GROUPS */
    Derivation *sizes; /* operators may be kept; NULL: none is */
    int n_sizes;
    struct {
        int64_t n;
        char text[FORMULA_TEXT];
    } size[FORMULA_NUMBERS];
} FormulaReader;

/* Opens r->sizes and binds the graph to distinct sizes of the axes (formula_sizes.c). */
int formula_bind_freely(FormulaReader *r, Error *err);
/* Finds the text of a size that a tensor of the graph has; -1: none is found. */
int formula_find_size(FormulaReader *r, int64_t n, char out[FORMULA_TEXT]);
void formula_close_sizes(FormulaReader *r);

/* An operator as an op line (formula_kept.c): is it better kept; its value; at the end, the lines of all,
 * and the value that holds the graph's output. */
int formula_is_product(const char *op);
int formula_keep(FormulaReader *r, int node, Error *err);
int formula_kept_output(FormulaReader *r, int value, Error *err);
int formula_kept_lines(FormulaReader *r, Error *err);

/* Notes the text of a size. */
void formula_size(FormulaReader *r, int64_t n, const char *text);
int formula_size_text(FormulaReader *r, int64_t n, char out[FORMULA_TEXT], Error *err);

/* The space of a tensor's elements; one of that size is made unless it is there. */
int formula_space(FormulaReader *r, const OpTensor *t, Error *err);

/* Adds a value, with a name that no other has. */
int formula_add(FormulaReader *r, ValueKind kind, const char *name, Error *err);

/* A name that neither values nor inputs nor axes have. */
void formula_free_name(const Formula *f, const char *base, char out[64]);

/* The value of a graph's value as an operand of a result like `like` in a space. */
int formula_operand(FormulaReader *r, int value, const OpTensor *like, int space, Error *err);
/* The same for a tensor of one dimension that has an element for each channel, dimension 1 of like. */
int formula_channel(FormulaReader *r, int value, const OpTensor *like, int space, Error *err);

/* Splits of dimensions (formula_split.c). Sets r->split; 0: it makes no sense for the graph. */
int formula_splits(FormulaReader *r, Split split);
int formula_cols(const FormulaReader *r,
                 int rank); /* how many of the last dimensions are columns */
int formula_is_over(const FormulaReader *r, int rank,
                    unsigned dims); /* bits: are they the columns? */
/* How a tensor lies in the space of one like `like`: 0 or -1. */
int formula_domain(const FormulaReader *r, const OpTensor *t, const OpTensor *like, Domain *out);

/* Reads an operator that is not pointwise, as one value or several; returns the result's. */
int formula_composite(FormulaReader *r, const GraphCall *c, const char *name, Error *err);
/* Products and windows (formula_product.c). */
int formula_product(FormulaReader *r, const GraphCall *c, const char *name, Error *err);
int formula_window(FormulaReader *r, const GraphCall *c, const char *name, Error *err);

/* A new pointwise value over a and b (-1: none) in the place of a, or of b if that has more elements. */
int formula_make(FormulaReader *r, const char *name, const char *text, int a, int b, Error *err);

#endif
