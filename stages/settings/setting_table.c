/* The table of settings, and the variables of the environment and of the build beside it. Every
 * program that reads a variable QUERN_... has it listed here: tests/shell/config.t compares. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/suggest.h"
#include "stages/settings/settings.h"

#define SAMPLED (STAMP_SELFSUP | STAMP_CRL | STAMP_REPORT)
#define SEEDED (STAMP_COLLECT | STAMP_SFT | STAMP_SELFSUP | STAMP_CRL | STAMP_REPORT)
#define TRAINED (STAMP_SFT | STAMP_SELFSUP | STAMP_CRL)
#define RESEARCHER "researcher"

/* Rows of the table by what they have. */
#define DERIVED(id, text, parts) \
    [SETTING_##id] = {.name = text, .kind = SETTING_KIND_DERIVED, .stamps = parts}
#define PROFILE(id, form, parts, line)             \
    [SETTING_##id] = {.name = #id,                 \
                      .kind = SETTING_KIND_##form, \
                      .stamps = parts,             \
                      .profile = 1,                \
                      .user = RESEARCHER,          \
                      .help = line}
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
    [SETTING_TASK_ROOT] = {"QUERN_TASKS", SETTING_KIND_TEXT, .environment = 1,
                           .standard = "Quern's own",
                           .help = "folder of the tasks, for every program"},
    [SETTING_PRECISION] = {"PRECISION", SETTING_KIND_TEXT, .fallback = "default",
                           .choices = "default|highest|high|medium", .environment = 1,
                           .help = "how eager PyTorch computes float32, for every program: default "
                                   "(as the task says), highest (no TF32), high, medium"},
    [SETTING_TOLERANCE] = {"TOLERANCE", SETTING_KIND_TEXT, .fallback = "default", .environment = 1,
                           .help = "the error that is allowed, for every program: default (as the "
                                   "task says), 2x (times eager PyTorch's own), 1e-3 (absolute)"},
    [SETTING_COMPILE_S] = {"COMPILE_S", SETTING_KIND_WHOLE, .fallback = "10", .environment = 1,
                           .help = "CPU seconds that a compilation may take, for every program; "
                                   "docs/candidates.md says when more"},
    RUN(TEACHERS, LIST, "generator", STAMP_COLLECT,
        "sources of stage 1: generator, openai:MODEL, anthropic:MODEL, dir:PATH, "
        "file:PATH; none: no stage 1, for a model that writes CUDA already"),
    DERIVED(KERNELS, "kernels", STAMP_COLLECT),
    PROFILE(COLLECT, FLAGS, STAMP_COLLECT,
            "flags of quern-collect: trials, kernels to keep, share of mistakes"),
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
    OPTION(CHAT, TEXT, "", 0,
           "chat template of the checkpoint in place of its own: chatml, qwen2.5, qwen3, llama3, "
           "llama3.1, or a file that tools/chat_pieces.py wrote"),
    DERIVED(BASE_FLAGS, "base", STAMP_SFT),
    [SETTING_ENGINE] = {"ENGINE", SETTING_KIND_TEXT, .standard = "auto with a checkpoint, else cpu",
                        .help = "where models run: cpu, cuda:N, auto (a GPU if there is one)"},
    OPTION(GPUS, WHOLE, "1", 0, "GPUs that share training and sampling"),
    DERIVED(ENGINE_FLAGS, "engine", SAMPLED),
    [SETTING_STYLE] = {"STYLE", SETTING_KIND_TEXT, .stamps = TRAINED | STAMP_REPORT,
                       .choices = "brief|full", .standard = "brief with POLICY=small, else full",
                       .user = RESEARCHER, .help = "style of prompts"},
    PROFILE(SAMPLE, FLAGS, SAMPLED,
            "flags of quern-sample: tokens of an answer, batch, price of an endpoint's tokens"),
    PROFILE(FILTER, FLAGS, STAMP_SFT, "flags of quern-filter: which examples stage 1 has"),
    PROFILE(SMALL_MODEL, FLAGS, STAMP_SFT, "flags of quern-sft: shape of the small model"),
    PROFILE(SFT, FLAGS, STAMP_SFT, "flags of quern-sft: how stage 1 learns"),
    PROFILE(REPORT_SAMPLES, WHOLE, STAMP_REPORT, "samples of a task for the report"),
    [SETTING_ROUNDS] = {"ROUNDS", SETTING_KIND_WHOLE, .stamps = STAMP_REPORT, .environment = 1,
                        .profile = 1, .help = "rounds of stage 3"},
    PROFILE(SELFSUP_ROUNDS, WHOLE, STAMP_CRL | STAMP_REPORT, "rounds of stage 2"),
    PROFILE(SELFSUP_PROMPTS, FLAGS, STAMP_SELFSUP, "the same as PROMPTS in stage 2"),
    DERIVED(SELFSUP_PROMPT_FLAGS, "selfsup_prompts", 0),
    DERIVED(SELFSUP_COPIES, "selfsup_copies", 0),
    PROFILE(PROMPTS, FLAGS, STAMP_CRL,
            "flags of quern-prompt: a task's prompts in a round of stage 3, and their kernels; and "
            "--copies, the samples of each"),
    DERIVED(PROMPT_FLAGS, "crl_prompts", 0),
    DERIVED(COPIES, "crl_copies", 0),
    [SETTING_UPDATE] = {"UPDATE", SETTING_KIND_TEXT, .fallback = "learn",
                        .stamps = STAMP_CRL | STAMP_REPORT, .choices = "learn|none",
                        .environment = 1,
                        .help = "what stage 3 does: learn, or none: only prompts and pool change"},
    RUN(TURNS, WHOLE, "1", STAMP_CRL,
        "answers in a row to a prompt of stage 3, each after the last verdict"),
    PROFILE(SELFSUP, FLAGS, STAMP_SELFSUP, "flags of quern-selfsup: how stage 2 learns"),
    PROFILE(CRL, FLAGS, STAMP_CRL, "flags of quern-crl: how stage 3 learns"),
    [SETTING_LORA] = {"LORA", SETTING_KIND_WHOLE,
                      .standard = "all weights are trained; 16 with BASE",
                      .help = "rank of the adapter that is trained"},
    [SETTING_TRAINER] = {"TRAINER", SETTING_KIND_TEXT, .fallback = "", .user = RESEARCHER,
                         .help = "command that trains in place of the stages (docs/pipeline.md)"},
    [SETTING_TRAINING] = {"TRAINING", SETTING_KIND_FLAGS, .fallback = "", .user = RESEARCHER,
                          .help = "more flags of all stages that train: --lora-alpha, --rslora, "
                                  "--lean, --max-tokens, --recompute, --trainer-hours"},
    DERIVED(TRAINING_FLAGS, "training", TRAINED),
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
    RUN(JUDGE, TEXT, "none", STAMP_CRL, "judge of records: openai:MODEL, anthropic:MODEL, none"),
    OPTION(
        STARTER, TEXT, "", 0,
        "model directory, here or in Quern's share/, that POLICY=small starts from; none: random "
        "weights"),
};

