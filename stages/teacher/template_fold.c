/* Kernels that fold rows: a thread, a warp or a block has a row and passes over its columns once for each
 * level of folds, and once more to write. Between the passes the row is computed again, or kept in the
 * result, in shared memory or in registers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/expr.h"
#include "base/memory.h"
#include "base/words.h"
#include "stages/teacher/template_formula.h"

enum { SHARED_FLOATS = 48 << 10 };
typedef enum { KEEP_NOTHING, KEEP_RESULT, KEEP_SHARED, KEEP_REGISTERS } Keep;

typedef struct {
    FormulaKernel *k;
    CodeScope scope;
    int level
        [FORMULA_VALUES]; /* of a fold: the pass that computes it; of others: the first that can */
    int passes;
    int kept; /* the value that passes share, or -1 */
    Keep keep;
    int online, moments; /* a softmax, or mean and variance, in one pass */
    int vector;
    int strided; /* the columns of a row lie apart */
} Rows;

static const FormulaValue *value_of(const Rows *r, int v)
{
    return &r->k->f->value[v];
}

static int is_fold(const Rows *r, int v)
{
    return v >= 0 && r->k->member[v] && value_of(r, v)->kind == VALUE_FOLD;
}

/* The sum of a softmax whose maximum is found in the same pass. */
static int is_online(const Rows *r, int v)
{
    return r->online && is_fold(r, v) && is_fold(r, value_of(r, v)->top);
}

static int is_moment(const Rows *r, int v)
{
    return r->moments && is_fold(r, v) && value_of(r, v)->fold == FOLD_VAR &&
           is_fold(r, value_of(r, v)->mean);
}

static int after(const Rows *r, int v)
{
    if (v < 0 || !r->k->member[v]) return 0;
    return r->level[v] + is_fold(r, v);
}

static void find_levels(Rows *r)
{
    r->passes = 0;
    for (int i = 0; i < r->k->n; i++) {
        int v = r->k->value[i], level = 0;
        const FormulaValue *x = value_of(r, v);
        for (int a = 0; a < 3; a++)
            if (after(r, x->arg[a]) > level) level = after(r, x->arg[a]);
        if (!is_moment(r, v) && after(r, x->mean) > level) level = after(r, x->mean);
        if (is_online(r, v)) level = r->level[x->top];
        r->level[v] = level;
        if (is_fold(r, v) && level + 1 > r->passes) r->passes = level + 1;
    }
}

/* ---- what is kept ---- */

static int needs(const Rows *r, int v, int what)
{
    const FormulaValue *x = value_of(r, v);
    if (v == what) return 1;
    if (!r->k->member[v] || x->kind == VALUE_FOLD) return 0;
    for (int a = 0; a < 3; a++)
        if (x->arg[a] >= 0 && needs(r, x->arg[a], what)) return 1;
    return 0;
}

static int later_pass_needs(const Rows *r, int what)
{
    for (int i = 0; i < r->k->n; i++) {
        int v = r->k->value[i];
        if (is_fold(r, v) && r->level[v] > 0 && needs(r, value_of(r, v)->arg[0], what)) return 1;
    }
    return value_of(r, r->k->result)->domain == PER_ELEMENT && needs(r, r->k->result, what);
}

/* The argument of the first fold, where a later pass uses it. */
static void find_kept(Rows *r)
{
    r->kept = -1;
    for (int i = 0; i < r->k->n && r->kept < 0; i++)
        if (is_fold(r, r->k->value[i]) && !r->level[r->k->value[i]])
            r->kept = value_of(r, r->k->value[i])->arg[0];
    if (r->kept < 0 || value_of(r, r->kept)->domain != PER_ELEMENT || !later_pass_needs(r, r->kept))
        r->kept = -1;
}

/* ---- one pass ---- */

static const char *fold_name(const Rows *r, int v)
{
    return v == r->k->result ? "acc" : value_of(r, v)->name;
}

