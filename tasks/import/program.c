/* Reads the JSON of an exported program. */
#include "tasks/import/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { NOTES_FORMAT = 1, EXPORTED_UNSIGNED = 28 };

int program_size(Program *p, const json_t *value, Symbolic *out, Error *err)
{
    json_t *e = json_object_get(value, "as_expr"), *number = json_object_get(value, "as_int");
    *out = (Symbolic){0};
    if (json_is_integer(number)) {
        symbolic_number(json_integer_value(number), out);
        return 0;
    }
    const char *text = json_string_value(json_object_get(e, "expr_str"));
    if (!text)
        return error_set(err, ERROR_CORRUPT, "a size has neither \"as_int\" nor \"as_expr\"");
    if (symbolic_parse(text, &p->symbols, NULL, NULL, out, err)) return -1;
    json_t *hint = json_object_get(json_object_get(e, "hint"), "as_int");
    if (out->n == 1 && out->node[0].kind == SYM_SYMBOL && json_is_integer(hint)) {
        Symbol *s = &p->symbols.list[out->node[0].a];
        s->own = json_integer_value(hint);
        s->known = 1;
    }
    return 0;
}

const char *program_type_name(int64_t scalar_type)
{
    static const struct {
        int64_t number;
        const char *name;
    } other[] = {{9, "complex32"},        {10, "complex64"},
                 {11, "complex128"},      {EXPORTED_UNSIGNED, "uint16"},
                 {31, "float8_e4m3fnuz"}, {32, "float8_e5m2fnuz"}};
    Dtype d = dtype_exported(scalar_type);
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        if (other[i].number == scalar_type) return other[i].name;
    return d == DTYPES ? "unknown" : dtype_name(d);
}

int program_tensor(Program *p, const char *name, Dtype *dtype, int *rank,
                   Symbolic size[OP_MAX_RANK], Error *err)
{
    const json_t *t = json_object_get(p->tensors, name), *sizes = json_object_get(t, "sizes");
    json_int_t type = json_integer_value(json_object_get(t, "dtype"));
    if (!json_is_array(sizes))
        return error_set(err, ERROR_CORRUPT, "the program has no tensor %.80s", name);
    *dtype = dtype_exported(type);
    *rank = 0;
    if (*dtype == DTYPES)
        return error_set(err, ERROR_UNSUPPORTED,
                         "%.80s has PyTorch's element type %s, which Quern has not", name,
                         program_type_name(type));
    if (json_array_size(sizes) > OP_MAX_RANK)
        return error_set(err, ERROR_UNSUPPORTED, "%.80s has %zu dimensions, at most %d expected",
                         name, json_array_size(sizes), OP_MAX_RANK);
    for (size_t d = 0; d < json_array_size(sizes); d++) {
        if (program_size(p, json_array_get(sizes, d), &size[d], err)) {
            while (*rank) symbolic_release(&size[--*rank]);
            return error_prefix(err, "dimension %zu of %.80s", d, name);
        }
        ++*rank;
    }
    return 0;
}

/* ---- places ---- */

/* The last line of `File "...", line N, in forward` that is no part of torch, else the last one. */
void program_place(const json_t *node, char *out, size_t size)
{
    const char *trace = json_string_value(
                   json_object_get(json_object_get(node, "metadata"), "stack_trace")),
               *best = NULL;
    *out = 0;
    for (const char *p = trace; p && (p = strstr(p, "File \"")); p += 6) {
        size_t len = strcspn(p + 6, "\"");
        char file[512];
        snprintf(file, sizeof file, "%.*s", (int)(len < 500 ? len : 500), p + 6);
        if (!best || !(strstr(file, "/torch/") || strstr(file, "\\torch\\"))) best = p;
    }
    if (!best) return;
    const char *name = best + 6, *end = name + strcspn(name, "\"");
    for (const char *p = name; p < end; p++)
        if (*p == '/' || *p == '\\') name = p + 1;
    const char *line = strstr(end, "line "), *code = strchr(end, '\n');
    int number = line ? atoi(line + 5) : 0, length = 0;
    if (code) {
        code += strspn(code, " \n");
        length = (int)strcspn(code, "\n");
    }
    snprintf(out, size, "%.*s, line %d%s%.*s%s", (int)(end - name < 120 ? end - name : 120), name,
             number, length ? " (`" : "", length < 120 ? length : 120, length ? code : "",
             length ? "`)" : "");
}

