/* Reads and checks one task folder, and computes its axes and shapes. */
#include "tasks/task.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/words.h"
#include "tasks/task_fields.h"
#include "tasks/task_graph.h"

enum { TASK_MAX_FILE = 1 << 20 };
static const size_t TASK_MAX_ELEMENTS = (size_t)1
                                        << 31; /* of one tensor, so that indices fit an int */

static int read_tolerance(Task *t, const json_t *root, const char *file, Error *err)
{
    static const char *const fields[] = {"float32", "float16", "bfloat16", "int32",
                                         "terms",   "degree",  NULL};
    json_t *tolerance = json_need_object(root, "tolerance", file, err);
    char where[4200];
    snprintf(where, sizeof where, "%s, tolerance", file);
    if (!tolerance || task_known_fields(tolerance, fields, where, err)) return -1;
    for (int d = 0; d < DTYPES; d++) t->atol[d] = t->rtol[d] = -1;
    for (int i = 0; i < t->n_outputs; i++) {
        Dtype d = t->outputs[i].dtype;
        json_t *obj = json_need_object(tolerance, dtype_name(d), where, err);
        if (!obj || json_need_number(obj, "atol", where, &t->atol[d], err) ||
            json_need_number(obj, "rtol", where, &t->rtol[d], err))
            return -1;
        json_t *tf32 = json_object_get(obj, "tf32");
        if (tf32 && d == DTYPE_F32 &&
            (json_need_number(tf32, "atol", where, &t->tf32_atol, err) ||
             json_need_number(tf32, "rtol", where, &t->tf32_rtol, err)))
            return -1;
        if (!(t->atol[d] >= 0 && t->atol[d] < 1 && t->rtol[d] >= 0 && t->rtol[d] < 1))
            return error_set(err, ERROR_CORRUPT, "%s: atol and rtol of %s are expected in [0, 1)",
                             where, dtype_name(d));
    }
    int64_t degree = 1;
    if (json_object_get(tolerance, "degree") &&
        json_need_int(tolerance, "degree", where, &degree, err))
        return -1;
    if (degree < 0 || degree > 8)
        return error_set(err, ERROR_CORRUPT, "%s: degree is expected in 0..8, found %lld", where,
                         (long long)degree);
    t->degree = (int)degree;
    if (!json_object_get(tolerance, "terms")) return 0;
    const char *terms = json_need_text(tolerance, "terms", where, err);
    if (!terms) return -1;
    t->terms = memory_strdup(terms);
    return 0;
}

static int read_precision(Task *t, const json_t *root, const char *file, Error *err)
{
    static const char *const fields[] = {"matmul", "cudnn_tf32", NULL};
    char where[4200];
    t->precision = precision_default;
    int asked = t->in_memory ? 0 : precision_of_run(&t->precision, err);
    const json_t *cudnn;
    json_t *own = json_object_get(root, "precision");
    if (asked < 0) return -1;
    if (!own) return 0;
    Precision p;
    snprintf(where, sizeof where, "%s, precision", file);
    if (!json_need_object(root, "precision", file, err) ||
        task_known_fields(own, fields, where, err))
        return -1;
    const char *matmul = json_need_text(own, "matmul", where, err);
    int word = matmul ? task_choose(matmul, precision_matmul_names, MATMUL_PRECISIONS, "matmul",
                                    where, err)
                      : -1;
    if (word < 0) return -1;
    if (!json_is_boolean(cudnn = json_object_get(own, "cudnn_tf32")))
        return error_set(err, ERROR_CORRUPT, "%s: cudnn_tf32: true or false expected", where);
    p = (Precision){(MatmulPrecision)word, json_is_true(cudnn)};
    if (!asked) t->precision = p;
    return 0;
}

static int read_budget(Task *t, const json_t *root, const char *file, Error *err)
{
    const char *word = "";
    int asked = t->in_memory ? 0 : budget_of_run(&t->budget, err);
    if (asked < 0) return -1;
    if (json_object_get(root, "budget") && !(word = json_need_text(root, "budget", file, err)))
        return -1;
    ErrorBudget own;
    if (budget_named(word, &own, err)) return error_prefix(err, "%s: budget", file);
    if (!asked) t->budget = own;
    return 0;
}