static void count_pass(Rows *r, int pass)
{
    if (pass == r->passes) {
        code_count(&r->scope, r->k->result);
        return;
    }
    for (int i = 0; i < r->k->n; i++) {
        int v = r->k->value[i];
        if (is_fold(r, v) && r->level[v] == pass && !is_online(r, v))
            code_count(&r->scope, value_of(r, v)->arg[0]);
    }
}

static int online_sum(const Rows *r, int top)
{
    for (int i = 0; i < r->k->n; i++)
        if (is_online(r, r->k->value[i]) && value_of(r, r->k->value[i])->top == top)
            return r->k->value[i];
    return -1;
}

static void add_fold(Rows *r, int v)
{
    const FormulaValue *x = value_of(r, v);
    CodeScope *s = &r->scope;
    const char *in = s->indent, *acc = fold_name(r, v);
    int sum = online_sum(r, v);
    if (is_online(r, v)) return;
    if (sum >= 0) {
        const char *e = code_name(s, x->arg[0]), *of = fold_name(r, sum);
        buffer_printf(s->out, "%sfloat big = fmaxf(%s, %s);\n", in, acc, e);
        buffer_printf(s->out, "%s%s = %s * $exp(%s - big) + $exp(%s - big);\n", in, of, of, acc, e);
        buffer_printf(s->out, "%s%s = big;\n", in, acc);
        return;
    }
    if (x->fold == FOLD_VAR && is_moment(r, v)) {
        const char *e = code_name(s, x->arg[0]);
        buffer_printf(s->out, "%s%s += %s * %s;\n", in, acc, e, e);
    } else if (x->fold == FOLD_VAR) {
        const char *mean = code_value(s, x->mean), *e = code_operand(s, x->arg[0]);
        buffer_printf(s->out, "%sfloat dev = %s - %s;\n", in, e, mean);
        buffer_printf(s->out, "%s%s += dev * dev;\n", in, acc);
    } else {
        const char *e = code_operand(s, x->arg[0]);
        const char *how = x->fold == FOLD_MAX   ? "%s%s = fmaxf(%s, %s);\n"
                          : x->fold == FOLD_MIN ? "%s%s = fminf(%s, %s);\n"
                                                : NULL;
        if (how)
            buffer_printf(s->out, how, in, acc, acc, e);
        else
            buffer_printf(s->out, "%s%s += %s;\n", in, acc, e);
    }
}

/* The statements of a pass for one column. kept: how the kept value is written (NULL: it is computed);
 * fill: it is stored there first. */
static void pass_body(Rows *r, int pass, const char *kept, int fill, const char *indent, Buffer *b)
{
    CodeScope *s = &r->scope;
    s->out = b;
    s->indent = indent;
    code_leave(s);
    count_pass(r, pass);
    if (kept && fill) {
        const char *e = code_operand(s, r->kept);
        buffer_printf(b, "%s%s = %s;\n", indent, kept, e);
        if (strpbrk(e, " [(")) code_set(s, r->kept, 0, kept);
    } else if (kept) {
        code_set(s, r->kept, 0, kept);
    }
    if (pass == r->passes) {
        const char *e = code_value(s, r->k->result), *y = value_of(r, r->k->result)->name;
        buffer_printf(b,
                      r->vector    ? "%s%s4[j] = %s;\n"
                      : r->strided ? "%s%s[i * inner] = %s;\n"
                                   : "%s%s[i] = %s;\n",
                      indent, y, e);
        return;
    }
    for (int i = 0; i < r->k->n; i++)
        if (is_fold(r, r->k->value[i]) && r->level[r->k->value[i]] == pass)
            add_fold(r, r->k->value[i]);
}

static int lines_of(const char *text)
{
    int n = 0;
    for (; *text; text++) n += *text == '\n';
    return n;
}

