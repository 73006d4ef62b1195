/* The kinds of teachers: the generator, a directory, an endpoint. */
#include "stages/teacher/teacher.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "eval/candidate/answer.h"
#include "generate/draw/drawn_words.h"
#include "llm/llm.h"
#include "stages/data/describe.h"
#include "stages/data/promptset.h"
#include "stages/policy/prompt.h"

enum { MAX_SOURCE = 1 << 20 };

static int is_directory(const char *name)
{
    return !strncmp(name, "dir:", 4);
}

int teacher_check(const char *name, Error *err)
{
    const char *colon = strchr(name, ':');
    if (!strcmp(name, "generator") ||
        (colon && colon[1] && (llm_is_endpoint(name) || is_directory(name))))
        return 0;
    return error_set(err, ERROR_USAGE,
                     "teacher '%s': expected generator, openai:MODEL, anthropic:MODEL or "
                     "dir:PATH",
                     name);
}

void teacher_sample_id(const Teacher *t, const Task *task, int trial, char *out, size_t size)
{
    snprintf(out, size, "collect/%s/%s/%d", task->name, t->name, trial);
}

/* Makes the sample record of an answer to a prompt; its group is (task, teacher). */
static Record *answer_record(const Teacher *t, const TeacherRequest *q, const char *prompt,
                             PromptAnswer a)
{
    char id[512];
    teacher_sample_id(t, q->task, q->trial, id, sizeof id);
    *strrchr(id, '/') = 0;
    PromptItem p = {.id = id,
                    .task = (char *)q->task->name,
                    .text = (char *)prompt,
                    .split = (char *)(q->task->heldout ? "heldout" : "train")};
    a.stage = "collect";
    a.producer = t->name;
    a.trial = q->trial;
    return promptset_answer(&p, &a);
}

static uint64_t seed_of(const Teacher *t, const TeacherRequest *q)
{
    Random r;
    random_init(&r, t->seed ^ random_hash(q->task->name, strlen(q->task->name)),
                (uint64_t)q->trial);
    return random_u64(&r);
}

/* The record of a drawn kernel. */
static Record *kernel_record(const Teacher *t, const TeacherRequest *q, const Buffer *text)
{
    return answer_record(
        t, q, "",
        (PromptAnswer){
            .seed = seed_of(t, q), .finish = "stop", .text = text->data, .len = text->len});
}

/* ---- the generator ---- */

int teacher_draw(const Task *task, const DrawOptions *o, Buffer *out, Error *err)
{
    Drawn d;
    char analysis[DRAW_WORDS], design[DRAW_WORDS];
    if (draw_kernel(task, o, &d, err)) return -1;
    draw_analysis(&d, analysis);
    draw_design(&d, design);
    answer_write(out, analysis, design, d.source);
    draw_release(&d);
    return 0;
}

/* A task of which no kernel can be drawn gets no answer: other teachers may know it. */
static void ask_generator(const Teacher *t, TeacherRequest *q)
{
    Error why;
    Buffer text;
    const DrawOptions o = {seed_of(t, q), t->mistakes, designs_of(t->without, q->task->name)};
    buffer_init(&text, MAX_SOURCE);
    if (!teacher_draw(q->task, &o, &text, &why))
        q->record = kernel_record(t, q, &text);
    else if (q->trial == 0)
        log_warn("the generator draws no kernels: %s", why.text);
    buffer_release(&text);
}

/* ---- a directory ---- */

static int is_source(const struct dirent *e)
{
    size_t n = strlen(e->d_name);
    return n > 3 && !strcmp(e->d_name + n - 3, ".cu");
}

/* Lists the sources of a task by name and returns how many, or -1; without a folder 0. dir becomes
 * the path of the folder. The caller frees the names with free_sources. */
static int list_sources(const Teacher *t, const Task *task, char dir[4096], struct dirent ***names,
                        Error *err)
{
    *names = NULL;
    snprintf(dir, 4096, "%s/%s", t->name + 4, task->name);
    int n = file_exists(dir) ? scandir(dir, names, is_source, alphasort) : 0;
    return n < 0 ? error_errno(err, "cannot read %s", dir) : n;
}

static void free_sources(struct dirent **names, int n)
{
    for (int i = 0; i < n; i++) free(names[i]);
    free(names);
}

