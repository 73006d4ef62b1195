/* The tokenizer: equality with Hugging Face's ids on stored cases, training, refusals.
 * tests/peers/tokenizer_fuzz.py uses two modes. test_tokenizer --ids TOKENIZER.json reads (u32
 * length, text) and writes (u32 n, n int32 ids) until its input ends. test_tokenizer --speed
 * TOKENIZER.json TEXT... times loading and encoding. */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "model/tokenizer/bpe.h"
#include "model/tokenizer/tokenizer.h"
#include "model/tokenizer/unicode.h"
#include "tests/fixture_path.h"

#define FIXTURES "tests/fixtures/tokenizer/"

static char dir[64], path[128];

static int setup(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/quern-tokenizer-XXXXXX");
    if (!mkdtemp(dir)) return -1;
    snprintf(path, sizeof path, "%s/tokenizer.json", dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    Error err;
    return file_remove_tree(dir, &err);
}

static Tokenizer *load(const char *name)
{
    Error err = {0};
    Tokenizer *t;
    if (tokenizer_load(name, &t, &err)) fail_msg("%s", err.text);
    return t;
}

static void encodes_to(const Tokenizer *t, const char *text, size_t len, const json_t *ids)
{
    Error err;
    TokenIds got = {0};
    assert_int_equal(tokenizer_encode(t, text, len, &got, &err), 0);
    if (got.n != json_array_size(ids))
        fail_msg("%zu ids, expected %zu: %s", got.n, json_array_size(ids), text);
    for (size_t i = 0; i < got.n; i++) {
        json_int_t want = json_integer_value(json_array_get(ids, i));
        if (got.ids[i] != want)
            fail_msg("id %zu is %d, expected %d: %s", i, got.ids[i], (int)want, text);
    }
    free(got.ids);
}

/* Encodes the texts of a fixture with each tokenizer, twice, so that the cache is used too. */
static void equal_ids(const char *fixture, const char *const *names, int n_names)
{
    json_t *cases = json_load_file(fixture, 0, NULL), *texts = json_object_get(cases, "texts");
    assert_true(json_array_size(texts) >= 25);
    for (int k = 0; k < n_names; k++) {
        snprintf(path, sizeof path, "%s%s.json", fixture_path(FIXTURES), names[k]);
        Tokenizer *t = load(path);
        for (size_t i = 0; i < 2 * json_array_size(texts); i++) {
            json_t *bytes = json_array_get(texts, i / 2);
            size_t n = json_array_size(bytes);
            char *text = memory_alloc(n + 1);
            for (size_t b = 0; b < n; b++)
                text[b] = (char)json_integer_value(json_array_get(bytes, b));
            encodes_to(t, text, n, json_array_get(json_object_get(cases, names[k]), i / 2));
            free(text);
        }
        tokenizer_free(t);
    }
    json_decref(cases);
    snprintf(path, sizeof path, "%s/tokenizer.json", dir);
}

/* Ids stored by make_tokenizer.py and make_pretokens.py, from Hugging Face's library. */
static void equals_stored_ids(void **state)
{
    (void)state;
    equal_ids(fixture_path(FIXTURES "cases.json"), (const char *[]){"qwen2", "qwen3", "llama3"}, 3);
    equal_ids(fixture_path(FIXTURES "pretoken_cases.json"),
              (const char *[]){"gpt2", "smollm", "o200k", "deepseek", "mistral", "mistral_split",
                               "gemma"},
              7);
}

static void specials(void **state)
{
    (void)state;
    Error err;
    Tokenizer *t = load(fixture_path(FIXTURES "qwen2.json"));
    int end = tokenizer_special(t, "<|im_end|>"), call = tokenizer_special(t, "<tool_call>");
    assert_true(end > 0 && call > 0 && end < tokenizer_size(t));
    assert_int_equal(tokenizer_special(t, "<|im"), -1);
    TokenIds made = {0};
    const char *text = "<|im_end|><tool_call>";
    assert_int_equal(tokenizer_encode(t, text, strlen(text), &made, &err), 0);
    int32_t *ids = made.ids;
    assert_true(made.n > 2);
    for (size_t i = 0; i < made.n; i++) assert_int_not_equal(ids[i], end); /* never from text */
    assert_int_equal(ids[made.n - 1], call); /* added, but not special */
    ids[0] = end;
    Buffer out;
    buffer_init(&out, 1 << 10);
    assert_int_equal(tokenizer_decode(t, ids, 1, &out, &err), 0);
    assert_int_equal(out.len, 0);
    ids[0] = tokenizer_size(t);
    assert_int_equal(tokenizer_decode(t, ids, 1, &out, &err), -1);
    ids[0] = -1;
    assert_int_equal(tokenizer_decode(t, ids, 1, &out, &err), -1);
    buffer_release(&out);
    free(ids);
    tokenizer_free(t);
}

static void decodes_back(const Tokenizer *t, const char *text, const char *expected)
{
    Error err;
    TokenIds v = {0};
    Buffer out;
    buffer_init(&out, 1 << 16);
    assert_int_equal(tokenizer_encode(t, text, strlen(text), &v, &err), 0);
    assert_int_equal(tokenizer_decode(t, v.ids, v.n, &out, &err), 0);
    assert_string_equal(out.data, expected);
    buffer_release(&out);
    free(v.ids);
}

static void repairs_and_normalises(void **state)
{
    (void)state;
    Tokenizer *t = load(fixture_path(FIXTURES "qwen2.json"));
    decodes_back(t, "a\xff\xfe z", "a\uFFFD\uFFFD z");
    decodes_back(t, "\xE2\x82", "\uFFFD"); /* truncated: one for its longest valid part */
    decodes_back(t, "\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"); /* a surrogate */
    decodes_back(t, "\xC0\xAF\xF4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD");
    decodes_back(t, "\xF0\x9F\x9A(", "\uFFFD(");
    decodes_back(t, "e\u0301 \u2126", "\u00E9 \u03A9");
    decodes_back(t, "e\u0323\u0307\xff", "\u1EB9\u0307\uFFFD");
    tokenizer_free(t);
    t = load(fixture_path(FIXTURES "llama3.json")); /* no normalizer */
    decodes_back(t, "e\u0301", "e\u0301");
    tokenizer_free(t);
    static const char *const characters[] = {"mistral", "mistral_split", "gemma"};
    for (int i = 0; i < 3;
         i++) { /* the blank in front comes and goes; bytes come back as characters */
        snprintf(path, sizeof path, "%s%s.json", fixture_path(FIXTURES), characters[i]);
        t = load(path);
        decodes_back(t, "x  = y;\n\t\U0001F680 \x01", "x  = y;\n\t\U0001F680 \x01");
        tokenizer_free(t);
    }
    snprintf(path, sizeof path, "%s/tokenizer.json", dir);
}

/* The next piece of a text that shows where pieces end by |. */
typedef struct {
    const char *expected;
} Pieces;

static int next_piece(void *ctx, const char *s, size_t n, Error *err)
{
    Pieces *p = ctx;
    (void)err;
    size_t len = strcspn(p->expected, "|");
    if (len != n || memcmp(s, p->expected, n))
        fail_msg("'%.*s' where '%.*s' was expected", (int)n, s, (int)len, p->expected);
    p->expected += len + (p->expected[len] == '|');
    return 0;
}

static void cuts(const char *pattern, CutBehavior behavior, const char *text, const char *expected)
{
    Error err = {0};
    Pretoken p = {.n = 0};
    Pieces pieces = {expected};
    if (pretoken_add(&p, pattern, strlen(pattern), behavior, 0, &err)) fail_msg("%s", err.text);
    if (pretoken_cut(&p, text, strlen(text), &(PretokenSink){next_piece, &pieces}, &err))
        fail_msg("%s", err.text);
    if (*pieces.expected) fail_msg("'%s' is left", pieces.expected);
    pretoken_release(&p);
}

static void pieces(const char *pattern, const char *expected)
{
    char text[256];
    size_t n = 0;
    for (const char *p = expected; *p; p++)
        if (*p != '|') text[n++] = *p;
    text[n] = 0;
    cuts(pattern, CUT_ISOLATED, text, expected);
}

static void cuts_pieces(void **state)
{
    (void)state;
    const char *one = pretoken_qwen2;
    pieces(one, "hello| world|   | x|\n\n| | y|;\n|z");
    pieces(one, "1|2|3|4| |5");
    pieces("\\p{N}{1,3}", "123|4| |567|89");
    pieces(one, "I|'m| don|'t|'ſ| '|5|'t|is|'LL");
    pieces(one, "(int|)\n\n|\t|\ta|\r\n|b| +=|   ");
    pieces(one, "y|[i|]|  \n  \n|  | x|.w| =| {\n|   | }\n");
    pieces(one, " \n|\t|1|\u00a0x|\u3000|9");
    pieces(pretoken_lines, "a b\n|\n|c");
    pieces("[a-c]+(?=x)|(?i:st|Q)?y{2,}|[^\\S\\n]z*+|\\.", "ab|xS|yy|STyy|qyy| zz|.|ſtyy");
    cuts(" ", CUT_REMOVED, "  a b ", "a|b");
    cuts(" ", CUT_WITH_PREVIOUS, "  a b  c", " | |a |b | |c");
}

static void refuses_expressions(void **state)
{
    (void)state;
    static const char *const bad[] = {"a(b)+",  "a*?",     "(?<!a)b", "\\w",   "[[:alpha:]]",
                                      "a|*",    "(a",      "a)",      "[a",    "[c-a]",
                                      "a{3,1}", "\\p{Qq}", ".",       "^a",    "(?i:é)",
                                      "a{2}+",  "\\1",     "(?>a)",   "a{,3}", "\\"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        Error err = {0};
        Regex *r;
        if (!regex_compile(bad[i], strlen(bad[i]), &r, &err)) fail_msg("%s is taken", bad[i]);
        assert_null(r);
        assert_int_equal(err.code, ERROR_UNSUPPORTED);
    }
    Error err;
    Regex *r;
    char text[4001];
    memset(text, 'a', 4000);
    text[4000] = 0;
    assert_int_equal(regex_compile("a*a*a*b", 7, &r, &err), 0);
    assert_int_equal(regex_match(r, text, 4000, 0), REGEX_HARD); /* ends */
    regex_free(r);
}

static const char *const corpus[] = {
    "for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = x[i] * x[i];\n",
    "for (int j = threadIdx.x; j < n; j += blockDim.x) sum += x[j];\nlow lower lowest newer\n",
};

static Tokenizer *train(int vocab, int repeat)
{
    Error err = {0};
    const char *texts[8];
    size_t lens[8];
    for (int i = 0; i < 2 * repeat; i++) lens[i] = strlen(texts[i] = corpus[i % 2]);
    static const char *const names[] = {"<|endoftext|>", "<|im_end|>"};
    Tokenizer *t;
    if (tokenizer_train(&(Corpus){texts, lens, (size_t)(2 * repeat)},
                        &(VocabularyOptions){vocab, 0, names, 2}, &t, &err))
        fail_msg("%s", err.text);
    return t;
}

static void trains(void **state)
{
    (void)state;
    Error err;
    Buffer first, again;
    buffer_init(&first, 1 << 20);
    buffer_init(&again, 1 << 20);
    Tokenizer *t = train(300, 2);
    assert_int_equal(tokenizer_size(t), 300);
    assert_int_equal(tokenizer_special(t, "<|im_end|>"), 299);
    decodes_back(t, corpus[1], corpus[1]);
    assert_int_equal(tokenizer_save(t, path, &err), 0);
    assert_int_equal(file_read(path, 1 << 20, &first, &err), 0);
    Tokenizer *loaded = load(path);
    TokenIds a = {0}, b = {0};
    assert_int_equal(tokenizer_encode(t, corpus[0], strlen(corpus[0]), &a, &err), 0);
    assert_int_equal(tokenizer_encode(loaded, corpus[0], strlen(corpus[0]), &b, &err), 0);
    assert_true(a.n == b.n && a.n < 60);
    assert_memory_equal(a.ids, b.ids, a.n * sizeof *a.ids);
    assert_int_equal(tokenizer_save(loaded, path, &err),
                     0); /* a loaded file is kept byte for byte */
    assert_int_equal(file_read(path, 1 << 20, &again, &err), 0);
    assert_string_equal(first.data, again.data);
    tokenizer_free(t);
    t = train(300, 2); /* equal texts, equal file */
    assert_int_equal(tokenizer_save(t, path, &err), 0);
    assert_int_equal(file_read(path, 1 << 20, &again, &err), 0);
    assert_string_equal(first.data, again.data);
    tokenizer_free(t);
    tokenizer_free(loaded);
    free(a.ids);
    free(b.ids);
    buffer_release(&first);
    buffer_release(&again);
}

/* "ab ab ab" : only the pairs (a,b) and (space,ab) occur twice. */
static void training_by_hand(void **state)
{
    (void)state;
    Error err;
    Tokenizer *t;
    const char *text = "ab ab ab";
    size_t len = strlen(text);
    const Corpus one = {&text, &len, 1};
    TokenIds v = {0};
    assert_int_equal(tokenizer_train(&one, &(VocabularyOptions){1000}, &t, &err), 0);
    assert_int_equal(tokenizer_size(t), 258);
    assert_int_equal(tokenizer_encode(t, text, len, &v, &err), 0);
    assert_int_equal(v.n, 3);
    assert_int_equal(v.ids[0], 256); /* three occurrences: first */
    assert_int_equal(v.ids[1], 257);
    assert_int_equal(v.ids[2], 257);
    free(v.ids);
    tokenizer_free(t);
    assert_int_equal(tokenizer_train(&one, &(VocabularyOptions){255}, &t, &err), -1);
    const char *twice[] = {"<x>", "<x>"};
    assert_int_equal(tokenizer_train(&one, &(VocabularyOptions){300, 0, twice, 2}, &t, &err), -1);
    assert_non_null(strstr(err.text, "<x>"));
    assert_null(t);
}

/* One change each to a valid file. */
static void refuses(const char *find, const char *replace, const char *expected)
{
    Error err = {0};
    Buffer b, out;
    buffer_init(&b, 1 << 20);
    buffer_init(&out, 1 << 20);
    assert_int_equal(file_read(fixture_path(FIXTURES "qwen2.json"), 1 << 20, &b, &err), 0);
    char *at = strstr(b.data, find);
    if (!at) fail_msg("no %s in the fixture", find);
    buffer_append(&out, b.data, (size_t)(at - b.data));
    buffer_puts(&out, replace);
    buffer_puts(&out, at + strlen(find));
    assert_int_equal(file_write_atomic(path, out.data, out.len, &err), 0);
    Tokenizer *t;
    assert_int_equal(tokenizer_load(path, &t, &err), -1);
    assert_null(t);
    if (!strstr(err.text, expected)) fail_msg("expected '%s' in '%s'", expected, err.text);
    buffer_release(&b);
    buffer_release(&out);
}

static void refuses_other_files(void **state)
{
    (void)state;
    refuses("\"type\":\"NFC\"", "\"type\":\"NFKC\"", "normalizer: expected NFC");
    refuses("\\\\p{N}|", "\\\\p{N}*?|", "no");
    refuses("\"Isolated\"", "\"MergedWithNext\"", "Isolated");
    refuses("\"type\":\"Split\"", "\"type\":\"Whitespace\"", "Whitespace");
    refuses("\"type\":\"Split\"", "\"type\":\"ByteLevel\",\"add_prefix_space\":false", "last");
    refuses("\"add_prefix_space\":false", "\"add_prefix_space\":true", "ByteLevel");
    refuses("\"type\":\"BPE\"", "\"type\":\"WordPiece\"", "expected BPE, found WordPiece");
    refuses("\"byte_fallback\":false", "\"byte_fallback\":true", "byte_fallback");
    refuses("\"unk_token\":null", "\"unk_token\":\"nonesuch\"", "unk_token");
    refuses("\"dropout\":null", "\"dropout\":0.1", "dropout");
    refuses("\"continuing_subword_prefix\":null", "\"continuing_subword_prefix\":\"##\"",
            "continuing_subword_prefix");
    refuses("\"vocab\":{", "\"vocab\":[],\"x\":{", "vocab");
    refuses("\"merges\":[", "\"merges\":{},\"x\":[", "merges");
    refuses("\"!\":0", "\"!\":\"0\"", "no integer");
    refuses("\"!\":0", "\"!\":1", "the id 1");
    refuses("\"!\":0", "\"!\":-1", "not within");
    refuses("\"!\":0", "\"!\":99999999999", "not within");
    refuses("\"~\":", "\"~~\":", "the byte 0x7E");
    refuses("\"!\":0", "\"! \":0", "byte alphabet");
    refuses("\"!\":0", "\"\":0", "0 bytes");
    refuses("\"!\":0", "\"!\":0,\"!\":0", "duplicate object key");
    refuses("\"merges\":[", "\"merges\":[7,", "merges[0]: expected two tokens");
    refuses("\"merges\":[", "\"merges\":[\"a b c\",", "merges[0]: expected two tokens");
    refuses("\"merges\":[", "\"merges\":[[\"a\",\"bbbbb\"],", "bbbbb is not in the vocabulary");
    refuses("\"merges\":[", "\"merges\":[[\"!\",\"~\"],", "merges[0]: the merge");
    refuses("\"merges\":[", "\"merges\":[[\"\xC4\xA0\",\"\xC4\xA0\"],[\"\xC4\xA0\",\"\xC4\xA0\"],",
            "given twice");
    refuses("\"content\":\"<|endoftext|>\"", "\"content\":\"\"", "added_tokens[0]");
    refuses("\"content\":\"<|endoftext|>\"", "\"content\":5", "added_tokens[0]");
    refuses("\"id\":700,", "\"id\":0,", "two tokens have the id 0");
    refuses("\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,"
            "\"special\":false",
            "\"single_word\":true,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,"
            "\"special\":false",
            "single_word");
    Error err;
    Tokenizer *t;
    assert_int_equal(tokenizer_load("/nowhere/tokenizer.json", &t, &err), -1);
}

/* The line rule: a piece is a line with its end, so a token may span words, but not lines. */
static void lines(void **state)
{
    (void)state;
    static const char text[] = "int i = 0;\nint j = 1;\nint i = 0;\nint j = 1;\n";
    const char *texts[] = {text};
    size_t lens[] = {sizeof text - 1};
    Tokenizer *t, *again;
    Error err;
    Buffer b;
    TokenIds v = {0};
    assert_int_equal(
        tokenizer_train(&(Corpus){texts, lens, 1}, &(VocabularyOptions){400, 1}, &t, &err), 0);
    assert_int_equal(tokenizer_encode(t, text, sizeof text - 1, &v, &err), 0);
    assert_int_equal(v.n, 4); /* every line occurs twice: one token each */
    assert_int_equal(tokenizer_save(t, path, &err), 0);
    assert_int_equal(tokenizer_load(path, &again, &err), 0);
    buffer_init(&b, 1000);
    assert_int_equal(tokenizer_decode(again, v.ids, v.n, &b, &err), 0);
    assert_string_equal(b.data, text);
    v.n = 0;
    assert_int_equal(tokenizer_encode(again, "new line", 8, &v, &err), 0);
    buffer_clear(&b);
    assert_int_equal(tokenizer_decode(again, v.ids, v.n, &b, &err), 0);
    assert_string_equal(b.data, "new line");
    free(v.ids);
    buffer_release(&b);
    tokenizer_free(t);
    tokenizer_free(again);
}

static int stream_ids(const char *tokenizer)
{
    Error err;
    Tokenizer *t;
    uint32_t len;
    int rc = tokenizer_load(tokenizer, &t, &err);
    while (!rc && fread(&len, sizeof len, 1, stdin) == 1) {
        char *text = memory_alloc(len);
        TokenIds v = {0};
        rc = fread(text, 1, len, stdin) != len || tokenizer_encode(t, text, len, &v, &err);
        uint32_t count = (uint32_t)v.n;
        rc = rc || fwrite(&count, sizeof count, 1, stdout) != 1 ||
             fwrite(v.ids, sizeof *v.ids, v.n, stdout) != v.n;
        free(v.ids);
        free(text);
    }
    tokenizer_free(t);
    return rc ? 1 : fflush(stdout) != 0;
}

static int speed(const char *tokenizer, char **names, int n_names)
{
    Error err;
    Tokenizer *t;
    Buffer text;
    buffer_init(&text, 1 << 28);
    double start = clock_seconds();
    if (tokenizer_load(tokenizer, &t, &err)) return 1;
    printf("quern: loaded in %.3f s\n", clock_seconds() - start);
    for (int i = 0; i < n_names; i++) {
        double best = 1e9;
        size_t n = 0;
        buffer_clear(&text);
        if (file_read(names[i], 1 << 28, &text, &err)) return 1;
        for (int k = 0; k < 3; k++) {
            TokenIds v = {0};
            start = clock_seconds();
            if (tokenizer_encode(t, text.data, text.len, &v, &err)) return 1;
            n = v.n;
            double elapsed = clock_seconds() - start;
            best = elapsed < best ? elapsed : best;
            free(v.ids);
        }
        printf("quern: %s: %.2f MB, %zu ids, %.2f MB/s\n", names[i], (double)text.len / 1e6, n,
               (double)text.len / 1e6 / best);
    }
    buffer_release(&text);
    tokenizer_free(t);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 3 && !strcmp(argv[1], "--speed")) return speed(argv[2], argv + 3, argc - 3);
    if (argc == 3 && !strcmp(argv[1], "--ids")) return stream_ids(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines),
        cmocka_unit_test(equals_stored_ids),
        cmocka_unit_test(specials),
        cmocka_unit_test(repairs_and_normalises),
        cmocka_unit_test(cuts_pieces),
        cmocka_unit_test(refuses_expressions),
        cmocka_unit_test(trains),
        cmocka_unit_test(training_by_hand),
        cmocka_unit_test(refuses_other_files),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, setup, teardown);
}
