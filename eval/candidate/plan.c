/* The parser of plan lines. It copies names and keeps expressions as texts. */
#include "eval/candidate/plan.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/words.h"
#include "eval/candidate/library_arguments.h"

typedef struct {
    Plan *plan;
    int line;
    int trusted; /* library calls are allowed */
    Error *err;
    int pending_for; /* a for was parsed, and its launch was not */
    PlanStep loop;   /* the fields of that for */
    int branch;      /* index of the branch that the lines are in; -1: none */
    int empty;       /* that branch has no line yet */
} Parser;

static const struct {
    const char *name;
    size_t size;
    TensorMapType map; /* of a tensor map over a buffer of it */
} types[] = {
    {"float", 4, TENSOR_MAP_F32},
    {"double", 8, TENSOR_MAP_F64},
    {"int", 4, TENSOR_MAP_I32},
    {"unsigned", 4, TENSOR_MAP_U32},
    {"unsigned int", 4, TENSOR_MAP_U32},
    {"long long", 8, TENSOR_MAP_I64},
    {"unsigned long long", 8, TENSOR_MAP_U64},
    {"half", 2, TENSOR_MAP_F16},
    {"__half", 2, TENSOR_MAP_F16},
    {"__nv_bfloat16", 2, TENSOR_MAP_BF16},
    {"char", 1, TENSOR_MAP_U8},
    {"signed char", 1, TENSOR_MAP_U8},
    {"unsigned char", 1, TENSOR_MAP_U8},
    {"short", 2, TENSOR_MAP_U16},
    {"unsigned short", 2, TENSOR_MAP_U16},
    {"bool", 1, TENSOR_MAP_U8},
    {"int8_t", 1, TENSOR_MAP_U8},
    {"uint8_t", 1, TENSOR_MAP_U8},
    {"int16_t", 2, TENSOR_MAP_U16},
    {"uint16_t", 2, TENSOR_MAP_U16},
    {"int32_t", 4, TENSOR_MAP_I32},
    {"uint32_t", 4, TENSOR_MAP_U32},
    {"int64_t", 8, TENSOR_MAP_I64},
    {"uint64_t", 8, TENSOR_MAP_U64},
    {"size_t", 8, TENSOR_MAP_U64},
    {"float2", 8, TENSOR_MAP_NONE},
    {"float4", 16, TENSOR_MAP_NONE},
    {"double2", 16, TENSOR_MAP_NONE},
    {"int2", 8, TENSOR_MAP_NONE},
    {"int4", 16, TENSOR_MAP_NONE},
    {"uint2", 8, TENSOR_MAP_NONE},
    {"uint4", 16, TENSOR_MAP_NONE},
    {"half2", 4, TENSOR_MAP_NONE},
    {"__half2", 4, TENSOR_MAP_NONE},
    {"__nv_bfloat162", 4, TENSOR_MAP_NONE},
    {"__nv_fp8_e4m3", 1, TENSOR_MAP_U8},
    {"__nv_fp8_e5m2", 1, TENSOR_MAP_U8},
};

#define fail(ps, ...) plan_mistake((ps)->err, (ps)->line, __VA_ARGS__)

static PlanText trim(PlanText t)
{
    while (t.len && isspace((unsigned char)*t.p)) t.p++, t.len--;
    while (t.len && isspace((unsigned char)t.p[t.len - 1])) t.len--;
    return t;
}

/* The number of bytes of a text that a message shows: at most 60. */
static int shown(PlanText t)
{
    return t.len > 60 ? 60 : (int)t.len;
}

static size_t name_length(PlanText t)
{
    return word_name_length(t.p, t.p + t.len);
}

static PlanText skip(PlanText t, size_t n)
{
    return trim((PlanText){t.p + n, t.len - n});
}

/* Split at commas outside of brackets. Returns the number of parts, or -1 when the brackets are
 * unbalanced or there are more than max parts. */
