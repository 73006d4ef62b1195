/* Cuts a formula into kernels, and what their writers share. */
#include "stages/teacher/template_formula.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { MAX_GROUPS = 5, DRAWS = 40 };

typedef struct {
    const Formula *f;
    int n, order[FORMULA_VALUES]; /* the values that are computed */
    int place[FORMULA_VALUES];    /* in order; -1: a load */
} Order;

typedef void Writer(FormulaKernel *k);

/* ---- which values one kernel can compute ---- */

static int used_after(const Order *o, int value, int end)
{
    const Formula *f = o->f;
    if (value == f->result) return 1;
    for (int w = 0; w < f->n_values; w++) {
        const FormulaValue *v = &f->value[w];
        if (v->source == value) return 1;
        if (v->kind == VALUE_KEPT && v->uses && o->place[w] >= end && v->takes >> value & 1)
            return 1;
        if (o->place[w] < end) continue;
        if (v->mean == value || v->arg[0] == value || v->arg[1] == value || v->arg[2] == value)
            return 1;
    }
    return 0;
}

static Writer *writer_of(const int *count)
{
    int others = count[VALUE_FOLD] + count[VALUE_SCAN] + count[VALUE_TOTAL] + count[VALUE_PRODUCT] +
                 count[VALUE_WINDOW];
    if (!others) return template_flat;
    if (others == count[VALUE_FOLD]) return template_fold;
    if (others > 1) return NULL;
    return count[VALUE_SCAN]      ? template_scan
           : count[VALUE_TOTAL]   ? template_total
           : count[VALUE_PRODUCT] ? template_product
                                  : template_window;
}

/* A pool computes each element of its argument, if it is not in memory, where it needs it. */
static int is_pool(const Formula *f, int value)
{
    const FormulaValue *v = &f->value[value];
    return f->window[v->window].kind >= WINDOW_MAX && f->value[v->arg[0]].domain == PER_ELEMENT;
}

/* The op lines of the plan. */
static void write_kept(FormulaKernel *k)
{
    const char *p = k->f->value[k->result].lines;
    for (size_t n; p && *p; p += n + 1) {
        n = strcspn(p, "\n");
        char *line = memory_strndup(p, n);
        grammar_plan(k->g, line);
        free(line);
    }
    grammar_design(k->g, "Other operators stay as they are.");
}

/* The writer for the values [from, end) of the order, or NULL. */
static Writer *group_writer(const Order *o, int from, int end)
{
    const Formula *f = o->f;
    int count[VALUE_KEPT + 1] = {0}, main_value = -1, spaces[2] = {-1, -1};
    for (int i = from; i < end; i++) {
        const FormulaValue *v = &f->value[o->order[i]];
        count[v->kind]++;
        if (v->kind == VALUE_PRODUCT || v->kind == VALUE_WINDOW) main_value = o->order[i];
        if (i < end - 1 && used_after(o, o->order[i], end)) return NULL;
    }
    if (count[VALUE_KEPT]) return end - from == 1 ? write_kept : NULL;
    Writer *w = writer_of(count);
    if (!w) return NULL;
    if (w == template_window && o->place[f->value[main_value].arg[0]] >= from &&
        !is_pool(f, main_value))
        return NULL;
    spaces[0] = f->value[o->order[end - 1]].space;
    if (main_value >= 0) {
        spaces[0] = f->value[main_value].space;
        spaces[1] = f->value[f->value[main_value].arg[0]].space;
    }
    for (int i = from; i < end; i++) {
        const FormulaValue *v = &f->value[o->order[i]];
        if (v->domain == PER_TASK && w != template_total && end - from > 1) return NULL;
        if (v->space != spaces[0] && v->space != spaces[1] && v->domain != PER_TASK) return NULL;
    }
    return w;
}

/* ---- the cut ---- */

typedef struct {
    int n, end[FORMULA_VALUES];
    int kernels; /* groups that are no op lines */
} Cut;

/* Draws the ends of the groups: as long as they can be, or of any length. */
static void draw_cut(const Order *o, Random *random, int longest, int shortest, Cut *c)
{
    c->n = c->kernels = 0;
    for (int from = 0; from < o->n;) {
        int ends[FORMULA_VALUES], n = 0;
        for (int end = from + 1; end <= o->n; end++)
            if (group_writer(o, from, end)) ends[n++] = end;
        int at = longest ? n - 1 : shortest ? 0 : (int)random_below(random, (uint64_t)n);
        c->kernels += o->f->value[o->order[from]].kind != VALUE_KEPT;
        from = c->end[c->n++] = ends[at];
    }
}

