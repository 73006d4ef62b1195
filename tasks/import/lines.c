/* Writes a graph's lines from a program's nodes. */
#include "tasks/import/lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/words.h"
#include "tasks/import/argument.h"
#include "tasks/import/names.h"
#include "tasks/import/rewrite.h"

enum { CUT_LEAST = 2 }; /* operators that compute, in a module that is cut */

const char *lines_name(const Lines *l, const ProgramInput *x)
{
    return json_string_value(json_object_get(l->names, x->placeholder));
}

/* ---- what a node is ---- */

/* Calls f for each tensor that a node gives; -1 as soon as f does. */
static int each_result(const json_t *node, int f(void *ctx, const char *name), void *ctx)
{
    json_t *list = json_object_get(node, "outputs"), *o, *t;
    size_t i, k;
    json_array_foreach(list, i, o)
    {
        json_t *one = json_object_get(o, "as_tensor"), *many = json_object_get(o, "as_tensors");
        if (json_is_string(json_object_get(one, "name")) &&
            f(ctx, json_string_value(json_object_get(one, "name"))))
            return -1;
        json_array_foreach(many, k, t)
        {
            const char *name = json_string_value(json_object_get(t, "name"));
            if (!name || f(ctx, name)) return -1;
        }
    }
    return 0;
}

static int count(void *n, const char *name)
{
    (void)name;
    ++*(int *)n;
    return 0;
}

static int is_one_of(const char *name, const char *const *list)
{
    for (int i = 0; list[i]; i++)
        if (!strcmp(name, list[i])) return 1;
    return 0;
}

static int same_dtype(const Program *p, const char *a, const char *b)
{
    json_t *x = json_object_get(json_object_get(p->tensors, a), "dtype"),
           *y = json_object_get(json_object_get(p->tensors, b), "dtype");
    return x && y && json_equal(x, y);
}

static int flag_argument(const json_t *node, const char *name)
{
    return json_is_true(json_object_get(argument_of(node, name), "as_bool"));
}

/* 1: the result is its first argument, unchanged; 0: it is not; -1: dropout that is active. */
static int is_identity(Writer *w, const json_t *node, const char *op, const char *result)
{
    static const char *const always[] = {"aten.detach.default",
                                         "aten.detach_.default",
                                         "aten.alias.default",
                                         "aten.lift_fresh.default",
                                         "aten.lift_fresh_copy.default",
                                         "aten.positive.default",
                                         NULL},
                             *const dropouts[] = {"aten.dropout.default",
                                                  "aten.dropout_.default",
                                                  "aten.feature_dropout.default",
                                                  "aten.feature_dropout_.default",
                                                  "aten.alpha_dropout.default",
                                                  "aten.alpha_dropout_.default",
                                                  "aten.feature_alpha_dropout.default",
                                                  NULL};
    const char *x = rewrite_tensor(node, 0);
    if (!x) return 0;
    if (is_one_of(op, always)) return 1;
    if (!strncmp(op, "aten.to.", 8))
        return same_dtype(w->p, x, result) && !flag_argument(node, "copy");
    if (!is_one_of(op, dropouts)) return 0;
    json_t *rate = json_object_get(rewrite_argument(node, 1), "as_float");
    if (!json_is_true(json_object_get(rewrite_argument(node, 2), "as_bool")) ||
        (json_is_number(rate) && json_number_value(rate) == 0))
        return 1;
    return error_set(w->err, ERROR_UNSUPPORTED,
                     "it is active in training mode, so that there is no right result; export the "
                     "module in evaluation mode");
}

/* Counting batches is no result of a module. */
static int is_counter(const Program *p, const json_t *node, const char *op)
{
    const char *x = rewrite_tensor(node, 0);
    if (strcmp(op, "aten.add_.Tensor") || !x) return 0;
    for (int i = 0; i < p->n_inputs; i++)
        if (!strcmp(p->inputs[i].placeholder, x))
            return p->inputs[i].kind != INPUT_ARGUMENT && p->inputs[i].dtype == DTYPE_I64;
    return 0;
}

/* ---- lines ---- */