/* Reads "turns": the axis along which contents can be rotated, the first dimension of every output. */
static int read_rotates(Task *t, const json_t *root, const char *file, Error *err)
{
    t->rotates = -1;
    if (!json_object_get(root, "turns")) return 0;
    const char *axis = json_need_text(root, "turns", file, err);
    if (!axis) return -1;
    for (int i = 0; i < t->n_axes; i++)
        if (!strcmp(t->axis_name[i], axis)) t->rotates = i;
    if (t->rotates < 0)
        return error_set(err, ERROR_CORRUPT, "%s: turns: \"%s\" is no axis", file, axis);
    for (int i = 0; i < t->n_outputs; i++)
        if (!t->outputs[i].rank || strcmp(t->outputs[i].shape[0], axis))
            return error_set(err, ERROR_CORRUPT,
                             "%s: turns: the first dimension of output %s is not %s", file,
                             t->outputs[i].name, axis);
    return 0;
}

/* Reads "special" and "exact". */
static int read_extremes(Task *t, const json_t *root, const char *file, Error *err)
{
    static const char *const kinds[] = {"large", "inf", "nan"};
    char where[4200];
    json_t *special = json_object_get(root, "special"), *kind;
    size_t i;
    snprintf(where, sizeof where, "%s, special", file);
    if (special && !json_is_array(special))
        return error_set(err, ERROR_CORRUPT, "%s: an array expected", where);
    json_array_foreach(special, i, kind)
    {
        int k = task_choose(json_is_string(kind) ? json_string_value(kind) : "(no text)", kinds, 3,
                            "special", where, err);
        if (k < 0) return -1;
        t->special |= 1u << k;
    }
    if (read_rotates(t, root, file, err)) return -1;
    if (!json_object_get(root, "exact")) return 0;
    const char *exact = json_need_text(root, "exact", file, err);
    if (!exact) return -1;
    t->exact = memory_strdup(exact);
    return 0;
}

static int read_case_tolerances(Task *t, Workload *w, const json_t *obj, const char *where,
                                Error *err)
{
    json_t *all = json_need_object(obj, "atol", where, err);
    if (!all) return -1;
    w->atol = memory_array((size_t)t->n_outputs, ATOL_CASES * sizeof *w->atol);
    if (json_object_size(all) != (size_t)t->n_outputs)
        return error_set(err, ERROR_CORRUPT, "%s, atol: one list for each of %d outputs expected",
                         where, t->n_outputs);
    for (int i = 0; i < t->n_outputs; i++) {
        json_t *list = json_need_array(all, t->outputs[i].name, where, err);
        if (!list) return -1;
        if (json_array_size(list) != ATOL_CASES)
            return error_set(err, ERROR_CORRUPT, "%s, atol.%s: %d numbers expected, found %zu",
                             where, t->outputs[i].name, ATOL_CASES, json_array_size(list));
        for (int k = 0; k < ATOL_CASES; k++) {
            double v = json_number_value(json_array_get(list, (size_t)k));
            if (!json_is_number(json_array_get(list, (size_t)k)) || !(v >= 0 && isfinite(v)))
                return error_set(err, ERROR_CORRUPT, "%s, atol.%s[%d]: a number >= 0 expected",
                                 where, t->outputs[i].name, k);
            w->atol[i * ATOL_CASES + k] = v;
        }
    }
    return 0;
}

static int read_workload(Task *t, const json_t *obj, int index, const char *file, Error *err)
{
    static const char *const roles[] = {"check", "time", "sim"};
    char where[4200];
    snprintf(where, sizeof where, "%s, workloads[%d]", file, index);
    const char *text = json_need_text(obj, "role", where, err);
    int role = text ? task_choose(text, roles, 3, "role", where, err) : -1;
    json_t *axes = role < 0 ? NULL : json_need_object(obj, "axes", where, err);
    if (!axes) return -1;
    Workload *w = &t->workloads[t->n_workloads++];
    w->role = (Role)role;
    w->weight = 1;
    if (json_object_get(obj, "weight") && json_need_number(obj, "weight", where, &w->weight, err))
        return -1;
    if (!(w->weight > 0 && w->weight <= 1e6) || (w->weight != 1 && role != ROLE_TIME))
        return error_set(err, ERROR_CORRUPT,
                         "%s: a weight above 0 and up to 1e6 expected, of a timed workload", where);
    for (int i = 0; i < t->n_axes; i++) {
        if (json_need_int(axes, t->axis_name[i], where, &w->axis[i], err)) return -1;
        if (w->axis[i] < 1)
            return error_set(err, ERROR_CORRUPT, "%s: %s is expected to be at least 1", where,
                             t->axis_name[i]);
    }
    if (json_object_size(axes) != (size_t)t->n_axes)
        return error_set(err, ERROR_CORRUPT, "%s: it names an axis that \"axes\" does not declare",
                         where);
    if (json_object_get(obj, "note")) {
        if (!(text = json_need_text(obj, "note", where, err))) return -1;
        w->note = memory_strdup(text);
    }
    return json_object_get(obj, "atol") ? read_case_tolerances(t, w, obj, where, err) : 0;
}