static void choose_cut(const Order *o, Grammar *g, Cut *c)
{
    for (int i = 0; i < o->n; i++) g->kept |= o->f->value[o->order[i]].kind == VALUE_KEPT;
    grammar_choose(g, "fusion", g->kept ? "all:6 some:2 none" : "all:4 some:4 none:2");
    int all = grammar_is(g, "fusion", "all"), none = grammar_is(g, "fusion", "none");
    Cut least;
    draw_cut(o, &g->random, 1, 0, &least);
    *c = least;
    if (all) return;
    for (int i = 0; i < DRAWS; i++) {
        Cut other;
        draw_cut(o, &g->random, 0, none && !i, &other);
        if (other.kernels > MAX_GROUPS || other.n <= least.n) continue;
        if (c->n == least.n || (none && other.n > c->n)) *c = other;
        if (!none) return;
    }
}

static void order_values(const Formula *f, Order *o)
{
    *o = (Order){.f = f};
    for (int v = 0; v < f->n_values; v++) {
        int computed = f->value[v].kind != VALUE_LOAD && f->value[v].uses;
        o->place[v] = computed ? o->n : -1;
        if (computed) o->order[o->n++] = v;
    }
}

/* ---- kernels ---- */

static void add_load(FormulaKernel *k, int value)
{
    for (int i = 0; i < k->n_loads; i++)
        if (k->load[i] == value) return;
    k->load[k->n_loads++] = value;
}

static void collect(FormulaKernel *k, const Order *o, int from, int end)
{
    for (int i = from; i < end; i++) {
        k->value[k->n++] = o->order[i];
        k->member[o->order[i]] = 1;
    }
    k->result = o->order[end - 1];
    for (int i = 0; i < k->n; i++) {
        const FormulaValue *v = &k->f->value[k->value[i]];
        for (int a = 0; a < 3; a++)
            if (v->arg[a] >= 0 && !k->member[v->arg[a]]) add_load(k, v->arg[a]);
        if (v->mean >= 0 && !k->member[v->mean]) add_load(k, v->mean);
    }
}

static void declare_buffer(FormulaKernel *k)
{
    const FormulaValue *v = &k->f->value[k->result];
    const FormulaSpace *s = &k->f->space[v->space];
    char count[2 * FORMULA_TEXT];
    if (k->result == k->f->result || v->kind == VALUE_KEPT) return;
    const char *n = v->domain == PER_TASK  ? "1"
                    : v->domain == PER_ROW ? s->rows
                                           : kernel_count(s, count);
    char *line = memory_printf("buffer %s %s[%s]", code_type(v), v->name, n);
    grammar_plan(k->g, line);
    free(line);
}

/* The operator that a reader would name the kernel by. */
static const char *main_op(const FormulaKernel *k)
{
    const char *op = k->f->value[k->result].op;
    for (int i = 0; i < k->n; i++)
        if (k->f->value[k->value[i]].kind > VALUE_POINT) op = k->f->value[k->value[i]].op;
    return op;
}

void template_formula(Grammar *g, const Formula *f)
{
    Order o;
    Cut c;
    order_values(f, &o);
    choose_cut(&o, g, &c);
    /* The fast exponential is not exact enough for a result of 24 bits. */
    grammar_choose(g, "exp", f->value[f->result].dtype == DTYPE_F32 ? "expf" : "expf:3 __expf");
    FormulaKernel *k = memory_array((size_t)c.n, sizeof *k);
    for (int i = 0, from = 0; i < c.n; from = c.end[i++]) {
        k[i].g = g;
        k[i].f = f;
        k[i].number = i + 1;
        collect(&k[i], &o, from, c.end[i]);
        snprintf(k[i].name, sizeof k[i].name, i ? "%s_kernel%d" : "%s_kernel", main_op(&k[i]),
                 i + 1);
        declare_buffer(&k[i]);
    }
    char *launches = memory_printf(c.kernels == 1 ? "One launch." : "%d launches.", c.kernels);
    grammar_design(g, launches);
    free(launches);
    for (int i = 0, from = 0; i < c.n; from = c.end[i++]) group_writer(&o, from, c.end[i])(&k[i]);
    free(k);
}

/* ---- what writers share ---- */

const FormulaSpace *kernel_space(const FormulaKernel *k)
{
    return &k->f->space[k->f->value[k->result].space];
}

