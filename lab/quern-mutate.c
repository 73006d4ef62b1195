/* quern-mutate: a measure of the judge. It changes one thing of each of many right kernels and prints which
 * of these mutants the judge takes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/paths.h"
#include "base/random.h"
#include "eval/device/evaluator_flags.h"
#include "lab/mutate/mutant_draw.h"
#include "lab/mutate/mutant_tally.h"
#include "lab/mutate/mutant_trial.h"
#include "lab/mutate/survivors.h"

static struct {
    const char *device, *tasks_root, *cache, *teacher, *known, *output;
    int64_t seed, count, kernels, seconds, part, parts;
} args = {.device = "sim:h100",
          .seed = 1,
          .count = 200,
          .kernels = 2,
          .part = 1,
          .parts = 1,
          .teacher = "composed,kernelbench/level1,kernelbench/level2"};

static const Flag flags[] = {
    EVALUATOR_FOLDER_FLAGS(args.tasks_root, args.cache),
    {"device", FLAG_TEXT, &args.device, "where mutants run, as of quern-eval"},
    {"seed", FLAG_INT, &args.seed, "of the draw: equal seeds give equal mutants", 0, 9e15},
    {"count", FLAG_INT, &args.count, "mutants", 1, 1e6},
    {"seconds", FLAG_INT, &args.seconds,
     "begin no original after so many, and sum up what there is; 0: no bound", 0, 1e6},
    {"part", FLAG_INT, &args.part, "of --parts: this process tries it, others the rest", 1, 1e4},
    {"parts", FLAG_INT, &args.parts, "into which the draw is divided, by originals", 1, 1e4},
    {"teacher", FLAG_TEXT, &args.teacher,
     "tasks and sets whose kernels the generator draws, beside those in no set; none: "
     "it draws none"},
    {"kernels", FLAG_INT, &args.kernels, "so many drawn ones for each of these tasks", 1, 1000},
    {"known", FLAG_TEXT, &args.known,
     "file of the survivors that are known; else Quern's own, tests/mutants/survivors.tsv"},
    {"output", FLAG_TEXT, &args.output,
     "folder for the sources of the survivors that are not known, and mutants.tsv with all "
     "mutants"},
    {0}};

static const FlagSpec spec = {
    .program = "quern-mutate",
    .synopsis = "[--count N] [--seed N] [FILE.cu...]",
    .about = "Change one thing of each of many right kernels, drop what has equal code or does not "
             "compile, and judge the others. Without files the kernels are Quern's own and those "
             "that the generator draws. Exit status: 1 when the judge takes a mutant that is not "
             "known as equivalent or permitted.",
    .flags = flags,
    .max_words = -1};

typedef struct {
    Evaluator *evaluator;
    Originals originals;
    Survivors known;
    MutantTally tally;
    FILE *table; /* NULL: none */
    int refused; /* originals that the judge does not take */
    int left;    /* that have mutants, when the time was over */
    double start;
} Session;

/* One original, its mutations, and those of them that are tried. */
typedef struct {
    const Original *original;
    const Task *task;
    Mutations mutations;
    int *order, n;
    double score;
    char code[DIGEST_HEX];
} Subject;

static void write_source(const Subject *s, const Mutation *m, const char *text)
{
    Error err;
    const char *folder = strrchr(s->original->task, '/'), /* the task may be named by its folder */
        *task = folder ? folder + 1 : s->original->task;
    char *path = memory_printf("%s/%s-%.*s-%s-%s.cu", args.output, task, 6, s->original->digest,
                               m->kind, m->place);
    if (file_write_atomic(path, text, strlen(text), &err)) log_die(&err);
    free(path);
}

static void print_line(const Subject *s, const Mutation *m, const char *text)
{
    for (int line = 1; line < m->line; line++) text += strcspn(text, "\n") + 1;
    text += strspn(text, " \t");
    printf("%s %.*s (%s)\t%s %s\t", s->original->task, SURVIVOR_DIGEST, s->original->digest,
           s->original->label, m->kind, m->place);
    printf("%.*s\n", (int)strcspn(text, "\n"), text);
}

