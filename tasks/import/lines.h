/* A program's nodes as lines of a graph (tasks/graph/op_line.h). Operators that change nothing in
 * evaluation, such as dropout and detach, are left out, and so is what no output depends on. Constants
 * that are filled or triangular become lines of their own. */
#ifndef TASKS_IMPORT_LINES_H
#define TASKS_IMPORT_LINES_H

#include "tasks/import/program.h"

typedef struct {
    char *text;
    const json_t *node; /* NULL: a constant */
    int live;
} Line;

/* Where a module cannot be followed. What a node gives that has no line, and what depends on it, is left
 * out; the tensors that such nodes take are outputs in place of theirs. Where too little is left, what such
 * nodes give is an input, and the task is what comes behind them. */
typedef struct {
    int begun;       /* 0: the whole module is followed */
    int behind;      /* the task is what comes behind */
    Error why;       /* of the first node without a line: place, operator, reason */
    json_t *missing; /* names of tensors without a line, as the program has them */
    json_t *edge;    /* those that nodes without a line take: an array */
} Cut;

typedef struct {
    Line *list;
    int n;
    json_t *names; /* by the program's name of a tensor: its name in lines */
    json_t *taken; /* names in lines, of axes too */
    int *used;     /* by input of the program, of which a cut adds some: a line uses it */
    const char *output[GRAPH_MAX_OUTPUTS]; /* names in lines, each once */
    int n_outputs;
    json_t *
        results; /* of each tensor that a whole module returns: its place in output[], or the name of the
                        input that it is, unchanged, which is no output */
    Cut cut;
} Lines;

/* Gives axes and tensors their names, and writes the lines. pins_find comes before. An error names the
 * operator and the module's line. A module that is cut has two operators or more that compute. */
int lines_write(Program *p, Lines *out, Error *err);
void lines_release(Lines *l);

/* Gives a tensor of the program its name in lines; adds a line. text: allocated; node NULL: a constant. */
void lines_rename(Lines *l, const char *name, const char *text);
void lines_add(Lines *l, char *text, const json_t *node);

/* The name in lines of an input. */
const char *lines_name(const Lines *l, const ProgramInput *x);

/* Runs every line's shape inference at the module's own sizes and compares with PyTorch's shapes and
 * types. Refuses a line that writes to an input. */
int lines_check(Program *p, const Lines *l, Error *err);

#endif