static void scalar_loop(Rows *r, int pass, const char *head, const char *kept, int fill)
{
    Grammar *g = r->k->g;
    Buffer b;
    buffer_init(&b, 1 << 15);
    pass_body(r, pass, kept, fill, "    ", &b);
    int one = lines_of(b.data) == 1;
    grammar_code(g, head);
    grammar_code(g, one ? " " : " {\n");
    grammar_code(g, one ? b.data + 4 : b.data);
    if (!one) grammar_code(g, "  }\n");
    buffer_release(&b);
}

static void vector_loop(Rows *r, int pass, const char *kept, int fill)
{
    Grammar *g = r->k->g;
    const FormulaKernel *k = r->k;
    Buffer b;
    buffer_init(&b, 1 << 15);
    r->scope.lane = "j", r->scope.lane_floats = 1, r->scope.col = "i + j";
    pass_body(r, pass, kept, fill, "        ", &b);
    int writes = pass == r->passes;
    const char *y = value_of(r, k->result)->name;
    grammar_code(g, "  $for {\n");
    for (int v = 0; v < k->f->n_values; v++) {
        if (!(r->scope.lanes >> v & 1)) continue;
        grammar_set(g, "in", value_of(r, v)->name);
        grammar_code(g, "    __align__(16) float $(in)4[4];\n    fetch4($in, i, cols, $(in)4);\n");
    }
    grammar_set(g, "in", y);
    if (writes) grammar_code(g, "    __align__(16) float $(in)4[4];\n");
    grammar_code(g,
                 "    #pragma unroll\n    for (int j = 0; j < 4; j++)\n      if (i + j < cols) ");
    int one = lines_of(b.data) == 1;
    grammar_code(g, one ? b.data + 8 : "{\n");
    if (!one) grammar_code(g, b.data);
    if (!one) grammar_code(g, "      }\n");
    if (writes) grammar_code(g, "    store4($in, i, cols, $(in)4);\n");
    grammar_code(g, "  }\n");
    buffer_release(&b);
    r->scope.lane = NULL, r->scope.col = "i";
}

static void register_loop(Rows *r, int pass)
{
    Grammar *g = r->k->g;
    Buffer b;
    buffer_init(&b, 1 << 15);
    pass_body(r, pass, "kept[j]", pass == 0, "      ", &b);
    int one = lines_of(b.data) == 1;
    grammar_code(g, "$each {\n    int i = $first + j * $step;\n    if (i < cols) ");
    grammar_code(g, one ? b.data + 6 : "{\n");
    if (!one) grammar_code(g, b.data);
    grammar_code(g, one ? "  }\n" : "    }\n  }\n");
    buffer_release(&b);
    scalar_loop(r, pass, "  $rest", NULL, 0);
}

static void one_loop(Rows *r, int pass)
{
    char text[80];
    const char *y = value_of(r, r->k->result)->name;
    if (r->keep == KEEP_REGISTERS) {
        register_loop(r, pass);
        return;
    }
    snprintf(text, sizeof text, "%s[%s]", r->keep == KEEP_SHARED ? "kept" : y,
             r->vector    ? "i + j"
             : r->strided ? "i * inner"
                          : "i");
    const char *kept = r->keep == KEEP_NOTHING ? NULL : text;
    if (r->vector)
        vector_loop(r, pass, kept, pass == 0);
    else
        scalar_loop(r, pass, "$pragma  $for", kept, pass == 0);
}

/* ---- between passes ---- */

static void declare_folds(Rows *r, int pass)
{
    Buffer b;
    int n = 0;
    buffer_init(&b, 1 << 12);
    for (int i = 0; i < r->k->n; i++) {
        int v = r->k->value[i];
        if (!is_fold(r, v) || r->level[v] != pass) continue;
        Fold f = value_of(r, v)->fold;
        buffer_printf(&b, "%s%s = %s", n++ ? ", " : "  float ", fold_name(r, v),
                      f == FOLD_MAX   ? "-1e30f"
                      : f == FOLD_MIN ? "1e30f"
                                      : "0.0f");
    }
    buffer_puts(&b, ";\n");
    grammar_code(r->k->g, b.data);
    buffer_release(&b);
}

