/* Request bodies, replies, and the decision after each status, without a network. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "llm/endpoint.h"
#include "llm/retry.h"

static Error err;

static void test_bodies(void **state)
{
    (void)state;
    LlmOptions o = {
        .api = LLM_OPENAI, .model = "m", .temperature = 0.5, .max_tokens = 9, .system = "sys"};
    LlmDialect d = {0};
    char *s = llm_request_body(&o, &d, "a \"quoted\"\nline \xc3\xa9", 1, &err);
    assert_string_equal(s, "{\"model\":\"m\",\"messages\":[{\"role\":\"system\",\"content\":"
                           "\"sys\"},{\"role\":\"user\","
                           "\"content\":\"a \\\"quoted\\\"\\nline "
                           "\xc3\xa9\"}],\"max_tokens\":9,\"temperature\":0.5,\"seed\":1}");
    free(s);
    d = (LlmDialect){1, 1, 1};
    o.system = NULL;
    s = llm_request_body(&o, &d, "x", UINT64_MAX, &err);
    assert_string_equal(s, "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],"
                           "\"max_completion_tokens\":9}");
    free(s);
    d = (LlmDialect){0};
    s = llm_request_body(&o, &d, "x", UINT64_MAX, &err);
    assert_non_null(strstr(s, "\"seed\":2147483647"));
    free(s);
    o.api = LLM_ANTHROPIC;
    o.system = "sys";
    s = llm_request_body(&o, &d, "x", 5, &err);
    assert_string_equal(
        s,
        "{\"model\":\"m\",\"system\":\"sys\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],"
        "\"max_tokens\":9,\"temperature\":0.5}");
    free(s);
    assert_null(llm_request_body(&o, &d, "\xff", 5, &err));
    assert_non_null(strstr(err.text, "UTF-8"));
}

static void test_sampling_fields(void **state)
{
    (void)state;
    LlmOptions o = {.api = LLM_OPENAI,
                    .model = "m",
                    .temperature = 1,
                    .max_tokens = 9,
                    .top_p = 0.5,
                    .top_k = 7,
                    .min_p = 0.25,
                    .stop = "END"};
    LlmDialect d = {.no_seed = 1};
    char *s = llm_request_body(&o, &d, "x", 1, &err);
    assert_non_null(strstr(s, "\"top_p\":0.5,\"top_k\":7,\"min_p\":0.25,\"stop\":[\"END\"]}"));
    free(s);
    /* want_ids: ids, and no default of the server, which would change the distribution. */
    o = (LlmOptions){
        .api = LLM_OPENAI, .model = "m", .temperature = 1, .max_tokens = 9, .want_ids = 1};
    s = llm_request_body(&o, &d, "x", 1, &err);
    assert_non_null(strstr(
        s, "\"top_p\":1.0,\"top_k\":-1,\"min_p\":0.0,\"repetition_penalty\":1.0,\"logprobs\":true,"
           "\"return_token_ids\":true,\"return_tokens_as_token_ids\":true}"));
    free(s);
    d.no_ids = 1;
    s = llm_request_body(&o, &d, "x", 1, &err);
    assert_null(strstr(s, "top_k"));
    assert_null(strstr(s, "token_ids"));
    free(s);
    o = (LlmOptions){.api = LLM_ANTHROPIC, .model = "m", .max_tokens = 9, .stop = "END"};
    s = llm_request_body(&o, &d, "x", 1, &err);
    assert_non_null(strstr(s, "\"stop_sequences\":[\"END\"]"));
    free(s);
}