static int split(PlanText t, PlanText *parts, int max)
{
    char stack[64];
    int depth = 0, n = 0;
    size_t start = 0;
    t = trim(t);
    if (!t.len) return 0;
    for (size_t i = 0; i <= t.len; i++) {
        char c = i < t.len ? t.p[i] : ',';
        if (c == '(' || c == '[') {
            if (depth == (int)sizeof stack) return -1;
            stack[depth++] = c;
        } else if (c == ')' || c == ']') {
            if (!depth || stack[--depth] != (c == ')' ? '(' : '[')) return -1;
        } else if (c == ',' && (!depth || i == t.len)) {
            if (depth || n == max) return -1;
            parts[n++] = trim((PlanText){t.p + start, i - start});
            start = i + 1;
        }
    }
    return n;
}

int plan_text_pointer(PlanText text, PlanText *name, PlanText *offset)
{
    text = trim(text);
    size_t n = name_length(text);
    if (!n) return 0;
    *name = (PlanText){text.p, n};
    PlanText rest = skip(text, n);
    *offset = (PlanText){rest.p, 0};
    if (!rest.len) return 1;
    if (rest.p[0] != '+') return 0;
    *offset = skip(rest, 1);
    return offset->len > 0;
}

const PlanMap *plan_map(const Plan *p, PlanText name)
{
    for (int i = 0; i < p->n_maps; i++)
        if (plan_text_is(name, p->maps[i].name)) return &p->maps[i];
    return NULL;
}

int plan_argument(const Plan *p, PlanText text, PlanText *name, PlanText *offset)
{
    const PlanMap *map = plan_map(p, trim(text));
    return plan_text_pointer(map ? map->of : text, name, offset);
}

int plan_text_float(PlanText text, double *value)
{
    char buf[64], *end;
    text = trim(text);
    if (!text.len || text.len >= sizeof buf) return 0;
    memcpy(buf, text.p, text.len);
    buf[text.len] = 0;
    char *digits = buf;
    double sign = 1;
    if (*digits == '-' || *digits == '+') sign = *digits++ == '-' ? -1 : 1;
    while (isspace((unsigned char)*digits)) digits++;
    if (!strcmp(digits, "INFINITY")) {
        *value = sign * (double)INFINITY;
        return 1;
    }
    /* An integer is an expression. Hexadecimal digits and words are no float literals. */
    if (!(isdigit((unsigned char)*digits) || *digits == '.') || strpbrk(digits, "xX")) return 0;
    size_t n = strlen(digits);
    int suffixed = digits[n - 1] == 'f' || digits[n - 1] == 'F';
    if (!strpbrk(digits, ".eE") && !suffixed) return 0;
    if (suffixed) digits[--n] = 0;
    double v = strtod(digits, &end);
    if (*end || end == digits || !isfinite(v)) return 0;
    *value = sign * v;
    return 1;
}

/* Find the type that the text names, its spelling with blanks folded. -1: no such type. */
static int parse_type(PlanText t, PlanBuffer *b)
{
    char *out = b->type;
    size_t out_size = sizeof b->type;
    size_t n = 0;
    for (size_t i = 0; i < t.len; i++) {
        int blank = isspace((unsigned char)t.p[i]);
        if (blank && n && out[n - 1] == ' ') continue;
        if (n + 1 >= out_size) return -1;
        out[n++] = blank ? ' ' : t.p[i];
    }
    out[n] = 0;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(types[i].name, out)) continue;
        b->type_size = types[i].size;
        b->map_type = types[i].map;
        return 0;
    }
    return -1;
}

static int copy_name(Parser *ps, PlanText name, char out[PLAN_MAX_NAME], const char *what)
{
    static const char *const reserved[] = {"ceil_div", "min", "max",     "log2",
                                           "dim3",     "for", "INFINITY"};
    if (name.len >= PLAN_MAX_NAME)
        return fail(ps, "the %s name has %zu characters; at most %d are taken", what, name.len,
                    PLAN_MAX_NAME - 1);
    memcpy(out, name.p, name.len);
    out[name.len] = 0;
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (!strcmp(out, reserved[i]))
            return fail(ps, "'%s' is a word of the plan and cannot name a %s", out, what);
    return 0;
}