static int read_workloads(Task *t, const json_t *root, const char *file, Error *err)
{
    json_t *list = json_need_array(root, "workloads", file, err);
    if (!list) return -1;
    size_t n = json_array_size(list);
    if (n > TASK_MAX_WORKLOADS)
        return error_set(err, ERROR_LIMIT, "%s: at most %d workloads, found %zu", file,
                         TASK_MAX_WORKLOADS, n);
    int count[3] = {0};
    for (size_t i = 0; i < n; i++) {
        if (read_workload(t, json_array_get(list, i), (int)i, file, err)) return -1;
        count[t->workloads[i].role]++;
    }
    int timed = count[ROLE_TIME], sim = count[ROLE_SIM];
    if (!count[ROLE_CHECK] || timed < 1 || timed > TASK_MAX_TIMED || (sim != 1 && sim != timed))
        return error_set(err, ERROR_CORRUPT,
                         "%s: workloads: at least one \"check\", 1 to %d \"time\", and one \"sim\" "
                         "or as many expected, found %d, %d and %d",
                         file, TASK_MAX_TIMED, count[ROLE_CHECK], timed, sim);
    return 0;
}

static int read_tags(Task *t, const json_t *root, const char *file, Error *err)
{
    json_t *tags = json_need_array(root, "tags", file, err), *tag;
    size_t i;
    if (!tags) return -1;
    json_array_foreach(tags, i, tag)
    {
        if (!json_is_string(tag))
            return error_set(err, ERROR_CORRUPT, "%s: tags[%zu] is expected to be a text", file, i);
        t->degenerate |= !strcmp(json_string_value(tag), "degenerate");
        t->by_composition |= !strcmp(json_string_value(tag), "composition");
        t->by_family |= !strcmp(json_string_value(tag), "family");
    }
    return 0;
}

static int read_head(Task *t, const json_t *root, const char *file, Error *err)
{
    static const char *const splits[] = {"train", "heldout"};
    const char *folder = strrchr(t->dir, '/'), *name, *op_type, *text;
    folder = folder ? folder + 1 : t->dir;
    int64_t level;
    int split;
    if (!(name = json_need_text(root, "name", file, err)) ||
        !(op_type = json_need_text(root, "op_type", file, err)))
        return -1;
    if (!word_is_name(name, sizeof t->name))
        return error_set(err, ERROR_LIMIT,
                         "%s: name \"%s\": letters, digits and _ expected, at most %zu", file, name,
                         sizeof t->name - 1);
    if (strcmp(name, folder))
        return error_set(err, ERROR_CORRUPT,
                         "%s: name \"%s\" is expected to be its folder's, \"%s\"", file, name,
                         folder);
    if (strlen(op_type) >= sizeof t->op_type)
        return error_set(err, ERROR_LIMIT, "%s: op_type of at most %zu bytes expected", file,
                         sizeof t->op_type - 1);
    snprintf(t->name, sizeof t->name, "%s", name);
    snprintf(t->op_type, sizeof t->op_type, "%s", op_type);
    if (!(text = json_need_text(root, "description", file, err))) return -1;
    t->description = memory_strdup(text);
    if (json_need_int(root, "level", file, &level, err)) return -1;
    if (level < 1 || level > 3)
        return error_set(err, ERROR_CORRUPT, "%s: level is expected to be 1, 2 or 3, found %lld",
                         file, (long long)level);
    t->level = (int)level;
    if (!(text = json_need_text(root, "split", file, err)) ||
        (split = task_choose(text, splits, 2, "split", file, err)) < 0)
        return -1;
    t->heldout = split;
    return read_tags(t, root, file, err);
}