void program_place_within(const json_t *node, char *out, size_t size)
{
    json_t *input, *inner;
    size_t i, k;
    program_place(node, out, size);
    json_array_foreach(json_object_get(node, "inputs"), i, input)
    {
        json_t *graph = json_object_get(
            json_object_get(json_object_get(json_object_get(input, "arg"), "as_graph"), "graph"),
            "nodes");
        json_array_foreach(graph, k, inner)
        {
            if (!*out) program_place(inner, out, size);
        }
    }
}

/* Does a size depend on a symbol of which no input says how large it is? */
static int is_open(Program *p, const json_t *size)
{
    Symbolic e;
    int open = 0;
    if (!json_object_get(size, "as_expr") || program_size(p, size, &e, NULL)) return 0;
    for (int i = 0; i < e.n; i++)
        open |= e.node[i].kind == SYM_SYMBOL && !p->symbols.list[e.node[i].a].known;
    symbolic_release(&e);
    return open;
}

static int tensor_is_open(Program *p, const json_t *tensor)
{
    const char *name = json_string_value(json_object_get(tensor, "name"));
    json_t *size;
    size_t d;
    json_array_foreach(json_object_get(json_object_get(p->tensors, name ? name : ""), "sizes"), d,
                       size)
    {
        if (is_open(p, size)) return 1;
    }
    return 0;
}

int program_result_sizes(Program *p, const json_t *node, Error *err)
{
    json_t *result, *one;
    size_t i, k;
    int open = 0;
    json_array_foreach(json_object_get(node, "outputs"), i, result)
    {
        open |= tensor_is_open(p, json_object_get(result, "as_tensor"));
        json_array_foreach(json_object_get(result, "as_tensors"), k, one)
        {
            open |= tensor_is_open(p, one);
        }
    }
    if (!open) return 0;
    return error_set(
        err, ERROR_UNSUPPORTED,
        "the contents of a tensor decide the size of the result, which no graph can record");
}

int program_mentions(const json_t *value, const char *text)
{
    json_t *e;
    const char *key;
    size_t i;
    if (json_is_string(value)) return !strcmp(json_string_value(value), text);
    json_array_foreach((json_t *)value, i, e)
    {
        if (program_mentions(e, text)) return 1;
    }
    json_object_foreach((json_t *)value, key, e)
    {
        if (program_mentions(e, text)) return 1;
    }
    return 0;
}

/* ---- reading ---- */

static int check_version(Program *p, Error *err)
{
    json_t *version = json_need_object(p->root, "schema_version", "the program", err);
    int64_t major, minor;
    if (!version || json_need_int(version, "major", "the program's schema_version", &major, err) ||
        json_need_int(version, "minor", "the program's schema_version", &minor, err))
        return -1;
    if (major == PROGRAM_SCHEMA) return 0;
    return error_set(err, ERROR_UNSUPPORTED,
                     "the program has schema version %lld.%lld, Quern reads version %d",
                     (long long)major, (long long)minor, PROGRAM_SCHEMA);
}

static int read_parts(Program *p, Error *err)
{
    json_t *module = json_need_object(p->root, "graph_module", "the program", err),
           *graph = module ? json_need_object(module, "graph", "the program", err) : NULL;
    if (!graph || !(p->nodes = json_need_array(graph, "nodes", "the graph", err)) ||
        !(p->tensors = json_need_object(graph, "tensor_values", "the graph", err)))
        return -1;
    p->sizes = json_object_get(graph, "sym_int_values");
    p->numbers = json_object_get(graph, "sym_float_values");
    p->guards = json_object_get(p->root, "guards_code");
    if (json_array_size(p->nodes) > PROGRAM_MAX_NODES ||
        json_array_size(p->guards) > PROGRAM_MAX_GUARDS)
        return error_set(err, ERROR_LIMIT,
                         "the program has %zu nodes and %zu guards, at most %d "
                         "expected",
                         json_array_size(p->nodes), json_array_size(p->guards), PROGRAM_MAX_NODES);
    return 0;
}

