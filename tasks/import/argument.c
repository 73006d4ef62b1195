/* Writes arguments of nodes. */
#include "tasks/import/argument.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void argument_real(double v, Buffer *out)
{
    char text[40];
    if (!isfinite(v)) {
        buffer_puts(out, isnan(v) ? "nan" : v < 0 ? "-inf" : "inf");
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        if (strtod(text, NULL) == v) break;
    }
    buffer_printf(out, "%s%s", text, strpbrk(text, ".e") ? "" : ".0");
}

static int write_symbolic(Program *p, const Symbolic *e, Buffer *out, Error *err)
{
    char used[SYMBOLS_MAX] = {0};
    SymValue v;
    if (symbolic_uses(e, &p->symbols, used)) return symbolic_text(e, &p->symbols, out, err);
    if (symbolic_value(e, &p->symbols, NULL, &v, err)) return -1;
    if (v.is_real)
        argument_real(v.real, out);
    else
        buffer_printf(out, "%lld", (long long)v.integer);
    return 0;
}

int argument_size(Program *p, const json_t *value, Buffer *out, Error *err)
{
    Symbolic e;
    if (program_size(p, value, &e, err)) return -1;
    for (int i = 0; i < e.n; i++)
        if (e.node[i].kind == SYM_SYMBOL && !p->symbols.list[e.node[i].a].known) {
            symbolic_release(&e);
            return error_set(err, ERROR_UNSUPPORTED, "the contents of a tensor decide a size");
        }
    int rc = write_symbolic(p, &e, out, err);
    symbolic_release(&e);
    return rc;
}

/* Where an argument is written. names: as argument_write has them. */
typedef struct {
    Program *p;
    const json_t *names;
    Buffer *out;
    Error *err;
} Writer;

static int write_tensor(const Writer *w, const json_t *tensor)
{
    const char *name = json_string_value(json_object_get(tensor, "name")),
               *text = name ? json_string_value(json_object_get(w->names, name)) : NULL;
    if (!text)
        return error_set(w->err, ERROR_CORRUPT,
                         "it uses the tensor %.80s, which nothing before it gives",
                         name ? name : "(without a name)");
    return buffer_puts(w->out, text);
}

/* {"as_name": "sym_size_int"} in `table`, or {field: number}. */
static int write_named(const Writer *w, const json_t *value, const json_t *table, const char *field)
{
    Buffer *out = w->out;
    const char *name = json_string_value(json_object_get(value, "as_name"));
    const json_t *number = json_object_get(value, field);
    if (name) {
        const json_t *size = json_object_get(table, name);
        if (!size)
            return error_set(w->err, ERROR_CORRUPT, "it uses the size %.80s, which nothing gives",
                             name);
        if (json_object_get(size, "as_float")) {
            argument_real(json_number_value(json_object_get(size, "as_float")), out);
            return 0;
        }
        return argument_size(w->p, size, out, w->err);
    }
    if (json_is_integer(number))
        buffer_printf(out, "%lld", (long long)json_integer_value(number));
    else if (json_is_real(number))
        argument_real(json_real_value(number), out);
    else
        return error_set(w->err, ERROR_CORRUPT, "an argument has neither name nor number");
    return 0;
}

static int write_real(const json_t *value, Buffer *out, Error *err)
{
    const char *text = json_string_value(value);
    if (json_is_number(value)) {
        argument_real(json_number_value(value), out);
        return 0;
    }
    if (text && (!strcmp(text, "Infinity") || !strcmp(text, "-Infinity") || !strcmp(text, "NaN"))) {
        argument_real(*text == 'N' ? NAN : *text == '-' ? -INFINITY : INFINITY, out);
        return 0;
    }
    return error_set(err, ERROR_CORRUPT, "a number is expected as \"as_float\"");
}

typedef enum {
    LIST_TENSORS,
    LIST_SIZES,
    LIST_INTS,
    LIST_BOOLS,
    LIST_REALS,
    LIST_OPTIONAL
} ListKind;

static int write_element(const Writer *w, const json_t *e, ListKind kind)
{
    Buffer *out = w->out;
    Error *err = w->err;
    switch (kind) {
    case LIST_TENSORS: return write_tensor(w, e);
    case LIST_SIZES: return write_named(w, e, w->p->sizes, "as_int");
    case LIST_BOOLS: return buffer_puts(out, json_is_true(e) ? "1" : "0");
    case LIST_REALS: return write_real(e, out, err);
    case LIST_OPTIONAL:
        if (json_object_get(e, "as_tensor"))
            return write_tensor(w, json_object_get(e, "as_tensor"));
        return error_set(err, ERROR_UNSUPPORTED, "it has a list of tensors and of None");
    default:
        if (!json_is_integer(e)) return error_set(err, ERROR_CORRUPT, "an integer is expected");
        return buffer_printf(out, "%lld", (long long)json_integer_value(e));
    }
}