void lines_rename(Lines *l, const char *name, const char *text)
{
    json_object_set_new(l->names, name, json_string(text));
}

void lines_add(Lines *l, char *text, const json_t *node)
{
    l->list = memory_grow(l->list, (size_t)l->n + 1, sizeof *l->list);
    l->list[l->n] = (Line){text, node, 0};
    l->n++;
}

typedef struct {
    Writer *w;
    Buffer *text;
    int n, most;
} Results;

static int write_result(void *ctx, const char *name)
{
    Results *r = ctx;
    char chosen[GRAPH_NAME];
    if (r->n == r->most) return 0;
    if (json_object_get(r->w->out->names, name))
        return error_set(r->w->err, ERROR_CORRUPT, "two nodes give the tensor %.80s", name);
    names_choose(r->w->out->taken, name, chosen, sizeof chosen);
    buffer_printf(r->text, "%s%s", r->n++ ? ", " : "", chosen);
    lines_rename(r->w->out, name, chosen);
    return 0;
}

/* Positional where it reads well: tensors, and the numbers right after the first one. */
static int by_keyword(const json_t *input, const json_t *arg, size_t i)
{
    int is_tensor = json_object_get(arg, "as_tensor") || json_object_get(arg, "as_tensors");
    if (json_integer_value(json_object_get(input, "kind")) == 2) return 1;
    if (json_object_get(arg, "as_bool")) return 1;
    if (json_object_get(arg, "as_int")) return i > 2;
    return i > 1 && !is_tensor;
}

static int write_arguments(Writer *w, const json_t *node, Buffer *text)
{
    json_t *list = json_object_get(node, "inputs"), *e;
    int keyword = 0, n = 0;
    size_t i;
    json_array_foreach(list, i, e)
    {
        const char *name = json_string_value(json_object_get(e, "name"));
        const json_t *arg = json_object_get(e, "arg");
        Buffer value;
        buffer_init(&value, OP_LINE_MAX);
        int rc = argument_write(w->p, arg, w->out->names, &value, w->err);
        if (rc > 0) {
            keyword |= by_keyword(e, arg, i);
            buffer_puts(text, n++ ? ", " : "");
            if (keyword) buffer_printf(text, "%s=", name ? name : "");
            buffer_puts(text, value.data);
        } else if (!rc) {
            keyword = 1; /* what follows is no longer at its place */
        }
        buffer_release(&value);
        if (rc < 0) return -1;
    }
    return 0;
}

/* The name of the operator in lines: without .default. */
static int write_operator(Writer *w, const json_t *node, const char *op)
{
    Buffer text, arguments;
    int is_bags = !strncmp(op, "aten.embedding_bag.", strlen("aten.embedding_bag."));
    Results r = {w, &text, 0, is_bags ? 1 : OP_MAX_RESULTS};
    size_t len = strlen(op), tail = strlen(".default");
    if (len > tail && !strcmp(op + len - tail, ".default")) len -= tail;
    buffer_init(&text, OP_LINE_MAX);
    buffer_init(&arguments, OP_LINE_MAX);
    int rc = (is_bags && rewrite_bags(w, node)) || write_arguments(w, node, &arguments) ||
                     each_result(node, write_result, &r)
                 ? -1
                 : 0;
    buffer_printf(&text, " = %.*s(%s)", (int)len, op, arguments.data);
    if (!rc && (text.full || arguments.full))
        rc = error_set(w->err, ERROR_LIMIT, "its arguments take more than %d bytes", OP_LINE_MAX);
    if (!rc) lines_add(w->out, buffer_detach(&text), node);
    buffer_release(&arguments);
    buffer_release(&text);
    return rc;
}

/* An operator's name is PyTorch's: no other one is meant. Returns -1. */
static int is_not_known(Writer *w, const char *op, const char *result)
{
    const json_t *t = json_object_get(w->p->tensors, result ? result : "");
    json_int_t type = json_integer_value(json_object_get(t, "dtype"));
    error_set(w->err, ERROR_UNSUPPORTED, "operator %.80s is not in the library", op);
    if (t && dtype_exported(type) == DTYPES)
        error_set(w->err, ERROR_UNSUPPORTED,
                  "operator %.80s is not in the library, and its result has PyTorch's element type "
                  "%s, which Quern has not",
                  op, program_type_name(type));
    return -1;
}

