/* quern-derive: writes the task.json of each draft, or the timed tolerances of tasks that are there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/flags.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "tasks/derive/derive.h"
#include "tasks/derive/shapes.h"
#include "tasks/derive/tolerances.h"
#include "tasks/task.h"
#include "tasks/task_fields.h"

/* ---- drafts as JSON files: the fields of task.json, some of which may be left out ---- */

typedef struct {
    Draft draft;
    const char *path; /* the caller's */
    json_t *root;     /* holds the texts */
    DraftAxis *axes;
    DraftTensor *inputs, *outputs;
    DraftShape *shapes;
    const char **texts[3]; /* tags, constraints, lines */
} DraftFile;

enum { MAX_FILE = 1 << 22 };

static int optional_int(const json_t *o, const char *key, const char *where, int64_t *out,
                        Error *err)
{
    return json_object_get(o, key) ? json_need_int(o, key, where, out, err) : 0;
}

static int optional_number(const json_t *o, const char *key, const char *where, double *out,
                           Error *err)
{
    return json_object_get(o, key) ? json_need_number(o, key, where, out, err) : 0;
}

static int optional_text(const json_t *o, const char *key, const char *where, const char **out,
                         Error *err)
{
    if (!json_object_get(o, key)) return 0;
    *out = json_need_text(o, key, where, err);
    return *out ? 0 : -1;
}

static int read_axes(DraftFile *f, Error *err)
{
    const char *file = f->path;
    static const char *const fields[] = {"description", "size", "low", "high", NULL};
    json_t *axes = json_need_object(f->root, "axes", file, err), *o;
    const char *name;
    if (!axes) return -1;
    f->axes = memory_array(json_object_size(axes) + 1, sizeof *f->axes);
    json_object_foreach(axes, name, o)
    {
        DraftAxis *a = &f->axes[f->draft.n_axes++];
        a->name = name;
        if (!json_is_object(o) || task_known_fields(o, fields, name, err) ||
            json_need_int(o, "size", name, &a->size, err) ||
            optional_int(o, "low", name, &a->low, err) ||
            optional_int(o, "high", name, &a->high, err) ||
            optional_text(o, "description", name, &a->description, err))
            return error_prefix(err, "%s, axes", file);
    }
    return 0;
}

static int read_shape(DraftTensor *x, const json_t *o, Error *err)
{
    json_t *shape = json_object_get(o, "shape");
    x->rank = -1;
    if (!shape) return 0;
    size_t n = json_array_size(shape);
    if (!json_is_array(shape) || n > TASK_MAX_RANK)
        return error_set(err, ERROR_CORRUPT, "%s.shape: at most %d texts expected", x->name,
                         TASK_MAX_RANK);
    for (x->rank = 0; x->rank < (int)n; x->rank++)
        if (!(x->shape[x->rank] = json_string_value(json_array_get(shape, (size_t)x->rank))))
            return error_set(err, ERROR_CORRUPT, "%s.shape[%d]: a text expected", x->name, x->rank);
    return 0;
}

static int read_draw(DraftTensor *x, const json_t *o, Error *err)
{
    static const char *const draws[] = {"normal", "uniform", "positive", "integer", "mixed"};
    const char *text = NULL;
    x->low = -1, x->high = x->std = 1;
    if (optional_text(o, "draw", x->name, &text, err)) return -1;
    if (text) {
        int draw = task_choose(text, draws, 5, "draw", x->name, err);
        if (draw < 0) return -1;
        x->draw = (Draw)draw;
        x->has_draw = 1;
    }
    x->has_statistics = json_object_get(o, "std") != NULL;
    x->has_range = json_object_get(o, "min") && json_object_get(o, "max");
    int64_t distinct = -1;
    if (optional_int(o, "distinct", x->name, &distinct, err)) return -1;
    x->distinct = (int)distinct + 1;
    x->highest = x->draw == DRAW_INTEGER ? json_string_value(json_object_get(o, "high")) : NULL;
    return optional_number(o, "low", x->name, &x->low, err) ||
                   (!x->highest && optional_number(o, "high", x->name, &x->high, err)) ||
                   optional_number(o, "mean", x->name, &x->mean, err) ||
                   optional_number(o, "std", x->name, &x->std, err) ||
                   optional_number(o, "min", x->name, &x->min, err) ||
                   optional_number(o, "max", x->name, &x->max, err) ||
                   optional_text(o, "parameter", x->name, &x->parameter, err)
               ? -1
               : 0;
}

