/* The format of an answer: the code of a written answer is found again, and a truncated answer has
 * no code. What is said about an answer of another form, and about host code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "eval/candidate/answer.h"
#include "eval/candidate/source_hints.h"

static void round_trip(void **state)
{
    (void)state;
    Buffer b;
    size_t n;
    buffer_init(&b, 1 << 16);
    answer_write(&b, "fast", "tiles", "//@ launch k<<<1, 32>>>(x)\nvoid k() {}");
    const char *code = answer_code(b.data, b.len, &n);
    assert_non_null(code);
    assert_int_equal(n, strlen("//@ launch k<<<1, 32>>>(x)\nvoid k() {}\n"));
    assert_memory_equal(code, "//@ launch", 10);
    buffer_release(&b);
}

static void check(const char *text, const char *expected)
{
    size_t n;
    const char *code = answer_code(text, strlen(text), &n);
    if (!expected) {
        assert_null(code);
        assert_int_equal(n, 0);
        return;
    }
    assert_non_null(code);
    assert_int_equal(n, strlen(expected));
    assert_memory_equal(code, expected, n);
}

static void odd_answers(void **state)
{
    (void)state;
    check("", NULL);
    check("no code at all", NULL);
    check("## Code Implementation\n```cuda\nint x;\n", NULL);
    check("```cuda\nint x;\n```", "int x;\n");
    check("```\na\n```\n## Code Implementation\n```cuda\nb\n```\n", "b\n");
    check("## Code Implementation\n```cuda\na\n```\ntext\n```cuda\nb\n```\n", "b\n");
    check("## Code Implementation\nnone\n", NULL);
    check("```cuda\nearly\n```\n## Code\nforgot the fence", "early\n");
    check("```", NULL);
    check("```\n```", "");
    check("### Code Implementation\n```cuda\na\n```\n### Notes\n```\nb\n```\n", "b\n");
    /* A kernel does not lose to what is said about it. */
    check("```cuda\n__global__ void k() {}\n```\n```bash\nnvcc k.cu\n```\n",
          "__global__ void k() {}\n");
    check("## Code\n```cuda\n//@ launch k<<<1, 32>>>(x)\n```\n```python\nload()\n```\n",
          "//@ launch k<<<1, 32>>>(x)\n");
    check("```cuda\n__global__ a\n```\n```\n__global__ b\n```\n```text\nfast\n```\n",
          "__global__ b\n");
    check("```\na\n```\n#### Code\n```cuda\nb\n```\n", "b\n");
}

static void advised(const char *text, int cut, const char *sentence)
{
    Buffer b;
    buffer_init(&b, 1000);
    assert_int_equal(answer_advice(text, strlen(text), cut, &b), sentence ? 0 : -1);
    if (sentence && !strstr(b.data, sentence)) fail_msg("expected %s: %s", sentence, b.data);
    if (!sentence) assert_int_equal(b.len, 0);
    buffer_release(&b);
}

static void advice(void **state)
{
    (void)state;
    advised("```cuda\n//@ launch k<<<1, 1>>>(x)\n```\n", 0, NULL);
    advised("```text\nnotes\n```\n### Code\n```cuda\n//@ launch k<<<1, 1>>>(x)\n```", 0, NULL);
    advised("```cuda\n__global__", 1, "limit on tokens cut");
    advised("a\n```cuda\n__global__", 0, "begins on line 2 of the answer is not closed");
    advised("", 0, "a line ```cuda and a line ```");
    advised("__global__ void k() {}", 0, "holds no code");
    advised("```\n//@ launch k<<<1, 1>>>(x)\n```\n```\n__global__ void k()\n```\n", 0,
            "2 code blocks, of which only the last is judged");
}

static void host(const char *source, int line, const char *word)
{
    char found[64] = "";
    assert_int_equal(host_code(source, strlen(source), found, sizeof found), line);
    assert_string_equal(found, word);
}

static void host_words(void **state)
{
    (void)state;
    host("__global__ void domain(int *cudaMallocd) {}", 1, "cudaMallocd");
    host("__device__ int domain(int x);\n// main( <<<\n/* cudaMalloc\n */ const char *s = "
         "\"torch::\"; char c = '\\'';\n",
         0, "");
    host("/*\n*/\nint main() {}", 3, "main");
    host("void f() {\n  k<<<1, 2>>>(x);", 2, "<<<");
    host("\"\n\"\n torch::Tensor f();", 3, "torch::Tensor");
    host("//", 0, "");
    host("\"", 0, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(round_trip), cmocka_unit_test(odd_answers),
                                       cmocka_unit_test(advice), cmocka_unit_test(host_words)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("answer", tests, NULL, NULL);
}
