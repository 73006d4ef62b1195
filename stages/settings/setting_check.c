/* Checks of the settings, each with one sentence: NAME=VALUE, what was expected. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/words.h"
#include "stages/data/samples.h"
#include "stages/policy/budget.h"
#include "stages/settings/settings.h"
#include "tasks/task.h"

enum { MAX_ROUNDS = 1000 };

/* ---- names ---- */

/* Make, the shell and the file system give most other characters a meaning. */
static const char path_letters[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-+/";

static int is_folder_name(const char *text)
{
    if (text[strspn(text, path_letters)]) return 0;
    for (const char *p = text;; p++) {
        size_t n = strcspn(p, "/");
        if (!n || (n == 1 && *p == '.') || (n == 2 && p[0] == '.' && p[1] == '.')) return 0;
        p += n;
        if (!*p) return 1;
    }
}

static int check_run(Settings *s, Error *err)
{
    const char *runs = setting_text(s, SETTING_RUNS);
    setting_default(s, SETTING_RUN, setting_text(s, SETTING_PROFILE), "the profile's name");
    if (!*runs || runs[strspn(runs, path_letters)])
        return setting_refuse(s, SETTING_RUNS, err,
                              ": expected a folder's path of letters, digits and . _ - + / alone");
    if (!is_folder_name(setting_text(s, SETTING_RUN)))
        return setting_refuse(s, SETTING_RUN, err,
                              ": expected a folder's name below %s/, of letters, digits and "
                              ". _ - + / alone, without a part . or ..",
                              runs);
    return 0;
}

static int check_task_names(const Settings *s, const char *names, Error *err)
{
    char **paths;
    int n;
    Error inner;
    if (!*names)
        return setting_refuse(s, SETTING_TASKS, err,
                              " names no task; leave it out for all of them");
    if (taskset_paths(setting_text(s, SETTING_TASK_ROOT), names, &paths, &n, &inner))
        return setting_refuse(s, SETTING_TASKS, err, ": %s", inner.text);
    taskset_paths_free(paths, n);
    return 0;
}

static int check_tasks(Settings *s, Error *err)
{
    char *root =
        strcmp(s->share, ".") ? memory_printf("%s/tasks", s->share) : memory_strdup("tasks");
    setting_default(s, SETTING_TASK_ROOT, root, "the default");
    free(root);
    ErrorBudget budget;
    Error why;
    if (budget_named(setting_text(s, SETTING_TOLERANCE), &budget, &why))
        return setting_refuse(s, SETTING_TOLERANCE, err, ": %s", why.text);
    setenv("PRECISION", setting_text(s, SETTING_PRECISION), 1); /* tasks are read with them */
    setenv("TOLERANCE", setting_text(s, SETTING_TOLERANCE), 1);
    char *names = setting_join(setting_text(s, SETTING_TASKS), ',');
    int rc = check_task_names(s, names, err);
    setting_replace(s, SETTING_TASKS, names);
    return rc;
}

/* Whether text is KIND and a name: has_name("openai:M", "openai:"). */
static int has_name(const char *text, const char *kind)
{
    size_t n = strlen(kind);
    return !strncmp(text, kind, n) && text[n];
}

static int check_teacher(const Settings *s, const char *name, Error *err)
{
    if (has_name(name, "file:"))
        return file_exists(name + 5)
                   ? 0
                   : setting_refuse(s, SETTING_TEACHERS, err, ": there is no file %s", name + 5);
    if (has_name(name, "dir:"))
        return file_exists(name + 4)
                   ? 0
                   : setting_refuse(s, SETTING_TEACHERS, err, ": there is no folder %s", name + 4);
    if (!strcmp(name, "generator") || has_name(name, "openai:") || has_name(name, "anthropic:"))
        return 0;
    if (!strcmp(name, "none"))
        return setting_refuse(s, SETTING_TEACHERS, err, ": expected none alone, or teachers");
    return setting_refuse(s, SETTING_TEACHERS, err,
                          ": expected generator, openai:MODEL, anthropic:MODEL, dir:PATH, "
                          "file:PATH or none, found '%s'",
                          name);
}

static int check_teachers(Settings *s, Error *err)
{
    const char *list = setting_text(s, SETTING_TEACHERS), *word;
    char *names = setting_join(list, ',');
    int rc = 0;
    size_t n;
    if (!*names)
        rc = setting_refuse(s, SETTING_TEACHERS, err,
                            " names no teacher; expected generator, openai:MODEL, "
                            "anthropic:MODEL, dir:PATH, file:PATH, by comma");
    while (!rc && strcmp(names, "none") && (word = setting_next_word(&list, &n))) {
        char *name = memory_strndup(word, n);
        rc = check_teacher(s, name, err);
        free(name);
    }
    setting_replace(s, SETTING_TEACHERS, names);
    return rc;
}

/* ---- values by their kind ---- */

static int is_whole(const char *text)
{
    size_t n = strlen(text);
    return n && n <= 15 && strspn(text, "0123456789") == n;
}

/* "brief|full" as "brief or full", "auto|on|off" as "auto, on or off". */
static void choices_text(const char *choices, char *out, size_t size)
{
    size_t n = 0;
    for (const char *p = choices; *p && n + 5 < size; p++) {
        const char *between = strchr(p + 1, '|') ? ", " : " or ";
        n +=
            (size_t)snprintf(out + n, size - n, "%.*s", *p == '|' ? 4 : 1, *p == '|' ? between : p);
    }
}

static int check_kind(const Settings *s, SettingId id, Error *err)
{
    const SettingSpec *spec = &setting_table[id];
    const char *text = setting_text(s, id);
    char choices[128] = "";
    if (!*text && spec->profile)
        return error_set(err, ERROR_USAGE, "%s is not set: neither PROFILE=%s nor CONFIG=%s does",
                         spec->name, setting_text(s, SETTING_PROFILE),
                         setting_text(s, SETTING_CONFIG));
    if (!*text && id != SETTING_SEED && id != SETTING_STYLE) return 0;
    if (spec->kind == SETTING_KIND_WHOLE && !is_whole(text))
        return setting_refuse(s, id, err, ": expected a whole number");
    if (spec->kind == SETTING_KIND_SWITCH && strcmp(text, "0") && strcmp(text, "1"))
        return setting_refuse(s, id, err, ": expected 1 or 0");
    if (spec->choices && word_choice(spec->choices, text) < 0) {
        choices_text(spec->choices, choices, sizeof choices);
        return setting_refuse(s, id, err, ": expected %s", choices);
    }
    return 0;
}

static int check_kinds(const Settings *s, Error *err)
{
    static const SettingId rounds[] = {SETTING_ROUNDS, SETTING_SELFSUP_ROUNDS};
    for (SettingId i = 0; i < SETTING_COUNT; i++)
        if (check_kind(s, i, err)) return -1;
    for (int i = 0; i < 2; i++)
        if (setting_number(s, rounds[i]) > MAX_ROUNDS)
            return setting_refuse(s, rounds[i], err, ": expected at most %d", MAX_ROUNDS);
    const long turns = setting_number(s, SETTING_TURNS);
    if (turns < 1 || turns > SAMPLES_MAX_TURNS)
        return setting_refuse(s, SETTING_TURNS, err, ": expected 1 to %d", SAMPLES_MAX_TURNS);
    return 0;
}

/* ---- the model that learns ---- */

static int is_model(const char *dir)
{
    char *config = memory_printf("%s/config.json", dir);
    const int there = file_exists(config);
    free(config);
    return there;
}

static int check_checkpoint(Settings *s, Error *err)
{
    const char *policy = setting_text(s, SETTING_POLICY), *base = setting_text(s, SETTING_BASE);
    const int endpoint = has_name(policy, "openai:") || has_name(policy, "anthropic:"),
              native = has_name(policy, "native:");
    if (!endpoint && !native && strcmp(policy, "small"))
        return setting_refuse(s, SETTING_POLICY, err,
                              ": expected small, native:DIR, openai:MODEL or anthropic:MODEL");
    s->endpoint = memory_strdup(endpoint ? policy : "");
    s->checkpoint = memory_strdup(endpoint ? base : native ? policy + 7 : "");
    s->trained = !endpoint || *base;
    if (*s->checkpoint && !is_model(s->checkpoint))
        return setting_refuse(s, endpoint ? SETTING_BASE : SETTING_POLICY, err,
                              ": there is no %s/config.json, so it is no model directory",
                              s->checkpoint);
    if (*base && !has_name(policy, "openai:"))
        return setting_refuse(s, SETTING_BASE, err,
                              " names the checkpoint that POLICY=openai:MODEL serves; POLICY is %s",
                              policy);
    return 0;
}

/* STARTER as it is, or below the folder that holds configs/. */
static int check_starter(Settings *s, Error *err)
{
    const char *name = setting_text(s, SETTING_STARTER);
    const int none = !*name || !strcmp(name, "none") || !setting_is(s, SETTING_POLICY, "small");
    s->starter = memory_strdup(none ? "" : name);
    if (none || is_model(s->starter)) return 0;
    free(s->starter);
    s->starter = memory_printf("%s/%s", s->share, name);
    if (is_model(s->starter)) return 0;
    return setting_refuse(s, SETTING_STARTER, err,
                          ": there is no config.json in it, here or below %s, so it is no model "
                          "directory",
                          s->share);
}

static int check_engine(Settings *s, Error *err)
{
    setting_default(s, SETTING_ENGINE, *s->checkpoint ? "auto" : "cpu", "the default");
    const char *engine = setting_text(s, SETTING_ENGINE);
    if (strcmp(engine, "cpu") && strcmp(engine, "auto") &&
        (strncmp(engine, "cuda:", 5) || !is_whole(engine + 5)))
        return setting_refuse(s, SETTING_ENGINE, err, ": expected cpu, cuda:N or auto");
    return 0;
}

static int check_adapter(Settings *s, Error *err)
{
    static const SettingId needs[] = {SETTING_LORA, SETTING_TRAINER};
    setting_default(s, SETTING_LORA, *s->endpoint && s->trained ? "16" : "", "the default");
    for (int i = 0; i < 2; i++)
        if (*setting_text(s, needs[i]) && !*s->checkpoint)
            return setting_refuse(s, needs[i], err,
                                  " needs a checkpoint to start from: POLICY=native:DIR, or "
                                  "POLICY=openai:MODEL with BASE=DIR");
    return 0;
}

static int check_spending(const Settings *s, Error *err)
{
    Budget b;
    Error inner;
    if (budget_parse(setting_text(s, SETTING_BUDGET), &b, &inner))
        return setting_refuse(s, SETTING_BUDGET, err, ": %s", inner.text);
    if (setting_is(s, SETTING_TEACHERS, "none") && !*s->checkpoint && !*s->endpoint)
        return setting_refuse(s, SETTING_TEACHERS, err,
                              " is for POLICY=native:DIR or an endpoint: POLICY=small learns to "
                              "write in stage 1");
    return 0;
}

int settings_check(Settings *s, Error *err)
{
    if (check_run(s, err) || check_tasks(s, err) || check_teachers(s, err)) return -1;
    setting_default(s, SETTING_STYLE, setting_is(s, SETTING_POLICY, "small") ? "brief" : "full",
                    "the default");
    if (check_kinds(s, err) || settings_check_devices(s, err) || check_checkpoint(s, err) ||
        check_starter(s, err) || check_engine(s, err) || check_adapter(s, err) ||
        check_spending(s, err))
        return -1;
    settings_split(s);
    return 0;
}