static int write_call(Writer *w, const json_t *node, const char *op)
{
    static const char *const checks[] = {"aten._assert_tensor_metadata.default",
                                         "aten._assert_scalar.default",
                                         "aten._assert_async.msg",
                                         "aten.sym_constrain_range_for_size.default",
                                         "aten.sym_constrain_range.default",
                                         NULL};
    int n = 0;
    const json_t *first = json_array_get(json_object_get(node, "outputs"), 0);
    const char *result =
        json_string_value(json_object_get(json_object_get(first, "as_tensor"), "name"));
    if (is_one_of(op, checks)) return 0;
    each_result(node, count, &n);
    if (!n) return 0; /* sizes, which have expressions of their own */
    int same = result ? is_identity(w, node, op, result) || is_counter(w->p, node, op) : 0;
    if (same && w->err->code != ERROR_NONE) return -1;
    if (same) {
        const char *x = json_string_value(json_object_get(w->out->names, rewrite_tensor(node, 0)));
        if (!x)
            return error_set(w->err, ERROR_CORRUPT,
                             "it uses a tensor that nothing before it gives");
        lines_rename(w->out, result, x);
        return 0;
    }
    int rewritten = result ? rewrite_call(w, node, op, result) : 0;
    if (!rewritten) rewritten = rewrite_cell(w, node, op);
    if (rewritten) return rewritten < 0 ? -1 : 0;
    if (n > OP_MAX_RESULTS)
        return error_set(w->err, ERROR_LIMIT, "it gives %d tensors, at most %d expected", n,
                         OP_MAX_RESULTS);
    const Op *known = op_find(op, NULL);
    if (!known) return is_not_known(w, op, result);
    return write_operator(w, node, known->name);
}

/* ---- where a module cannot be followed ---- */

/* Calls f for each name in an argument, until f returns 1. */
static int each_name(const json_t *arg, int f(Cut *c, const char *name), Cut *c)
{
    json_t *e;
    const char *key;
    size_t i;
    json_array_foreach((json_t *)arg, i, e)
    {
        if (each_name(e, f, c)) return 1;
    }
    json_object_foreach((json_t *)arg, key, e)
    {
        if (json_is_string(e) && !strcmp(key, "name") ? f(c, json_string_value(e))
                                                      : each_name(e, f, c))
            return 1;
    }
    return 0;
}

/* Calls f for the name of each tensor that a node takes, until f returns 1. */
static int each_taken(const json_t *node, int f(Cut *c, const char *name), Cut *c)
{
    json_t *input;
    size_t i;
    json_array_foreach(json_object_get(node, "inputs"), i, input)
    {
        if (each_name(json_object_get(input, "arg"), f, c)) return 1;
    }
    return 0;
}

static int is_missing(Cut *c, const char *name)
{
    return json_object_get(c->missing, name) != NULL;
}

static int add_edge(Cut *c, const char *name)
{
    if (!is_missing(c, name)) json_array_append_new(c->edge, json_string(name));
    return 0;
}

static int add_missing(void *cut, const char *name)
{
    json_object_set_new(((Cut *)cut)->missing, name, json_true());
    return 0;
}

static int cut_takes_missing(Cut *c, const json_t *node)
{
    return c->begun && each_taken(node, is_missing, c);
}

/* What a node gives that is no missing one's, as inputs. */
static int begin_behind(void *writer, const char *name)
{
    Writer *w = writer;
    char chosen[GRAPH_NAME];
    Error why;
    int n = w->p->n_inputs;
    if (program_add_input(w->p, name, &why)) return add_missing(&w->out->cut, name);
    w->out->used = memory_grow(w->out->used, (size_t)n + 2, sizeof *w->out->used);
    w->out->used[n] = w->out->used[n + 1] = 0;
    names_choose(w->out->taken, name, chosen, sizeof chosen);
    lines_rename(w->out, name, chosen);
    return 0;
}

