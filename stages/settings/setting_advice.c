/* Sentences about settings that are right and may surprise: said when a run starts, and once. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "stages/settings/settings.h"
#include "tasks/task.h"

/* Names that are gone. */
static const struct {
    const char *name, *instead;
} replaced[] = {
    {"TRIALS", "a word of COLLECT, --trials N"},
    {"KEEP", "a word of COLLECT, --keep N"},
    {"MISTAKES", "a word of COLLECT, --mistakes SHARE"},
    {"CONTRASTIVE", "a word of FILTER, --contrastive N"},
    {"DRILLS", "a word of FILTER, --drills N"},
    {"CORRECTIONS", "a word of FILTER, --corrections N"},
    {"MAX_NEW", "a word of SAMPLE, --max-new N"},
    {"BATCH", "a word of SAMPLE, --batch N"},
    {"PRICE", "a word of SAMPLE, --price IN,OUT"},
    {"GROUPS", "a word of PROMPTS, --groups N"},
    {"PLAIN", "a word of PROMPTS, --plain N"},
    {"COPIES", "a word of PROMPTS, --copies N"},
    {"EXEMPLARS", "words of PROMPTS and SELFSUP_PROMPTS, --exemplars N"},
    {"SELFSUP_GROUPS", "a word of SELFSUP_PROMPTS, --groups N"},
    {"SELFSUP_PLAIN", "a word of SELFSUP_PROMPTS, --plain N"},
    {"SELFSUP_COPIES", "a word of SELFSUP_PROMPTS, --copies N"},
    {"LORA_ALPHA", "a word of TRAINING, --lora-alpha X"},
    {"RSLORA", "a word of TRAINING, --rslora"},
    {"LEAN", "a word of TRAINING, --lean"},
    {"MAX_TOKENS", "a word of TRAINING, --max-tokens N"},
    {"RECOMPUTE", "a word of TRAINING, --recompute on"},
    {"TRAINER_HOURS", "a word of TRAINING, --trainer-hours N"},
    {"STAGE1", "TEACHERS=none is a run without stage 1"},
    {"TASK_ROOT", "QUERN_TASKS names the folder of the tasks"},
    {"FORCE", "remove what is to be made again"},
    {"WITHHOLD", "LAB_WITHHOLD (lab/README.md)"},
    {"WIDE", "LAB_WIDE (lab/README.md)"},
    {"WIDE_KEEP", "LAB_WIDE_COLLECT='--trials 2N --keep N' (lab/README.md)"},
    {"SELFSUP_WIDE_ASK", "LAB_SELFSUP_WIDE (lab/README.md)"},
    {"WIDE_ASK", "LAB_CRL_WIDE (lab/README.md)"},
    {"WIDE_COPIES", "LAB_WIDE_COPIES (lab/README.md)"},
    {"HELDOUT_EVERY", "LAB_HELDOUT_EVERY (lab/README.md)"},
    {"RULE", "a word of PROMPTS, --rule NAME, or LAB_RULE (lab/README.md)"},
    {"QUERN_THREADS", "QUERN_CPU=threads=N"},
    {"ARMS", "it is for make ablation (lab/README.md)"},
    {"SEEDS", "it is for make ablation (lab/README.md)"},
    {"NATIVE", "OPT='-O2 -g -march=native'"},
    {"FULL", "make bench-gpu-full"},
    {"REPORT", "RUN names the run of make test-report"},
    {"QUERN_HOME", "programs find their files from where they are"},
    {"QUERN_LEASE_S", "QUERN_QUEUE=lease=S"},
    {"QUERN_QUEUE_LIMIT", "QUERN_QUEUE=jobs=N"},
    {"QUERN_QUEUE_RETRY_S", "QUERN_QUEUE=retry=S"},
    {"QUERN_RESULT_TTL_S", "QUERN_QUEUE=results=S"},
    {"QUERN_SIM_LIMIT", "the limit is fixed"},
};

const char *setting_replacement(const char *name)
{
    for (size_t i = 0; i < sizeof replaced / sizeof *replaced; i++)
        if (!strcmp(replaced[i].name, name)) return replaced[i].instead;
    return NULL;
}

/* Says which variables of the environment are gone: the user may think that they count. */
static void advise_replaced(void)
{
    for (size_t i = 0; i < sizeof replaced / sizeof *replaced; i++)
        if (getenv(replaced[i].name) && !strncmp(replaced[i].name, "QUERN_", 6))
            log_warn("%s in the environment is not read any more: %s", replaced[i].name,
                     replaced[i].instead);
}

/* Settings that the environment has and that are not read there: the user may think they are. */
static void advise_environment(const Settings *s)
{
    for (SettingId i = 0; i < SETTING_COUNT; i++) {
        const SettingSpec *spec = &setting_table[i];
        const char *text = getenv(spec->name);
        if (!text || spec->environment || spec->kind == SETTING_KIND_DERIVED) continue;
        if (!s->value[i].origin || strcmp(s->value[i].origin, "the command line"))
            log_info("%s in the environment is not read: a run takes it from the command line, "
                     "CONFIG or the profile",
                     spec->name);
    }
}

/* The profile names tasks of Quern's own folder, and this is another one. */
static void advise_root(const Settings *s, const TaskSet *tasks)
{
    if (strcmp(s->value[SETTING_TASKS].origin, SETTING_ALL_OF_ROOT) != 0) return;
    log_info(
        "QUERN_TASKS=%s: its %d task%s %s taken, since TASKS of PROFILE=%s names tasks of Quern's "
        "own folder",
        setting_text(s, SETTING_TASK_ROOT), tasks->n, tasks->n == 1 ? "" : "s",
        tasks->n == 1 ? "is" : "are", setting_text(s, SETTING_PROFILE));
}

/* A starter has learned from the formulas of graphs, which these prompts lack. */
static void advise_starter(const Settings *s, const TaskSet *tasks)
{
    const char *first = NULL;
    int n = 0;
    for (int i = 0; i < tasks->n; i++) {
        if (tasks->tasks[i]->graph) continue;
        if (!first) first = tasks->tasks[i]->name;
        n++;
    }
    if (!*s->starter || !n) return;
    log_warn(
        "STARTER=%s: of %d tasks, %d without a graph (%s%s): a starter that has learned graphs "
        "alone, as share/starter, writes few correct kernels there; CONFIG=configs/scratch.mk "
        "starts from random weights",
        setting_text(s, SETTING_STARTER), tasks->n, n, first, n > 1 ? ", ..." : "");
}

int settings_advise(const Settings *s, Error *err)
{
    TaskSet tasks;
    advise_environment(s);
    advise_replaced();
    if (taskset_load(setting_text(s, SETTING_TASK_ROOT), setting_text(s, SETTING_TASKS), &tasks,
                     err))
        return -1;
    advise_root(s, &tasks);
    advise_starter(s, &tasks);
    taskset_release(&tasks);
    return 0;
}