int task_allows(const Task *t, const Workload *w, Error *err)
{
    TaskScope scope = {t, w};
    for (int i = 0; i < t->n_constraints; i++) {
        int64_t holds;
        if (expr_eval(t->constraints[i], strlen(t->constraints[i]), task_lookup, &scope, &holds,
                      err))
            return error_prefix(err, "constraints[%d]", i);
        if (!holds)
            return error_set(err, ERROR_INVALID, "the constraint \"%s\" does not hold",
                             t->constraints[i]);
    }
    return 0;
}

/* Evaluates every expression for every workload, so that no error appears during a run. */
static int check_workloads(const Task *t, const char *file, Error *err)
{
    for (int i = 0; i < t->n_workloads; i++) {
        const Workload *w = &t->workloads[i];
        double bytes, flops;
        Tolerance by;
        size_t n;
        int bad = 0;
        IntegerBounds bounds;
        for (int j = 0; j < t->n_inputs && !bad; j++)
            bad = task_elements(t, w, &t->inputs[j], &n, err) ||
                  (t->inputs[j].draw == DRAW_INTEGER &&
                   task_integers(t, w, &t->inputs[j], &bounds, err));
        for (int j = 0; j < t->n_outputs && !bad; j++)
            bad = task_elements(t, w, &t->outputs[j], &n, err) ||
                  task_tolerance(&(TaskCase){t, w, VARIANT_DRAWN, 0, 1.0}, j, &by, err);
        TaskScope scope = {t, w};
        int64_t terms = 1;
        if (!bad && t->exact &&
            expr_eval(t->exact, strlen(t->exact), task_lookup, &scope, &terms, err))
            bad = error_prefix(err, "exact");
        if (!bad && terms < 1)
            bad = error_set(err, ERROR_CORRUPT, "exact: at least 1 expected, found %lld",
                            (long long)terms);
        if (!bad) bad = task_allows(t, w, err);
        if (bad || task_cost(t, w, &bytes, &flops, err))
            return error_prefix(err, "%s, workloads[%d]", file, i);
    }
    return 0;
}

static int read_source(const Task *t, const char *name, char **out, Error *err)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", t->dir, name);
    Buffer b;
    buffer_init(&b, TASK_MAX_FILE);
    if (file_read(path, TASK_MAX_FILE, &b, err)) {
        buffer_release(&b);
        return -1;
    }
    if (strlen(b.data) != b.len) {
        buffer_release(&b);
        return error_set(err, ERROR_CORRUPT, "%s: a text file expected, found a NUL byte", path);
    }
    *out = buffer_detach(&b);
    buffer_release(&b);
    return 0;
}

/* *text stays NULL if there is no such file. */
static int read_optional(const Task *t, const char *name, char **out, Error *err)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", t->dir, name);
    return !t->in_memory && file_exists(path) ? read_source(t, name, out, err) : 0;
}

/* Adds the name too, since the same text in another file is another task. */
static void add_optional(Digester *d, const char *name, const char *text)
{
    if (!text) return;
    digester_add_field(d, name, strlen(name));
    digester_add_field(d, text, strlen(text));
}

/* What is computed, and at what cost: a graph, or files and expressions. */
static int read_work(Task *t, const json_t *root, const char *file, Error *err)
{
    const char *bytes, *flops;
    if (json_object_get(root, "graph")) {
        if (json_object_get(root, "bytes") || json_object_get(root, "flops"))
            return error_set(err, ERROR_CORRUPT, "%s: bytes and flops follow from the graph", file);
        return task_graph_read(t, root, file, err);
    }
    if (t->in_memory) return error_set(err, ERROR_INVALID, "%s: a graph expected", file);
    if (!(bytes = json_need_text(root, "bytes", file, err)) ||
        !(flops = json_need_text(root, "flops", file, err)))
        return -1;
    t->bytes = memory_strdup(bytes);
    t->flops = memory_strdup(flops);
    return task_operators_read(t, root, file, err) ||
                   read_source(t, "reference.c", &t->reference_source, err) ||
                   read_source(t, "baseline.cu", &t->baseline_source, err)
               ? -1
               : 0;
}