/* Leaves a node out. Returns 0. */
static int cut_node(Writer *w, const json_t *node)
{
    Cut *c = &w->out->cut;
    Error ignored;
    int sized = !program_result_sizes(w->p, node, &ignored);
    if (c->behind && sized) return each_result(node, begin_behind, w);
    if (!c->behind) each_taken(node, add_edge, c);
    return each_result(node, add_missing, c);
}

static int write_node(Writer *w, const json_t *node)
{
    static const char prefix[] = "torch.ops.";
    const char *target = json_string_value(json_object_get(node, "target"));
    char place[PROGRAM_PLACE];
    int n = 0;
    if (!target) return error_set(w->err, ERROR_CORRUPT, "a node has no target");
    int is_op = !strncmp(target, prefix, strlen(prefix)), rc;
    const char *op = is_op ? target + strlen(prefix) : target;
    each_result(node, count, &n);
    w->err->code = ERROR_NONE;
    if (cut_takes_missing(&w->out->cut, node)) return cut_node(w, node);
    if (program_result_sizes(w->p, node, w->err))
        rc = -1;
    else if (is_op && !strncmp(op, "aten.", 5))
        rc = write_call(w, node, op);
    else if (!n)
        return 0;
    else if (strstr(op, "wrap_with_autocast"))
        rc = error_set(w->err, ERROR_UNSUPPORTED,
                       "torch.autocast chooses an element type for each operator, which Quern does "
                       "not follow; convert with .to()");
    else
        rc = error_set(w->err, ERROR_UNSUPPORTED, "Quern knows operators of ATen only");
    if (!rc) return 0;
    program_place_within(node, place, sizeof place);
    error_prefix(w->err, "%s%s%.100s", place, *place ? ": " : "", op);
    if (w->err->code != ERROR_UNSUPPORTED || !n) return -1;
    if (!w->out->cut.begun++) w->out->cut.why = *w->err;
    return cut_node(w, node);
}

/* ---- constants ---- */

static int write_constant(Writer *w, const ProgramInput *x, const char *made)
{
    char base[GRAPH_NAME];
    const char *name = lines_name(w->out, x);
    int triangle = strcmp(made, "full") != 0;
    Buffer b;
    buffer_init(&b, OP_LINE_MAX);
    snprintf(base, sizeof base, "%s", name);
    if (triangle) names_choose(w->out->taken, "filled", base, sizeof base);
    buffer_printf(&b, "%s = aten.full([", base);
    int rc = 0;
    const json_t *sizes = json_object_get(json_object_get(w->p->tensors, x->placeholder), "sizes");
    for (int d = 0; d < x->rank && !rc; d++) {
        buffer_puts(&b, d ? ", " : "");
        rc = argument_size(w->p, json_array_get(sizes, (size_t)d), &b, w->err);
    }
    buffer_puts(&b, "], ");
    argument_real(json_number_value(json_object_get(x->notes, "value")), &b);
    buffer_printf(&b, ", dtype=torch.%s)", dtype_name(x->dtype));
    if (!rc) lines_add(w->out, buffer_detach(&b), NULL);
    buffer_release(&b);
    if (!rc && triangle)
        lines_add(w->out, memory_printf("%s = aten.%s(%s)", name, made, base), NULL);
    return rc;
}

/* The values that the archive has of a constant, or NULL: there are none, or one is no finite number. */
static const json_t *values_of(const ProgramInput *x)
{
    const json_t *values = json_object_get(x->notes, "values");
    for (size_t i = 0; i < json_array_size(values); i++)
        if (!json_is_number(json_array_get(values, i))) return NULL;
    return x->kind == INPUT_CONSTANT && json_array_size(values) ? values : NULL;
}

/* The size of a dimension of an input as the archive's notes have it. */
static long long noted_size(const ProgramInput *x, int d)
{
    const json_t *shape = json_object_get(x->notes, "shape");
    return (long long)json_integer_value(json_array_get(shape, (size_t)d));
}