static int parse_buffer(Parser *ps, PlanText t)
{
    Plan *p = ps->plan;
    const char *bracket = memchr(t.p, '[', t.len);
    if (!bracket || t.p[t.len - 1] != ']')
        return fail(ps, "expected 'buffer TYPE name[elements]', found 'buffer %.*s'", shown(t),
                    t.p);
    if (p->n_buffers == PLAN_MAX_BUFFERS) return fail(ps, "more than %d buffers", PLAN_MAX_BUFFERS);
    PlanText head = trim((PlanText){t.p, (size_t)(bracket - t.p)});
    PlanBuffer b = {.line = ps->line};
    b.count = trim((PlanText){bracket + 1, (size_t)(t.p + t.len - 1 - (bracket + 1))});
    size_t start = head.len;
    while (start && word_has(head.p[start - 1])) start--;
    PlanText name = {head.p + start, head.len - start}, type = trim((PlanText){head.p, start});
    if (!name_length(name) || !type.len)
        return fail(ps, "expected a type and a name before '[', found '%.*s'", shown(head), head.p);
    if (parse_type(type, &b))
        return fail(
            ps,
            "unknown buffer type '%.*s'; known are float, double, int, unsigned, long long, half, "
            "__nv_bfloat16, char, float4 and their like",
            shown(type), type.p);
    if (!b.count.len)
        return fail(ps, "buffer %.*s[] needs a number of elements, such as rows*32", shown(name),
                    name.p);
    if (copy_name(ps, name, b.name, "buffer")) return -1;
    for (int i = 0; i < p->n_buffers; i++)
        if (!strcmp(p->buffers[i].name, b.name))
            return fail(ps, "buffer %s is already declared on line %d", b.name, p->buffers[i].line);
    p->buffers = memory_grow(p->buffers, (size_t)p->n_buffers + 1, sizeof b);
    p->buffers[p->n_buffers++] = b;
    return 0;
}

/* ---- maps ---- */

/* "[rows, cols]". Every list of a map has an entry for each dimension. */
static int parse_list(Parser *ps, PlanText t, const char *key, PlanMap *m, PlanText *out)
{
    int n = 0, empty = 0, is_list = t.len >= 2 && t.p[0] == '[' && t.p[t.len - 1] == ']';
    if (is_list) n = split((PlanText){t.p + 1, t.len - 2}, out, TENSOR_MAP_RANK);
    for (int i = 0; i < n; i++) empty |= !out[i].len;
    if (n < 1 || empty)
        return fail(ps, "expected %s=[...] with one to %d expressions, found '%s=%.*s'", key,
                    TENSOR_MAP_RANK, key, shown(t), t.p);
    if (m->rank && n != m->rank)
        return fail(ps, "%s=%.*s has %d entries, the list before it %d", key, shown(t), t.p, n,
                    m->rank);
    m->rank = n;
    return 0;
}

static int parse_swizzle(Parser *ps, PlanText t, PlanMap *m)
{
    static const struct {
        const char *text;
        int bytes;
    } known[] = {{"0", 0}, {"32", 32}, {"64", 64}, {"128", 128}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!plan_text_is(t, known[i].text)) continue;
        m->swizzle = known[i].bytes;
        return 0;
    }
    return fail(ps, "expected swizzle=0, 32, 64 or 128, found 'swizzle=%.*s'", shown(t), t.p);
}

static int parse_map_option(Parser *ps, PlanText t, PlanMap *m)
{
    size_t n = name_length(t);
    PlanText rest = skip(t, n), value = rest.len ? skip(rest, 1) : rest;
    if (!n || !rest.len || rest.p[0] != '=')
        return fail(ps, "expected box=, size=, stride= or swizzle= behind the tensor, found '%.*s'",
                    shown(t), t.p);
    if (word_is(t.p, n, "box")) return parse_list(ps, value, "box", m, m->box);
    if (word_is(t.p, n, "size")) return parse_list(ps, value, "size", m, m->size);
    if (word_is(t.p, n, "stride")) return parse_list(ps, value, "stride", m, m->stride);
    if (word_is(t.p, n, "swizzle")) return parse_swizzle(ps, value, m);
    return fail(ps, "expected box, size, stride or swizzle, found '%.*s'", (int)n, t.p);
}