static int parse(LlmApi api, const char *body, LlmAnswer *a)
{
    return llm_reply_parse(api, body, strlen(body), a, &err);
}

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* Reasoning in front of the answer, with and without its opening tag. */
static void test_reasoning(void **state)
{
    (void)state;
    static const struct {
        const char *content, *text, *reasoning; /* reasoning NULL: none */
    } cases[] = {
        {"so\\n</think>\\n\\nfine", "fine", "so\n"},
        {"so</think>fine", "fine", "so"},
        {"</think>fine", "fine", ""},
        {"so</think>it said </think> here", "it said </think> here", "so"},
        {"<think>a</think>it said </think> here", "it said </think> here", "a"},
        {"so</think>\\n```\\n// </think>\\n```", "```\n// </think>\n```", "so"},
        {"```cuda\\n// </think>\\nint x;\\n```", "```cuda\n// </think>\nint x;\n```", NULL},
        {"perhaps\\n```cuda\\n// </think>\\n```\\nso</think>fine", "fine",
         "perhaps\n```cuda\n// </think>\n```\nso"},
        {"perhaps\\n```cuda\\nint x; // </think> </think>\\n </think>\\nfine", "fine",
         "perhaps\n```cuda\nint x; // </think> </think>\n "},
        {"fine", "fine", NULL},
    };
    char body[300];
    LlmAnswer a;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(body, sizeof body, "{\"choices\":[{\"message\":{\"content\":\"%s\"}}]}",
                 cases[i].content);
        assert_int_equal(parse(LLM_OPENAI, body, &a), 0);
        assert_string_equal(a.text, cases[i].text);
        assert_int_equal(a.reasoning != NULL, cases[i].reasoning != NULL);
        if (a.reasoning) assert_string_equal(a.reasoning, cases[i].reasoning);
        llm_answer_release(&a);
    }
    /* The server sent the reasoning separately: this tag belongs to the answer. */
    assert_int_equal(
        parse(LLM_OPENAI,
              "{\"choices\":[{\"message\":{\"content\":\"a </think> b\",\"reasoning\":\"r\"}}]}",
              &a),
        0);
    assert_string_equal(a.text, "a </think> b");
    assert_string_equal(a.reasoning, "r");
    llm_answer_release(&a);
}

static void test_openai_replies(void **state)
{
    (void)state;
    LlmAnswer a;
    assert_int_equal(parse(LLM_OPENAI,
                           "{\"choices\":[{\"message\":{\"content\":\"hi\",\"reasoning\":\"r\","
                           "\"reasoning_content\":\"c\"},"
                           "\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1,"
                           "\"completion_tokens\":-4},\"model\":\"q\"}",
                           &a),
                     0);
    assert_string_equal(a.text, "hi");
    assert_string_equal(a.reasoning, "r");
    assert_string_equal(a.model, "q");
    assert_int_equal(a.prompt_tokens, 1);
    assert_int_equal(a.completion_tokens, 0);
    llm_answer_release(&a);
}

static void test_empty_answers(void **state)
{
    (void)state;
    LlmAnswer a;
    /* Reasoning up to the token limit: an empty answer, not an error. */
    assert_int_equal(parse(LLM_OPENAI,
                           "{\"choices\":[{\"message\":{\"content\":null,\"reasoning_content\":"
                           "\"c\"},\"finish_reason\":\"length\"}]}",
                           &a),
                     0);
    assert_string_equal(a.text, "");
    assert_string_equal(a.finish, "length");
    llm_answer_release(&a);
    assert_int_equal(parse(LLM_OPENAI,
                           "{\"choices\":[{\"message\":{\"content\":\" "
                           "<think>abc\"},\"finish_reason\":\"length\"}]}",
                           &a),
                     0);
    assert_string_equal(a.text, "");
    assert_string_equal(a.reasoning, "abc");
    llm_answer_release(&a);
    assert_int_equal(parse(LLM_OPENAI,
                           "{\"choices\":[{\"message\":{\"content\":[{\"type\":\"text\",\"text\":"
                           "\"a\"},{\"type\":\"x\"},{\"type\":\"text\",\"text\":\"b\"}]}}]}",
                           &a),
                     0);
    assert_string_equal(a.text, "ab");
    llm_answer_release(&a);
    assert_int_equal(parse(LLM_OPENAI,
                           "{\"choices\":[{\"message\":{\"content\":null,\"refusal\":\"no\"}}]}",
                           &a),
                     0);
    assert_true(a.filtered);
    llm_answer_release(&a);
}

