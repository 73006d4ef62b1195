/* A walk over the folders that a run has, three deep. */
#include "report/metrics/run_numbers.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "artifacts/artifact.h"
#include "base/memory.h"

enum { DEPTH = 4, MAX_FILES = 65536, MAX_STEPS = 1 << 20 };

static void read_verdict(const View *v, FileNumbers *f)
{
    char *word = view_strdup(v, "outcome", NULL);
    Outcome o;
    double score;
    if (word && !outcome_from_name(word, &o)) {
        f->outcomes[o]++;
        if (o == OUTCOME_OK && !view_float(v, "score", &score, NULL)) f->scores += score;
    }
    free(word);
}

/* The tokens of an endpoint's reply, or the ids of a model here. */
static void read_sample(const View *v, FileNumbers *f)
{
    View usage;
    int64_t prompt = 0, answer = 0;
    size_t n;
    if (view_has(v, "usage") && !view_map(v, "usage", &usage, NULL)) {
        if (view_has(&usage, "prompt_tokens")) view_int(&usage, "prompt_tokens", &prompt, NULL);
        if (view_has(&usage, "completion_tokens"))
            view_int(&usage, "completion_tokens", &answer, NULL);
    } else {
        if (view_has(v, "prompt_ids") && !view_count(v, "prompt_ids", &n, NULL))
            prompt = (int64_t)n;
        if (view_has(v, "ids") && !view_count(v, "ids", &n, NULL)) answer = (int64_t)n;
    }
    f->prompt_tokens += (double)prompt;
    f->answer_tokens += (double)answer;
}

static void read_step(const View *v, FileNumbers *f)
{
    StepValue s = {0};
    const char *name;
    size_t n;
    if (f->n_steps == MAX_STEPS || view_int(v, "step", &s.step, NULL) ||
        view_text(v, "name", &name, &n, NULL) || view_float(v, "value", &s.value, NULL))
        return;
    snprintf(s.name, sizeof s.name, "%.*s", (int)n, name);
    if (!(f->n_steps & (f->n_steps - 1)))
        f->steps = memory_grow(f->steps, f->n_steps ? (size_t)f->n_steps * 2 : 1, sizeof s);
    f->steps[f->n_steps++] = s;
}

static void read_file(const char *path, FileNumbers *f)
{
    static const struct {
        const char *name, *kind;
        void (*read)(const View *, FileNumbers *);
    } kinds[] = {{"verdicts.qa", "verdicts", read_verdict},
                 {"samples.qa", "samples", read_sample},
                 {"metrics.qa", "metrics", read_step}};
    const char *name = strrchr(path, '/') + 1;
    ArtifactReader *a;
    View v;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(name, kinds[i].name) != 0 || artifact_open(path, kinds[i].kind, &a, NULL))
            continue;
        while (artifact_next(a, &v, NULL) == 1) kinds[i].read(&v, f);
        artifact_close(a);
    }
}

static int is_selected(const char *name, int steps_only)
{
    if (steps_only) return !strcmp(name, "metrics.qa");
    return !strcmp(name, "verdicts.qa") || !strcmp(name, "samples.qa") ||
           !strcmp(name, "metrics.qa");
}

/* Takes the numbers of a file that has not changed from `old`. */
static void add_file(const RunFolder *run, const char *below, const struct stat *st,
                     RunNumbers *old, RunNumbers *now)
{
    char *path = run_folder_path(run, "%s", below);
    FileNumbers f = {.path = memory_strdup(below), .changed = st->st_mtim, .size = st->st_size};
    size_t n = strcspn(below, "/");
    snprintf(f.stage, sizeof f.stage, "%.*s", (int)n, below);
    if (below[n]) f.round = atoi(below + n + 1);
    FileNumbers *same = NULL;
    for (int i = 0; i < old->n && !same; i++)
        if (old->files[i].path && !strcmp(old->files[i].path, below) &&
            old->files[i].size == f.size && old->files[i].changed.tv_sec == f.changed.tv_sec &&
            old->files[i].changed.tv_nsec == f.changed.tv_nsec)
            same = &old->files[i];
    now->files = memory_grow(now->files, (size_t)now->n + 1, sizeof *now->files);
    if (same) {
        free(f.path);
        f = *same;
        *same = (FileNumbers){0};
    } else {
        read_file(path, &f);
    }
    now->files[now->n++] = f;
    free(path);
}

static void walk(const RunFolder *run, const char *below, int depth, int steps_only,
                 RunNumbers *old, RunNumbers *now)
{
    char *path = run_folder_path(run, "%s", below);
    DIR *d = opendir(path);
    free(path);
    for (struct dirent *e; d && now->n < MAX_FILES && (e = readdir(d));) {
        struct stat st;
        if (e->d_name[0] == '.' || !strcmp(e->d_name, "queue") || !strcmp(e->d_name, "log"))
            continue;
        char *next = memory_printf("%s%s%s", below, *below ? "/" : "", e->d_name);
        path = run_folder_path(run, "%s", next);
        if (lstat(path, &st))
            ;
        else if (S_ISDIR(st.st_mode) && depth > 1)
            walk(run, next, depth - 1, steps_only, old, now);
        else if (S_ISREG(st.st_mode) && is_selected(e->d_name, steps_only) && *below)
            add_file(run, next, &st, old, now);
        free(path);
        free(next);
    }
    if (d) closedir(d);
}

static int by_place(const void *a, const void *b)
{
    const FileNumbers *x = a, *y = b;
    int c = strcmp(x->stage, y->stage);
    if (!c) c = (x->round > y->round) - (x->round < y->round);
    return c ? c : strcmp(x->path, y->path);
}

void run_numbers_read(const RunFolder *run, int steps_only, RunNumbers *n)
{
    RunNumbers old = *n;
    *n = (RunNumbers){0};
    walk(run, "", DEPTH, steps_only, &old, n);
    if (n->n) qsort(n->files, (size_t)n->n, sizeof *n->files, by_place);
    run_numbers_release(&old);
}

void run_numbers_release(RunNumbers *n)
{
    for (int i = 0; i < n->n; i++) {
        free(n->files[i].path);
        free(n->files[i].steps);
    }
    free(n->files);
    *n = (RunNumbers){0};
}

const double *run_number(const FileNumbers *f, const char *name)
{
    for (int i = 0; i < f->n_steps; i++)
        if (!strcmp(f->steps[i].name, name)) return &f->steps[i].value;
    return NULL;
}

int run_name_is_plain(const char *name)
{
    return !name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")];
}
