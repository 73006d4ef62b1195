/* Inside the template teacher: choices, named texts and their substitution. A family makes its
 * choices, sets texts, and emits; "$name" or "$(name)" in a text stands for a choice or a set text,
 * which may contain further names. CUDA has no '$', so nothing needs escaping. */
#ifndef STAGES_TEACHER_TEMPLATE_GRAMMAR_H
#define STAGES_TEACHER_TEMPLATE_GRAMMAR_H

#include "base/buffer.h"
#include "base/random.h"
#include "stages/teacher/template.h"

enum { GRAMMAR_MAX_TEXTS = 48 };

typedef struct {
    TemplateKernel *kernel;
    const char *task; /* the family's name */
    Random random;
    Buffer plan, helpers, code, analysis, design;
    int n_texts;
    struct {
        char name[16];
        char *value;
    } texts[GRAMMAR_MAX_TEXTS];
} Grammar;

/* Draw one of the space-separated values ("64 128:3 256": weights after a colon, 1 without one),
 * record it as a choice, and make it a text. Returns its index. */
int grammar_choose(Grammar *g, const char *name, const char *values);

void grammar_set(Grammar *g, const char *name, const char *text);
void grammar_set_int(Grammar *g, const char *name, int value);
const char *grammar_get(const Grammar *g, const char *name);
int grammar_is(const Grammar *g, const char *name, const char *value);
int grammar_int(const Grammar *g, const char *name);

void grammar_plan(Grammar *g, const char *text);   /* one line; "//@ " goes before it */
void grammar_helper(Grammar *g, const char *text); /* a device function; the same text once only */
void grammar_code(Grammar *g, const char *text);
void grammar_analysis(Grammar *g, const char *text); /* one sentence */
void grammar_design(Grammar *g, const char *text);

/* Rows (template_rows.c): who works on a row. Chooses `mapping` (thread, warp, block), `block` and,
 * when `vector` weights are given, `vector`; sets the texts grid   blocks for "row_count" rows head
 * computes row, lane or tid, returns past the last row for    the loop over a row's columns   one
 * "if (lane == 0) " or nothing first, step   the loop's begin and stride, in elements  */
void rows_mapping(Grammar *g, const char *mappings, const char *vectors);

/* Makes the text "reduce_VARIABLE": the statement that combines `variable` over the row's threads
 * with op "sum" or "max" (nothing for a thread of its own), and emits the helper functions for it.
 */
void rows_reduce(Grammar *g, const char *variable, const char *op);

/* load4 and store4 with their tails, and functions of a float4 that are named in `which`. */
void rows_vector_helpers(Grammar *g, const char *which);

/* Shared memory that keeps a row: its declaration goes into the text "keep", the plan's third
 * launch parameter into "shared". */
void rows_keep_shared(Grammar *g);

/* Registers that keep the first N columns of each thread: chooses `items`; sets "template" and
 * "size" (the template's head and its argument in the plan), "each" (the loop over them) and "rest"
 * (over the columns past them). */
void rows_keep_registers(Grammar *g);

/* The families. */
void template_elementwise(Grammar *g);
void template_transpose(Grammar *g);
void template_row_sum(Grammar *g);
void template_softmax(Grammar *g);
void template_layernorm(Grammar *g);
void template_residual_rmsnorm(Grammar *g);
void template_matmul(Grammar *g);
void template_diag_matmul(Grammar *g);
void template_attention(Grammar *g);
void template_conv3d(Grammar *g);

/* Rewrite a correct source with one mistake that applies to it. Returns its name, or NULL when
 * none applies; *source is replaced. */
const char *template_spoil(char **source, Random *random);

#endif