static int write_list(const Writer *w, const json_t *list, ListKind kind)
{
    json_t *e;
    size_t i;
    if (!json_is_array(list)) return error_set(w->err, ERROR_CORRUPT, "a list is expected");
    buffer_puts(w->out, "[");
    json_array_foreach((json_t *)list, i, e)
    {
        if (i) buffer_puts(w->out, ", ");
        if (write_element(w, e, kind)) return -1;
    }
    buffer_puts(w->out, "]");
    return 0;
}

static int write_string(const char *text, Buffer *out, Error *err)
{
    if (!text || strchr(text, '\'') || strlen(text) > 60)
        return error_set(err, ERROR_UNSUPPORTED, "it has a text that is too long or has quotes");
    buffer_printf(out, "'%s'", text);
    return 0;
}

static int write_dtype(json_int_t type, Buffer *out, Error *err)
{
    Dtype d = dtype_exported(type);
    if (d == DTYPES)
        return error_set(err, ERROR_UNSUPPORTED,
                         "it gives PyTorch's element type %s, which Quern has not",
                         program_type_name(type));
    buffer_printf(out, "torch.%s", dtype_name(d));
    return 0;
}

/* 1: contiguous, preserved or channels_last, whose elements are those of every result: a package gives the
 * strides of the original's. 0 is refused. */
static int is_plain_format(json_int_t format)
{
    return format == 0 || format == 1 || format == 2 || format == 3 || format == 4;
}

int argument_write(Program *p, const json_t *arg, const json_t *names, Buffer *out, Error *err)
{
    static const struct {
        const char *field;
        ListKind kind;
    } lists[] = {{"as_tensors", LIST_TENSORS}, {"as_ints", LIST_INTS},
                 {"as_sym_ints", LIST_SIZES},  {"as_bools", LIST_BOOLS},
                 {"as_floats", LIST_REALS},    {"as_optional_tensors", LIST_OPTIONAL}};
    const Writer w = {p, names, out, err};
    const char *field = json_object_iter_key(json_object_iter((json_t *)arg));
    const json_t *v = field ? json_object_get(arg, field) : NULL;
#define IS(name) (!strcmp(field, name))
    if (!v) return error_set(err, ERROR_CORRUPT, "an argument has no value");
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (IS(lists[i].field)) return write_list(&w, v, lists[i].kind) ? -1 : 1;
    if (IS("as_device") || IS("as_layout")) return 0;
    if (IS("as_memory_format")) {
        if (is_plain_format(json_integer_value(v))) return 0;
        return error_set(err, ERROR_UNSUPPORTED,
                         "it asks for a memory format that Quern does not know");
    }
    int rc;
    if (IS("as_tensor"))
        rc = write_tensor(&w, v);
    else if (IS("as_optional_tensor") && json_object_get(v, "as_tensor"))
        rc = write_tensor(&w, json_object_get(v, "as_tensor"));
    else if (IS("as_none") || IS("as_optional_tensor"))
        rc = buffer_puts(out, "None");
    else if (IS("as_int"))
        rc = write_element(&w, v, LIST_INTS);
    else if (IS("as_float"))
        rc = write_real(v, out, err);
    else if (IS("as_bool"))
        rc = buffer_puts(out, json_is_true(v) ? "True" : "False");
    else if (IS("as_string"))
        rc = write_string(json_string_value(v), out, err);
    else if (IS("as_scalar_type"))
        rc = write_dtype(json_integer_value(v), out, err);
    else if (IS("as_sym_int"))
        rc = write_named(&w, v, p->sizes, "as_int");
    else if (IS("as_sym_float"))
        rc = write_named(&w, v, p->numbers, "as_float");
    else
        rc = error_set(err, ERROR_UNSUPPORTED, "it has an argument of the kind \"%.40s\"", field);
    return rc ? -1 : 1;
#undef IS
}

json_t *argument_of(const json_t *node, const char *name)
{
    json_t *inputs = json_object_get(node, "inputs"), *input;
    size_t i;
    json_array_foreach(inputs, i, input)
    {
        const char *own = json_string_value(json_object_get(input, "name"));
        if (own && !strcmp(own, name)) return json_object_get(input, "arg");
    }
    return NULL;
}
