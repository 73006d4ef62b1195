/* The rules for device code and #define lines. Each looks at one token and the few around it; a change that
 * does not compile is dropped later. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/mutate/mutations.h"

static const char types[] =
    " int float double half unsigned const char short long bool void size_t int64_t "
    "uint64_t int32_t uint32_t uint8_t int8_t auto float2 float4 ";
static const char integers[] = " int unsigned long size_t int64_t uint64_t int32_t uint32_t short ";

#define TOKENS(m) ((m)->tokens)
#define TEXT(m, i) (TOKENS(m)->at[i].text)

/* ---- what is around a token ---- */

static int is_template_sign(const Tokens *t, int i)
{
    if (token_is(t, i, "<"))
        return token_among(t, i - 1, " static_cast reinterpret_cast const_cast template ") ||
               token_among(t, i + 1, types) || token_is(t, i + 1, "typename");
    return token_among(t, i - 1, types) || (token_is(t, i - 1, "*") && token_is(t, i + 1, "("));
}

/* The `for` whose header has token i; -1: none. */
static int for_around(const Tokens *t, int i)
{
    for (int at = t->at[i].inside; at >= 0; at = t->at[at].inside)
        if (token_is(t, at - 1, "for")) return at - 1;
    return -1;
}

/* Token i stands in a subscript, or in a declaration of integers. */
static int is_index(const Tokens *t, int i)
{
    for (int at = t->at[i].inside; at >= 0; at = t->at[at].inside)
        if (token_is(t, at, "[")) return 1;
    int first = token_statement(t, i);
    return token_among(t, first, integers) ||
           (token_is(t, first, "const") && token_among(t, first + 1, integers));
}

static int is_binary(const Tokens *t, int i)
{
    return token_is_word(t, i - 1) ? !token_is(t, i - 1, "return") : token_among(t, i - 1, " ) ] ");
}

/* One behind the term or factor that begins at i. */
static int term_end(const Tokens *t, int i)
{
    static const char signs[] = " + - , ; && || ? : < > <= >= == != = += -= *= & | ^ << >> ";
    return token_operand_end(t, i, signs);
}

static int factor_end(const Tokens *t, int i)
{
    static const char signs[] = " * / % + - , ; && || ? : < > <= >= == != = += -= *= & | ^ << >> ";
    return token_operand_end(t, i, signs);
}

/* ---- bounds, loops, guards ---- */

static void bounds(Mutations *m, int i)
{
    const Tokens *t = TOKENS(m);
    static const char *const other[][2] = {{"<", "<="}, {"<=", "<"}, {">", ">="}, {">=", ">"}};
    for (int k = 0; k < 4; k++) {
        if (!token_is(t, i, other[k][0]) || is_template_sign(t, i)) continue;
        if (memchr(TEXT(m, i + 1), '.', t->at[i + 1].len)) return;
        mutation_add(m, "bound", i, i + 1, other[k][1]);
        mutation_begin(m, "bound", i);
        mutation_edit(m, i + 1, i + 1, "-1 + ");
        mutation_begin(m, "bound", i);
        mutation_edit(m, i + 1, i + 1, "1 + ");
    }
}

static int find_semicolon(const Tokens *t, int from, int end)
{
    while (from < end && !token_is(t, from, ";"))
        from = t->at[from].mate > from ? t->at[from].mate + 1 : from + 1;
    return from;
}

static void stop_after(Mutations *m, int i, int from, int to, int trips)
{
    mutation_begin(m, "loop", i);
    mutation_edit(m, i, i + 1, "if (int trips_ = 0; true) for");
    mutation_edit(m, from, to, "(%.*s) && trips_++ < %d", mutation_length(m, from, to),
                  TEXT(m, from), trips);
}

