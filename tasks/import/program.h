/* An exported program (torch/_export/serde/schema.py, version 8) and what tools/export.py says beside
 * it, read and checked: its inputs, outputs, nodes, symbolic sizes and their constraints. Names and nodes
 * point into the JSON, which the Program keeps. */
#ifndef TASKS_IMPORT_PROGRAM_H
#define TASKS_IMPORT_PROGRAM_H

#include "base/json.h"
#include "ops/op.h"
#include "tasks/graph/graph.h"
#include "tasks/import/symbolic.h"

enum { PROGRAM_SCHEMA = 8, PROGRAM_MAX_NODES = 65536, PROGRAM_MAX_GUARDS = 65536 };

typedef enum { INPUT_ARGUMENT, INPUT_PARAMETER, INPUT_CONSTANT } InputKind;

typedef struct {
    const char *placeholder; /* its name in the program's graph */
    const char *name; /* the argument's name, or the parameter's in the module's state_dict */
    InputKind kind;
    Dtype dtype;
    int rank;
    Symbolic size[OP_MAX_RANK];
    const json_t *notes; /* statistics: an object, or NULL */
    Error *unknown;      /* why it is not read, or NULL: what takes it is left out */
} ProgramInput;

/* What is kept of the contents of the example's arguments: nothing; the range of those that lie within one of
 * zero, and how those that are not negative are spread; the range of the latter, too. */
typedef enum { RECORDED_NONE, RECORDED_CONTENTS, RECORDED_RANGES } Recorded;

typedef struct {
    json_t *root, *notes;
    const json_t *nodes, *tensors, *sizes, *numbers, *guards; /* guards: NULL, none */
    Symbols symbols;
    int spread; /* weights of nearly zero are as large as trained ones */
    int quiet;  /* another try of the import has told of the module */
    Recorded recorded;
    ProgramInput *inputs;
    int n_inputs;
    const char *output[GRAPH_MAX_OUTPUTS];
    int n_outputs;
} Program;

/* notes NULL: none. Errors name what is wrong in the program. */
int program_read(const char *text, size_t len, const char *notes, size_t notes_len, Program *out,
                 Error *err);
void program_release(Program *p);

/* A tensor's type and sizes by its name in the graph; the caller releases the sizes.
 * UNSUPPORTED: a type or rank that Quern has not. */
int program_tensor(Program *p, const char *name, Dtype *dtype, int *rank,
                   Symbolic size[OP_MAX_RANK], Error *err);
/* PyTorch's name of a type by its number in an exported program. */
const char *program_type_name(int64_t scalar_type);

/* An integer or symbolic size {"as_int": 3} or {"as_expr": {...}}. */
int program_size(Program *p, const json_t *value, Symbolic *out, Error *err);

enum { PROGRAM_PLACE = 400 };

/* "model.py, line 15 (`x = self.conv(x)`)": where the module computes a node. Empty: unknown. Within: the
 * first line of a node that holds a graph, where it has none itself. */
void program_place(const json_t *node, char *out, size_t size);
void program_place_within(const json_t *node, char *out, size_t size);

/* Adds the place and the operator of the first use to an error of an input. Returns -1. */
int program_prefix_use(const Program *p, const ProgramInput *x, Error *err);

/* Adds a node's result as an argument. -1: *err; its type or sizes are not known. */
int program_add_input(Program *p, const char *tensor, Error *err);
/* Takes away what program_add_input added. */
void program_drop_inputs(Program *p, int n);

/* UNSUPPORTED: contents of a tensor decide the size of a node's result. */
int program_result_sizes(Program *p, const json_t *node, Error *err);

/* Is a text, such as a tensor's name, anywhere in a value? */
int program_mentions(const json_t *value, const char *text);

#endif
