/* Flags that only a stage's program can judge are given to it with --check-flags. When it refuses
 * them, they are given again, each time with one setting more: the first that is refused is wrong. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/process.h"
#include "gpu/gpus.h"
#include "stages/policy/policy.h"
#include "stages/settings/settings.h"

enum { MAX_FLAGS = 24, LIMIT_S = 60 };

/* A setting as flags of a program: flag NULL where its text is flags already. */
typedef struct {
    SettingId id;
    const char *flag;
} FlagOf;

typedef struct {
    const char *program, *inputs; /* inputs: flags that stand for files of the run */
    int trains;
    FlagOf flags[MAX_FLAGS]; /* ends at the first without flag and text */
} ProgramCheck;

#define LAST                \
    {                       \
        SETTING_COUNT, NULL \
    }
#define SEEDED                 \
    {                          \
        SETTING_SEED, "--seed" \
    }
#define SHARED_ENGINE             \
    {SETTING_ENGINE, "--engine"}, \
    {                             \
        SETTING_GPUS, "--gpus"    \
    }
#define SHARED_TRAINING                                                      \
    SHARED_ENGINE, {SETTING_LORA, "--lora"}, {SETTING_TRAINER, "--trainer"}, \
        {SETTING_TRAINING, NULL}, SEEDED

static const ProgramCheck checks[] = {
    {"quern-collect",
     "",
     0,
     {{SETTING_TEACHERS, "--teachers"}, {SETTING_COLLECT, NULL}, SEEDED, LAST}},
    {"quern-filter", "", 0, {{SETTING_FILTER, NULL}, {SETTING_STYLE, "--style"}, SEEDED, LAST}},
    {"quern-prompt", "", 0, {{SETTING_SELFSUP_PROMPT_FLAGS, NULL}, LAST}},
    {"quern-prompt",
     "",
     0,
     {{SETTING_PROMPT_FLAGS, NULL}, {SETTING_STYLE, "--style"}, SEEDED, LAST}},
    {"quern-sample",
     "",
     0,
     {SHARED_ENGINE, {SETTING_SELFSUP_COPIES, NULL}, {SETTING_SAMPLE, NULL}, SEEDED, LAST}},
    {"quern-review", "", 0, {{SETTING_JUDGE, "--judge"}, LAST}},
    {"quern-sample", "", 0, {{SETTING_COPIES, NULL}, LAST}},
    {"quern-sample", "", 0, {{SETTING_REPORT_SAMPLES, "--copies"}, LAST}},
    {"quern-sft", "", 1, {SHARED_TRAINING, {SETTING_SMALL_MODEL, NULL}, {SETTING_SFT, NULL}, LAST}},
    {"quern-selfsup", "--base .", 1, {SHARED_TRAINING, {SETTING_SELFSUP, NULL}, LAST}},
    {"quern-crl", "--base . --reference .", 1, {SHARED_TRAINING, {SETTING_CRL, NULL}, LAST}},
};

/* The setting that a part of a setting comes from. */
static SettingId whole(SettingId id)
{
    return id == SETTING_PROMPT_FLAGS || id == SETTING_COPIES ? SETTING_PROMPTS
           : id == SETTING_SELFSUP_PROMPT_FLAGS || id == SETTING_SELFSUP_COPIES
               ? SETTING_SELFSUP_PROMPTS
               : id;
}

static void add_setting(const Settings *s, const FlagOf *f, Buffer *command)
{
    const char *text = setting_text(s, f->id);
    if (!*text || (f->id == SETTING_TEACHERS && !strcmp(text, "none"))) return;
    char *word = setting_shell_word(text);
    if (!f->flag)
        buffer_printf(command, " %s", text);
    else
        buffer_printf(command, " %s %s", f->flag, word);
    free(word);
}

/* 1: the program takes its flags with the first n settings; 0: it does not, and said holds its
 * sentence; -1. */
static int ask(const Settings *s, const ProgramCheck *c, int n, Buffer *said, Error *err)
{
    char program[4096];
    Buffer command;
    ProcessResult result;
    if (process_find_program(c->program, program, sizeof program, err)) return -1;
    buffer_init(&command, 1 << 16);
    buffer_printf(&command, "exec \"$1\" --check-flags %s", c->inputs);
    if (!strcmp(c->program, "quern-sft") && *s->checkpoint) buffer_puts(&command, " --base .");
    for (int i = 0; i < n; i++) add_setting(s, &c->flags[i], &command);
    const char *const argv[] = {"bash", "-c", command.data, "the shell", program, NULL};
    int rc = process_run(argv, &(ProcessOptions){.timeout_s = LIMIT_S}, NULL, said, &result, err);
    buffer_release(&command);
    if (rc) return -1;
    if (result.exit_code == 0) return 1;
    if (result.exit_code == EXIT_STATUS_USAGE) return 0;
    return error_set(err, ERROR_CHILD, "%s --check-flags ended with exit %d: %s", c->program,
                     result.exit_code, said->data);
}