/* tensor(x, box=[...], ...) */
static int parse_tensor(Parser *ps, PlanText t, PlanMap *m)
{
    PlanText parts[8], name, offset;
    size_t word = name_length(t);
    PlanText args = skip(t, word);
    if (!word_is(t.p, word, "tensor") || args.len < 2 || args.p[0] != '(' ||
        args.p[args.len - 1] != ')')
        return fail(ps, "expected 'map name = tensor(x, box=[...])', found '%.*s'", shown(t), t.p);
    int n = split((PlanText){args.p + 1, args.len - 2}, parts, 8);
    if (n < 1 || !plan_text_pointer(parts[0], &name, &offset))
        return fail(ps,
                    "expected a tensor or a buffer, as in tensor(x, box=[64, 64]), found '%.*s'",
                    shown(t), t.p);
    m->of = parts[0];
    for (int i = 1; i < n; i++)
        if (parse_map_option(ps, parts[i], m)) return -1;
    if (!m->box[0].len)
        return fail(ps, "the map needs a box, such as box=[64, 64]: what one copy moves");
    if (m->stride[0].len && !m->size[0].len)
        return fail(ps, "a map with strides needs the sizes, as in size=[rows, cols]");
    return 0;
}

static int parse_map(Parser *ps, PlanText t)
{
    Plan *p = ps->plan;
    size_t n = name_length(t);
    PlanMap m = {.line = ps->line};
    PlanText name = {t.p, n}, rest = skip(t, n);
    if (t.p[t.len - 1] == ';') rest = trim((PlanText){rest.p, rest.len - 1});
    if (!n || !rest.len || rest.p[0] != '=')
        return fail(ps, "expected 'map name = tensor(x, box=[...])', found 'map %.*s'", shown(t),
                    t.p);
    if (p->n_maps == PLAN_MAX_MAPS) return fail(ps, "more than %d maps", PLAN_MAX_MAPS);
    if (copy_name(ps, name, m.name, "map") || parse_tensor(ps, skip(rest, 1), &m)) return -1;
    if (plan_map(p, name))
        return fail(ps, "map %s is already declared on line %d", m.name, plan_map(p, name)->line);
    p->maps = memory_grow(p->maps, (size_t)p->n_maps + 1, sizeof m);
    p->maps[p->n_maps++] = m;
    return 0;
}

/* ---- launches ---- */

/* Parse an expression or dim3(x[, y[, z]]) into 1 to 3 texts. */
static int parse_dim(Parser *ps, PlanText t, const char *what, PlanText dims[3], int *n)
{
    size_t len = name_length(t);
    dims[0] = t;
    *n = 1;
    if (!t.len)
        return fail(ps, "the %s is empty; expected an integer expression or dim3(x, y, z)", what);
    if (!word_is(t.p, len, "dim3")) return 0;
    PlanText inner = skip(t, len);
    if (inner.len < 2 || inner.p[0] != '(' || inner.p[inner.len - 1] != ')')
        return fail(ps, "expected dim3(x, y, z) as the %s, found '%.*s'", what, shown(t), t.p);
    *n = split((PlanText){inner.p + 1, inner.len - 2}, dims, 3);
    if (*n < 1) return fail(ps, "dim3 takes one to three expressions, found '%.*s'", shown(t), t.p);
    for (int i = 0; i < *n; i++)
        if (!dims[i].len) return fail(ps, "an empty expression in '%.*s'", shown(t), t.p);
    return 0;
}