/* Escapes that a text cannot hold become U+FFFD. After a backslash they are plain text. */
static void test_escapes(void **state)
{
    (void)state;
    LlmAnswer a;
    assert_int_equal(
        parse(LLM_OPENAI,
              "{\"choices\":[{\"message\":{\"content\":\"a\\u0000b\\\\u0000\\u0000\"}}]}", &a),
        0);
    assert_string_equal(a.text, "a\xef\xbf\xbd"
                                "b\\u0000\xef\xbf\xbd");
    llm_answer_release(&a);
    /* Halves of surrogate pairs, and whole pairs. */
    assert_int_equal(parse(LLM_OPENAI,
                           "{\"choices\":[{\"message\":{\"content\":\"\\ud83d|\\uDE00|"
                           "\\ud83d\\ude00|\\ud83d\\ud83d\\ude00|"
                           "\\ud83d\\u0041|\\\\ud83d|\\ud83d\\n\\ud83d\"}}]}",
                           &a),
                     0);
    assert_string_equal(a.text, REPLACEMENT "|" REPLACEMENT "|\xf0\x9f\x98\x80|" REPLACEMENT
                                            "\xf0\x9f\x98\x80|" REPLACEMENT "A|\\ud83d|" REPLACEMENT
                                            "\n" REPLACEMENT);
    llm_answer_release(&a);
}

static void test_bad_replies(void **state)
{
    (void)state;
    LlmAnswer a;
    static const char *const bad[] = {"",
                                      "[]",
                                      "{}",
                                      "{\"choices\":{}}",
                                      "{\"choices\":[]}",
                                      "{\"choices\":[1]}",
                                      "{\"choices\":[{\"message\":{}}]}",
                                      "{\"choices\":[{\"message\":{\"content\":7}}]}",
                                      "{\"error\":{\"message\":\"m\"}}",
                                      "{\"choices\":[{\"message\":{\"content\":\"x",
                                      "null",
                                      "\xff",
                                      "{\"choices\":[{\"message\":{\"content\":\"\\ud83",
                                      "{\"choices\":[{\"message\":{\"content\":\"\\ud83d\\ude0",
                                      "\\"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(parse(LLM_OPENAI, bad[i], &a), -1);
        assert_true(strncmp(err.text, "reply", 5) == 0);
        assert_int_equal(parse(LLM_ANTHROPIC, bad[i], &a), -1);
    }
}

static void test_token_ids(void **state)
{
    (void)state;
    LlmAnswer a;
    assert_int_equal(parse(LLM_OPENAI,
                           "{\"prompt_token_ids\":[5,6],\"choices\":[{\"token_ids\":[7,8,2],"
                           "\"message\":{\"content\":\"hi\"},"
                           "\"logprobs\":{\"content\":[{\"token\":\"a\",\"logprob\":-0.5},{"
                           "\"logprob\":-1},{\"logprob\":0}]}}]}",
                           &a),
                     0);
    assert_int_equal(a.n_prompt_ids, 2);
    assert_int_equal(a.prompt_ids[1], 6);
    assert_int_equal(a.n_ids, 3);
    assert_int_equal(a.ids[2], 2);
    assert_true(a.logprobs[0] == -0.5 && a.logprobs[2] == 0);
    llm_answer_release(&a);
    /* Older servers send the ids in place of the tokens' texts. */
    assert_int_equal(
        parse(LLM_OPENAI,
              "{\"choices\":[{\"message\":{\"content\":\"hi\"},\"logprobs\":{\"content\":["
              "{\"token\":\"token_id:7\",\"logprob\":-0.5},{\"token\":\"token_id:2\",\"logprob\":-"
              "1}]}}]}",
              &a),
        0);
    assert_int_equal(a.n_ids, 2);
    assert_int_equal(a.ids[0], 7);
    assert_null(a.prompt_ids);
    assert_true(a.logprobs[1] == -1);
    llm_answer_release(&a);
    static const char *const none[] = {
        "\"token_ids\":[-1]",
        "\"token_ids\":[\"7\"]",
        "\"token_ids\":[4294967296]",
        "\"token_ids\":7",
        "\"token_ids\":[]",
        "\"logprobs\":{\"content\":[{\"token\":\"hi\",\"logprob\":-1}]}",
        "\"logprobs\":{\"content\":[{\"token\":\"token_id:x\",\"logprob\":-1}]}",
        "\"logprobs\":null"};
    static const char *const no_logprobs[] = {
        "{\"content\":[{\"logprob\":-1}]}",
        "{\"content\":[{\"logprob\":-1},{}]}",
        "{\"content\":[{\"logprob\":-1},{\"logprob\":1}]}",
        "{\"content\":[{\"logprob\":-1},{\"logprob\":-99999}]}",
        "[]",
        "null"};
    char body[300];
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        snprintf(body, sizeof body, "{\"choices\":[{\"message\":{\"content\":\"hi\"},%s}]}",
                 none[i]);
        assert_int_equal(parse(LLM_OPENAI, body, &a), 0);
        assert_true(!a.ids && !a.n_ids && !a.logprobs);
        llm_answer_release(&a);
    }
    for (size_t i = 0; i < sizeof no_logprobs / sizeof *no_logprobs; i++) {
        snprintf(body, sizeof body,
                 "{\"choices\":[{\"message\":{\"content\":\"hi\"},\"token_ids\":[1,2],\"logprobs\":"
                 "%s}]}",
                 no_logprobs[i]);
        assert_int_equal(parse(LLM_OPENAI, body, &a), 0);
        assert_true(a.n_ids == 2 && !a.logprobs);
        llm_answer_release(&a);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *body, *message;
    } cases[] = {
        {"{\"error\":{\"message\":\"a\\nb\"}}", "a b"},
        {"{\"error\":\"plain\"}", "plain"},
        {"{\"error\":\"\\ud83d\"}", REPLACEMENT},
        {"{\"message\":\"m\"}", "m"},
        {"{\"detail\":\"d\"}", "d"},
        {"{\"error\":{}}", ""},
        {"<html>", ""},
        {"", ""},
        {"[1]", ""},
        {"{\"error\":null}", ""},
    };
    LlmRefusal r;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        llm_refusal_parse(cases[i].body, strlen(cases[i].body), &r);
        assert_string_equal(r.message, cases[i].message);
    }
}

