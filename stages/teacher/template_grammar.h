/* The internal interface of the template teacher: choices, named texts and their substitution. A
 * writer makes choices, sets texts and emits parts of the answer. "$name" or "$(name)" in a text
 * stands for a choice or a set text, which may have names in turn. CUDA has no '$', so there is no
 * escape. */
#ifndef STAGES_TEACHER_TEMPLATE_GRAMMAR_H
#define STAGES_TEACHER_TEMPLATE_GRAMMAR_H

#include "base/buffer.h"
#include "base/random.h"
#include "stages/teacher/template.h"

enum { GRAMMAR_MAX_TEXTS = 128 };

typedef struct {
    TemplateKernel *kernel;
    const char *task;
    const char *without; /* designs that are not drawn (tasks/designs.h); NULL: none */
    int kept; /* 1: the plan has op lines, and only fast kernels beside them are worth much */
    const char *reduce; /* "tree" or "shuffle" once a kernel of a formula has drawn it; else NULL */
    Random random;
    Buffer plan, helpers, code, analysis, design;
    int n_texts;
    struct {
        char name[16];
        char *value;
    } texts[GRAMMAR_MAX_TEXTS];
} Grammar;

/* Draws one of the values, which blanks separate ("64 128:3 256"; the weight follows a colon and is
 * 1 without one). Where designs are excluded, only the others are drawn, if there are others.
 * Records the choice and sets the text `name`. Returns the value's index. */
int grammar_choose(Grammar *g, const char *name, const char *values);

void grammar_set(Grammar *g, const char *name, const char *text);
void grammar_set_int(Grammar *g, const char *name, int value);
const char *grammar_get(const Grammar *g, const char *name);
int grammar_is(const Grammar *g, const char *name, const char *value);
int grammar_int(const Grammar *g, const char *name);

void grammar_plan(Grammar *g, const char *text);   /* one line, without "//@ " */
void grammar_helper(Grammar *g, const char *text); /* a device function; equal ones once */
void grammar_code(Grammar *g, const char *text);
void grammar_analysis(Grammar *g, const char *text); /* one sentence */
void grammar_design(Grammar *g, const char *text);

/* Rows (template_rows.c): the threads that work on a row. Chooses `mapping` (thread, warp, block),
 * `block` and, unless `vectors` is NULL, `vector`. Sets the texts
 *   grid          the blocks for "row_count" rows
 *   head          computes row, lane or tid, and returns past the last row
 *   for           the loop over the columns of a row
 *   one           "if (lane == 0) " or nothing
 *   first, step   the start and the stride of the loop, in elements */
void rows_mapping(Grammar *g, const char *mappings, const char *vectors);

/* Sets the text "reduce_VARIABLE", the statement that combines `variable` over the threads of a row
 * with op "sum", "max" or "min" (nothing when a row has one thread), and emits its helper functions. */
void rows_reduce(Grammar *g, const char *variable, const char *op);

/* Keeps the first N columns of each thread in registers: chooses `items` of these numbers; sets
 * "template" and "size" (the head of the template and its argument in the plan), "each" (the loop over
 * these columns) and "rest" (the loop over the others). */
void rows_keep_registers(Grammar *g, const char *items);

/* Replaces a correct *source by one with a mistake. Returns the mistake's name, or NULL when no mistake
 * applies. */
const char *template_spoil(char **source, Random *random);

#endif