/* The first `token` outside of round brackets, or NULL. */
static const char *find_outside(PlanText t, const char *token)
{
    size_t n = strlen(token);
    int depth = 0;
    for (size_t i = 0; i + n <= t.len; i++) {
        if (t.p[i] == '(') depth++;
        if (t.p[i] == ')' && depth) depth--;
        if (!depth && !memcmp(t.p + i, token, n)) return t.p + i;
    }
    return NULL;
}

static int parse_kernel_name(Parser *ps, PlanText t, PlanStep *s)
{
    Plan *p = ps->plan;
    char name[PLAN_MAX_KERNEL_NAME];
    if (!t.len || (!word_begins_name(t.p[0]) && t.p[0] != ':'))
        return fail(ps, "expected a kernel's name before <<<, found '%.*s'", shown(t), t.p);
    if (t.len >= sizeof name)
        return fail(ps, "the kernel's name has %zu characters; at most %zu are taken", t.len,
                    sizeof name - 1);
    for (size_t i = 0; i < t.len; i++)
        if (!word_has(t.p[i]) && !strchr("<>:,()*&+-/% \t", t.p[i]))
            return fail(
                ps, "a kernel is named as in C++, such as foo<float, 256>; found '%c' in '%.*s'",
                isprint((unsigned char)t.p[i]) ? t.p[i] : '?', shown(t), t.p);
    memcpy(name, t.p, t.len);
    name[t.len] = 0;
    for (s->kernel = 0; s->kernel < p->n_kernels; s->kernel++)
        if (!strcmp(p->kernels[s->kernel], name)) return 0;
    p->kernels = memory_grow(p->kernels, (size_t)p->n_kernels + 1, sizeof *p->kernels);
    strcpy(p->kernels[p->n_kernels], name);
    p->kernel_line = memory_grow(p->kernel_line, (size_t)p->n_kernels + 1, sizeof *p->kernel_line);
    p->kernel_line[p->n_kernels++] = ps->line;
    return 0;
}

static int parse_config(Parser *ps, PlanText t, PlanStep *s)
{
    PlanText parts[3];
    int n = split(t, parts, 3);
    if (n < 2)
        return fail(
            ps, "expected <<<grid, block>>> or <<<grid, block, shared bytes>>>, found '<<<%.*s>>>'",
            shown(t), t.p);
    if (parse_dim(ps, parts[0], "grid", s->grid, &s->n_grid)) return -1;
    if (parse_dim(ps, parts[1], "block", s->block, &s->n_block)) return -1;
    if (n == 3) s->shared = parts[2];
    if (n == 3 && !s->shared.len)
        return fail(ps, "the third launch parameter, the shared bytes, is empty");
    return 0;
}

/* args: the list with its round brackets. */
static int parse_arguments(Parser *ps, PlanText args, const char *of, PlanStep *s)
{
    s->n_args = split((PlanText){args.p + 1, args.len - 2}, s->args, PLAN_MAX_ARGS);
    if (s->n_args < 0)
        return fail(ps, "the arguments '%.*s' have unbalanced brackets or are more than %d",
                    shown(args), args.p, PLAN_MAX_ARGS);
    for (int i = 0; i < s->n_args; i++)
        if (!s->args[i].len) return fail(ps, "argument %d of %s is empty", i + 1, of);
    return 0;
}

static int add_step(Parser *ps, const PlanStep *s)
{
    Plan *p = ps->plan;
    if (p->n_steps == PLAN_MAX_STEPS)
        return fail(ps, "more than %d launch and op lines", PLAN_MAX_STEPS);
    p->steps = memory_grow(p->steps, (size_t)p->n_steps + 1, sizeof *p->steps);
    p->steps[p->n_steps] = *s;
    p->steps[p->n_steps++].branch = ps->branch;
    ps->pending_for = ps->empty = 0;
    return 0;
}

/* Cuts the word off where a kernel's name follows. Returns 1 when it is there. */
static int cut_cooperative(PlanText *name)
{
    size_t word = name_length(*name);
    PlanText rest = skip(*name, word);
    if (!word_is(name->p, word, "cooperative") || !name_length(rest)) return 0;
    *name = rest;
    return 1;
}