/* Combines a fold over the threads of its row, and finishes means and variances. */
static void combine(Rows *r, int v)
{
    Grammar *g = r->k->g;
    const FormulaValue *x = value_of(r, v);
    int alone = grammar_is(g, "mapping", "thread"), sum = online_sum(r, v);
    const char *op = x->fold == FOLD_MAX ? "max" : x->fold == FOLD_MIN ? "min" : "sum";
    grammar_set(g, "acc", fold_name(r, v));
    if (!alone) rows_reduce(g, "acc", op);
    grammar_set(g, "fold", op);
    if (!alone && sum >= 0) grammar_code(g, "  float own = $acc;\n");
    if (!alone) grammar_code(g, "  $acc = $(mapping)_$fold($acc);\n");
    if (!alone && sum >= 0) {
        grammar_set(g, "sum", fold_name(r, sum));
        grammar_code(g, "  $sum *= $exp(own - $acc);\n");
    }
    if (x->fold == FOLD_MEAN) grammar_code(g, "  $acc /= cols;\n");
    if (x->fold == FOLD_VAR && is_moment(r, v)) {
        grammar_set(g, "mean", fold_name(r, x->mean));
        grammar_code(g, x->p[0] == 1 ? "  $acc = ($acc - cols * $mean * $mean) / (cols - 1);\n"
                                     : "  $acc = $acc / cols - $mean * $mean;\n");
    } else if (x->fold == FOLD_VAR) {
        grammar_code(g, x->p[0] == 1 ? "  $acc /= cols - 1;\n" : "  $acc /= cols;\n");
    }
    code_set(&r->scope, v, 1, fold_name(r, v));
}

/* Values per row that follow from the folds so far become variables. */
static void row_values(Rows *r, int level)
{
    Buffer b;
    buffer_init(&b, 1 << 14);
    code_leave(&r->scope);
    r->scope.out = &b;
    r->scope.indent = "  ";
    for (int i = 0; i < r->k->n; i++) {
        int v = r->k->value[i];
        const FormulaValue *x = value_of(r, v);
        if (x->kind != VALUE_POINT || x->domain != PER_ROW || r->level[v] != level ||
            v == r->k->result)
            continue;
        code_count(&r->scope, v);
        const char *name = code_name(&r->scope, v);
        code_set(&r->scope, v, 1, name);
    }
    grammar_code(r->k->g, b.data);
    buffer_release(&b);
    code_leave(&r->scope);
}

static void all_passes(Rows *r)
{
    row_values(r, 0);
    for (int pass = 0; pass < r->passes; pass++) {
        declare_folds(r, pass);
        one_loop(r, pass);
        for (int i = 0; i < r->k->n; i++)
            if (is_fold(r, r->k->value[i]) && r->level[r->k->value[i]] == pass)
                combine(r, r->k->value[i]);
        row_values(r, pass + 1);
    }
    if (value_of(r, r->k->result)->domain == PER_ELEMENT) {
        one_loop(r, r->passes);
        return;
    }
    Buffer b;
    buffer_init(&b, 1 << 14);
    r->scope.out = &b;
    r->scope.indent = "  ";
    code_leave(&r->scope);
    code_count(&r->scope, r->k->result);
    const char *e = code_value(&r->scope, r->k->result);
    grammar_code(r->k->g, b.data);
    char *line = memory_printf("  $(one)%s[row] = %s;\n", value_of(r, r->k->result)->name, e);
    grammar_code(r->k->g, line);
    free(line);
    buffer_release(&b);
}

/* ---- the kernel ---- */

static int can_be_online(const Rows *r)
{
    int top = 0;
    for (int i = 0; i < r->k->n; i++)
        top |= is_fold(r, r->k->value[i]) && is_fold(r, value_of(r, r->k->value[i])->top);
    return top;
}

/* A variance that two sums of one pass may give: the mean of an input may be far from zero, that of a
 * computed value is not. */