static void add_digest(Task *t, const char *text)
{
    Digester d;
    Digest digest;
    digester_init(&d);
    digester_add_field(&d, text, strlen(text));
    digester_add_field(&d, t->reference_source, strlen(t->reference_source));
    digester_add_field(&d, t->baseline_source, strlen(t->baseline_source));
    add_optional(&d, "baseline_cuda.cu", t->baseline_cuda_source);
    add_optional(&d, "best.cu", t->best_source);
    if (t->tf32) digester_add_field(&d, t->tf32 & TF32_CUBLAS ? "tf32 1" : "tf32 0", 6);
    if (t->tf32) digester_add_field(&d, t->tf32 & TF32_CUDNN ? "tf32 1" : "tf32 0", 6);
    if (budget_is_set(&t->budget)) digester_add_field(&d, &t->budget, sizeof t->budget);
    digester_finish(&d, &digest);
    digest_hex(&digest, t->digest);
}

/* Which libraries round in this task where a precision lets them. */
static int find_tf32(Task *t, Error *err)
{
    const char *baseline = task_baseline(t);
    unsigned by = 0;
    if (t->graph && task_graph_tf32(t, &by, err)) return -1;
    if (!t->graph && strstr(baseline, "//@ library cublas")) by |= TF32_CUBLAS;
    if (!t->graph && strstr(baseline, "//@ library cudnn")) by |= TF32_CUDNN;
    t->tf32 = by & precision_tf32(&t->precision);
    return 0;
}

/* Sizes that the constraints do not allow are no module's. */
static void find_own(Task *t)
{
    TimedPair timed[TASK_MAX_TIMED];
    int differs = 0;
    if (task_timed(t, timed) < 1) return;
    Workload own = *timed[0].timed;
    own.note = NULL;
    own.atol = NULL;
    for (int i = 0; i < t->n_axes; i++) {
        if (!t->own_size[i] || t->own_size[i] == own.axis[i]) continue;
        own.axis[i] = t->own_size[i];
        differs = 1;
    }
    if (!differs || task_allows(t, &own, NULL)) return;
    t->own = memory_alloc(sizeof *t->own);
    *t->own = own;
}

static int parse(Task *t, const char *text, const char *file, Error *err)
{
    static const char *const fields[] = {
        "name",   "description", "op_type", "tags",        "level",      "split",     "axes",
        "inputs", "outputs",     "graph",   "constraints", "tolerance",  "special",   "exact",
        "turns",  "bytes",       "flops",   "workloads",   "degenerate", "precision", "call",
        "budget", "operators",   "results", NULL};
    json_t *root = json_read_text(text, strlen(text), file, err);
    int rc = -1;
    if (!root) return -1;
    if (!json_is_object(root)) {
        error_set(err, ERROR_CORRUPT, "%s: an object expected", file);
        goto out;
    }
    if (task_known_fields(root, fields, file, err) || read_head(t, root, file, err) ||
        task_read_axes(t, root, file, err) || task_read_tensors(t, root, 1, file, err) ||
        task_read_tensors(t, root, 0, file, err) || task_read_constraints(t, root, file, err) ||
        read_precision(t, root, file, err) || read_budget(t, root, file, err) ||
        read_tolerance(t, root, file, err) || read_extremes(t, root, file, err) ||
        read_workloads(t, root, file, err) || read_work(t, root, file, err) ||
        read_optional(t, "baseline_cuda.cu", &t->baseline_cuda_source, err) ||
        read_optional(t, "best.cu", &t->best_source, err) || find_tf32(t, err) ||
        check_workloads(t, file, err))
        goto out;
    add_digest(t, text);
    find_own(t);
    rc = 0;
out:
    json_decref(root);
    return rc;
}

/* dir NULL: the text is all that there is. */
static int load(const char *dir, const char *name, const char *given, Task **out, Error *err)
{
    Task *t = memory_alloc(sizeof *t);
    char file[4096], *text = NULL;
    t->dir = memory_strdup(dir ? dir : name);
    t->in_memory = !dir;
    snprintf(file, sizeof file, dir ? "%s/task.json" : "%s", t->dir);
    int rc = (!given && read_source(t, "task.json", &text, err)) ||
                     parse(t, given ? given : text, file, err)
                 ? -1
                 : 0;
    free(text);
    if (rc)
        task_free(t);
    else
        *out = t;
    return rc;
}

