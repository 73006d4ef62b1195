/* The settings of a run: their table, where a value comes from, and what Make is told.
 *
 * A setting is given on the command line (NAME=VALUE), in the environment (some of them), in the
 * file CONFIG, in the profile's file, or it has a default: the first of these that names it counts.
 * settings_resolve reads them, settings_check refuses what is wrong, settings_derive works out what
 * follows from them, and settings_print writes a Make fragment for pipeline.mk. A stamp is the
 * text of all settings that decide what a stage makes: Make makes the stage again when it changes.
 */
#ifndef STAGES_SETTINGS_SETTINGS_H
#define STAGES_SETTINGS_SETTINGS_H

#include "base/buffer.h"
#include "base/error.h"

/* The order decides the stamps' text: a change of it makes every run again. Names in lower case
 * and HARNESS are derived, and cannot be given. */
typedef enum {
    SETTING_PROFILE,
    SETTING_CONFIG,
    SETTING_RUN,
    SETTING_RUNS,
    SETTING_TASKS,
    SETTING_TASK_ROOT, /* QUERN_TASKS */
    SETTING_PRECISION,
    SETTING_TOLERANCE,
    SETTING_COMPILE_S,
    SETTING_TEACHERS,
    SETTING_KERNELS, /* the digest of each folder and file among the teachers */
    SETTING_COLLECT,
    SETTING_DEVICES,
    SETTING_DEVICE,
    SETTING_HARNESS, /* the version of the rules of verdicts */
    SETTING_POLICY,
    SETTING_BASE,
    SETTING_CHAT,
    SETTING_BASE_FLAGS, /* --base DIR of the checkpoint that is trained */
    SETTING_ENGINE,
    SETTING_GPUS,
    SETTING_ENGINE_FLAGS,
    SETTING_STYLE,
    SETTING_SAMPLE,
    SETTING_FILTER,
    SETTING_SMALL_MODEL,
    SETTING_SFT,
    SETTING_REPORT_SAMPLES,
    SETTING_ROUNDS,
    SETTING_SELFSUP_ROUNDS,
    SETTING_SELFSUP_PROMPTS,
    SETTING_SELFSUP_PROMPT_FLAGS, /* without --copies, which is quern-sample's */
    SETTING_SELFSUP_COPIES,
    SETTING_PROMPTS,
    SETTING_PROMPT_FLAGS,
    SETTING_COPIES,
    SETTING_UPDATE,
    SETTING_TURNS,
    SETTING_SELFSUP,
    SETTING_CRL,
    SETTING_LORA,
    SETTING_TRAINER,
    SETTING_TRAINING,
    SETTING_TRAINING_FLAGS,
    SETTING_MEMORY_FLAGS, /* how the same work fits the memory and the time: in no stamp */
    SETTING_CLASSES,
    SETTING_SEED,
    SETTING_SECRET,
    SETTING_REFRESH,
    SETTING_BUDGET,
    SETTING_JUDGE,
    SETTING_STARTER,
    SETTING_COUNT
} SettingId;

typedef enum {
    SETTING_KIND_TEXT,
    SETTING_KIND_WHOLE,   /* a whole number */
    SETTING_KIND_SWITCH,  /* 1 or 0; empty is 0 */
    SETTING_KIND_LIST,    /* words by comma or blank */
    SETTING_KIND_FLAGS,   /* flags of a stage's program, as a shell reads them */
    SETTING_KIND_DERIVED, /* worked out from the others */
} SettingKind;

enum {
    STAMP_COLLECT = 1,
    STAMP_DEVICE = 2,
    STAMP_SFT = 4,
    STAMP_SELFSUP = 8,
    STAMP_CRL = 16,
    STAMP_REPORT = 32,
    STAMP_COUNT = 6
};

typedef struct {
    const char *name;
    SettingKind kind;
    const char *fallback; /* the default; NULL: none, or it depends on other settings */
    unsigned stamps;      /* STAMP_... whose text it is part of */
    int environment;      /* read from the environment too */
    int profile;          /* a profile or CONFIG must give it */
    const char *choices;  /* "brief|full", or NULL */
    const char *user;     /* who needs it; NULL: the engineer who makes a run */
    const char *help;     /* what it is, in one line */
    const char *standard; /* the default as the table says it, where fallback is NULL */
} SettingSpec;

extern const SettingSpec setting_table[SETTING_COUNT];
extern const char *const stamp_names[STAMP_COUNT];

/* SETTING_COUNT when there is no such setting, or it is derived. */
SettingId setting_find(const char *name, size_t len);
/* A name that may stand on Make's command line without being a setting. */
int variable_known(const char *name);
/* What replaces a name that once was a setting or a variable, as the end of a sentence; NULL: it never
 * was. */
