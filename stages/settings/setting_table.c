/* The table of settings, and the variables of the environment and of the build beside it. Every
 * program that reads a variable QUERN_... has it listed here: tests/shell/config.t compares. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/suggest.h"
#include "stages/settings/settings.h"

#define SAMPLED (STAMP_SELFSUP | STAMP_CRL | STAMP_REPORT)
#define SEEDED (STAMP_COLLECT | STAMP_SFT | STAMP_SELFSUP | STAMP_CRL | STAMP_REPORT)
#define TRAINED (STAMP_SFT | STAMP_SELFSUP | STAMP_CRL)

/* Rows of the table by what they have. */
#define DERIVED(id, text, parts) \
    [SETTING_##id] = {.name = text, .kind = SETTING_KIND_DERIVED, .stamps = parts}
#define PROFILE(id, form, parts, line) \
    [SETTING_##id] = {                 \
        .name = #id, .kind = SETTING_KIND_##form, .stamps = parts, .profile = 1, .help = line}
#define OPTION(id, form, initial, parts, line)     \
    [SETTING_##id] = {.name = #id,                 \
                      .kind = SETTING_KIND_##form, \
                      .fallback = initial,         \
                      .stamps = parts,             \
                      .help = line}
#define RUN(id, form, initial, parts, line)        \
    [SETTING_##id] = {.name = #id,                 \
                      .kind = SETTING_KIND_##form, \
                      .fallback = initial,         \
                      .stamps = parts,             \
                      .environment = 1,            \
                      .help = line}

const SettingSpec setting_table[SETTING_COUNT] = {
    RUN(PROFILE, TEXT, "default", STAMP_REPORT, "file of settings in configs/: smoke or default"),
    RUN(CONFIG, TEXT, "", 0, "file of settings that goes before the profile"),
    [SETTING_RUN] = {"RUN", SETTING_KIND_TEXT, .environment = 1, .standard = "the profile's name",
                     .help = "folder of the run below RUNS, of letters, digits and . _ - + /"},
    OPTION(RUNS, TEXT, "runs", 0, "folder that holds the runs"),
    RUN(TASKS, LIST, "all", 0, "names of tasks"),
    [SETTING_TASK_ROOT] = {"TASK_ROOT", SETTING_KIND_TEXT,
                           .standard = "`$QUERN_TASKS`, else Quern's own",
                           .help = "folder that holds the tasks"},
    RUN(TEACHERS, LIST, "template", STAMP_COLLECT,
        "sources of stage 1: template, openai:MODEL, anthropic:MODEL, dir:PATH, file:PATH"),
    DERIVED(KERNELS, "kernels", STAMP_COLLECT),
    PROFILE(TRIALS, WHOLE, STAMP_COLLECT, "most answers of a teacher to a task"),
    PROFILE(KEEP, WHOLE, STAMP_COLLECT, "distinct correct kernels of a task that are enough"),
    PROFILE(MISTAKES, NUMBER, STAMP_COLLECT,
            "share of the template teacher's kernels with a beginner's mistake"),
    RUN(DEVICES, LIST, "auto", 0,
        "devices of local evaluators: cuda:N, sim:PROFILE, auto (every GPU, else sim:h100)"),
    [SETTING_DEVICE] = {"DEVICE", SETTING_KIND_TEXT, .stamps = STAMP_COLLECT | STAMP_DEVICE,
                        .environment = 1, .standard = "the class of the first of DEVICES",
                        .help = "device class that judges during the run"},
    DERIVED(HARNESS, "HARNESS", STAMP_DEVICE),
    RUN(POLICY, TEXT, "small", SAMPLED,
        "model that learns: small, native:DIR, openai:MODEL, anthropic:MODEL"),
    OPTION(BASE, TEXT, "", SAMPLED,
           "checkpoint that POLICY=openai:MODEL serves: adapters are trained on it here"),
    DERIVED(BASE_FLAGS, "base", STAMP_SFT),
    [SETTING_ENGINE] = {"ENGINE", SETTING_KIND_TEXT, .standard = "auto with a checkpoint, else cpu",
                        .help = "where models run: cpu, cuda:N, auto (a GPU if there is one)"},
    OPTION(GPUS, WHOLE, "1", 0, "GPUs that share training and sampling"),
    DERIVED(ENGINE_FLAGS, "engine", SAMPLED),
    [SETTING_STYLE] = {"STYLE", SETTING_KIND_TEXT, .stamps = TRAINED | STAMP_REPORT,
                       .choices = "brief|full", .standard = "brief with POLICY=small, else full",
                       .help = "style of prompts"},
    PROFILE(MAX_NEW, WHOLE, SAMPLED, "tokens of an answer at most"),
    PROFILE(BATCH, WHOLE, SAMPLED, "answers sampled together"),
    PROFILE(CONTRASTIVE, NUMBER, STAMP_SFT, "contrastive examples for each kernel in stage 1"),
    PROFILE(DRILLS, NUMBER, STAMP_SFT, "comparisons of two scores for each kernel in stage 1"),
    PROFILE(SMALL_MODEL, FLAGS, STAMP_SFT, "flags of quern-sft: shape of the small model"),
    PROFILE(SFT, FLAGS, STAMP_SFT, "flags of quern-sft: how stage 1 learns"),
    PROFILE(REPORT_SAMPLES, WHOLE, STAMP_REPORT, "samples of a task for the report"),
    [SETTING_ROUNDS] = {"ROUNDS", SETTING_KIND_WHOLE, .stamps = STAMP_REPORT, .environment = 1,
                        .profile = 1, .help = "rounds of stage 3"},
    PROFILE(SELFSUP_ROUNDS, WHOLE, STAMP_CRL | STAMP_REPORT, "rounds of stage 2"),
    PROFILE(SELFSUP_GROUPS, WHOLE, STAMP_SELFSUP, "prompts for a task in a round of stage 2"),
    PROFILE(SELFSUP_PLAIN, WHOLE, STAMP_SELFSUP, "those without kernels to compare"),
    PROFILE(SELFSUP_COPIES, WHOLE, STAMP_SELFSUP, "samples a prompt in stage 2"),
    PROFILE(GROUPS, WHOLE, STAMP_CRL, "prompts for a task in a round of stage 3"),
    PROFILE(PLAIN, WHOLE, STAMP_CRL, "those without kernels to compare"),
    PROFILE(COPIES, WHOLE, STAMP_CRL, "samples a prompt in stage 3"),
    PROFILE(EXEMPLARS, FLAGS, STAMP_SELFSUP | STAMP_CRL,
            "flags of quern-prompt: how kernels for a prompt are drawn"),
    [SETTING_RULE] = {"RULE", SETTING_KIND_TEXT, .fallback = "", .stamps = STAMP_CRL,
                      .choices = "bucket|island|random|shuffled|none", .environment = 1,
                      .standard = "bucket", .help = "how stage 3 draws kernels for a prompt"},
    [SETTING_UPDATE] = {"UPDATE", SETTING_KIND_TEXT, .fallback = "learn",
                        .stamps = STAMP_CRL | STAMP_REPORT, .choices = "learn|none|template|sft",
                        .environment = 1, .help = "what stage 3 does (docs/pipeline.md)"},
    RUN(TURNS, WHOLE, "1", STAMP_CRL,
        "answers in a row to a prompt of stage 3, each after the last verdict"),
    PROFILE(SELFSUP, FLAGS, STAMP_SELFSUP, "flags of quern-selfsup: how stage 2 learns"),
    PROFILE(CRL, FLAGS, STAMP_CRL, "flags of quern-crl: how stage 3 learns"),
    [SETTING_LORA] = {"LORA", SETTING_KIND_WHOLE,
                      .standard = "all weights are trained; 16 with BASE",
                      .help = "rank of the adapter that is trained"},
    OPTION(LORA_ALPHA, NUMBER, "32", 0, "the adapter is scaled by LORA_ALPHA/LORA"),
    OPTION(RSLORA, SWITCH, "", 0, "1: by LORA_ALPHA/sqrt(LORA) instead"),
    OPTION(LEAN, SWITCH, "", 0, "1: on a GPU without fp32 masters of the weights"),
    OPTION(TRAINER, TEXT, "", 0, "command that trains in place of the stages (docs/pipeline.md)"),
    DERIVED(TRAINING_FLAGS, "training", TRAINED),
    OPTION(MAX_TOKENS, WHOLE, "", 0, "tokens of a micro-batch; none: what the memory takes"),
    [SETTING_RECOMPUTE] = {"RECOMPUTE", SETTING_KIND_TEXT, .fallback = "", .choices = "auto|on|off",
                           .help = "compute activations again in the backward pass: less memory"},
    OPTION(TRAINER_HOURS, NUMBER, "", 0, "hours that TRAINER may take for one model; none: 168"),
    DERIVED(MEMORY_FLAGS, "memory", 0),
    [SETTING_CLASSES] = {"CLASSES", SETTING_KIND_LIST, .stamps = STAMP_REPORT, .environment = 1,
                         .standard = "the GPUs' and every simulated one",
                         .help = "device classes of the last pass, + for a blank: NVIDIA+H200"},
    RUN(SEED, WHOLE, "1", SEEDED, "seed of everything that is drawn"),
    RUN(SECRET, WHOLE, "", STAMP_COLLECT | STAMP_DEVICE,
        "seed of the inputs of verdicts; none: a random one, kept in the run"),
    OPTION(REFRESH, SWITCH, "", 0,
           "1: a finished run whose tasks changed is made again; its report is kept"),
    RUN(BUDGET, TEXT, "", 0,
        "the most that it takes, by comma: 30m a command, 200 requests, 5usd to endpoints"),
    OPTION(PRICE, TEXT, "", 0,
           "dollars a million tokens of POLICY's prompts and answers: 0.55,2.19"),
    RUN(JUDGE, TEXT, "none", STAMP_CRL, "judge of records: openai:MODEL, anthropic:MODEL, none"),
    OPTION(WITHHOLD, SWITCH, "", STAMP_COLLECT | STAMP_CRL,
           "1: the template teacher draws no fast design for half of the train tasks"),
    OPTION(WIDE, LIST, "", STAMP_COLLECT | STAMP_SFT,
           "tasks whose template kernels stage 1 learns from, beside TASKS"),
    OPTION(WIDE_KEEP, WHOLE, "6", STAMP_COLLECT, "distinct correct kernels for each task of WIDE"),
    OPTION(SELFSUP_WIDE_ASK, WHOLE, "0", STAMP_SELFSUP | STAMP_CRL,
           "tasks of WIDE that a round of stage 2 asks, too"),
    OPTION(WIDE_ASK, WHOLE, "0", STAMP_SELFSUP | STAMP_CRL, "the same in stage 3"),
    OPTION(WIDE_COPIES, WHOLE, "5", STAMP_SELFSUP | STAMP_CRL, "samples of each of their prompts"),
    OPTION(CORRECTIONS, NUMBER, "0", STAMP_SFT,
           "examples of a second turn for each kernel in stage 1"),
    OPTION(HELDOUT_EVERY, WHOLE, "0", 0,
           "rounds between samples of heldout tasks; 0: after each stage alone"),
    OPTION(
        STARTER, TEXT, "", 0,
        "model directory, here or in Quern's share/, that POLICY=small starts from; none: random "
        "weights"),
    OPTION(STAGE1, SWITCH, "1", STAMP_COLLECT | STAMP_SFT,
           "0: no teacher and no stage 1, for a model that writes CUDA already"),
};

const char *const stamp_names[STAMP_COUNT] = {"collect", "device", "sft",
                                              "selfsup", "crl",    "report"};

const VariableSpec environment_table[] = {
    {"QUERN_REDIS", "engineer", "the queue: unix:PATH, redis://HOST:PORT; unset: a private one"},
    {"QUERN_KEY", "engineer", "a secret of 16 bytes or more that seals jobs and verdicts"},
    {"QUERN_QUEUE", "engineer",
     "limits of the queue, by comma: lease=30 (s of a job), retry=60 (s of trying a lost server), "
     "jobs=10000 (that may wait on one stream), results=604800 (s that they are kept)"},
    {"QUERN_LOG", "engineer", "what programs say: quiet, info (default) or debug"},
    {"QUERN_CACHE", "engineer",
     "folder of all caches; unset: ~/.cache/quern, and no cache of candidates"},
    {"QUERN_TASKS", "engineer", "folder of the tasks, for every program"},
    {"QUERN_REFERENCES", "engineer", "folder of the compiled references of own tasks"},
    {"QUERN_INCLUDE", "engineer", "folders of headers that a candidate may include, by colon"},
    {"QUERN_LOCK_DIR", "engineer",
     "folder of the GPUs' locks, one for all containers; default: /tmp"},
    {"QUERN_CPU", "researcher", "narrow: no AVX-512 in the model on the CPU, for equal bits"},
    {"QUERN_THREADS", "engineer", "threads of the model on the CPU; default: the online cores"},
    {"QUERN_DEADLINE", "engineer", "set by BUDGET: when programs stop, in seconds since 1970"},
    {"QUERN_PROGRESS", "engineer",
     "set by mk/run: the file of a program's progress; in front FD: of its terminal"},
    {"QUERN_TRAINING", "researcher", "set for TRAINER: the JSON file that says what to train"},
    {"QUERN_TEST", "developer", "for tests: refuse=N, the N-th allocation fails; parts=N"},
    {"OPENAI_BASE_URL", "engineer", "address of the endpoint behind openai:MODEL"},
    {"OPENAI_API_KEY", "engineer", "its key"},
    {"ANTHROPIC_BASE_URL", "engineer", "address of the endpoint behind anthropic:MODEL"},
    {"ANTHROPIC_API_KEY", "engineer", "its key"},
    {"CUDA_HOME", "engineer", "an installed CUDA toolkit"},
    {"CUDA_VISIBLE_DEVICES", "engineer", "the GPUs that Quern may use"},
    {NULL, NULL, NULL}};

const VariableSpec build_table[] = {
    {"BUILD", "developer", "folder that is built into; default: build"},
    {"CC", "packager", "the compiler; default: gcc"},
    {"OPT", "packager", "its flags for speed"},
    {"SAN", "developer", "its flags for sanitizers"},
    {"V", "developer", "1: show the commands of the build"},
    {"DEPS", "packager", "manual: never install a package"},
    {"NATIVE", "engineer", "1: for the processor of this machine"},
    {"PREFIX", "packager", "folder of make install"},
    {"DESTDIR", "packager", "folder before PREFIX"},
    {"GPU", "developer", "device of make test-gpu and make bench-gpu; default: cuda:0"},
    {"ARMS", "lab", "arms of make ablation: names or paths; the first is the control"},
    {"SEEDS", "lab", "seeds of make ablation; default: 1,2,3"},
    {"FULL", "developer", "1: make bench-gpu with all counts"},
    {"REPORT", "developer", "page of make test-report; default: a small run's"},
    {"FUZZ_SECONDS", "developer", "seconds of each target in make fuzz; default: 60"},
    {"LIBFUZZER", "developer", "set by make fuzz"},
    {"T", "developer", "tests of make check and make test-san by name: plan, eval/plan, cli"},
    {NULL, NULL, NULL}};

SettingId setting_find(const char *name, size_t len)
{
    for (SettingId i = 0; i < SETTING_COUNT; i++)
        if (setting_table[i].kind != SETTING_KIND_DERIVED && strlen(setting_table[i].name) == len &&
            !memcmp(setting_table[i].name, name, len))
            return i;
    return SETTING_COUNT;
}

static int listed(const VariableSpec *v, const char *name)
{
    for (; v->name; v++)
        if (!strcmp(v->name, name)) return 1;
    return 0;
}

int variable_known(const char *name)
{
    /* Make's own, and what the libraries below us read. */
    static const char *const prefixes[] = {"MAKE",  "SHELL", "CFLAGS", "OPENAI_",  "ANTHROPIC_",
                                           "CUDA_", "NCCL_", "OMP_",   "OPENBLAS_"};
    if (listed(environment_table, name) || listed(build_table, name)) return 1;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (!strncmp(name, prefixes[i], strlen(prefixes[i]))) return 1;
    size_t n = strlen(name);
    return n > 6 && !strcasecmp(name + n - 6, "_proxy");
}

const char *setting_suggestion(const char *name)
{
    const char *names[SETTING_COUNT + 64];
    char upper[64] = "";
    int n = 0;
    for (size_t i = 0; name[i] && i + 1 < sizeof upper; i++)
        upper[i] = (char)toupper((unsigned char)name[i]);
    for (SettingId i = 0; i < SETTING_COUNT; i++)
        if (setting_table[i].kind != SETTING_KIND_DERIVED) names[n++] = setting_table[i].name;
    for (const VariableSpec *v = environment_table; v->name; v++) names[n++] = v->name;
    for (const VariableSpec *v = build_table; v->name; v++) names[n++] = v->name;
    return suggest_name(upper, names, n);
}

/* The default in words. */
static const char *standard(const SettingSpec *s)
{
    if (s->standard) return s->standard;
    return s->fallback && *s->fallback  ? s->fallback
           : s->profile || !s->fallback ? "the profile's"
                                        : "none";
}

static void variables_print(Buffer *out, const char *title, const VariableSpec *v)
{
    buffer_printf(out, "\n## %s\n\n| variable | who needs it | what it is |\n|---|---|---|\n",
                  title);
    for (; v->name; v++) buffer_printf(out, "| `%s` | %s | %s |\n", v->name, v->user, v->help);
}

void settings_table_print(Buffer *out)
{
    buffer_puts(out, "## Settings of a run\n\nA star: the environment may set it, too.\n\n"
                     "| setting | what it is | default |\n|---|---|---|\n");
    for (const SettingSpec *s = setting_table; s < setting_table + SETTING_COUNT; s++)
        if (s->kind != SETTING_KIND_DERIVED)
            buffer_printf(out, "| `%s` | %s | %s%s |\n", s->name, s->help, standard(s),
                          s->environment ? "*" : "");
    variables_print(out, "Environment", environment_table);
    variables_print(out, "Variables of the build", build_table);
}

void settings_help_print(Buffer *out)
{
    for (const SettingSpec *s = setting_table; s < setting_table + SETTING_COUNT; s++)
        if (s->kind != SETTING_KIND_DERIVED)
            buffer_printf(out, "  %-15s %s (%s)\n", s->name, s->help, standard(s));
}