static int parse_launch(Parser *ps, PlanText t)
{
    Plan *p = ps->plan;
    PlanStep s = ps->pending_for ? ps->loop : (PlanStep){0};
    s.line = ps->line;
    if (t.len && t.p[t.len - 1] == ';') t = trim((PlanText){t.p, t.len - 1});
    const char *open = find_outside(t, "<<<");
    if (!open)
        return fail(
            ps, "expected 'launch kernel<<<grid, block>>>(arguments)', found no '<<<' in '%.*s'",
            shown(t), t.p);
    PlanText rest = {open + 3, t.len - (size_t)(open + 3 - t.p)};
    const char *close = find_outside(rest, ">>>");
    if (!close) return fail(ps, "the launch has '<<<' and no '>>>' after it");
    PlanText config = trim((PlanText){rest.p, (size_t)(close - rest.p)});
    PlanText args = skip(rest, (size_t)(close + 3 - rest.p));
    PlanText name = trim((PlanText){t.p, (size_t)(open - t.p)});
    s.cooperative = cut_cooperative(&name);
    if (parse_kernel_name(ps, name, &s) || parse_config(ps, config, &s)) return -1;
    if (args.len < 2 || args.p[0] != '(' || args.p[args.len - 1] != ')')
        return fail(ps, "expected (arguments) after >>>, found '%.*s'", shown(args), args.p);
    return parse_arguments(ps, args, p->kernels[s.kernel], &s) ? -1 : add_step(ps, &s);
}

static int parse_library(Parser *ps, PlanText t)
{
    PlanStep s = ps->pending_for ? ps->loop : (PlanStep){0};
    char name[PLAN_MAX_NAME];
    s.line = ps->line;
    s.kernel = -1;
    if (!ps->trusted)
        return fail(ps, "library calls are the harness's own, for its baselines; a candidate "
                        "launches the kernels of its source");
    if (t.p[t.len - 1] == ';') t = trim((PlanText){t.p, t.len - 1});
    const char *open = memchr(t.p, '(', t.len);
    if (!open || t.p[t.len - 1] != ')')
        return fail(ps, "expected 'library name(arguments)', found 'library %.*s'", shown(t), t.p);
    PlanText head = trim((PlanText){t.p, (size_t)(open - t.p)}),
             args = {open, t.len - (size_t)(open - t.p)};
    snprintf(name, sizeof name, "%.*s", (int)head.len, head.p);
    const LibrarySignature *call = head.len < sizeof name ? library_signature(name) : NULL;
    if (!call) return fail(ps, "no library call is named '%.*s'", shown(head), head.p);
    s.library = call->name;
    s.kinds = call->kinds;
    if (parse_arguments(ps, args, s.library, &s)) return -1;
    if (s.n_args != (int)strlen(s.kinds))
        return fail(ps, "%s takes %zu arguments, the plan passes %d", s.library, strlen(s.kinds),
                    s.n_args);
    return add_step(ps, &s);
}

static int read_op(Parser *ps, PlanText t, PlanStep *s)
{
    Error why;
    if (op_line_parse(t.p, t.len, s->op, &why)) return fail(ps, "op: %s", why.text);
    for (int i = 0; i < s->op->n_results; i++) {
        char name[PLAN_MAX_NAME];
        if (copy_name(ps, (PlanText){s->op->result[i].p, s->op->result[i].len}, name, "result"))
            return -1;
    }
    return add_step(ps, s);
}

static int parse_op(Parser *ps, PlanText t)
{
    PlanStep s = {.kernel = -1, .line = ps->line, .op = memory_alloc(sizeof *s.op)};
    if (t.len && t.p[t.len - 1] == ';') t = trim((PlanText){t.p, t.len - 1});
    if (read_op(ps, t, &s)) {
        free(s.op);
        return -1;
    }
    ps->plan->n_ops++;
    return 0;
}

