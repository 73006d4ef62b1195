/* Settings: the reader of files of settings, sources and their order, words of a shell, stamps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/memory.h"
#include "stages/settings/fragment.h"
#include "stages/settings/settings.h"

static void write_file(const char *path, const char *text)
{
    Error err;
    assert_int_equal(file_write_atomic(path, text, strlen(text), &err), 0);
}

/* Every assignment as "NAME?=VALUE@WHERE;" or "NAME=VALUE@WHERE;". */
static int note(void *ctx, const FragmentLine *line, Error *err)
{
    (void)err;
    return buffer_printf(ctx, "%s%s=%s@%s;", line->name, line->weak ? "?" : "", line->value,
                         line->where);
}

static void reads(const char *text, const char *expected)
{
    Buffer b;
    Error err = {0};
    buffer_init(&b, 1 << 16);
    write_file("a.mk", text);
    if (fragment_read("a.mk", ".", note, &b, &err)) fail_msg("%s", err.text);
    assert_string_equal(b.data, expected);
    buffer_release(&b);
}

static void refuses(const char *text, const char *sentence)
{
    Buffer b;
    Error err = {0};
    buffer_init(&b, 1 << 16);
    write_file("a.mk", text);
    assert_int_equal(fragment_read("a.mk", ".", note, &b, &err), -1);
    if (!strstr(err.text, sentence)) fail_msg("'%s' instead of '%s'", err.text, sentence);
    buffer_release(&b);
}

static void assignments(void **state)
{
    (void)state;
    reads("", "");
    reads("\n# only\n  \n", "");
    reads("A = 1\nB:=2\nC ::= 3\nD?=4", "A=1@a.mk:1;B=2@a.mk:2;C=3@a.mk:3;D?=4@a.mk:4;");
    reads("  A   =  x  y  \r\n", "A=x  y@a.mk:1;");
    reads("A =\n", "A=@a.mk:1;");
    reads("A = b=c?=d\n", "A=b=c?=d@a.mk:1;");
}

static void comments_and_escapes(void **state)
{
    (void)state;
    reads("A = 1 # 2\n", "A=1@a.mk:1;");
    reads("A = 1 \\# 2\n", "A=1 # 2@a.mk:1;");
    reads("A = 1 \\\\# 2\n", "A=1 \\@a.mk:1;");
    reads("A = \\n \\x\n", "A=\\n \\x@a.mk:1;");
    reads("A = $$HOME $$$$\n", "A=$HOME $$@a.mk:1;");
    reads("A = it's \"so\" `x`; (y\n", "A=it's \"so\" `x`; (y@a.mk:1;");
}

static void joined_lines(void **state)
{
    (void)state;
    reads("A = 1 \\\n  2\\\n3\nB = 4\n", "A=1 2 3@a.mk:1;B=4@a.mk:4;");
    reads("# a \\\nA = 1\nB = 2\n", "B=2@a.mk:3;");
    reads("A = 1\\\\\nB = 2\n", "A=1\\\\@a.mk:1;B=2@a.mk:2;");
    reads("A = 1 \\", "A=1 \\@a.mk:1;");
}

static void included_files(void **state)
{
    (void)state;
    Error err;
    assert_int_equal(file_mkdirs("in", &err), 0);
    write_file("in/b.mk", "B = 1\ninclude c.mk\n");
    write_file("in/c.mk", "C = 1\n");
    reads("include in/b.mk in/c.mk\nA = 1\n",
          "B=1@in/b.mk:1;C=1@in/c.mk:1;C=1@in/c.mk:1;A=1@a.mk:2;");
    refuses("include none.mk\n", "a.mk:1: include none.mk: there is no such file");
    refuses("include a.mk\n", "in a chain of at most 8");
}

static void other_lines(void **state)
{
    (void)state;
    refuses("A\n", "a.mk:1: expected NAME = VALUE, NAME ?= VALUE or include FILE, found 'A'");
    refuses("A = 1\nexport B = 2\n", "a.mk:2: expected NAME = VALUE");
    refuses("define A\nendef\n", "a.mk:1: expected NAME = VALUE");
    refuses("= 1\n", "a.mk:1: expected NAME = VALUE");
    refuses("A B = 1\n", "a.mk:1: expected NAME = VALUE");
    refuses("all: ; rm x\n", "found 'all: ; rm x'");
    refuses("\trm x\n", "and no command of a rule, found 'rm x'");
    refuses("A += 1\n", "+= is not read here");
    refuses("A = $(B)\n", "a.mk:1: A: expected a plain value");
    refuses("A = 1$\n", "a.mk:1: A: expected a plain value");
    refuses("include \n", "a.mk:1: expected NAME = VALUE");
}

/* ---- sources ---- */

static void resolve(const char *const *words, int n, Settings *s)
{
    Error err = {0};
    *s = (Settings){.share = getenv("QUERN_SOURCE"), .found = ""};
    if (settings_resolve(words, n, s, &err) || settings_check(s, &err) || settings_derive(s, &err))
        fail_msg("%s", err.text);
}

static void is(const Settings *s, SettingId id, const char *text, const char *origin)
{
    assert_string_equal(setting_text(s, id), text);
    assert_string_equal(s->value[id].origin, origin);
}