static void test_classify(void **state)
{
    (void)state;
    LlmRefusal none = {0}, quota = {.code = "insufficient_quota"},
               billing = {.type = "billing_error"};
    static const int again[] = {0, 408, 409, 429, 500, 502, 503, 504, 529},
                     stop[] = {401, 402, 403, 404}, fail[] = {201, 301, 400, 413, 422};
    assert_int_equal(llm_classify(200, &none, NULL), LLM_TAKE);
    for (size_t i = 0; i < sizeof again / sizeof *again; i++) {
        assert_int_equal(llm_classify(again[i], &none, NULL), LLM_AGAIN);
        assert_int_equal(llm_classify(again[i], &none, "false"), LLM_FAIL);
    }
    for (size_t i = 0; i < sizeof stop / sizeof *stop; i++)
        assert_int_equal(llm_classify(stop[i], &none, "true"), LLM_STOP);
    for (size_t i = 0; i < sizeof fail / sizeof *fail; i++) {
        assert_int_equal(llm_classify(fail[i], &none, NULL), LLM_FAIL);
        assert_int_equal(llm_classify(fail[i], &none, "true"), LLM_AGAIN);
    }
    assert_int_equal(llm_classify(429, &quota, NULL), LLM_STOP);
    assert_int_equal(llm_classify(400, &billing, NULL), LLM_STOP);
}

static void test_adapt(void **state)
{
    (void)state;
    LlmOptions o = {.api = LLM_OPENAI};
    LlmDialect d = {0};
    LlmRefusal tokens = {.code = "unsupported_parameter", .param = "max_tokens"},
               heat = {.message = "`temperature` is deprecated for this model"},
               other = {.message = "temperature is too high"};
    assert_int_equal(llm_adapt(&d, &o, 400, &other), 0);
    assert_int_equal(llm_adapt(&d, &o, 500, &tokens), 0);
    assert_int_equal(llm_adapt(&d, &o, 400, &tokens), 1);
    assert_int_equal(llm_adapt(&d, &o, 400, &tokens), 0); /* only once */
    assert_int_equal(llm_adapt(&d, &o, 400, &heat), 1);
    assert_int_equal(llm_adapt(&d, &o, 400, &heat), 0);
    assert_true(d.max_completion_tokens && d.no_temperature && !d.no_seed && !d.no_ids);
    LlmRefusal ids = {.message = "Unrecognized request argument supplied: top_k"};
    assert_int_equal(llm_adapt(&d, &o, 400, &ids), 0); /* it was not sent */
    o.want_ids = 1;
    assert_int_equal(llm_adapt(&d, &o, 400, &ids), 1);
    assert_int_equal(llm_adapt(&d, &o, 400, &ids), 0);
    assert_true(d.no_ids);
}