static int read_tensors(DraftFile *f, const char *key, DraftTensor **list, int *n, Error *err)
{
    const char *file = f->path;
    static const char *const fields[] = {"dtype", "shape", "draw", "low",       "high",     "mean",
                                         "std",   "min",   "max",  "parameter", "distinct", NULL};
    json_t *tensors = json_need_object(f->root, key, file, err), *o;
    const char *name;
    if (!tensors) return -1;
    *list = memory_array(json_object_size(tensors) + 1, sizeof **list);
    json_object_foreach(tensors, name, o)
    {
        DraftTensor *x = &(*list)[(*n)++];
        const char *type = NULL;
        int dtype = DTYPES;
        x->name = name;
        if (!json_is_object(o))
            return error_set(err, ERROR_CORRUPT, "%s, %s.%s: an object expected", file, key, name);
        if (task_known_fields(o, fields, name, err) ||
            optional_text(o, "dtype", name, &type, err) ||
            (type &&
             (dtype = task_choose(type, dtype_names, DTYPES_OF_INPUTS, "dtype", name, err)) < 0) ||
            read_shape(x, o, err) || read_draw(x, o, err))
            return error_prefix(err, "%s, %s", file, key);
        x->dtype = (Dtype)dtype;
        if (list == &f->inputs && (dtype == DTYPES || x->rank < 0))
            return error_set(err, ERROR_CORRUPT, "%s, %s.%s: dtype and shape expected", file, key,
                             name);
    }
    return 0;
}

static int read_texts(DraftFile *f, int which, const char *key, int *n, Error *err)
{
    const char *file = f->path;
    json_t *list = json_object_get(f->root, key);
    if (list && !json_is_array(list))
        return error_set(err, ERROR_CORRUPT, "%s, %s: an array of texts expected", file, key);
    size_t count = json_array_size(list);
    f->texts[which] = memory_array(count + 1, sizeof **f->texts);
    for (; *n < (int)count; ++*n)
        if (!(f->texts[which][*n] = json_string_value(json_array_get(list, (size_t)*n))))
            return error_set(err, ERROR_CORRUPT, "%s, %s[%d]: a text expected", file, key, *n);
    return 0;
}

static int read_head(DraftFile *f, Error *err)
{
    const char *file = f->path;
    static const char *const fields[] = {
        "name",   "description", "op_type", "tags",        "level",  "split",  "axes",
        "inputs", "graph",       "outputs", "constraints", "budget", "shapes", NULL};
    static const char *const splits[] = {"train", "heldout"};
    Draft *d = &f->draft;
    const char *split = "train", *shapes = "";
    ErrorBudget unused;
    int64_t level = 1;
    if (!json_is_object(f->root))
        return error_set(err, ERROR_CORRUPT, "%s: an object expected", file);
    if (task_known_fields(f->root, fields, file, err) ||
        !(d->name = json_need_text(f->root, "name", file, err)) ||
        optional_text(f->root, "description", file, &d->description, err) ||
        optional_text(f->root, "op_type", file, &d->op_type, err) ||
        optional_int(f->root, "level", file, &level, err) ||
        optional_text(f->root, "split", file, &split, err) ||
        optional_text(f->root, "budget", file, &d->budget, err) ||
        optional_text(f->root, "shapes", file, &shapes, err) ||
        (d->budget && budget_named(d->budget, &unused, err)) ||
        shapes_read(shapes, &f->shapes, &d->n_shapes, err) ||
        (d->heldout = task_choose(split, splits, 2, "split", file, err)) < 0)
        return -1;
    d->shapes = f->shapes;
    d->level = level < 1 || level > 3 ? 0 : (int)level;
    return 0;
}

static void draft_file_release(DraftFile *f)
{
    json_decref(f->root);
    free(f->axes);
    free(f->inputs);
    free(f->outputs);
    free(f->shapes);
    for (int i = 0; i < 3; i++) free(f->texts[i]);
    *f = (DraftFile){0};
}

static int draft_file_read(const char *path, DraftFile *f, Error *err)
{
    *f = (DraftFile){.path = path, .root = json_read_file(path, MAX_FILE, err)};
    Draft *d = &f->draft;
    if (!f->root || read_head(f, err) || read_axes(f, err) ||
        read_tensors(f, "inputs", &f->inputs, &d->n_inputs, err) ||
        read_tensors(f, "outputs", &f->outputs, &d->n_outputs, err) ||
        read_texts(f, 0, "tags", &d->n_tags, err) ||
        read_texts(f, 1, "constraints", &d->n_constraints, err) ||
        read_texts(f, 2, "graph", &d->n_lines, err)) {
        draft_file_release(f);
        return -1;
    }
    d->axes = f->axes, d->inputs = f->inputs, d->outputs = f->outputs;
    d->tags = f->texts[0], d->constraints = f->texts[1], d->lines = f->texts[2];
    return 0;
}

