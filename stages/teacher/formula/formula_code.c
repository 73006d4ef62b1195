/* Prints expressions. The texts of operators are templates over a, b, c and p0, p1, p2. */
#include "stages/teacher/formula/formula_code.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/words.h"
#include "ops/op_pointwise.h"

/* ---- the texts of operators ---- */

static const struct {
    const char *op, *text;
} point_texts[] = {
    {"add", "a + p0 * b"},
    {"sub", "a - p0 * b"},
    {"rsub", "p0 - p1 * a"},
    {"mul", "a * b"},
    {"multiply", "a * b"},
    {"div", "a / b"},
    {"relu", "fmaxf(a, 0.0f)"},
    {"sigmoid", "1.0f / (1.0f + $exp(-a))"},
    {"silu", "a / (1.0f + $exp(-a))"},
    {"tanh", "tanhf(a)"},
    {"exp", "$exp(a)"},
    {"log", "logf(a)"},
    {"log1p", "log1pf(a)"},
    {"sqrt", "sqrtf(a)"},
    {"rsqrt", "rsqrtf(a)"},
    {"abs", "fabsf(a)"},
    {"neg", "-a"},
    {"square", "a * a"},
    {"reciprocal", "1.0f / a"},
    {"sin", "sinf(a)"},
    {"cos", "cosf(a)"},
    {"erf", "erff(a)"},
    {"relu6", "fminf(fmaxf(a, 0.0f), 6.0f)"},
    {"hardtanh", "fminf(fmaxf(a, p0), p1)"},
    {"clamp_min", "fmaxf(a, p0)"},
    {"clamp_max", "fminf(a, p0)"},
    {"leaky_relu", "a > 0.0f ? a : p0 * a"},
    {"elu", "a > 0.0f ? a : p0 * ($exp(a) - 1.0f)"},
    {"softplus", "a > 20.0f ? a : log1pf($exp(a))"},
    {"hardswish", "a * fminf(fmaxf(a + 3.0f, 0.0f), 6.0f) / 6.0f"},
    {"hardsigmoid", "fminf(fmaxf(a + 3.0f, 0.0f), 6.0f) / 6.0f"},
    {"maximum", "fmaxf(a, b)"},
    {"minimum", "fminf(a, b)"},
};

const char *formula_point_text(const Op *op, const double *p)
{
    char name[32];
    snprintf(name, sizeof name, "%s", op->name + 5);
    name[strcspn(name, ".")] = 0;
    int scalar = strstr(op->name, ".Scalar") != NULL;
    if (!strcmp(name, "gelu"))
        return p[0] != 0 ? "0.5f * a * (1.0f + tanhf(0.79788456f * (a + 0.044715f * a * a * a)))"
                         : "0.5f * a * (1.0f + erff(a * 0.70710678f))";
    if (!strcmp(name, "clamp"))
        return p[0] <= -3e38  ? "fminf(a, p1)"
               : p[1] >= 3e38 ? "fmaxf(a, p0)"
                              : "fminf(fmaxf(a, p0), p1)";
    if (!strcmp(name, "pow") && p[0] == 2) return "a * a";
    if (!strcmp(name, "pow") && p[0] == 3) return "a * a * a";
    if (!strcmp(name, "add") && !scalar && p[0] == 1) return "a + b";
    if (!strcmp(name, "sub") && !scalar && p[0] == 1) return "a - b";
    if (!strcmp(name, "rsub") && scalar && p[1] == 1) return "p0 - a";
    if (!strcmp(name, "add") && scalar && p[1] == 1) return "a + p0";
    if (!strcmp(name, "sub") && scalar && p[1] == 1) return "a - p0";
    for (size_t i = 0; i < sizeof point_texts / sizeof *point_texts && !scalar; i++)
        if (!strcmp(name, point_texts[i].op)) return point_texts[i].text;
    return ((const Pointwise *)op->detail)->cuda;
}

/* ---- scopes ---- */

void code_enter(CodeScope *s, const Formula *f, const unsigned char *member, int result,
                Buffer *out)
{
    *s = (CodeScope){.f = f,
                     .out = out,
                     .member = member,
                     .result = result,
                     .indent = "  ",
                     .full = "i",
                     .row = "row",
                     .col = "i",
                     .rows = "rows"};
}