const char *kernel_count(const FormulaSpace *s, char out[2 * FORMULA_TEXT])
{
    if (!strcmp(s->rows, "1"))
        snprintf(out, 2 * FORMULA_TEXT, "%s", s->cols);
    else if (!strcmp(s->cols, "1"))
        snprintf(out, 2 * FORMULA_TEXT, "%s", s->rows);
    else
        snprintf(out, 2 * FORMULA_TEXT, "%s * %s", s->rows, s->cols);
    return out;
}

int kernel_has(const FormulaKernel *k, Domain d)
{
    for (int i = 0; i < k->n_loads; i++)
        if (k->f->value[k->load[i]].domain == d) return 1;
    return 0;
}

const char *kernel_row_of(const FormulaSpace *s)
{
    return s->n_inner > 1 ? "i / (cols * inner) * inner + i % inner" : "i / cols";
}

const char *kernel_col_of(const FormulaSpace *s)
{
    return s->n_inner > 1 ? "i / inner % cols" : "i % cols";
}

void kernel_row_sizes(const FormulaKernel *k, const FormulaSpace *s,
                      KernelSize sizes[KERNEL_ROW_SIZES])
{
    int n = 0, channels = kernel_has(k, PER_CHANNEL);
    sizes[n++] = (KernelSize){"rows", s->rows};
    sizes[n++] = (KernelSize){"cols", s->cols};
    if (channels) sizes[n++] = (KernelSize){"channels", s->channels};
    if (channels && s->n_plane && strcmp(s->plane, "1"))
        sizes[n++] = (KernelSize){"plane", s->plane};
    if (s->n_inner > 1) sizes[n++] = (KernelSize){"inner", s->inner};
    sizes[n] = (KernelSize){0};
}

void kernel_signature(FormulaKernel *k, const KernelSize *sizes)
{
    Buffer params, args;
    const FormulaValue *y = &k->f->value[k->result];
    buffer_init(&params, 1 << 14);
    buffer_init(&args, 1 << 14);
    for (int i = 0; i < k->n_loads; i++) {
        const FormulaValue *v = &k->f->value[k->load[i]];
        int seen = 0;
        for (int j = 0; j < i; j++) seen |= !strcmp(k->f->value[k->load[j]].name, v->name);
        if (seen) continue;
        buffer_printf(&params, "const %s *%s, ", code_type(v), v->name);
        buffer_printf(&args, "%s, ", code_memory(k->f, k->load[i]));
    }
    buffer_printf(&params, "%s *%s", code_type(y), y->name);
    buffer_puts(&args, code_memory(k->f, k->result));
    for (; sizes->name; sizes++) {
        buffer_printf(&params, ", int %s", sizes->name);
        buffer_printf(&args, ", %s", sizes->text);
    }
    grammar_set(k->g, "params", params.data);
    grammar_set(k->g, "args", args.data);
    grammar_set(k->g, "kernel", k->name);
    buffer_release(&params);
    buffer_release(&args);
    int half = y->dtype == DTYPE_F16, bf16 = y->dtype == DTYPE_BF16;
    for (int i = 0; i < k->n_loads; i++) {
        half |= k->f->value[k->load[i]].dtype == DTYPE_F16;
        bf16 |= k->f->value[k->load[i]].dtype == DTYPE_BF16;
    }
    if (half) grammar_helper(k->g, "#include <cuda_fp16.h>\n");
    if (bf16) grammar_helper(k->g, "#include <cuda_bf16.h>\n");
}

void kernel_scope(const FormulaKernel *k, CodeScope *s, Buffer *out)
{
    code_enter(s, k->f, k->member, k->result, out);
}

/* Marks the loads that a value is made of, without what is known. */
static void mark_loads(const FormulaKernel *k, int value, int known, unsigned char *mark)
{
    const FormulaValue *v = &k->f->value[value];
    if (value == known || mark[value]) return;
    mark[value] = 1;
    if (v->kind == VALUE_LOAD || !k->member[value]) return;
    for (int i = 0; i < 3; i++)
        if (v->arg[i] >= 0) mark_loads(k, v->arg[i], known, mark);
}