/* A loop that ends after its first trips, begins with its second, or leaves out each other one. */
static void loops(Mutations *m, int i)
{
    const Tokens *t = TOKENS(m);
    if (!token_is(t, i, "for") || !token_is(t, i + 1, "(") || t->at[i + 1].mate < 0) return;
    int end = t->at[i + 1].mate, first = find_semicolon(t, i + 2, end),
        second = find_semicolon(t, first + 1, end);
    if (second >= end || second == first + 1) return;
    double bound =
        t->at[second - 1].kind == TOKEN_NUMBER ? strtod(TEXT(m, second - 1), NULL) : INFINITY;
    for (int trips = 1; trips <= 3; trips++)
        if (trips < bound) stop_after(m, i, first + 1, second, trips);
    for (int k = i + 2; k < first; k++)
        if (token_is(t, k, "=")) {
            mutation_begin(m, "loop", i);
            mutation_edit(m, k + 1, k + 1, "1 + ");
            break;
        }
    for (int k = second + 1; k < end; k++) {
        if (token_is(t, k, "+=")) {
            mutation_begin(m, "loop", i);
            mutation_edit(m, k + 1, k + 1, "2 * ");
        } else if (token_is(t, k, "++")) {
            int name = k == second + 1 ? k + 1 : k - 1;
            mutation_begin(m, "loop", i);
            mutation_edit(m, second + 1, end, "%.*s += 2", (int)t->at[name].len, TEXT(m, name));
            break;
        }
    }
}

/* `if (condition)`: as if it held always, or never. */
static void guards(Mutations *m, int i)
{
    const Tokens *t = TOKENS(m);
    if (!token_is(t, i, "if") || !token_is(t, i + 1, "(") || t->at[i + 1].mate < 0) return;
    int end = t->at[i + 1].mate;
    for (int value = 0; value < 2; value++) {
        if (value && token_is(t, end + 1, "return")) continue;
        mutation_begin(m, "guard", i);
        mutation_edit(m, i + 2, end, "%s(%.*s)", value ? "true || " : "false && ",
                      mutation_length(m, i + 2, end), TEXT(m, i + 2));
    }
}

static void conditions(Mutations *m, int i)
{
    const Tokens *t = TOKENS(m);
    if (!token_among(t, i, " && || ")) return;
    int end = token_operand_end(t, i + 1, " && || , ; ? : ");
    mutation_add(m, "guard", i, end, "");
    int from = i;
    while (from > 0 && !token_among(t, from - 1, " && || , ; ? : ( [ { = return "))
        from = token_among(t, from - 1, " ) ] } ") ? t->at[from - 1].mate : from - 1;
    if (from >= 0 && from < i) mutation_add(m, "guard", from, i + 1, "");
}

/* `c ? a : b`: as if the condition held always, or never. */
static void choices(Mutations *m, int i)
{
    const Tokens *t = TOKENS(m);
    if (!token_is(t, i, "?")) return;
    int from = i;
    while (from > 0 && !token_among(t, from - 1, " , ; ? : ( [ { = += return "))
        from = token_among(t, from - 1, " ) ] } ") ? t->at[from - 1].mate : from - 1;
    if (from < 0 || from == i) return;
    for (int value = 0; value < 2; value++) {
        mutation_begin(m, "choice", i);
        mutation_edit(m, from, i, "(%s(%.*s))", value ? "true || " : "false && ",
                      mutation_length(m, from, i), TEXT(m, from));
    }
}

/* ---- indices ---- */

static void axes(Mutations *m, int i)
{
    static const char *const other[][2] = {{"x", "y"}, {"y", "x"}, {"z", "y"}};
    if (!token_among(TOKENS(m), i, " threadIdx blockIdx blockDim gridDim ")) return;
    for (int k = 0; k < 3; k++)
        if (token_is(TOKENS(m), i + 2, other[k][0]))
            mutation_add(m, "index", i + 2, i + 3, other[k][1]);
}

static void divisions(Mutations *m, int i)
{
    const Tokens *t = TOKENS(m);
    if (!is_binary(t, i)) return;
    if (token_is(t, i, "%")) mutation_add(m, "index", i, i + 1, "/");
    if (token_is(t, i, "/") && is_index(t, i)) mutation_add(m, "index", i, i + 1, "%");
}

