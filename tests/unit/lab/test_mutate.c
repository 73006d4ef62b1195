/* Tokens of a source, its mutations, their draw, and the file of known survivors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "lab/mutate/mutant_draw.h"
#include "lab/mutate/survivors.h"

static const char source[] = "// Adds one: a < b in a comment is no token.\n"
                             "//@ buffer float part[n]\n"
                             "//@ launch add<<<ceil_div(n, 256), 256>>>(x, part, n)\n"
                             "#include <cuda_fp16.h>\n"
                             "#define SIZE 256\n"
                             "__global__ void add(const float *x, float *y, int n)\n"
                             "{\n"
                             "    int i = blockIdx.x * SIZE + threadIdx.x;\n"
                             "    if (i >= n) return;\n"
                             "    for (int j = 0; j < 8; j++) y[i] += x[i * n + j];\n"
                             "    __syncthreads();\n"
                             "    y[i] = fmaxf(y[i], -INFINITY) + 1e-5f;\n"
                             "}\n";

typedef struct {
    Tokens tokens;
    Mutations mutations;
} Found;

static void find(const char *text, int large, Found *f)
{
    tokens_read(text, &f->tokens);
    mutations_find(&f->tokens, large, &f->mutations);
}

static void release(Found *f)
{
    mutations_release(&f->mutations);
    tokens_release(&f->tokens);
}

/* Whether a mutation of the kind gives a text with `part`. */
static int gives(const Found *f, const char *kind, const char *part)
{
    int found = 0;
    for (int i = 0; i < f->mutations.n && !found; i++) {
        const Mutation *m = &f->mutations.at[i];
        if (strcmp(m->kind, kind)) continue;
        char *text = mutation_apply(&f->mutations, m);
        found = strstr(text, part) != NULL;
        free(text);
    }
    return found;
}

static void tokens(void **state)
{
    (void)state;
    Tokens t;
    tokens_read("//@ for t in 0..n\nx[1e-5f] <<= a->b; // c\n#if 0\n#define N 3 \\\n 4\n\"a;b\"",
                &t);
    const char *const expected[] = {"for", "t",      "in", "0",   "..", "n",      "x",
                                    "[",   "1e-5f",  "]",  "<<=", "a",  "->",     "b",
                                    ";",   "define", "N",  "3",   "4",  "\"a;b\""};
    assert_int_equal(t.n, (int)(sizeof expected / sizeof *expected));
    for (int i = 0; i < t.n; i++) assert_true(token_is(&t, i, expected[i]));
    assert_int_equal(t.at[7].mate, 9);
    assert_int_equal(t.at[8].inside, 7);
    assert_int_equal(t.at[0].place, IN_PLAN);
    assert_int_equal(t.at[6].place, IN_CODE);
    assert_int_equal(t.at[18].place, IN_MACRO);
    assert_int_equal(t.at[18].line, 5);
    assert_int_equal(t.at[18].column, 2);
    assert_true(token_among(&t, 14, " , ; ") && !token_among(&t, 13, " , ; "));
    tokens_release(&t);
}

static void kinds(void **state)
{
    (void)state;
    Found f;
    find(source, 0, &f);
    assert_true(gives(&f, "bound", "if (i > n)"));
    assert_true(gives(&f, "bound", "if (i >= -1 + n)"));
    assert_true(gives(&f, "guard", "if (false && (i >= n)) return;"));
    assert_true(
        gives(&f, "loop", "if (int trips_ = 0; true) for (int j = 0; (j < 8) && trips_++ < 1;"));
    assert_true(gives(&f, "index", "blockIdx.y * SIZE"));
    assert_true(gives(&f, "stride", "blockIdx.x * (SIZE + 1) + threadIdx.x"));
    assert_true(gives(&f, "swap", "x[j * n + i]"));
    assert_true(gives(&f, "offset", "x[i * n - j]"));
    assert_true(gives(&f, "number", "#define SIZE 257"));
    assert_true(gives(&f, "barrier", "    ;\n"));
    assert_true(gives(&f, "clamp", "y[i] = (y[i]) + 1e-5f"));
    assert_true(gives(&f, "start", "-1e4f"));
    assert_true(gives(&f, "epsilon", "+ 0.0f"));
    assert_true(gives(&f, "accumulate", "y[i] = x[i * n + j]"));
    assert_true(gives(&f, "grid", "<<<max(1, (n) / (256)), 256>>>"));
    assert_true(gives(&f, "argument", "(x, part, n - 1)"));
    assert_true(gives(&f, "buffer", "part[max(1, (n) / 2)]"));
    assert_false(gives(&f, "bound", "a <= b"));
    release(&f);
}