static int parse_for(Parser *ps, PlanText t)
{
    PlanStep s = {.loops = 1, .loop_line = ps->line};
    size_t n = name_length(t);
    PlanText name = {t.p, n}, rest = skip(t, n);
    size_t in = name_length(rest);
    if (!n || !word_is(rest.p, in, "in"))
        return fail(ps, "expected 'for var in from..to', found 'for %.*s'", shown(t), t.p);
    rest = skip(rest, in);
    const char *dots = find_outside(rest, "..");
    if (!dots)
        return fail(ps, "expected a range from..to after 'in', found '%.*s'", shown(rest), rest.p);
    s.from = trim((PlanText){rest.p, (size_t)(dots - rest.p)});
    s.to = skip(rest, (size_t)(dots + 2 - rest.p));
    if (!s.from.len || !s.to.len)
        return fail(ps, "the range '%.*s' needs both ends, as in 0..steps", shown(rest), rest.p);
    if (copy_name(ps, name, s.var, "for variable")) return -1;
    ps->loop = s;
    ps->pending_for = 1;
    return 0;
}

/* Ends the branch before a when, an otherwise or an end, or at the plan's end. */
static int end_branch(Parser *ps)
{
    if (ps->branch < 0 || !ps->empty) return 0;
    ps->line = ps->plan->branches[ps->branch].line;
    return fail(ps, "no launch or op line follows this %s",
                ps->plan->branches[ps->branch].condition.len ? "when" : "otherwise");
}

/* "!(rows >= 1024) && (rows >= 64)". NULL: it has more than PLAN_MAX_LINE bytes. */
static char *taken_text(const Plan *p, int first, PlanText condition)
{
    Buffer b;
    buffer_init(&b, PLAN_MAX_LINE);
    for (int i = first; i < p->n_branches; i++)
        buffer_printf(&b, "%s!(%.*s)", i > first ? " && " : "", (int)p->branches[i].condition.len,
                      p->branches[i].condition.p);
    if (condition.len)
        buffer_printf(&b, "%s(%.*s)", b.len ? " && " : "", (int)condition.len, condition.p);
    if (!b.full) return buffer_detach(&b);
    buffer_release(&b);
    return NULL;
}

static int begin_branch(Parser *ps, PlanText condition)
{
    Plan *p = ps->plan;
    int first = ps->branch < 0 ? p->n_branches : p->branches[ps->branch].first, line = ps->line;
    if (end_branch(ps)) return -1;
    if (ps->branch >= 0 && !p->branches[ps->branch].condition.len)
        return fail(ps,
                    "a branch follows the otherwise on line %d, which takes all that is left; "
                    "end the branches with //@ end before others begin",
                    p->branches[ps->branch].line);
    if (p->n_branches == PLAN_MAX_BRANCHES)
        return fail(ps, "more than %d branches", PLAN_MAX_BRANCHES);
    char *taken = taken_text(p, first, condition);
    if (!taken)
        return fail(ps, "the conditions of these branches have more than %d bytes", PLAN_MAX_LINE);
    p->branches = memory_grow(p->branches, (size_t)p->n_branches + 1, sizeof *p->branches);
    p->branches[ps->branch = p->n_branches++] = (PlanBranch){condition, taken, line, first};
    ps->empty = 1;
    return 0;
}

static int parse_when(Parser *ps, PlanText t)
{
    PlanText whole;
    if (split(t, &whole, 1) != 1)
        return fail(ps, "expected one condition behind when, as in when rows >= 1024, found '%.*s'",
                    shown(t), t.p);
    return begin_branch(ps, t);
}

static int parse_otherwise(Parser *ps, PlanText t)
{
    if (t.len) return fail(ps, "an otherwise has no condition, found '%.*s'", shown(t), t.p);
    if (ps->branch < 0) return fail(ps, "no when stands before this otherwise");
    return begin_branch(ps, t);
}