/* A stride that is off by one. */
static void strides(Mutations *m, int i)
{
    const Tokens *t = TOKENS(m);
    if (!token_is(t, i, "*") || !is_binary(t, i) || !is_index(t, i)) return;
    int end = factor_end(t, i + 1);
    if (end == i + 1 || token_among(t, i - 1, types)) return;
    for (int by = -1; by <= 1; by += 2) {
        mutation_begin(m, "stride", i);
        mutation_edit(m, i + 1, end, "(%.*s %c 1)", mutation_length(m, i + 1, end), TEXT(m, i + 1),
                      by < 0 ? '-' : '+');
    }
}

/* A name that is a variable: not a member, call, array or type. */
static int is_variable(const Tokens *t, int i)
{
    return i < t->n && t->at[i].kind == TOKEN_NAME && !token_among(t, i - 1, " . -> :: ") &&
           !token_among(t, i + 1, " ( [ . -> :: ") && !token_among(t, i, types);
}

/* `a + b` and `a * b` are the same the other way round. */
static int commutes(const Tokens *t, int i, int k)
{
    return k == i + 2 && token_among(t, i + 1, " + * ") && !token_among(t, i - 1, " - * / % ") &&
           (token_is(t, i + 1, "*") || !token_among(t, k + 1, " * / % "));
}

/* Two variables of one subscript that change places. */
static void swaps(Mutations *m, int i)
{
    const Tokens *t = TOKENS(m);
    int open = t->at[i].inside, end = open >= 0 ? t->at[open].mate : -1;
    while (open >= 0 && !token_is(t, open, "[")) open = t->at[open].inside;
    if (open < 0 || !is_variable(t, i)) return;
    for (int k = i + 1; k < end; k++) {
        if (!is_variable(t, k)) continue;
        if (commutes(t, i, k) ||
            (t->at[k].len == t->at[i].len && !memcmp(TEXT(m, k), TEXT(m, i), t->at[i].len)))
            continue;
        mutation_begin(m, "swap", i);
        mutation_edit(m, i, i + 1, "%.*s", (int)t->at[k].len, TEXT(m, k));
        mutation_edit(m, k, k + 1, "%.*s", (int)t->at[i].len, TEXT(m, i));
        return;
    }
}

/* Terms of an index or of a sum: left out, or with the other sign. */
static void terms(Mutations *m, int i)
{
    const Tokens *t = TOKENS(m);
    if (!token_among(t, i, " + - ") || !is_binary(t, i)) return;
    const char *kind = is_index(t, i) || for_around(t, i) >= 0 ? "offset" : "term";
    mutation_add(m, kind, i, i + 1, token_is(t, i, "+") ? "-" : "+");
    mutation_add(m, kind, i, term_end(t, i + 1), "");
}

static void factors(Mutations *m, int i)
{
    const Tokens *t = TOKENS(m);
    if (!token_among(t, i, " * / ") || !is_binary(t, i) || is_index(t, i)) return;
    if (token_among(t, i - 1, types) || token_among(t, i + 1, " , ) > ")) return;
    mutation_add(m, "factor", i, i + 1, token_is(t, i, "*") ? "+" : "*");
    mutation_add(m, "factor", i, factor_end(t, i + 1), "");
}

/* ---- numbers ---- */

static int is_float_text(const Token *n)
{
    if (n->len > 1 && n->text[0] == '0' && (n->text[1] == 'x' || n->text[1] == 'X')) return 0;
    for (size_t k = 0; k < n->len; k++)
        if (n->text[k] == '.' || n->text[k] == 'e' || n->text[k] == 'E' || n->text[k] == 'f')
            return 1;
    return 0;
}

static void put_float(Mutations *m, int i, const char *kind, double value)
{
    const Token *n = &TOKENS(m)->at[i];
    char text[64];
    snprintf(text, sizeof text, "%.9g", value);
    mutation_begin(m, kind, i);
    mutation_edit(m, i, i + 1, "%s%s%s", text, strpbrk(text, ".e") ? "" : ".0",
                  n->text[n->len - 1] == 'f' ? "f" : "");
}