const char *const stamp_names[STAMP_COUNT] = {"collect", "device", "sft",
                                              "selfsup", "crl",    "report"};

/* A variable of the environment, or of the build on Make's command line. */
typedef struct {
    const char *name, *user, *help; /* user: who needs it */
} VariableSpec;

/* A NULL name ends each table. */
static const VariableSpec environment_table[] = {
    {"QUERN_REDIS", "engineer", "the queue: unix:PATH, redis://HOST:PORT; unset: a private one"},
    {"QUERN_KEY", "engineer", "a secret of 16 bytes or more that seals jobs and verdicts"},
    {"QUERN_QUEUE", "engineer",
     "limits of the queue, by comma: lease=30 (s of a job), retry=60 (s of trying a lost server), "
     "jobs=10000 (that may wait on one stream), results=604800 (s that they are kept)"},
    {"QUERN_LOG", "engineer", "what programs say: quiet, info (default) or debug"},
    {"QUERN_CACHE", "engineer",
     "folder of all caches; unset: ~/.cache/quern, and no cache of candidates"},
    {"QUERN_REFERENCES", "engineer", "folder of the compiled references of own tasks"},
    {"QUERN_INCLUDE", "engineer", "folders of headers that a candidate may include, by colon"},
    {"QUERN_LOCK_DIR", "engineer",
     "folder of the GPUs' locks, one for all containers; default: /tmp"},
    {"QUERN_CPU", "engineer",
     "the model on the CPU, by comma: threads=N (the online cores), narrow=1 (no AVX-512, for "
     "equal "
     "bits)"},
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

static const VariableSpec build_table[] = {
    {"BUILD", "developer", "folder that is built into; default: build"},
    {"CC", "packager", "the compiler; default: gcc"},
    {"OPT", "packager", "its flags for speed"},
    {"SAN", "developer", "its flags for sanitizers"},
    {"V", "developer", "1: show the commands of the build"},
    {"DEPS", "packager", "manual: never install a package"},
    {"PREFIX", "packager", "folder of make install"},
    {"DESTDIR", "packager", "folder before PREFIX"},
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
                     "| setting | who needs it | what it is | default |\n|---|---|---|---|\n");
    for (const SettingSpec *s = setting_table; s < setting_table + SETTING_COUNT; s++)
        if (s->kind != SETTING_KIND_DERIVED)
            buffer_printf(out, "| `%s` | %s | %s | %s%s |\n", s->name,
                          s->user ? s->user : "engineer", s->help, standard(s),
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