/* The notes' entry of a placeholder, or NULL. */
static const json_t *notes_of(const Program *p, const char *placeholder)
{
    json_t *list = json_object_get(p->notes, "inputs"), *e;
    size_t i;
    json_array_foreach(list, i, e)
    {
        const char *name = json_string_value(json_object_get(e, "placeholder"));
        if (name && !strcmp(name, placeholder)) return e;
    }
    return NULL;
}

/* What the signature says of an input: 1, it is a tensor; 0, a constant that the graph does not use. */
static int read_spec(const json_t *spec, ProgramInput *x, Error *err)
{
    static const struct {
        const char *field, *name;
        InputKind kind;
    } kinds[] = {{"parameter", "parameter_name", INPUT_PARAMETER},
                 {"buffer", "buffer_name", INPUT_PARAMETER},
                 {"tensor_constant", "tensor_constant_name", INPUT_CONSTANT}};
    json_t *user = json_object_get(json_object_get(spec, "user_input"), "arg");
    if (json_object_get(spec, "constant_input")) return 0;
    if (user) {
        x->placeholder = x->name =
            json_string_value(json_object_get(json_object_get(user, "as_tensor"), "name"));
        if (!x->placeholder && json_object_get(user, "as_tensor")) user = NULL;
        if (x->placeholder) return 1;
        if (!user) return error_set(err, ERROR_CORRUPT, "an input of the program has no name");
        if (json_object_get(user, "as_sym_int"))
            return error_set(err, ERROR_UNSUPPORTED,
                             "the module takes an integer whose value is "
                             "free; tensors and fixed numbers are expected");
        return 0;
    }
    for (int k = 0; k < 3; k++) {
        json_t *s = json_object_get(spec, kinds[k].field);
        if (!s) continue;
        x->kind = kinds[k].kind;
        x->placeholder = json_string_value(json_object_get(json_object_get(s, "arg"), "name"));
        x->name = json_string_value(json_object_get(s, kinds[k].name));
        if (x->placeholder && x->name) return 1;
        return error_set(err, ERROR_CORRUPT, "an input of the program has no name");
    }
    return error_set(err, ERROR_UNSUPPORTED,
                     "the program has an input that is neither tensor nor number");
}

/* What tools/export.py says of an input comes before the signature. */
static void read_notes(Program *p, ProgramInput *x)
{
    static const char *const fields[] = {"argument", "parameter", "constant"};
    x->notes = notes_of(p, x->placeholder);
    for (int k = 0; k < 3; k++) {
        const char *name = json_string_value(json_object_get(x->notes, fields[k]));
        if (!name) continue;
        x->kind = (InputKind)k;
        x->name = name;
    }
}

int program_prefix_use(const Program *p, const ProgramInput *x, Error *err)
{
    json_t *node;
    size_t i;
    char place[PROGRAM_PLACE] = "";
    const char *first = NULL;
    json_array_foreach(p->nodes, i, node)
    {
        const char *target = json_string_value(json_object_get(node, "target"));
        if (*place || !target || strstr(target, "._assert") || strstr(target, ".sym_")) continue;
        if (!program_mentions(json_object_get(node, "inputs"), x->placeholder)) continue;
        program_place(node, place, sizeof place);
        first = strncmp(target, "torch.ops.", 10) ? target : target + 10;
    }
    return error_prefix(err, "%s%s%.100s%sinput %.80s", place, *place ? ": " : "",
                        first ? first : "", first ? ": " : "", x->name);
}