/* Float literals: of a large one a start of a maximum is made, of a small one an epsilon. */
static void floats(Mutations *m, int i)
{
    const Token *n = &TOKENS(m)->at[i];
    if (n->kind != TOKEN_NUMBER || !is_float_text(n)) return;
    double v = strtod(n->text, NULL);
    if (v == 0) {
        put_float(m, i, "start", 1);
        put_float(m, i, "start", 0.01);
    } else if (v > 1e20) {
        put_float(m, i, "start", 1e4);
        put_float(m, i, "start", 0);
    } else if (v < 2e-3) {
        put_float(m, i, "epsilon", 0);
        put_float(m, i, "epsilon", v * 100);
    } else {
        put_float(m, i, "literal", v * 1.01);
        put_float(m, i, "literal", v * 2);
    }
}

static void infinities(Mutations *m, int i)
{
    if (!token_among(TOKENS(m), i, " INFINITY FLT_MAX CUDART_INF_F HUGE_VALF ")) return;
    mutation_add(m, "start", i, i + 1, "1e4f");
    mutation_add(m, "start", i, i + 1, "0.0f");
}

static int is_attribute(const Tokens *t, int i)
{
    int open = t->at[i].inside;
    return open >= 0 &&
           token_among(t, open - 1, " __launch_bounds__ __align__ alignas __attribute__ ");
}

/* A larger array changes nothing. */
static int is_array_size(const Tokens *t, int i)
{
    int open = t->at[i].inside, first = token_statement(t, i);
    return open >= 0 && token_is(t, open, "[") && token_among(t, first, " __shared__ float int ");
}

static void numbers(Mutations *m, int i)
{
    const Tokens *t = TOKENS(m);
    const Token *n = &t->at[i];
    if (n->kind != TOKEN_NUMBER || is_float_text(n) || is_attribute(t, i)) return;
    unsigned long long v = strtoull(n->text, NULL, 0);
    const char *suffix = n->text + n->len;
    while (suffix > n->text && strchr("uUlL", suffix[-1])) suffix--;
    int k = (int)(n->text + n->len - suffix);
    const char *kind = v >= 0xffff ? "mask" : is_index(t, i) ? "offset" : "number";
    const unsigned long long to[] = {v >= 0xffff ? v >> 16 : v + 1, v >= 0xffff ? v >> 1 : v - 1,
                                     v >= 2 && v < 0xffff ? v * 2 : v, v >= 2 ? v / 2 : v};
    for (int c = 0; c < 4; c++) {
        if (to[c] > v && is_array_size(t, i)) continue;
        if (to[c] == v || (c && to[c] == to[0]) || (c > 1 && to[c] == to[1]) || (!v && c)) continue;
        mutation_begin(m, kind, i);
        mutation_edit(m, i, i + 1, "%llu%.*s", to[c], k, suffix);
    }
}

/* ---- statements ---- */

static void barriers(Mutations *m, int i)
{
    const Tokens *t = TOKENS(m);
    if (!token_among(t, i, " __syncthreads __syncwarp __threadfence __threadfence_block sync "))
        return;
    int end = token_is(t, i + 1, "(") ? t->at[i + 1].mate + 1 : 0;
    if (end > i && token_is(t, end, ";"))
        mutation_add(m, "barrier", token_statement(t, i), end, "");
}

/* An assignment or a call that is a statement by itself is left out. */
static void statements(Mutations *m, int i)
{
    const Tokens *t = TOKENS(m);
    int assigns = 0;
    if (!token_among(t, i - 1, " ; { } ) else ") || for_around(t, i) >= 0) return;
    if (!token_is_word(t, i) && !token_is(t, i, "*")) return;
    if (token_among(t, i, types) || token_among(t, i, " __shared__ return if for while do else "))
        return;
    int end = token_operand_end(t, i, " ; ");
    if (!token_is(t, end, ";")) return;
    for (int k = i; k < end; k++) assigns |= token_among(t, k, " = += -= *= ++ -- ");
    if (assigns && t->at[i + 1].kind != TOKEN_NAME) mutation_add(m, "statement", i, end, "");
}