static void report(Session *x, const Subject *s, const Mutation *m, const MutantResult *r,
                   const char *text)
{
    static const char *const fates[] = {"invalid", "equal", "killed", "survived"};
    Survivor who = {.task = s->original->task,
                    .digest = s->original->digest,
                    .kind = m->kind,
                    .place = m->place};
    SurvivorClass class = survivors_class(&x->known, &who);
    tally_add(&x->tally, m->kind, s->task->op_type, r, class);
    if (x->table) {
        fprintf(x->table, "%s\t%.*s\t%s\t%s\t%s\t%s\t%.3f\t%.3f\t%s\n", who.task, SURVIVOR_DIGEST,
                who.digest, m->kind, m->place,
                r->fate == MUTANT_OK ? survivor_class_name(class) : fates[r->fate], r->outcome,
                r->score, s->score, r->message);
        fflush(x->table);
    }
    if (r->fate != MUTANT_OK || class == SURVIVOR_EQUIVALENT || class == SURVIVOR_PERMITTED) return;
    printf("%s, score %.3f, original %.3f: ", survivor_class_name(class), r->score, s->score);
    print_line(s, m, text);
    fflush(stdout);
    if (args.output) write_source(s, m, text);
}

static void try_mutant(Session *x, const Subject *s, const Mutation *m)
{
    Error err;
    char code[DIGEST_HEX], *text = mutation_apply(&s->mutations, m);
    MutantResult r = {.fate = MUTANT_INVALID};
    int rc = trial_code(x->evaluator, text, code, &err);
    if (!rc && m->where != IN_PLAN && !strcmp(code, s->code))
        r.fate = MUTANT_EQUAL;
    else if (!rc)
        rc = trial_judge(x->evaluator, s->original->task, text, &r, &err);
    if (rc < 0) log_die(&err);
    report(x, s, m, &r, text);
    free(text);
}

/* An original that is not right any more has no mutants. */
static void try_all(Session *x, Subject *s)
{
    Error err;
    MutantResult r = {0};
    if (trial_code(x->evaluator, s->original->text, s->code, &err) < 0 ||
        trial_judge(x->evaluator, s->original->task, s->original->text, &r, &err))
        log_die(&err);
    s->score = r.score;
    if (r.fate == MUTANT_OK) {
        for (int i = 0; i < s->n; i++) try_mutant(x, s, &s->mutations.at[s->order[i]]);
        return;
    }
    x->refused++;
    printf("the original is refused: %s (%s): %s: %s\n", s->original->task, s->original->label,
           r.outcome, r.message);
    fflush(stdout);
}

static int is_large(const Task *t)
{
    size_t n;
    for (int w = 0; w < t->n_workloads; w++)
        for (int i = 0; i < t->n_inputs + t->n_outputs; i++) {
            const TaskTensor *x = i < t->n_inputs ? &t->inputs[i] : &t->outputs[i - t->n_inputs];
            if (!task_elements(t, &t->workloads[w], x, &n, NULL) && n >> 31) return 1;
        }
    return 0;
}

/* The mutations of an original; s keeps the tokens' text. */
static void open_subject(Session *x, const Original *o, Tokens *tokens, Subject *s)
{
    Error err;
    *s = (Subject){.original = o, .task = evaluator_task(x->evaluator, o->task, &err)};
    if (!s->task) log_die(&err);
    tokens_read(o->text, tokens);
    mutations_find(tokens, is_large(s->task), &s->mutations);
}

static void close_subject(Tokens *tokens, Subject *s)
{
    mutations_release(&s->mutations);
    tokens_release(tokens);
    free(s->order);
}

/* The originals by the seed, so that those before the end of the time are a sample of all. */
static int *shuffled(int n)
{
    Random r;
    int *order = memory_array((size_t)n + 1, sizeof *order);
    random_init(&r, (uint64_t)args.seed, 0);
    for (int i = 0; i < n; i++) {
        int at = (int)random_below(&r, (uint64_t)i + 1);
        order[i] = order[at];
        order[at] = i;
    }
    return order;
}