static void order_of_sources(void **state)
{
    (void)state;
    Settings s;
    write_file("own.mk", "ROUNDS = 5\nSEED = 6\nGPUS = 7\nRUN ?= own\n");
    setenv("SEED", "3", 1);
    setenv("GPUS", "4", 1);
    resolve((const char *const[]){"CONFIG=own.mk", "ROUNDS= 2 "}, 2, &s);
    is(&s, SETTING_ROUNDS, "2", "the command line");
    is(&s, SETTING_SEED, "3", "the environment");
    is(&s, SETTING_GPUS, "7", "own.mk:3");
    is(&s, SETTING_RUN, "own", "own.mk:4");
    is(&s, SETTING_POLICY, "small", "the default");
    assert_non_null(strstr(s.value[SETTING_PROMPTS].origin, "configs/default.mk:"));
    settings_release(&s);
    unsetenv("SEED");
    unsetenv("GPUS");
}

static void refuses_words(const char *word, ErrorCode code, const char *sentence)
{
    Error err = {0};
    Settings s = {.share = getenv("QUERN_SOURCE"), .found = ""};
    int rc = settings_resolve(&word, 1, &s, &err) || settings_check(&s, &err);
    assert_int_equal(rc, 1);
    assert_string_equal(err.text, sentence);
    assert_int_equal(err.code, code);
    settings_release(&s);
}

static void wrong_words(void **state)
{
    (void)state;
    refuses_words("ROUND=3", ERROR_UNKNOWN_NAME,
                  "ROUND=3: there is no such variable; did you mean ROUNDS?");
    refuses_words("ROUNDS=x", ERROR_USAGE, "ROUNDS=x: expected a whole number");
    refuses_words("CLASSES=h100", ERROR_USAGE,
                  "CLASSES=h100: h100: no evaluator has this class; the simulator's is sim:h100");
    refuses_words("DEVICES=cuda:0", ERROR_USAGE, "DEVICES=cuda:0: there is no cuda:0 here");
    refuses_words("BASE=x", ERROR_USAGE,
                  "BASE=x names the checkpoint that POLICY=openai:MODEL serves; POLICY is small");
    refuses_words("LORA=8", ERROR_USAGE,
                  "LORA=8 needs a checkpoint to start from: POLICY=native:DIR, or "
                  "POLICY=openai:MODEL with BASE=DIR");
}

/* ---- what follows ---- */

static void shell_words(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {{"a=1", "'a=1'"}, {"", "''"},
                                           {"a b", "'a b'"}, {"it's", "'it'\\''s'"},
                                           {"$x#", "'$x#'"}, {"sim:h100", "sim:h100"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char *word = setting_shell_word(pairs[i][0]);
        assert_string_equal(word, pairs[i][1]);
        free(word);
    }
    char *joined = setting_join(", a,,b  c,", '+');
    assert_string_equal(joined, "a+b+c");
    free(joined);
}

static void stamps_hold_each_setting(void **state)
{
    (void)state;
    Settings s;
    Buffer b;
    buffer_init(&b, 1 << 20);
    write_file("config.json", "{}");
    resolve((const char *const[]){"PROFILE=smoke", "POLICY=native:.", "LORA=8",
                                  "TRAINER=it's  $x # y", "ENGINE=cuda:1", "GPUS=2",
                                  "TRAINING=--rslora --max-tokens 64 --lora-alpha=3", "SEED=7"},
            8, &s);
    settings_print(&s, &b);
    assert_non_null(strstr(b.data, "\noverride TRAINER := it's  $$x $(hash) y\n"));
    assert_non_null(strstr(b.data, "\noverride base := --base .\n"));
    assert_non_null(strstr(b.data,
                           "\noverride training := --engine cuda:1 --gpus 2 --lora 8 "
                           "--rslora --lora-alpha=3 --trainer 'it'\\''s  $$x $(hash) y'\n"));
    assert_non_null(strstr(b.data, "\noverride memory := --max-tokens 64\n"));
    assert_non_null(strstr(b.data, "--trainer 'it'\\''s $$x $(hash) y' SEED=7 "));
    for (SettingId i = 0; i < SETTING_COUNT; i++)
        for (int k = 0; k < STAMP_COUNT; k++) {
            char *line = memory_printf("override stamp_%s := ", stamp_names[k]);
            const char *stamp = strstr(b.data, line);
            assert_non_null(stamp);
            char *text = memory_strndup(stamp, strcspn(stamp, "\n")),
                 *part = memory_printf(" %s=", setting_table[i].name);
            assert_int_equal(strstr(text, part) != NULL, (setting_table[i].stamps >> k) & 1);
            free(part);
            free(text);
            free(line);
        }
    buffer_release(&b);
    settings_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(assignments),
        cmocka_unit_test(comments_and_escapes),
        cmocka_unit_test(joined_lines),
        cmocka_unit_test(included_files),
        cmocka_unit_test(other_lines),
        cmocka_unit_test(order_of_sources),
        cmocka_unit_test(wrong_words),
        cmocka_unit_test(shell_words),
        cmocka_unit_test(stamps_hold_each_setting),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("settings", tests, NULL, NULL);
}