static void test_delay(void **state)
{
    (void)state;
    Random r;
    random_init(&r, 1, 1);
    double longest = 0;
    for (int i = 0; i < 2000; i++) {
        double d = llm_retry_delay(&r, i % 40, -1);
        assert_true(d >= 0 && d < 60);
        if (d > longest) longest = d;
        assert_true(llm_retry_delay(&r, 1, 7) >= 7);
    }
    assert_true(longest > 50);
}

static void test_endpoint(void **state)
{
    (void)state;
    static const struct {
        const char *base, *where;
    } cases[] = {
        {"http://h:8000/v1", "http://h:8000/v1/chat/completions"},
        {"http://h:8000/v1/", "http://h:8000/v1/chat/completions"},
        {"https://u:secret@h/v1?k=secret", "https://h/v1/chat/completions"},
        {"http://h/v1/chat/completions", "http://h/v1/chat/completions"},
        {"http://h", "http://h/chat/completions"},
    };
    LlmOptions o = {.api = LLM_OPENAI};
    LlmEndpoint e;
    unsetenv("OPENAI_API_KEY");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        o.base_url = cases[i].base;
        assert_int_equal(llm_endpoint_init(&e, &o, &err), 0);
        assert_string_equal(e.where, cases[i].where);
        assert_null(e.key);
        llm_endpoint_release(&e);
    }
    static const char *const routes[][2] = {{"http://h:8000/v1", "http://h:8000/v1/load"},
                                            {"http://h:8000/v1/", "http://h:8000/v1/load"},
                                            {"http://h/v1/chat/completions", "http://h/v1/load"},
                                            {"http://h", "http://h/v1/load"},
                                            {"http://h/a/v1?k=1", "http://h/a/v1/load"}};
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        o.base_url = routes[i][0];
        assert_int_equal(llm_endpoint_route(&e, &o, "/v1/load", &err), 0);
        assert_string_equal(e.where, routes[i][1]);
        llm_endpoint_release(&e);
    }
    static const char *const bad[] = {"file:///etc/passwd", "http://", "", "h/v1 x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        o.base_url = bad[i];
        assert_int_equal(llm_endpoint_init(&e, &o, &err), -1);
    }
    setenv("OPENAI_API_KEY", "0123456789abcdef\n", 1);
    o.base_url = "http://h";
    assert_int_equal(llm_endpoint_init(&e, &o, &err), 0);
    char text[] = "a\0b 0123456789abcdef0123456789abcdef 0123456789abcde";
    llm_endpoint_redact(&e, text, sizeof text - 1);
    assert_memory_equal(text, "a\0b ******************************** 0123456789abcde", sizeof text);
    llm_endpoint_release(&e);
    setenv("OPENAI_API_KEY", "EMPTY", 1);
    assert_int_equal(llm_endpoint_init(&e, &o, &err), 0);
    char word[] = "EMPTY";
    llm_endpoint_redact(&e, word, 5);
    assert_string_equal(word, "EMPTY");
    llm_endpoint_release(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bodies),    cmocka_unit_test(test_sampling_fields),
        cmocka_unit_test(test_token_ids), cmocka_unit_test(test_openai_replies),
        cmocka_unit_test(test_reasoning), cmocka_unit_test(test_empty_answers),
        cmocka_unit_test(test_escapes),   cmocka_unit_test(test_bad_replies),
        cmocka_unit_test(test_refusals),  cmocka_unit_test(test_classify),
        cmocka_unit_test(test_adapt),     cmocka_unit_test(test_delay),
        cmocka_unit_test(test_endpoint),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("request", tests, NULL, NULL);
}