static int read_inputs(Program *p, const json_t *specs, Error *err)
{
    json_t *spec;
    size_t i;
    if (json_array_size(specs) > GRAPH_MAX_INPUTS)
        return error_set(err, ERROR_LIMIT, "the program has %zu inputs, at most %d expected",
                         json_array_size(specs), GRAPH_MAX_INPUTS);
    p->inputs = memory_array(json_array_size(specs) + 1, sizeof *p->inputs);
    json_array_foreach(specs, i, spec)
    {
        ProgramInput *x = &p->inputs[p->n_inputs];
        int rc = read_spec(spec, x, err);
        if (rc < 0) return -1;
        if (!rc) continue;
        for (int k = 0; k < p->n_inputs; k++)
            if (!strcmp(p->inputs[k].placeholder, x->placeholder))
                return error_set(err, ERROR_CORRUPT, "the program has two inputs %.80s",
                                 x->placeholder);
        read_notes(p, x);
        p->n_inputs++;
        if (!program_tensor(p, x->placeholder, &x->dtype, &x->rank, x->size, err)) continue;
        program_prefix_use(p, x, err);
        if (err->code != ERROR_UNSUPPORTED) return -1;
        x->unknown = memory_alloc(sizeof *x->unknown);
        *x->unknown = *err;
        x->dtype = DTYPES;
    }
    return 0;
}

int program_add_input(Program *p, const char *tensor, Error *err)
{
    ProgramInput x = {.placeholder = tensor, .name = tensor, .kind = INPUT_ARGUMENT};
    if (p->n_inputs == GRAPH_MAX_INPUTS)
        return error_set(err, ERROR_LIMIT, "the program has more than %d inputs", GRAPH_MAX_INPUTS);
    if (program_tensor(p, tensor, &x.dtype, &x.rank, x.size, err)) return -1;
    p->inputs = memory_grow(p->inputs, (size_t)p->n_inputs + 1, sizeof *p->inputs);
    p->inputs[p->n_inputs++] = x;
    return 0;
}

void program_drop_inputs(Program *p, int n)
{
    while (p->n_inputs > n) {
        ProgramInput *x = &p->inputs[--p->n_inputs];
        for (int d = 0; d < x->rank; d++) symbolic_release(&x->size[d]);
    }
}

static int read_outputs(Program *p, const json_t *specs, Error *err)
{
    json_t *spec;
    size_t i;
    json_array_foreach(specs, i, spec)
    {
        json_t *user = json_object_get(spec, "user_output");
        if (!user) continue; /* of a buffer that training changes: no result of the module */
        const char *name = json_string_value(
            json_object_get(json_object_get(json_object_get(user, "arg"), "as_tensor"), "name"));
        if (!name)
            return error_set(err, ERROR_UNSUPPORTED,
                             "the module returns something that is no tensor; a tensor or a tuple "
                             "of tensors is expected");
        if (p->n_outputs == GRAPH_MAX_OUTPUTS)
            return error_set(err, ERROR_LIMIT, "the module returns more than %d tensors",
                             GRAPH_MAX_OUTPUTS);
        p->output[p->n_outputs++] = name;
    }
    return p->n_outputs ? 0 : error_set(err, ERROR_UNSUPPORTED, "the module returns no tensor");
}

/* The largest n for which an expression of one symbol is at most `want`, if it is `want` then. */
static int solve(Program *p, const Symbolic *e, int symbol, int64_t want)
{
    int64_t *values = memory_array((size_t)p->symbols.n, sizeof *values), low = 0, high = INT32_MAX;
    SymValue v;
    int found = 0;
    while (low < high) {
        int64_t mid = low + (high - low + 1) / 2;
        values[symbol] = mid;
        if (symbolic_value(e, &p->symbols, values, &v, NULL) || v.is_real || v.integer > want)
            high = mid - 1;
        else
            low = mid;
    }
    values[symbol] = low;
    if (!symbolic_value(e, &p->symbols, values, &v, NULL) && !v.is_real && v.integer == want) {
        p->symbols.list[symbol].own = low;
        found = p->symbols.list[symbol].known = 1;
    }
    free(values);
    return found;
}