/* ---- --again: a task becomes the draft of which it was derived, but for the module's own sizes ---- */

enum { DIGITS = 6, MAX_TASK = 1 << 24, PATH_BYTES = 4096 };

/* Points into the task. The caller frees its arrays with release. */
static void draft_tensors(DraftTensor *to, const TaskTensor *from, int n)
{
    for (int i = 0; i < n; i++) {
        const TaskTensor *x = &from[i];
        int integer = x->draw == DRAW_INTEGER;
        to[i] = (DraftTensor){.name = x->name,
                              .dtype = x->dtype,
                              .rank = x->rank,
                              .parameter = x->parameter ? x->name : NULL,
                              .mean = x->mean,
                              .std = x->std,
                              .has_statistics = 1,
                              .has_draw = 1,
                              .draw = x->draw,
                              .low = integer ? (double)x->draw_low : x->low,
                              .high = integer ? (double)x->draw_high : x->high,
                              .highest = x->draw_highest,
                              .distinct = x->distinct + 1};
        for (int k = 0; k < x->rank; k++) to[i].shape[k] = x->shape[k];
    }
}

static void draft_of(const Task *t, const Workload *w, Draft *d)
{
    DraftAxis *axes = memory_array((size_t)t->n_axes + 1, sizeof *axes);
    DraftTensor *in = memory_array((size_t)t->n_inputs, sizeof *in),
                *out = memory_array((size_t)t->n_outputs, sizeof *out);
    for (int i = 0; i < t->n_axes; i++)
        axes[i] = (DraftAxis){.name = t->axis_name[i], .size = w->axis[i]};
    draft_tensors(in, t->inputs, t->n_inputs);
    draft_tensors(out, t->outputs, t->n_outputs);
    *d = (Draft){.name = t->name,
                 .level = t->level,
                 .axes = axes,
                 .n_axes = t->n_axes,
                 .constraints = (const char *const *)t->constraints,
                 .n_constraints = t->n_constraints,
                 .inputs = in,
                 .n_inputs = t->n_inputs,
                 .outputs = out,
                 .n_outputs = t->n_outputs,
                 .lines = (const char *const *)t->graph->text,
                 .n_lines = t->graph->n_nodes};
}

static void draft_release(Draft *d)
{
    free((void *)d->axes);
    free((void *)d->inputs);
    free((void *)d->outputs);
}

/* The text of the same task, of the draft's names and axes. */
static char *text_of(const Derivation *v, const Task *t)
{
    Description all = {0};
    for (int i = 0; i < DTYPES; i++) all.rtol[i] = t->rtol[i] < 0 ? 0 : t->rtol[i];
    for (int i = 0; i < t->n_workloads; i++) {
        Sizes s;
        memcpy(s.at, t->workloads[i].axis, sizeof s.at);
        description_add(&all, t->workloads[i].role, &s);
        if (!t->workloads[i].atol) continue;
        size_t n = (size_t)t->n_outputs * ATOL_CASES;
        all.at[i].atol = memory_array(n, sizeof(double));
        memcpy(all.at[i].atol, t->workloads[i].atol, n * sizeof(double));
    }
    char *text = description_text(v, &all);
    description_release(&all);
    return text;
}

static int measure(Derivation *v, const Task *t, Description *d, Error *err)
{
    Task *own;
    Sizes timed = derivation_own(v);
    char *text = text_of(v, t);
    int rc = task_parse(t->name, text, &own, err);
    free(text);
    if (rc) return -1;
    description_add(d, ROLE_TIME, &timed);
    rc = tolerances_measure_timed(v, own, d, err);
    task_free(own);
    return rc;
}

static char *atol_text(const Task *t, const double *atol)
{
    json_t *all = json_object();
    for (int i = 0; i < t->n_outputs; i++) {
        json_t *list = json_array();
        for (int k = 0; k < ATOL_CASES; k++)
            json_array_append_new(list, json_real(atol[i * ATOL_CASES + k]));
        json_object_set_new(all, t->outputs[i].name, list);
    }
    char *text = json_dumps(all, JSON_REAL_PRECISION(DIGITS));
    json_decref(all);
    return text;
}

/* Where the "atol" of timed workload number i begins; NULL: there is none. */
static const char *timed_atol(const char *text, int i)
{
    const char *role = text;
    for (int k = 0; k <= i && role; k++) role = strstr(role + (k > 0), "\"role\": \"time\"");
    return role ? strstr(role, "\"atol\": {") : NULL;
}