static void forget(CodeScope *s, int all)
{
    for (int v = 0; v < s->f->n_values; v++) {
        s->uses[v] = 0;
        if (!s->text[v] || (s->outer[v] && !all)) continue;
        free(s->text[v]);
        s->text[v] = NULL;
    }
    s->lanes = 0;
}

void code_leave(CodeScope *s)
{
    forget(s, 0);
}

void code_close(CodeScope *s)
{
    forget(s, 1);
}

void code_set(CodeScope *s, int value, int outer, const char *text)
{
    char *own = memory_strdup(text);
    free(s->text[value]);
    s->text[value] = own;
    s->outer[value] = (unsigned char)outer;
}

void code_count(CodeScope *s, int value)
{
    const FormulaValue *v = &s->f->value[value];
    if (s->uses[value]++ || s->text[value] || code_is_load(s, value) || v->kind != VALUE_POINT)
        return;
    for (int i = 0; i < 3; i++)
        if (v->arg[i] >= 0) code_count(s, v->arg[i]);
}

int code_is_load(const CodeScope *s, int value)
{
    return s->f->value[value].kind == VALUE_LOAD || !s->member[value];
}

const char *code_type(const FormulaValue *v)
{
    return v->dtype == DTYPE_F16 ? "half" : dtype_ctype(v->dtype);
}

const char *code_memory(const Formula *f, int value)
{
    const FormulaValue *v = &f->value[value];
    if (v->kind == VALUE_LOAD && v->input >= 0) return f->task->inputs[v->input].name;
    if (v->kind == VALUE_LOAD) value = v->source;
    return value == f->result ? f->task->outputs[0].name : f->value[value].name;
}

int code_is_term(const char *text)
{
    int depth = 0;
    if (*text == '-') return 0;
    for (; *text; text++) {
        depth += (*text == '(' || *text == '[') - (*text == ')' || *text == ']');
        if (*text == ' ' && !depth) return 0;
    }
    return 1;
}

/* ---- expressions ---- */

/* The operand or number that is named at p, which is `start` or follows something else: 0 to 2, 3 to 5 for
 * p0 to p2, else -1. */
static int named(const char *start, const char *p)
{
    if (p > start && (word_has(p[-1]) || p[-1] == '.')) return -1;
    if (*p >= 'a' && *p <= 'c' && !word_has(p[1])) return *p - 'a';
    if (*p == 'p' && p[1] >= '0' && p[1] <= '2' && !word_has(p[2])) return 3 + p[1] - '0';
    return -1;
}

static void number_text(double x, char out[40])
{
    if (!isfinite(x)) {
        strcpy(out, isnan(x) ? "__int_as_float(0x7fc00000)"
                    : x < 0  ? "__int_as_float(0xff800000)"
                             : "__int_as_float(0x7f800000)");
        return;
    }
    snprintf(out, 40, "%.9g", x);
    if (!strpbrk(out, ".e")) strcat(out, ".0");
    strcat(out, "f");
}

static const char *declare(CodeScope *s, int value, const char *name, const char *text)
{
    buffer_printf(s->out, "%sfloat %s = %s;\n", s->indent, name, text);
    code_set(s, value, 0, name); /* text may be what this replaces */
    return s->text[value];
}

/* The name of a variable for a value; a load's is beside its pointer's. */
static void variable(const CodeScope *s, int value, char out[72])
{
    const FormulaValue *v = &s->f->value[value];
    snprintf(out, 72, code_is_load(s, value) || value == s->result ? "%s_i" : "%s", v->name);
}

/* The channel of an element, where rows are planes of one, or hold several of them. */
static void channel_index(const CodeScope *s, const FormulaSpace *space, char out[320])
{
    const char *at = s->first ? s->col : s->full;
    int term = code_is_term(at), whole = !strcmp(space->plane, "1");
    if (!space->n_plane)
        snprintf(out, 320, "%s %% channels", s->row);
    else if (s->first && whole)
        snprintf(out, 320, "first + %s", at);
    else if (s->first)
        snprintf(out, 320, term ? "first + %s / plane" : "first + (%s) / plane", at);
    else
        snprintf(out, 320, "%s%s%s%s %% channels", term ? "" : "(", at, term ? "" : ")",
                 whole ? "" : " / plane");
}