static int refuse(const ProgramCheck *c, int n, Buffer *said, Error *err)
{
    const char *text = said->data;
    size_t len = strlen(c->program);
    if (!strncmp(text, c->program, len) && !strncmp(text + len, ": ", 2)) text += len + 2;
    return error_set(err, ERROR_USAGE, "%s: %.*s",
                     n ? setting_table[whole(c->flags[n - 1].id)].name : c->program,
                     (int)strcspn(text, "\n"), text);
}

static int check_program(const Settings *s, const ProgramCheck *c, Error *err)
{
    Buffer said;
    int count = 0, n = 0;
    while (c->flags[count].id != SETTING_COUNT) count++;
    buffer_init(&said, 1 << 14);
    int rc = ask(s, c, count, &said, err);
    if (!rc)
        while ((rc = ask(s, c, n, &said, err)) == 1 && n < count) n++;
    if (!rc) refuse(c, n, &said, err);
    buffer_release(&said);
    return rc == 1 ? 0 : -1;
}

static int check_engine(const Settings *s, Error *err)
{
    const char *engine = setting_text(s, SETTING_ENGINE);
    Gpu gpus[GPUS_MAX];
    Error why = {0};
    if (strncmp(engine, "cuda:", 5)) return 0;
    int n = gpus_list(gpus, GPUS_MAX, &why);
    for (int i = 0; i < n; i++)
        if (gpus[i].ordinal == atoi(engine + 5)) return 0;
    return setting_refuse(s, SETTING_ENGINE, err, ": there is no %s here%s%s", engine,
                          n < 0 ? ": " : "", n < 0 ? why.text : "");
}

/* A job for a class that no evaluator has would wait for ever. */
static int check_served(const Settings *s, SettingId id, const char *word, size_t len, Error *err)
{
    const char *redis = getenv("QUERN_REDIS");
    if ((redis && *redis) || setting_has_word(s->local_classes, word, len)) return 0;
    return setting_refuse(s, id, err,
                          ": no evaluator of DEVICES=%s has the class %.*s, and QUERN_REDIS names "
                          "no queue that others serve",
                          setting_text(s, SETTING_DEVICES), (int)len, word);
}

static int check_evaluators(const Settings *s, Error *err)
{
    const char *p = setting_text(s, SETTING_CLASSES), *word;
    char *judge = memory_strdup(setting_text(s, SETTING_DEVICE));
    size_t n;
    setting_replace_letter(judge, ' ', '+');
    int rc = check_served(s, SETTING_DEVICE, judge, strlen(judge), err);
    free(judge);
    while (!rc && (word = setting_next_word(&p, &n))) /* a simulated one brings its evaluator */
        if (n < 4 || memcmp(word, "sim:", 4)) rc = check_served(s, SETTING_CLASSES, word, n, err);
    return rc;
}

/* A checkpoint that no stage can use is refused before a stage is paid. An outside trainer may know more
 * kinds of them. */
static int check_checkpoint(const Settings *s, Error *err)
{
    Error why;
    const char *chat = setting_text(s, SETTING_CHAT);
    if (*chat && (!*s->checkpoint || *setting_text(s, SETTING_TRAINER)))
        return setting_refuse(s, SETTING_CHAT, err,
                              " is the template of a checkpoint that is trained here, with "
                              "POLICY=native:DIR or BASE=DIR and without TRAINER");
    policy_give_chat(chat);
    if (!*s->checkpoint || *setting_text(s, SETTING_TRAINER) || !policy_check(s->checkpoint, &why))
        return 0;
    return setting_refuse(s, *s->endpoint ? SETTING_BASE : SETTING_POLICY, err, ": %s", why.text);
}

int settings_check_programs(const Settings *s, Error *err)
{
    if (check_engine(s, err) || check_evaluators(s, err)) return -1;
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        if ((s->trained || !checks[i].trains) && check_program(s, &checks[i], err)) return -1;
    return check_checkpoint(s, err);
}