int task_load(const char *path, Task **out, Error *err)
{
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/') len--;
    if (len > 3900)
        return error_set(err, ERROR_LIMIT, "task folder: a path of at most 3900 bytes expected");
    char *dir = memory_strndup(path, len);
    int rc = load(dir, NULL, NULL, out, err);
    free(dir);
    return rc;
}

int task_parse(const char *name, const char *text, Task **out, Error *err)
{
    return load(NULL, name, text, out, err);
}

static void release_tensors(TaskTensor *list, int n)
{
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < list[i].rank; j++) free(list[i].shape[j]);
        free(list[i].draw_highest);
    }
    free(list);
}

void task_free(Task *t)
{
    if (!t) return;
    release_tensors(t->inputs, t->n_inputs);
    release_tensors(t->outputs, t->n_outputs);
    for (int i = 0; i < t->n_workloads; i++) free(t->workloads[i].atol), free(t->workloads[i].note);
    for (int i = 0; i < t->n_constraints; i++) free(t->constraints[i]);
    free(t->constraints);
    if (t->library) dlclose(t->library);
    graph_free(t->graph);
    graph_free(t->operators);
    free(t->description);
    free(t->dir);
    free(t->reference_source);
    free(t->baseline_source);
    free(t->baseline_cuda_source);
    free(t->best_source);
    free(t->bytes);
    free(t->flops);
    free(t->terms);
    free(t->exact);
    free(t->own);
    free(t);
}

/* ---- arithmetic ---- */

int task_lookup(void *task_scope, const char *name, size_t len, int64_t *value)
{
    const TaskScope *s = task_scope;
    for (int i = 0; i < s->task->n_axes; i++) {
        const char *axis = s->task->axis_name[i];
        if (word_is(name, len, axis)) {
            *value = s->workload->axis[i];
            return 0;
        }
    }
    return -1;
}

int task_rotates(const Task *t, const TaskTensor *x)
{
    return t->rotates >= 0 && x->rank && !strcmp(x->shape[0], t->axis_name[t->rotates]);
}

int task_is_scalar(const Task *t)
{
    for (int i = 0; i < t->n_outputs; i++)
        if (t->outputs[i].rank) return 0;
    return 1;
}

int task_shape(const Task *t, const Workload *w, const TaskTensor *x, int64_t shape[TASK_MAX_RANK],
               Error *err)
{
    TaskScope scope = {t, w};
    for (int i = 0; i < x->rank; i++) {
        if (expr_eval(x->shape[i], strlen(x->shape[i]), task_lookup, &scope, &shape[i], err))
            return error_prefix(err, "%s.shape[%d]", x->name, i);
        if (shape[i] < 1)
            return error_set(err, ERROR_CORRUPT,
                             "%s.shape[%d]: \"%s\" is %lld, at least 1 expected", x->name, i,
                             x->shape[i], (long long)shape[i]);
    }
    return 0;
}

int task_elements(const Task *t, const Workload *w, const TaskTensor *x, size_t *n, Error *err)
{
    int64_t shape[TASK_MAX_RANK];
    if (task_shape(t, w, x, shape, err)) return -1;
    *n = 1;
    for (int i = 0; i < x->rank; i++)
        if (__builtin_mul_overflow(*n, (size_t)shape[i], n) || *n > TASK_MAX_ELEMENTS)
            return error_set(err, ERROR_LIMIT, "%s: more than %zu elements", x->name,
                             TASK_MAX_ELEMENTS);
    return 0;
}