/* A symbol whose size the program states only within an expression, such as 8*s0 = 64. */
static void find_sizes(Program *p)
{
    for (int i = 0; i < p->n_inputs; i++) {
        const json_t *sizes =
            json_object_get(json_object_get(p->tensors, p->inputs[i].placeholder), "sizes");
        for (int d = 0; d < p->inputs[i].rank; d++) {
            const Symbolic *e = &p->inputs[i].size[d];
            char used[SYMBOLS_MAX] = {0};
            json_t *hint = json_object_get(
                json_object_get(json_object_get(json_array_get(sizes, (size_t)d), "as_expr"),
                                "hint"),
                "as_int");
            if (symbolic_uses(e, &p->symbols, used) != 1 || !json_is_integer(hint)) continue;
            int s = (int)((char *)memchr(used, 1, sizeof used) - used);
            if (!p->symbols.list[s].known) solve(p, e, s, json_integer_value(hint));
        }
    }
}

static void read_bound(const json_t *range, const char *field, int64_t least, int64_t *out)
{
    json_t *v = json_object_get(range, field);
    if (json_is_integer(v) && json_integer_value(v) >= least && json_integer_value(v) < INT32_MAX)
        *out = json_integer_value(v);
}

static int read_ranges(Program *p, Error *err)
{
    json_t *ranges = json_object_get(p->root, "range_constraints"), *range;
    const char *name;
    json_object_foreach(ranges, name, range)
    {
        int s = symbols_find(&p->symbols, name, strlen(name));
        if (s < 0) continue;
        read_bound(range, "min_val", 1, &p->symbols.list[s].low);
        read_bound(range, "max_val", 1, &p->symbols.list[s].high);
    }
    for (int i = 0; i < p->symbols.n; i++) {
        Symbol *s = &p->symbols.list[i];
        if (!s->known)
            return error_set(err, ERROR_UNSUPPORTED,
                             "the program does not say how large %s is in the module", s->name);
        if (s->own < 1 || s->own >= INT32_MAX)
            return error_set(err, ERROR_LIMIT, "the size %s is %lld, 1 to %d expected", s->name,
                             (long long)s->own, INT32_MAX - 1);
        if (s->low > s->own) s->low = s->own;
        if (s->high < s->own) s->high = s->own;
    }
    return 0;
}

int program_read(const char *text, size_t len, const char *notes, size_t notes_len, Program *out,
                 Error *err)
{
    Program p = {0};
    int rc = -1;
    if (!(p.root = json_read_text(text, len, "the program", err))) goto out;
    if (notes && !(p.notes = json_read_text(notes, notes_len, "quern.json", err))) goto out;
    if (p.notes && json_integer_value(json_object_get(p.notes, "format")) != NOTES_FORMAT) {
        error_set(err, ERROR_UNSUPPORTED, "quern.json has another format than %d", NOTES_FORMAT);
        goto out;
    }
    if (check_version(&p, err) || read_parts(&p, err)) goto out;
    json_t *signature = json_need_object(json_object_get(p.root, "graph_module"), "signature",
                                         "the program", err),
           *inputs = signature ? json_need_array(signature, "input_specs", "signature", err) : NULL,
           *outputs = inputs ? json_need_array(signature, "output_specs", "signature", err) : NULL;
    if (!outputs || read_inputs(&p, inputs, err) || read_outputs(&p, outputs, err)) goto out;
    find_sizes(&p);
    rc = read_ranges(&p, err);
out:
    *out = p;
    if (rc) program_release(out);
    return rc;
}

void program_release(Program *p)
{
    for (int i = 0; i < p->n_inputs; i++) free(p->inputs[i].unknown);
    program_drop_inputs(p, 0);
    free(p->inputs);
    symbols_release(&p->symbols);
    json_decref(p->root);
    json_decref(p->notes);
    *p = (Program){0};
}