/* The index of a load, from the indices of the element. */
static void load_index(const CodeScope *s, const FormulaValue *v, char out[320])
{
    const char *row = s->row, *col = s->col;
    int simple = code_is_term(col);
    switch (v->domain) {
    case PER_ELEMENT: snprintf(out, 320, "%s", s->full); break;
    case PER_ROW: snprintf(out, 320, "%s", row); break;
    case PER_COL: snprintf(out, 320, "%s", col); break;
    case PER_CHANNEL: channel_index(s, &s->f->space[v->space], out); break;
    case PER_TRANSPOSED:
        snprintf(out, 320, simple ? "%s * %s + %s" : "(%s) * %s + %s", col, s->rows, row);
        break;
    default: snprintf(out, 320, "0");
    }
}

static const char *load_text(CodeScope *s, int value)
{
    const FormulaValue *v = &s->f->value[value];
    char text[480], index[320], name[72];
    const char *cast = v->dtype == DTYPE_F32 ? "" : "(float)";
    if (s->bare) {
        snprintf(text, sizeof text, v->domain == PER_TRANSPOSED ? "%s_t" : "%s", v->name);
    } else if (s->lane && v->domain == PER_ELEMENT) {
        snprintf(text, sizeof text, "%s%s4[%s]", s->lane_floats ? "" : cast, v->name, s->lane);
        s->lanes |= 1ull << value;
    } else {
        load_index(s, v, index);
        snprintf(text, sizeof text, "%s%s[%s]", cast, v->name, index);
    }
    if (s->uses[value] > 1 && !s->bare && !(s->lane && v->domain == PER_ELEMENT)) {
        variable(s, value, name);
        return declare(s, value, name, text);
    }
    code_set(s, value, 0, text);
    return s->text[value];
}

const char *code_name(CodeScope *s, int value)
{
    const char *text = code_value(s, value);
    char name[72];
    for (const char *p = text; *p; p++)
        if (!word_has(*p) && *p != '.') {
            variable(s, value, name);
            return declare(s, value, name, text);
        }
    return text;
}

static int mentions(const char *text, int what)
{
    int n = 0;
    for (const char *p = text; *p; p++) n += named(text, p) == what;
    return n;
}

/* Puts the operands into a text. */
static void substitute(Buffer *b, const char *text, const char *const operand[6])
{
    for (const char *p = text; *p; p++) {
        int at = named(text, p);
        if (at < 0) {
            buffer_append(b, p, 1);
            continue;
        }
        size_t len = at < 3 ? 1 : 2;
        int inside = p > text && (p[-1] == '(' || (p[-1] == ' ' && p - text > 1 && p[-2] == ',')) &&
                     (p[len] == ')' || p[len] == ',');
        int alone = p == text && !p[len];
        int term = inside || alone || code_is_term(operand[at]);
        buffer_printf(b, term ? "%s" : "(%s)", operand[at]);
        p += len - 1;
    }
}

const char *code_operand(CodeScope *s, int value)
{
    int computed = s->f->value[value].kind == VALUE_POINT && !code_is_load(s, value);
    return computed ? code_name(s, value) : code_value(s, value);
}

/* One operator: its operands that are computed here are variables, so that no expression nests. */
static const char *point_text(CodeScope *s, int value)
{
    const FormulaValue *v = &s->f->value[value];
    char numbers[6][40];
    const char *operand[6];
    for (int i = 0; i < 3; i++)
        if (v->arg[i] >= 0 && mentions(v->text, i)) {
            if (mentions(v->text, i) > 1)
                code_name(s, v->arg[i]);
            else
                code_operand(s, v->arg[i]);
        }
    for (int i = 0; i < 3; i++) {
        number_text(v->number[i], numbers[i]);
        number_text(v->p[i], numbers[3 + i]);
        operand[3 + i] = numbers[3 + i];
        operand[i] = v->arg[i] >= 0 && mentions(v->text, i) ? code_value(s, v->arg[i]) : numbers[i];
    }
    Buffer b;
    buffer_init(&b, 1 << 14);
    substitute(&b, v->text, operand);
    char *text = buffer_detach(&b), name[72];
    if (s->uses[value] > 1 || strlen(text) > 64) {
        variable(s, value, name);
        declare(s, value, name, text);
    } else {
        code_set(s, value, 0, text);
    }
    free(text);
    return s->text[value];
}

const char *code_value(CodeScope *s, int value)
{
    if (s->text[value]) return s->text[value];
    return code_is_load(s, value) ? load_text(s, value) : point_text(s, value);
}