static int has_variance(const Rows *r)
{
    for (int i = 0; i < r->k->n; i++) {
        const FormulaValue *x = value_of(r, r->k->value[i]);
        if (is_fold(r, r->k->value[i]) && x->fold == FOLD_VAR && is_fold(r, x->mean) &&
            value_of(r, x->arg[0])->input < 0)
            return 1;
    }
    return 0;
}

static int axis_when_timed(void *task, const char *name, size_t len, int64_t *value)
{
    const Task *t = task;
    const Workload *w = task_workload(t, ROLE_TIME);
    for (int i = 0; w && i < t->n_axes; i++)
        if (word_is(name, len, t->axis_name[i])) {
            *value = w->axis[i];
            return 0;
        }
    return -1;
}

/* A row of the timed sizes fits the shared memory of a block. */
static int fits_shared(const Rows *r)
{
    const char *cols = kernel_space(r->k)->cols;
    int64_t n;
    return expr_eval(cols, strlen(cols), axis_when_timed, (void *)(uintptr_t)r->k->f->task, &n,
                     NULL) ||
           n <= SHARED_FLOATS;
}

/* Draws how passes share work: once over the row where that is known, or what is kept. */
static void choose_passes(Rows *r)
{
    Grammar *g = r->k->g;
    const FormulaValue *y = value_of(r, r->k->result);
    if (can_be_online(r)) r->online = grammar_choose(g, "passes", "each:2 online");
    if (has_variance(r)) r->moments = grammar_choose(g, "passes", "each:2 moments");
    find_levels(r);
    find_kept(r);
    int stored = r->kept >= 0 && y->domain == PER_ELEMENT && y->dtype == DTYPE_F32 &&
                 r->k->member[r->kept] && r->kept != r->k->result;
    if (r->kept >= 0 && r->strided)
        grammar_choose(g, "keep", stored ? "again:2 result registers:3" : "again:2 registers:3");
    else if (r->kept >= 0 && !fits_shared(r))
        grammar_choose(g, "keep", stored ? "again:3 result:2 registers" : "again:3 registers");
    else if (r->kept >= 0)
        grammar_choose(g, "keep",
                       stored ? "again:3 result:2 shared registers" : "again:3 shared registers");
    else
        grammar_choose(g, "keep", "again");
    r->keep = grammar_is(g, "keep", "again")    ? KEEP_NOTHING
              : grammar_is(g, "keep", "result") ? KEEP_RESULT
              : grammar_is(g, "keep", "shared") ? KEEP_SHARED
                                                : KEEP_REGISTERS;
}

static void choose_mapping(Rows *r)
{
    Grammar *g = r->k->g;
    int plain = r->keep == KEEP_REGISTERS || r->keep == KEEP_RESULT;
    rows_mapping(g,
                 r->strided                  ? "thread"
                 : r->keep == KEEP_SHARED    ? "block"
                 : r->keep == KEEP_REGISTERS ? "warp block"
                 : g->kept                   ? "thread warp:2 block:3"
                                             : "thread:3 warp:2 block:3",
                 plain || r->strided ? NULL
                 : g->kept           ? "1 4:2"
                                     : "1:5 4");
    r->vector = !grammar_is(g, "vector", "1");
    if (r->strided) grammar_set(g, "who", "One thread per place, over the channels: coalesced.");
    grammar_set(g, "row_count", kernel_space(r->k)->rows);
    if (strchr(kernel_space(r->k)->rows, ' ')) grammar_set(g, "row_count", "($row_list)");
    grammar_set(g, "row_list", kernel_space(r->k)->rows);
    if (grammar_is(g, "mapping", "block"))
        grammar_choose(g, "reduce", g->reduce ? g->reduce : "tree shuffle:2");
    if (grammar_is(g, "mapping", "block"))
        g->reduce = grammar_is(g, "reduce", "tree") ? "tree" : "shuffle";
    if (r->keep == KEEP_REGISTERS) {
        rows_keep_registers(g, r->strided ? "8 16 32" : "2 4 8 16");
    } else {
        grammar_choose(g, "unroll", "1:2 4");
    }
    grammar_set(g, "pragma",
                grammar_is(g, "unroll", "4") && r->keep != KEEP_REGISTERS ? "  #pragma unroll 4\n"
                                                                          : "");
    if (r->keep == KEEP_SHARED) {
        grammar_set(g, "col_count", kernel_space(r->k)->cols);
        grammar_set(g, "shared",
                    strchr(kernel_space(r->k)->cols, ' ') ? ", ($col_count) * 4"
                                                          : ", $col_count * 4");
        grammar_set(g, "keep_text", "  extern __shared__ float kept[];\n");
    } else {
        grammar_set(g, "keep_text", r->keep == KEEP_REGISTERS ? "  float kept[N];\n" : "");
    }
}