/* A device function of a value over its loads, and the text of a call. */
static char *call_text(FormulaKernel *k, const CodeScope *at, const KernelText *x,
                       const char *function)
{
    int value = x->value, known = x->known;
    unsigned char mark[FORMULA_VALUES] = {0};
    Buffer body, params, args, unused;
    CodeScope inside, outside = *at;
    Buffer *all[] = {&body, &params, &args, &unused};
    for (int i = 0; i < 4; i++) buffer_init(all[i], 1 << 15);
    kernel_scope(k, &inside, &body);
    inside.bare = 1;
    outside.out = &unused;
    mark_loads(k, value, known, mark);
    if (known >= 0) {
        code_set(&inside, known, 0, "acc");
        buffer_puts(&params, "float acc");
        buffer_puts(&args, x->text);
    }
    for (int v = 0; v < k->f->n_values; v++) {
        if (!mark[v] || !code_is_load(&inside, v)) continue;
        buffer_printf(&params, "%sfloat %s", params.len ? ", " : "", code_value(&inside, v));
        buffer_printf(&args, "%s%s", args.len ? ", " : "", code_value(&outside, v));
    }
    code_count(&inside, value);
    const char *result = code_value(&inside, value);
    char *helper = memory_printf("__device__ float %s(%s) {\n%s  return %s;\n}\n", function,
                                 params.data, body.data, result);
    grammar_helper(k->g, helper);
    free(helper);
    code_close(&inside);
    for (int v = 0; v < k->f->n_values; v++)
        if (outside.text[v] != at->text[v]) free(outside.text[v]);
    char *call = memory_printf("%s(%s)", function, args.data);
    for (int i = 0; i < 4; i++) buffer_release(all[i]);
    return call;
}

CodeScope kernel_place(const FormulaKernel *k)
{
    CodeScope s;
    kernel_scope(k, &s, NULL);
    return s;
}

/* Enters a scope at an element. */
static void enter_at(const FormulaKernel *k, const CodeScope *at, CodeScope *s, Buffer *out)
{
    kernel_scope(k, s, out);
    s->full = at->full, s->row = at->row, s->col = at->col, s->rows = at->rows;
    s->lane = at->lane, s->first = at->first;
}

void kernel_set(FormulaKernel *k, const char *name, const CodeScope *at, KernelText x)
{
    Buffer statements;
    CodeScope s;
    char function[24];
    snprintf(function, sizeof function, k->number > 1 ? "%s%d" : "%s", x.function, k->number);
    buffer_init(&statements, 1 << 15);
    enter_at(k, at, &s, &statements);
    if (x.known >= 0) code_set(&s, x.known, 0, x.text);
    code_count(&s, x.value);
    char *out = memory_strdup(code_value(&s, x.value));
    code_close(&s);
    if (statements.len) {
        free(out);
        enter_at(k, at, &s, &statements);
        out = call_text(k, &s, &x, function);
        code_close(&s);
    }
    grammar_set(k->g, name, out);
    free(out);
    buffer_release(&statements);
}

void kernel_vector_helpers(FormulaKernel *k, const char *type, int store)
{
    Grammar *g = k->g;
    int is_float = !strcmp(type, "float");
    grammar_set(g, "type", type);
    if (!store)
        grammar_helper(g, is_float
                              ? "__device__ void fetch4(const float *x, int i, int n, float *v) {\n"
                                "  if (n % 4 == 0) *(float4 *)v = *(const float4 *)(x + i);\n"
                                "  else for (int j = 0; j < 4; j++) v[j] = i + j < n ? x[i + j] : "
                                "0.0f;\n}\n"
                              : "__device__ void fetch4(const $type *x, int i, int n, float *v) {\n"
                                "  __align__(8) $type w[4];\n"
                                "  if (n % 4 == 0) *(uint2 *)w = *(const uint2 *)(x + i);\n"
                                "  else for (int j = 0; j < 4; j++) w[j] = i + j < n ? x[i + j] : "
                                "($type)0.0f;\n"
                                "  for (int j = 0; j < 4; j++) v[j] = w[j];\n}\n");
    else
        grammar_helper(g, is_float
                              ? "__device__ void store4(float *y, int i, int n, const float *v) {\n"
                                "  if (n % 4 == 0) *(float4 *)(y + i) = *(const float4 *)v;\n"
                                "  else for (int j = 0; j < 4 && i + j < n; j++) y[i + j] = v[j];\n"
                                "}\n"
                              : "__device__ void store4($type *y, int i, int n, const float *v) {\n"
                                "  __align__(8) $type w[4];\n"
                                "  for (int j = 0; j < 4; j++) w[j] = v[j];\n"
                                "  if (n % 4 == 0) *(uint2 *)(y + i) = *(uint2 *)w;\n"
                                "  else for (int j = 0; j < 4 && i + j < n; j++) y[i + j] = w[j];\n"
                                "}\n");
}