/* Puts the text in place of the "atol" of timed workload number i. */
static int write_atol(const Task *t, int i, const char *atol, int *changed, Error *err)
{
    char path[PATH_BYTES];
    Buffer old, text;
    snprintf(path, sizeof path, "%s/task.json", t->dir);
    buffer_init(&old, MAX_TASK);
    if (file_read(path, MAX_TASK, &old, err)) return -1;
    const char *from = timed_atol(old.data, i), *end = from ? strchr(from, '}') : NULL;
    if (!end) {
        buffer_release(&old);
        return error_set(err, ERROR_CORRUPT, "%s: no \"atol\" of a timed workload", path);
    }
    from = strchr(from, '{');
    int differs = strncmp(from, atol, (size_t)(end + 1 - from)) != 0;
    *changed |= differs;
    buffer_init(&text, MAX_TASK);
    buffer_append(&text, old.data, (size_t)(from - old.data));
    buffer_puts(&text, atol);
    buffer_puts(&text, end + 1);
    int rc = differs ? file_write_atomic(path, text.data, text.len, err) : 0;
    buffer_release(&text);
    buffer_release(&old);
    return rc;
}

/* Timed workload number i. */
static int again(const Task *t, const Workload *w, int i, int *changed, Error *err)
{
    Derivation v;
    Draft draft;
    Description d = {0};
    draft_of(t, w, &draft);
    int rc = derivation_open(&v, &draft, err);
    draft_release(&draft);
    if (rc) return error_prefix(err, "%s", t->name);
    rc = measure(&v, t, &d, err);
    if (!rc) {
        char *text = atol_text(t, d.at[0].atol);
        rc = write_atol(t, i, text, changed, err);
        free(text);
    }
    description_release(&d);
    derivation_release(&v);
    return rc;
}

/* Measures the timed tolerances of a task of a graph and writes them into its task.json, of which all else
 * stays. *changed: they are others than before. */
static int derive_again(const Task *t, int *changed, Error *err)
{
    TimedPair pairs[TASK_MAX_TIMED];
    int n = task_timed(t, pairs), rc = 0;
    *changed = 0;
    for (int i = 0; i < n && !rc; i++)
        if (!t->graph || !pairs[i].timed->atol)
            return error_set(err, ERROR_UNSUPPORTED,
                             "%s: there is no timed tolerance that was derived", t->name);
        else
            rc = again(t, pairs[i].timed, i, changed, err);
    return rc;
}

/* Of all tasks that the words name. Returns whether one failed. */
static int all_again(const char *root, const char *const *words, int n)
{
    int failed = 0, changed;
    Error err;
    for (int i = 0; i < n; i++) {
        TaskSet set;
        if (taskset_load(root, words[i], &set, &err)) log_die(&err);
        for (int k = 0; k < set.n; k++) {
            Task *t = set.tasks[k];
            if (!t->graph) continue;
            if (!derive_again(t, &changed, &err)) {
                printf("%s: %s\n", t->name, changed ? "written" : "unchanged");
                fflush(stdout);
                continue;
            }
            log_warn("%s", err.text);
            failed = 1;
        }
        taskset_release(&set);
    }
    return failed;
}

int main(int argc, char **argv)
{
    derive_prepare(argv);
    const char *folder = NULL, *root = NULL;
    int is_again = 0;
    const Flag flags[] = {
        {"output", FLAG_TEXT, &folder, "folder of tasks; a folder NAME in it is made"},
        {"again", FLAG_BOOL, &is_again,
         "measure the timed tolerances of tasks or sets that are there"},
        {"task-root", FLAG_TEXT, &root, "with --again: another folder of tasks"},
        {0}};
    const FlagSpec spec = {
        .program = "quern-derive",
        .synopsis = "-o DIR DRAFT.json... | --again SET...",
        .about =
            "Writes DIR/NAME/task.json for each draft: a graph of operators, its axes and tensors. "
            "Workloads, draws and tolerances follow from the graph. --again writes the timed "
            "tolerances of each task.json again.",
        .flags = flags,
        .min_words = 1,
        .max_words = -1};
    const char **files = memory_array((size_t)argc, sizeof *files);
    int n = flags_parse(&spec, argc, argv, files), failed = 0;
    if (is_again == (folder != NULL))
        flags_usage_error(&spec, "either --output or --again is expected");
    if (is_again) failed = all_again(root, files, n);
    if (is_again) n = 0;
    for (int i = 0; i < n; i++) {
        DraftFile f;
        Error err;
        if (draft_file_read(files[i], &f, &err)) log_die(&err);
        if (derive_write(&f.draft, folder, &err)) {
            log_warn("%s", err.text);
            failed = 1;
        }
        draft_file_release(&f);
    }
    free(files);
    return log_close(failed);
}