static int ask_directory(const Teacher *t, TeacherRequest *q, Error *err)
{
    char dir[4096], path[4400];
    struct dirent **names;
    int n = list_sources(t, q->task, dir, &names, err), rc = 0;
    if (n < 0) return -1;
    if (q->trial < n) {
        Buffer source, text, design;
        buffer_init(&source, MAX_SOURCE);
        buffer_init(&design, MAX_SOURCE);
        buffer_init(&text, 4 * MAX_SOURCE);
        snprintf(path, sizeof path, "%s/%s", dir, names[q->trial]->d_name);
        rc = -(file_read_source(path, MAX_SOURCE, &source, err) ||
               describe_source(source.data, source.len, &design));
        if (!rc) answer_write(&text, design.data, design.data, source.data);
        if (!rc)
            q->record = answer_record(
                t, q, "", (PromptAnswer){.finish = "stop", .text = text.data, .len = text.len});
        buffer_release(&source);
        buffer_release(&design);
        buffer_release(&text);
    }
    free_sources(names, n);
    return rc;
}

/* Adds the texts of a task's sources, in the order of the trials, to the digest. Names do not
 * count. Returns how many sources there are, or -1. */
static int add_sources(Digester *d, const Teacher *t, const Task *task, Error *err)
{
    char dir[4096], path[4400];
    struct dirent **names;
    int n = list_sources(t, task, dir, &names, err), rc = n < 0 ? -1 : 0;
    if (n > 0) digester_add_field(d, task->name, strlen(task->name));
    if (n > 0) digester_add_field(d, &n, sizeof n);
    for (int i = 0; !rc && i < n; i++) {
        Buffer source;
        buffer_init(&source, MAX_SOURCE);
        snprintf(path, sizeof path, "%s/%s", dir, names[i]->d_name);
        rc = file_read(path, MAX_SOURCE, &source, err);
        if (!rc) digester_add_field(d, source.data, source.len);
        buffer_release(&source);
    }
    free_sources(names, n);
    return rc ? -1 : n;
}

/* Whether it is the name of a task, in the run or not. */
static int is_task(const TaskSet *tasks, const char *name)
{
    char path[4400];
    if (taskset_find(tasks, name, strlen(name))) return 1;
    const char *one = tasks->tasks[0]->dir, *slash = strrchr(one, '/');
    snprintf(path, sizeof path, "%.*s%s/task.json", slash ? (int)(slash + 1 - one) : 0, one, name);
    return file_exists(path);
}

static void add_name(Buffer *list, const char *name)
{
    if (list->len < 200)
        buffer_printf(list, "%s%s", list->len ? ", " : "", name);
    else if (list->data[list->len - 1] != '.')
        buffer_puts(list, ", ...");
}

/* Warns of folders that no task is named as, and of sources outside the folders of tasks. */
static void warn_ignored(const Teacher *t, const TaskSet *tasks)
{
    const char *dir = t->name + 4;
    Buffer folders, sources;
    struct dirent **names = NULL;
    int n = scandir(dir, &names, NULL, alphasort);
    buffer_init(&folders, 1 << 12);
    buffer_init(&sources, 1 << 12);
    for (int i = 0; i < n; i++) {
        char path[4400];
        struct stat st;
        const char *name = names[i]->d_name;
        snprintf(path, sizeof path, "%s/%s", dir, name);
        if (*name == '.' || stat(path, &st)) continue;
        if (S_ISDIR(st.st_mode) && !is_task(tasks, name)) add_name(&folders, name);
        if (S_ISREG(st.st_mode) && is_source(names[i])) add_name(&sources, name);
    }
    if (folders.len)
        log_warn("teacher '%s': no task is named as these folders of %s: %s", t->name, dir,
                 folders.data);
    if (sources.len)
        log_warn("teacher '%s': sources that are in no task's folder are not read: %s", t->name,
                 sources.data);
    free_sources(names, n);
    buffer_release(&folders);
    buffer_release(&sources);
}