static int parse_end(Parser *ps, PlanText t)
{
    if (t.len) return fail(ps, "expected nothing behind end, found '%.*s'", shown(t), t.p);
    if (ps->branch < 0) return fail(ps, "no when stands before this end");
    if (end_branch(ps)) return -1;
    ps->branch = -1;
    return 0;
}

static int parse_directive(Parser *ps, PlanText t)
{
    t = trim(t);
    size_t n = name_length(t);
    PlanText rest = skip(t, n);
    if (word_is(t.p, n, "schedule")) return 0; /* the generator's */
    if (word_is(t.p, n, "launch")) return parse_launch(ps, rest);
    if (word_is(t.p, n, "library") && rest.len) return parse_library(ps, rest);
    if (ps->pending_for)
        return fail(ps, "the for on line %d repeats the launch on the next //@ line, found '%.*s'",
                    ps->loop.loop_line, shown(t), t.p);
    if (word_is(t.p, n, "op") && rest.len) return parse_op(ps, rest);
    if (word_is(t.p, n, "buffer") && rest.len) return parse_buffer(ps, rest);
    if (word_is(t.p, n, "map") && rest.len) return parse_map(ps, rest);
    if (word_is(t.p, n, "for")) return parse_for(ps, rest);
    if (word_is(t.p, n, "when")) return parse_when(ps, rest);
    if (word_is(t.p, n, "otherwise")) return parse_otherwise(ps, rest);
    if (word_is(t.p, n, "end")) return parse_end(ps, rest);
    return fail(ps, "expected buffer, map, launch, op, for or when after //@, found '%.*s'",
                shown(t), t.p);
}

static int parse_lines(Parser *ps, const char *source, size_t len)
{
    const char *p = source, *end = source + len;
    for (ps->line = 1; p < end; ps->line++) {
        const char *eol = memchr(p, '\n', (size_t)(end - p));
        PlanText t = trim((PlanText){p, (size_t)((eol ? eol : end) - p)});
        p = eol ? eol + 1 : end;
        if (t.len < 3 || memcmp(t.p, "//@", 3)) continue;
        if (t.len > PLAN_MAX_LINE)
            return fail(ps, "a plan line of %zu bytes; at most %d are read", t.len, PLAN_MAX_LINE);
        if (parse_directive(ps, (PlanText){t.p + 3, t.len - 3})) return -1;
    }
    ps->line = ps->pending_for ? ps->loop.loop_line : 0;
    if (ps->pending_for) return fail(ps, "no launch follows this for");
    if (end_branch(ps)) return -1;
    if (ps->plan->n_steps) return 0;
    return error_set(ps->err, ERROR_INVALID,
                     "the source has no launch line; expected one such as "
                     "//@ launch kernel<<<ceil_div(n, 256), 256>>>(x, y, n)");
}

int plan_parse(const char *source, size_t len, int trusted, Plan *out, Fault *f)
{
    Error why;
    memset(out, 0, sizeof *out);
    Parser ps = {.plan = out, .trusted = trusted, .err = &why, .branch = -1};
    return parse_lines(&ps, source, len) ? plan_fault(f, ps.line, &why) : 0;
}

int plan_mistake(Error *err, int line, const char *fmt, ...)
{
    char text[900];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return error_set(err, ERROR_INVALID, "line %d: %s", line, text);
}

int plan_fault(Fault *f, int line, const Error *why)
{
    return fault_set(f, OUTCOME_PLAN_ERROR, line, "%s", why->text);
}

void plan_release(Plan *p)
{
    for (int i = 0; i < p->n_steps; i++) free(p->steps[i].op);
    for (int i = 0; i < p->n_branches; i++) free(p->branches[i].taken);
    free(p->buffers);
    free(p->maps);
    free(p->steps);
    free(p->branches);
    free(p->kernels);
    free(p->kernel_line);
    memset(p, 0, sizeof *p);
}

const char **plan_kernel_names(const Plan *p)
{
    const char **names = memory_array((size_t)p->n_kernels + 1, sizeof *names);
    for (int i = 0; i < p->n_kernels; i++) names[i] = p->kernels[i];
    return names;
}