/* A small constant: its runs of equal values, one behind the other. */
static void write_values(Writer *w, const ProgramInput *x, const json_t *values)
{
    size_t n = json_array_size(values);
    Buffer flat;
    char base[GRAPH_NAME];
    buffer_init(&flat, OP_LINE_MAX);
    for (size_t i = 0, end; i < n; i = end) {
        double value = json_number_value(json_array_get(values, i));
        for (end = i + 1; end < n && json_number_value(json_array_get(values, end)) == value;)
            end++;
        Buffer b;
        buffer_init(&b, OP_LINE_MAX);
        names_choose(w->out->taken, "filled", base, sizeof base);
        buffer_printf(&b, "%s = aten.full([%zu], ", base, end - i);
        argument_real(value, &b);
        buffer_printf(&b, ", dtype=torch.%s)", dtype_name(x->dtype));
        lines_add(w->out, buffer_detach(&b), NULL);
        buffer_release(&b);
        buffer_printf(&flat, "%s%s", i ? ", " : "", base);
    }
    names_choose(w->out->taken, "filled", base, sizeof base);
    lines_add(w->out, memory_printf("%s = aten.cat([%s])", base, flat.data), NULL);
    buffer_clear(&flat);
    for (int d = 0; d < x->rank; d++)
        buffer_printf(&flat, "%s%lld", d ? ", " : "", noted_size(x, d));
    lines_add(w->out,
              memory_printf("%s = aten.view(%s, [%s])", lines_name(w->out, x), base, flat.data),
              NULL);
    buffer_release(&flat);
}

/* Names the inputs; constants become lines. */
static int begin(Writer *w)
{
    for (int i = 0; i < w->p->n_inputs; i++) {
        ProgramInput *x = &w->p->inputs[i];
        char chosen[GRAPH_NAME];
        names_choose(w->out->taken, x->name, chosen, sizeof chosen);
        lines_rename(w->out, x->placeholder, chosen);
    }
    names_axes(w->p, w->out->taken);
    for (int i = 0; i < w->p->n_inputs; i++) {
        const ProgramInput *x = &w->p->inputs[i];
        const char *made = rewrite_pattern(x);
        if (x->unknown) {
            if (!w->out->cut.begun++) w->out->cut.why = *x->unknown;
            add_missing(&w->out->cut, x->placeholder);
            continue;
        }
        const json_t *values = made || rewrite_overwrites(w->p, x) ? NULL : values_of(x);
        if (made && write_constant(w, x, made)) return -1;
        if (values) write_values(w, x, values);
        if (!made && !values && x->kind == INPUT_CONSTANT && !rewrite_overwrites(w->p, x))
            return error_set(w->err, ERROR_UNSUPPORTED,
                             "the module has a constant tensor, %.80s, of which the archive has no "
                             "contents; make it a parameter or a buffer",
                             x->name);
    }
    return 0;
}

/* ---- what the outputs need ---- */

/* Adds the words of a text to a set, or says whether one of them is in it. */
static int words(const char *p, const char *end, json_t *set, int add)
{
    size_t n;
    for (p = word_next(p, end, &n); p; p = word_next(p + n, end, &n)) {
        char *word = memory_strndup(p, n);
        int is_in = json_object_get(set, word) != NULL;
        if (add) json_object_set_new(set, word, json_true());
        free(word);
        if (is_in && !add) return 1;
    }
    return 0;
}

/* The name whose memory a tensor is, or its own name. */
static const char *root_of(const json_t *roots, const char *name)
{
    const char *root = json_string_value(json_object_get(roots, name));
    return root ? root : name;
}

/* Where a line's results end, and where its arguments begin. */
static void parts_of(const Line *line, const char **equals, const char **bracket)
{
    *equals = strchr(line->text, '=');
    *bracket = strchr(*equals, '(');
}

/* Lines leave .default out. */
static unsigned flags_of(const Line *line)
{
    const char *equals, *bracket;
    char name[128];
    parts_of(line, &equals, &bracket);
    snprintf(name, sizeof name, "%.*s.default", (int)(bracket - equals) - 2, equals + 2);
    const Op *op = op_find(name, NULL);
    name[strlen(name) - strlen(".default")] = 0;
    if (!op) op = op_find(name, NULL);
    return op ? op->flags : 0;
}