int task_integers(const Task *t, const Workload *w, const TaskTensor *x, IntegerBounds *out,
                  Error *err)
{
    TaskScope scope = {t, w};
    const char *text = x->draw_highest;
    *out = (IntegerBounds){x->draw_low, x->draw_high};
    if (text && expr_eval(text, strlen(text), task_lookup, &scope, &out->high, err))
        return error_prefix(err, "%s.high", x->name);
    if (x->distinct >= 0) {
        int64_t shape[TASK_MAX_RANK];
        if (task_shape(t, w, x, shape, err)) return -1;
        if (out->high - out->low + 1 < shape[x->distinct])
            return error_set(
                err, ERROR_CORRUPT,
                "%s: %lld distinct integers expected between low and high, found %lld to %lld",
                x->name, (long long)shape[x->distinct], (long long)out->low, (long long)out->high);
    }
    if (out->low <= out->high && out->low >= INT32_MIN && out->high <= INT32_MAX) return 0;
    return error_set(err, ERROR_CORRUPT,
                     "%s: low <= high expected, both of 32 bits, found %lld, %lld", x->name,
                     (long long)out->low, (long long)out->high);
}

int task_cost(const Task *t, const Workload *w, double *bytes, double *flops, Error *err)
{
    TaskScope scope = {t, w};
    int64_t b, f;
    if (t->graph) return task_graph_cost(t, w, bytes, flops, err);
    if (expr_eval(t->bytes, strlen(t->bytes), task_lookup, &scope, &b, err))
        return error_prefix(err, "bytes");
    if (expr_eval(t->flops, strlen(t->flops), task_lookup, &scope, &f, err))
        return error_prefix(err, "flops");
    if (b < 0 || f < 0)
        return error_set(err, ERROR_CORRUPT,
                         "bytes and flops: at least 0 expected, found %lld and %lld", (long long)b,
                         (long long)f);
    *bytes = (double)b;
    *flops = (double)f;
    return 0;
}

void task_workload_text(const Task *t, const Workload *w, char *out, size_t size)
{
    static const char *const roles[] = {"check", "time", "sim"};
    size_t len = (size_t)snprintf(out, size, "%s", roles[w->role]);
    for (int i = 0; i < t->n_axes && len < size; i++)
        len += (size_t)snprintf(out + len, size - len, " %s=%lld", t->axis_name[i],
                                (long long)w->axis[i]);
}

const Workload *task_workload(const Task *t, Role role)
{
    for (int i = 0; i < t->n_workloads; i++)
        if (t->workloads[i].role == role) return &t->workloads[i];
    return NULL;
}

const Workload *task_largest_timed(const Task *t)
{
    const Workload *best = NULL;
    double most = -1;
    for (int i = 0; i < t->n_workloads; i++) {
        double all = 0;
        size_t n;
        if (t->workloads[i].role != ROLE_TIME) continue;
        for (int k = 0; k < t->n_inputs; k++)
            if (!task_elements(t, &t->workloads[i], &t->inputs[k], &n, NULL)) all += (double)n;
        for (int k = 0; k < t->n_outputs; k++)
            if (!task_elements(t, &t->workloads[i], &t->outputs[k], &n, NULL)) all += (double)n;
        if (all > most) best = &t->workloads[i], most = all;
    }
    return best;
}

static int is_within(const Task *t, const Workload *small, const Workload *timed)
{
    for (int i = 0; i < t->n_axes; i++)
        if (small->axis[i] > timed->axis[i]) return 0;
    return 1;
}

int task_timed(const Task *t, TimedPair *out)
{
    const Workload *small[TASK_MAX_TIMED];
    int n = 0, n_small = 0;
    for (int i = 0; i < t->n_workloads; i++) {
        const Workload *w = &t->workloads[i];
        if (w->role == ROLE_TIME) out[n++].timed = w;
        if (w->role == ROLE_SIM) small[n_small++] = w;
    }
    for (int i = 0; i < n; i++) {
        out[i].small = small[n_small == n ? i : 0];
        if (n > 1 && n_small == 1 && !is_within(t, small[0], out[i].timed))
            out[i].small = out[i].timed;
    }
    return n;
}

const char *task_baseline(const Task *t)
{
    return t->baseline_cuda_source ? t->baseline_cuda_source : t->baseline_source;
}

const Workload *task_largest_check(const Task *t)
{
    const Workload *best = NULL;
    size_t largest = 0;
    for (int i = 0; i < t->n_workloads; i++) {
        size_t n = 0;
        if (t->workloads[i].role != ROLE_CHECK ||
            task_elements(t, &t->workloads[i], &t->inputs[0], &n, NULL))
            continue;
        if (!best || n > largest) best = &t->workloads[i], largest = n;
    }
    return best;
}