const char *setting_replacement(const char *name);
/* The name of a setting or variable that is nearly this one, or NULL. */
const char *setting_suggestion(const char *name);
/* All tables as Markdown, for docs/environment.md. */
void settings_table_print(Buffer *out);
/* The settings, one a line, for --help. */
void settings_help_print(Buffer *out);

/* The origin of TASKS where the profile's are not those of QUERN_TASKS, and all of these are taken. */
#define SETTING_ALL_OF_ROOT "the default, with QUERN_TASKS"

typedef struct {
    char *text;   /* NULL: not given */
    char *origin; /* "the command line", "configs/smoke.mk:4" */
} SettingValue;

/* The settings of an experiment, LAB_NAME: they are handed on, and lab/lab.mk knows what they mean. */
typedef struct {
    struct {
        char *name;
        SettingValue value;
    } * items;
    int n;
} LabSettings;

typedef struct {
    SettingValue value[SETTING_COUNT];
    LabSettings lab;
    const char *share; /* the folder that holds configs/ and tasks/ */
    const char *found; /* GPUs as "cuda:0=NVIDIA+H200 ...", or NULL: the driver is asked */

    /* ---- filled in by settings_check and settings_derive ---- */
    char *gpus;          /* as found, in that form; "" when none is needed */
    char *local;         /* devices of the local evaluators: "cuda:0 cuda:1" */
    char *local_classes; /* their classes as words: "NVIDIA+H200" */
    char *endpoint;      /* POLICY when it is one, or "" */
    char *checkpoint;    /* the model directory to start from, or "" */
    char *starter;       /* the one that the small model starts from, or "" */
    int trained;         /* the run trains a model */
    char *tasks_digest;  /* of the files of the tasks */
    char *tasks_files; /* "relu/task.json=0123456789ab ...": each with its digest's first digits */
} Settings;

/* Read all sources. words: NAME=VALUE of the command line. An unknown name is refused. */
int settings_resolve(const char *const *words, int n, Settings *s, Error *err);
/* Check values and names, find the devices, bring lists into one form and fill in the defaults that
 * depend on other settings. */
int settings_check(Settings *s, Error *err);
/* The devices' part of settings_check: DEVICES, DEVICE, CLASSES. */
int settings_check_devices(Settings *s, Error *err);
/* What is checked when there is something to do, and costs some milliseconds: the stage programs
 * beside this one take their flags, the engine's GPU exists, and every class has an evaluator. */
int settings_check_programs(const Settings *s, Error *err);
/* Says what may surprise in settings that are right. */
int settings_advise(const Settings *s, Error *err);
/* Splits the settings that hold flags of several programs; settings_check does so at its end. */
void settings_split(Settings *s);
/* Digests and flags that follow from the settings. Reads the files of the tasks. */
int settings_derive(Settings *s, Error *err);
/* Refuses, after settings_derive, to make a finished run again because files of its tasks have changed,
 * unless REFRESH=1: the sentence names them. Other tasks by TASKS are another matter. */
int settings_check_tasks(const Settings *s, Error *err);
/* Keeps the report of a finished run that is about to be made again or to go on: as report-N.html and
 * report-N.tsv. Once for each report. */
int settings_keep_report(const Settings *s, Error *err);
/* The Make fragment: the settings, what follows from them, and the rules of rounds and report. */
void settings_print(const Settings *s, Buffer *out);
void settings_print_rules(const Settings *s, Buffer *out);
void settings_release(Settings *s);

/* ---- for the parts of this module ---- */

/* The value, or "" when it is not given. */
const char *setting_text(const Settings *s, SettingId id);
int setting_is(const Settings *s, SettingId id, const char *text);
/* The value of a whole number; 0 when it is not given. */
long setting_number(const Settings *s, SettingId id);
/* The path of a file in the run's folder. Allocated. */
char *settings_in_run(const Settings *s, const char *name);
/* Set the value unless a source has given one. */
void setting_default(Settings *s, SettingId id, const char *text, const char *origin);
/* Replace the value, of the same origin. text is allocated, and belongs to s from here on. */
void setting_replace(Settings *s, SettingId id, char *text);
/* "NAME=VALUE" and the rest of the sentence as an ERROR_USAGE; -1. */
int setting_refuse(const Settings *s, SettingId id, Error *err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* The text as one word of a shell: in quotes where it needs them. Allocated. */
char *setting_shell_word(const char *text);
/* The words of a list by comma or blank, joined by `by`. Allocated. */
char *setting_join(const char *list, char by);
/* Whether a list by blanks has the word. */
int setting_has_word(const char *list, const char *word, size_t len);
/* Append the word to a list by blanks unless it is there; list is allocated and reallocated. */
void setting_add_word(char **list, const char *word, size_t len);
void setting_replace_letter(char *text, char from, char to);
/* The next word of a list by comma or blank: *p moves behind it. NULL: no more. */
const char *setting_next_word(const char **p, size_t *len);

#endif