/* The first word of a text, or "". Returns what is behind it. */
static const char *first_word(const char *p, char out[GRAPH_NAME])
{
    size_t n;
    const char *word = word_next(p, NULL, &n);
    snprintf(out, GRAPH_NAME, "%.*s", (int)n, word ? word : "");
    return word ? word + n : "";
}

/* By result that may be a view of another tensor's memory, or is that memory: the owner's name. */
static json_t *find_roots(const Lines *l)
{
    json_t *roots = json_object();
    for (int i = 0; i < l->n; i++) {
        const char *equals, *bracket;
        char of[GRAPH_NAME], name[GRAPH_NAME];
        if (!(flags_of(&l->list[i]) & (OP_VIEW | OP_IN_PLACE))) continue;
        parts_of(&l->list[i], &equals, &bracket);
        first_word(bracket, of);
        for (const char *p = l->list[i].text; p < equals; p += strcspn(p, ",=") + 1) {
            first_word(p, name);
            json_object_set_new(roots, name, json_string(root_of(roots, of)));
        }
    }
    return roots;
}

/* Adds the owners of the memory that the words of a text name. */
static void words_roots(const char *p, const json_t *roots, json_t *memory)
{
    char name[GRAPH_NAME];
    for (p = first_word(p, name); *name; p = first_word(p, name))
        json_object_set_new(memory, root_of(roots, name), json_true());
}

/* What writes to an input that the module returns is seen. */
static void keep_passed(const Lines *l, json_t *memory)
{
    json_t *result;
    size_t i;
    json_array_foreach(l->results, i, result)
    {
        if (json_is_string(result))
            json_object_set_new(memory, json_string_value(result), json_true());
    }
}

/* Backwards: a line is needed for its results, or because it writes to memory that is read later, under
 * whatever name. */
static void mark_live(const Program *p, Lines *l)
{
    json_t *needed = json_object(), *memory = json_object(), *roots = find_roots(l);
    for (int i = 0; i < l->n_outputs; i++) {
        json_object_set_new(needed, l->output[i], json_true());
        json_object_set_new(memory, root_of(roots, l->output[i]), json_true());
    }
    keep_passed(l, memory);
    for (int i = l->n - 1; i >= 0; i--) {
        Line *line = &l->list[i];
        const char *equals, *bracket;
        char written[GRAPH_NAME];
        parts_of(line, &equals, &bracket);
        const char *end = bracket + strlen(bracket);
        first_word(bracket, written);
        line->live =
            words(line->text, equals, needed, 0) ||
            (flags_of(line) & OP_IN_PLACE &&
             (json_object_get(memory, root_of(roots, written)) || words(bracket, end, needed, 0)));
        if (!line->live) continue;
        words(bracket, end, needed, 1);
        words_roots(bracket, roots, memory);
    }
    for (int i = 0; i < p->n_inputs; i++)
        l->used[i] = json_object_get(needed, lines_name(l, &p->inputs[i])) != NULL;
    json_decref(needed);
    json_decref(memory);
    json_decref(roots);
}

/* Returns its place, or GRAPH_MAX_OUTPUTS: there are too many. */
static int add_output(Lines *l, const char *name)
{
    int k = 0;
    while (k < l->n_outputs && strcmp(l->output[k], name)) k++;
    if (k == l->n_outputs && k < GRAPH_MAX_OUTPUTS) l->output[l->n_outputs++] = name;
    return k;
}

/* Is a result what a line fills? A kernel of it has nothing to compute. */
static int is_filled(const Lines *l, const char *name)
{
    static const char *const made[] = {"zeros", "ones", "full", "empty", "arange"};
    size_t len = strlen(name);
    for (int i = 0; i < l->n; i++) {
        const char *op = strstr(l->list[i].text, " = aten.");
        if (strncmp(l->list[i].text, name, len) || op != l->list[i].text + len) continue;
        for (size_t k = 0; k < sizeof made / sizeof *made; k++)
            if (!strncmp(op + strlen(" = aten."), made[k], strlen(made[k]))) return 1;
    }
    return 0;
}