static void try_original(Session *x, const Original *o, int many)
{
    Tokens tokens;
    Subject s;
    open_subject(x, o, &tokens, &s);
    s.n = many;
    s.order = memory_array((size_t)s.mutations.n + 1, sizeof *s.order);
    mutants_order((uint64_t)args.seed, s.original, &s.mutations, s.order);
    try_all(x, &s);
    close_subject(&tokens, &s);
}

static void run(Session *x)
{
    const Originals *o = &x->originals;
    int *at = memory_array((size_t)o->n + 1, sizeof *at),
        *many = memory_array((size_t)o->n + 1, sizeof *many), *order = shuffled(o->n);
    Tokens tokens;
    Subject s;
    for (int i = 0; i < o->n; i++) {
        open_subject(x, &o->at[i], &tokens, &s);
        at[i] = s.mutations.n;
        close_subject(&tokens, &s);
    }
    const MutantDraw draw = {(uint64_t)args.seed, (int)args.count, (int)args.part - 1,
                             (int)args.parts};
    mutants_share(&draw, o, at, many);
    for (int k = 0; k < o->n; k++) {
        int i = order[k];
        if (!many[i]) continue;
        if (args.seconds && clock_seconds() - x->start > (double)args.seconds)
            x->left++;
        else
            try_original(x, &o->at[i], many[i]);
    }
    free(at);
    free(many);
    free(order);
}

static int add_taught(Originals *o, const char *names, Error *err)
{
    TaskSet tasks;
    int rc = taskset_load(args.tasks_root, names, &tasks, err);
    if (rc) return -1;
    rc = originals_teacher(o, &tasks, (int)args.kernels, err);
    taskset_release(&tasks);
    return rc;
}

static int collect(Originals *o, const char **files, int n, Error *err)
{
    int rc = 0, taught = strcmp(args.teacher, "none") != 0;
    for (int i = 0; i < n && !rc; i++) rc = originals_glob(o, files[i], err);
    if (!n) rc = originals_own(o, err);
    if (!rc && taught && !n) rc = add_taught(o, NULL, err);
    if (!rc && taught && (!n || flags_given("teacher"))) rc = add_taught(o, args.teacher, err);
    if (rc) return -1;
    originals_sort(o);
    return o->n ? 0 : error_set(err, ERROR_NOT_FOUND, "no file has a line `// task: NAME`");
}

static void open_table(Session *x)
{
    Error err;
    if (!args.output) return;
    char *path = memory_printf("%s/mutants.tsv", args.output);
    if (file_mkdirs(args.output, &err)) log_die(&err);
    if (!(x->table = fopen(path, "w"))) {
        error_errno(&err, "cannot write %s", path);
        log_die(&err);
    }
    free(path);
}

static void open_session(Session *x, const char **files, int n)
{
    Error err;
    const EvaluatorOptions options = {
        .device = args.device, .tasks_root = args.tasks_root, .cache_dir = args.cache, .seed = 1};
    char *known =
        args.known ? memory_strdup(args.known) : paths_in_root("tests/mutants/survivors.tsv", &err);
    if (!known || survivors_read(known, &x->known, &err) ||
        collect(&x->originals, files, n, &err) || evaluator_open(&options, &x->evaluator, &err))
        log_die(&err);
    open_table(x);
    free(known);
}

int main(int argc, char **argv)
{
    Session *x = memory_alloc(sizeof *x);
    const char **files = memory_array((size_t)argc, sizeof *files);
    int n = flags_parse(&spec, argc, argv, files);
    if (args.part > args.parts)
        flags_usage_error(&spec, "expected --part of 1 to %d (--parts), found %d", (int)args.parts,
                          (int)args.part);
    x->start = clock_seconds();
    open_session(x, files, n);
    run(x);
    tally_print(&x->tally, stdout);
    printf("%d originals, %d of them refused; %.0f s\n", x->originals.n, x->refused,
           clock_seconds() - x->start);
    if (x->left) printf("the time was over: %d originals with mutants were not tried\n", x->left);
    const int *survived = x->tally.all.survived;
    int failed = survived[SURVIVOR_NEW] || survived[SURVIVOR_WRONG];
    if (x->table) fclose(x->table);
    fflush(stdout);
    _exit(log_close(failed ? EXIT_STATUS_FAILED : EXIT_STATUS_OK)); /* as quern-eval ends */
}