static void wide(void **state)
{
    (void)state;
    Found f;
    for (int large = 0; large < 2; large++) {
        find("void f(long long n) { size_t i = n; }", large, &f);
        assert_int_equal(gives(&f, "wide", "void f(int n)"), large);
        assert_int_equal(gives(&f, "wide", "{ int i = n; }"), large);
        release(&f);
    }
}

/* Places name a mutation: no two of one kind have the same. */
static void places(void **state)
{
    (void)state;
    Found f;
    find(source, 1, &f);
    const Mutation *m = f.mutations.at;
    for (int i = 0; i < f.mutations.n; i++)
        for (int k = 0; k < i; k++)
            assert_true(strcmp(m[i].kind, m[k].kind) || strcmp(m[i].place, m[k].place));
    release(&f);
}

static void draws(void **state)
{
    (void)state;
    Found f;
    Original one[3] = {{.task = (char *)"a", .digest = "1"},
                       {.task = (char *)"a", .digest = "2"},
                       {.task = (char *)"b", .digest = "3"}};
    const Originals o = {one, 3};
    const int at[] = {5, 1, 3};
    int many[3], order[2][512];
    mutants_share(&(MutantDraw){.seed = 7, .count = 4}, &o, at, many);
    assert_int_equal(many[0] + many[1], 2);
    assert_int_equal(many[2], 2);
    mutants_share(&(MutantDraw){.seed = 7, .count = 100}, &o, at, many);
    assert_int_equal(many[0] + many[1] + many[2], 9);
    mutants_share(&(MutantDraw){.seed = 7, .count = 100, .part = 1, .parts = 2}, &o, at, many);
    assert_int_equal(many[1], 1);
    assert_int_equal(many[0] + many[2], 0);
    find(source, 0, &f);
    assert_in_range(f.mutations.n, 20, 512);
    for (int k = 0; k < 2; k++) mutants_order(3, &one[0], &f.mutations, order[k]);
    assert_memory_equal(order[0], order[1], (size_t)f.mutations.n * sizeof(int));
    for (int k = 1; k < 10; k++) /* the first of each kind come first */
        assert_string_not_equal(f.mutations.at[order[0][k]].kind,
                                f.mutations.at[order[0][k - 1]].kind);
    release(&f);
}

static void known(void **state)
{
    (void)state;
    Error err;
    Survivors s;
    const char text[] = "# a comment\n\nrelu\t0123456789ab\tbound\t3:4a\tequivalent\tthe grid is "
                        "larger\n";
    Survivor who = {.task = "relu", .digest = "0123456789abcdef", .kind = "bound", .place = "3:4a"};
    assert_int_equal(file_write_atomic("known.tsv", text, strlen(text), &err), 0);
    assert_int_equal(survivors_read("known.tsv", &s, &err), 0);
    assert_int_equal(survivors_class(&s, &who), SURVIVOR_EQUIVALENT);
    who.place = "3:4b";
    assert_int_equal(survivors_class(&s, &who), SURVIVOR_NEW);
    survivors_release(&s);
    assert_int_equal(file_write_atomic("known.tsv", "relu\tx\n", 7, &err), 0);
    assert_int_equal(survivors_read("known.tsv", &s, &err), -1);
    assert_non_null(strstr(err.text, "known.tsv:1: expected 6 fields, found 2"));
    survivors_release(&s);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {cmocka_unit_test(tokens), cmocka_unit_test(kinds),
                                       cmocka_unit_test(wide),   cmocka_unit_test(places),
                                       cmocka_unit_test(draws),  cmocka_unit_test(known)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