/* The results of lines that the nodes without one take. */
static void find_edge(Writer *w)
{
    Lines *l = w->out;
    json_t *one;
    size_t i;
    json_array_foreach(l->cut.edge, i, one)
    {
        const char *name = json_string_value(json_object_get(l->names, json_string_value(one)));
        int is_input = 0;
        for (int k = 0; k < w->p->n_inputs && name; k++)
            is_input |= !strcmp(name, lines_name(l, &w->p->inputs[k]));
        if (name && !is_input && !is_filled(l, name)) add_output(l, name);
    }
}

/* Is a tensor an input, not what a constant's line gives? */
static int is_input(const Writer *w, const char *name)
{
    for (int k = 0; k < w->p->n_inputs; k++)
        if (!strcmp(name, lines_name(w->out, &w->p->inputs[k])))
            return !rewrite_pattern(&w->p->inputs[k]);
    return 0;
}

static int find_output(Writer *w, const char *tensor)
{
    Lines *l = w->out;
    if (json_object_get(l->cut.missing, tensor)) return 0;
    const char *name = json_string_value(json_object_get(l->names, tensor));
    if (!name)
        return error_set(w->err, ERROR_CORRUPT, "the output %.80s is no node's result", tensor);
    if (l->cut.begun && is_filled(l, name)) return 0;
    json_array_append_new(l->results, is_input(w, name) ? json_string(name)
                                                        : json_integer(add_output(l, name)));
    return 0;
}

static int find_outputs(Writer *w)
{
    find_edge(w);
    for (int i = 0; i < w->p->n_outputs; i++)
        if (find_output(w, w->p->output[i])) return -1;
    if (w->out->n_outputs || w->out->cut.begun) return 0;
    return error_set(w->err, ERROR_UNSUPPORTED,
                     "the module returns its input %.80s unchanged, and nothing else",
                     json_string_value(json_array_get(w->out->results, 0)));
}

/* Is there something to judge in what is left of a module? */
static int is_enough(const Lines *l)
{
    int n = 0;
    for (int i = 0; i < l->n; i++)
        n += l->list[i].live && l->list[i].node && !(flags_of(&l->list[i]) & OP_VIEW);
    return n >= CUT_LEAST;
}

static int write_all(Writer *w)
{
    json_t *node;
    size_t i;
    if (begin(w)) return -1;
    json_array_foreach((json_t *)w->p->nodes, i, node)
    {
        if (write_node(w, node)) return -1;
        if (w->out->n > GRAPH_MAX_NODES)
            return error_set(w->err, ERROR_LIMIT, "the module has more than %d operators",
                             GRAPH_MAX_NODES);
    }
    return find_outputs(w);
}

static int write_whole(Program *p, int behind, Lines *out, Error *err)
{
    Writer w = {p, out, err};
    *out = (Lines){.names = json_object(),
                   .taken = json_object(),
                   .results = json_array(),
                   .cut = {.missing = json_object(), .edge = json_array(), .behind = behind},
                   .used = memory_array((size_t)p->n_inputs + 1, sizeof *out->used)};
    if (write_all(&w)) {
        lines_release(out);
        return -1;
    }
    mark_live(p, out);
    if (!out->cut.begun || is_enough(out)) return 0;
    *err = out->cut.why;
    lines_release(out);
    return 1;
}

int lines_write(Program *p, Lines *out, Error *err)
{
    int n = p->n_inputs, rc = write_whole(p, 0, out, err);
    if (rc <= 0) return rc;
    Error why = *err;
    rc = write_whole(p, 1, out, err);
    if (!rc) return 0;
    program_drop_inputs(p, n);
    *err = why;
    return -1;
}

void lines_release(Lines *l)
{
    for (int i = 0; i < l->n; i++) free(l->list[i].text);
    free(l->list);
    free(l->used);
    json_decref(l->names);
    json_decref(l->taken);
    json_decref(l->results);
    json_decref(l->cut.missing);
    json_decref(l->cut.edge);
    *l = (Lines){0};
}