int teacher_input(const Teacher *t, const TaskSet *tasks, ArtifactSpec *out, Error *err)
{
    struct stat st;
    Digester d;
    Digest digest;
    char hex[DIGEST_HEX];
    if (!is_directory(t->name)) return 0;
    const char *path = t->name + 4;
    if (stat(path, &st))
        return error_errno(err, "teacher '%s': expected a folder at %s", t->name, path);
    if (!S_ISDIR(st.st_mode))
        return error_set(err, ERROR_INVALID, "teacher '%s': expected a folder at %s, found a file",
                         t->name, path);
    int n = 0, found = 0;
    digester_init(&d);
    for (int i = 0; n >= 0 && i < tasks->n; i++) {
        if (tasks->tasks[i]->heldout) continue;
        n = add_sources(&d, t, tasks->tasks[i], err);
        found |= n > 0;
    }
    digester_finish(&d, &digest);
    digest_hex(&digest, hex);
    if (n < 0) return -1;
    if (!found)
        return error_set(
            err, ERROR_INVALID,
            "teacher '%s': expected %s/<task>/NAME.cu for a train task of the run, found none",
            t->name, path);
    warn_ignored(t, tasks);
    artifact_spec_input_digest(out, path, hex);
    return 0;
}

/* ---- an endpoint ---- */

static const char *endpoint_of(const Teacher *t)
{
    return t->endpoint ? t->endpoint : t->name;
}

int teacher_is_endpoint(const Teacher *t)
{
    return llm_is_endpoint(endpoint_of(t));
}

/* The caller frees it. */
static char *prompt_text(const Teacher *t, const Task *task)
{
    Buffer b;
    buffer_init(&b, MAX_SOURCE);
    const PromptStyle style = prompt_facts_style(t->facts, task->name);
    prompt_write(&b, task, NULL, 0, &style);
    char *text = buffer_detach(&b);
    buffer_release(&b);
    return text;
}

double teacher_prompt_tokens(const Teacher *t, const Task *task)
{
    char *text = prompt_text(t, task);
    double n = budget_tokens(strlen(text));
    free(text);
    return n;
}

typedef struct {
    const Teacher *t;
    const TeacherRequests *q;
    char **prompt;
} Ask;

static const char *ask_prompt(void *ctx, size_t index, uint64_t *seed)
{
    Ask *a = ctx;
    const Teacher *t = a->t;
    double worst = budget_cost(&t->price, budget_tokens(strlen(a->prompt[index])), t->max_tokens);
    if (t->budget && !budget_take(t->budget, worst)) return NULL;
    *seed = seed_of(t, &a->q->req[index]) >> 33;
    return a->prompt[index];
}

static int ask_reply(void *ctx, const LlmReply *reply, Error *err)
{
    Ask *a = ctx;
    TeacherRequest *q = &a->q->req[reply->index];
    const char *text = reply->text ? reply->text : "";
    if (reply->error) log_warn("%s, trial %d: %s", q->task->name, q->trial, reply->error);
    q->record = answer_record(
        a->t, q, a->prompt[reply->index],
        (PromptAnswer){
            .seed = seed_of(a->t, q), .finish = reply->finish, .text = text, .len = strlen(text)});
    Record *usage = record_map(q->record, "usage");
    record_int(usage, "prompt_tokens", reply->prompt_tokens);
    record_int(usage, "completion_tokens", reply->completion_tokens);
    return a->q->done(a->q->ctx, q, err);
}

static int ask_endpoint(const Teacher *t, const TeacherRequests *q, Error *err)
{
    const size_t n = q->n;
    Ask a = {t, q, memory_array(n, sizeof *a.prompt)};
    for (size_t i = 0; i < n; i++) a.prompt[i] = prompt_text(t, q->req[i].task);
    LlmOptions o = llm_endpoint_options(endpoint_of(t), t->max_tokens, t->concurrency);
    o.base_url = t->url;
    o.key_env = t->key_env;
    o.in_row = t->in_row;
    o.sent = budget_sent;
    o.sent_ctx = &(BudgetAccount){t->budget, t->name, &t->price};
    int rc = llm_run(&o, n, ask_prompt, ask_reply, &a, err);
    if (!rc && t->budget) rc = budget_check(t->budget, err);
    for (size_t i = 0; i < n; i++) free(a.prompt[i]);
    free(a.prompt);
    return rc;
}

static int ask_one(const Teacher *t, TeacherRequest *q, Error *err)
{
    if (is_directory(t->name)) return ask_directory(t, q, err);
    ask_generator(t, q);
    return 0;
}

int teacher_ask(const Teacher *t, const TeacherRequests *q, Error *err)
{
    if (teacher_is_endpoint(t)) return ask_endpoint(t, q, err);
    for (size_t i = 0; i < q->n; i++) {
        if (ask_one(t, &q->req[i], err)) return -1;
        if (q->done(q->ctx, &q->req[i], err)) return -1;
    }
    return 0;
}