static void describe(Rows *r)
{
    static const char *const designs[] = {
        "The row is computed again in each pass.", "Values are kept in the result between passes.",
        "The row is kept in shared memory.", "The row is kept in registers."};
    Grammar *g = r->k->g;
    grammar_analysis(g, "$who");
    if (r->passes + (value_of(r, r->k->result)->domain == PER_ELEMENT) > 1)
        grammar_design(g, designs[r->keep]);
    if (r->online) grammar_design(g, "Maximum and sum in one pass.");
    if (r->moments) grammar_design(g, "Both moments in one pass.");
    grammar_design(g, r->vector ? "float4 loads, $block threads a block."
                                : "Scalar loads, $block threads a block.");
}

static void vector_helpers(Rows *r)
{
    const FormulaValue *y = value_of(r, r->k->result);
    for (int i = 0; i < r->k->n_loads; i++)
        if (value_of(r, r->k->load[i])->domain == PER_ELEMENT)
            kernel_vector_helpers(r->k, code_type(value_of(r, r->k->load[i])), 0);
    if (y->domain == PER_ELEMENT) kernel_vector_helpers(r->k, code_type(y), 1);
}

/* Moves the pointers to the row. */
static void find_row(Rows *r)
{
    const FormulaKernel *k = r->k;
    const char *move = r->strided ? "  $in += row / inner * (cols * inner) + row % inner;\n"
                                  : "  $in += row * cols;\n";
    for (int i = 0; i < k->n_loads; i++) {
        const FormulaValue *v = &k->f->value[k->load[i]];
        grammar_set(k->g, "in", v->name);
        if (v->domain == PER_ELEMENT) grammar_code(k->g, move);
    }
    grammar_set(k->g, "in", k->f->value[k->result].name);
    if (k->f->value[k->result].domain == PER_ELEMENT) grammar_code(k->g, move);
    if (r->scope.first)
        grammar_code(k->g, strcmp(kernel_space(k)->plane, "1")
                               ? "  int first = row * (cols / plane) % channels;\n"
                               : "  int first = row * cols % channels;\n");
}

void template_fold(FormulaKernel *k)
{
    Rows r = {.k = k, .strided = kernel_space(k)->n_inner > 1};
    Grammar *g = k->g;
    KernelSize sizes[KERNEL_ROW_SIZES];
    kernel_row_sizes(k, kernel_space(k), sizes);
    kernel_signature(k, sizes);
    kernel_scope(k, &r.scope, NULL);
    if (r.strided) r.scope.full = "i * inner";
    r.scope.first = kernel_has(k, PER_CHANNEL) && kernel_space(k)->n_plane;
    choose_passes(&r);
    choose_mapping(&r);
    if (r.vector) vector_helpers(&r);
    describe(&r);
    grammar_plan(g, "launch $kernel$size<<<$grid, $block$shared>>>($args)");
    grammar_code(g, "$(template)__global__ void $kernel($params) {\n$head$keep_text");
    find_row(&r);
    all_passes(&r);
    grammar_code(g, "}\n");
    code_close(&r.scope);
}