static void accumulates(Mutations *m, int i)
{
    const Tokens *t = TOKENS(m);
    if (!token_among(t, i, " += -= *= ") || for_around(t, i) >= 0) return;
    mutation_add(m, "accumulate", i, i + 1, "=");
}

/* ---- contents ---- */

static void clamps(Mutations *m, int i)
{
    const Tokens *t = TOKENS(m);
    static const char *const pairs[][2] = {{"fmaxf", "fminf"}, {"fminf", "fmaxf"},
                                           {"max", "min"},     {"min", "max"},
                                           {"fmax", "fmin"},   {"fmin", "fmax"}};
    if (token_among(t, i, " fabsf fabs abs ") && token_is(t, i + 1, "("))
        mutation_add(m, "clamp", i, i + 1, "");
    for (int k = 0; k < 6; k++) {
        if (!token_is(t, i, pairs[k][0]) || !token_is(t, i + 1, "(")) continue;
        int end = t->at[i + 1].mate, comma = token_operand_end(t, i + 2, " , ");
        if (!token_is(t, comma, ",")) return;
        mutation_begin(m, "clamp", i);
        mutation_edit(m, i, end + 1, "(%.*s)", mutation_length(m, i + 2, comma), TEXT(m, i + 2));
        mutation_begin(m, "clamp", i);
        mutation_edit(m, i, end + 1, "(%.*s)", mutation_length(m, comma + 1, end),
                      TEXT(m, comma + 1));
        mutation_add(m, "clamp", i, i + 1, pairs[k][1]);
    }
}

/* ---- types ---- */

static int is_float_name(const Tokens *t, int i)
{
    for (int k = 1; k < i; k++)
        if (t->at[k].len == t->at[i].len && !memcmp(t->at[k].text, t->at[i].text, t->at[i].len) &&
            (token_is(t, k - 1, "float") || token_is(t, token_statement(t, k), "float")))
            return 1;
    return 0;
}

/* Sums in double become float; those in float keep 11 bits of each partial sum. */
static void narrow(Mutations *m, int i)
{
    const Tokens *t = TOKENS(m);
    if (token_is(t, i, "double")) mutation_add(m, "narrow", i, i + 1, "float");
    if (!token_is(t, i, "+=") || t->at[i - 1].kind != TOKEN_NAME || for_around(t, i) >= 0) return;
    if (token_among(t, i - 2, " . ") || !is_float_name(t, i - 1)) return;
    int end = token_operand_end(t, i + 1, " , ; ");
    mutation_begin(m, "narrow", i);
    mutation_edit(m, i, end, "= __uint_as_float(__float_as_uint(%.*s + (%.*s)) & 0xfffff000u)",
                  (int)t->at[i - 1].len, TEXT(m, i - 1), mutation_length(m, i + 1, end),
                  TEXT(m, i + 1));
}

static void wide(Mutations *m, int i)
{
    const Tokens *t = TOKENS(m);
    if (!m->large) return;
    if (token_among(t, i, " size_t int64_t uint64_t ptrdiff_t "))
        mutation_add(m, "wide", i, i + 1, "int");
    else if (token_is(t, i, "long") && token_is(t, i + 1, "long"))
        mutation_add(m, "wide", i, i + 2, "int");
}

/* clang-format off */
const MutationRow mutation_code_rules[] = {
    {IN_CODE, bounds},   {IN_CODE, loops},      {IN_CODE, guards},      {IN_CODE, conditions},
    {IN_CODE, choices},  {IN_CODE, axes},       {IN_CODE, divisions},   {IN_CODE, strides},
    {IN_CODE, swaps},    {IN_CODE, terms},      {IN_CODE, factors},     {IN_CODE | IN_MACRO, floats},
    {IN_CODE, infinities}, {IN_CODE | IN_MACRO, numbers}, {IN_CODE, barriers}, {IN_CODE, statements},
    {IN_CODE, accumulates}, {IN_CODE, clamps},  {IN_CODE, narrow},      {IN_CODE, wide},
};
/* clang-format on */
const int mutation_n_code_rules = sizeof mutation_code_rules / sizeof *mutation_code_rules;
