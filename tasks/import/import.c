/* Puts a program together as the draft of a task. */
#include "tasks/import/import.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "tasks/derive/derive.h"
#include "tasks/import/archive.h"
#include "tasks/import/argument.h"
#include "tasks/import/lines.h"
#include "tasks/import/pins.h"

enum { IMPORT_MAX_TAGS = 8 };

#define SMALL_BUFFER 1e-3

typedef struct {
    Draft draft;
    DraftAxis *axes;
    DraftTensor *inputs, *outputs;
    const char **lines;
    char *constraints[PINS_MAX_CONSTRAINTS];
    int n_constraints;
    char **shapes; /* texts that the tensors point to */
    int n_shapes;
    char *cast
        [GRAPH_MAX_OUTPUTS]; /* lines of outputs that are not as tasks have them, and their names */
    char name[GRAPH_MAX_OUTPUTS][GRAPH_NAME];
    int n_casts;
    char *call; /* of the notes, as JSON */
    char *results;
    const char *tags[IMPORT_MAX_TAGS + 1];
} Parts;

static int statistic(const json_t *notes, const char *name, double *out)
{
    json_t *v = json_object_get(notes, name);
    if (!json_is_number(v) || !isfinite(json_number_value(v))) return -1;
    *out = json_number_value(v);
    return 0;
}

/* The shape of a tensor of the program as expressions over axes. */
static int fill_shape(Program *p, Parts *parts, const char *name, DraftTensor *t, Error *err)
{
    const json_t *sizes = json_object_get(json_object_get(p->tensors, name), "sizes");
    t->rank = (int)json_array_size(sizes);
    for (int d = 0; d < t->rank && d < TASK_MAX_RANK; d++) {
        Buffer b;
        buffer_init(&b, SYMBOLIC_MAX_TEXT);
        int rc = argument_size(p, json_array_get(sizes, (size_t)d), &b, err);
        if (!rc) {
            parts->shapes =
                memory_grow(parts->shapes, (size_t)parts->n_shapes + 1, sizeof *parts->shapes);
            t->shape[d] = parts->shapes[parts->n_shapes++] = buffer_detach(&b);
        }
        buffer_release(&b);
        if (rc) return -1;
    }
    return 0;
}

/* An argument whose example has no negative element, as distances, weights and probabilities have none. */
static int is_not_negative(const ProgramInput *x)
{
    double min, max;
    return x->kind == INPUT_ARGUMENT && x->dtype < DTYPES && dtype_is_float(x->dtype) &&
           !statistic(x->notes, "min", &min) && !statistic(x->notes, "max", &max) && min >= 0 &&
           max > min;
}

/* An argument whose example lies within one of zero, as cosines, odds and places in an image do. */
static int is_within_one(const ProgramInput *x)
{
    double min, max;
    return x->kind == INPUT_ARGUMENT && x->dtype < DTYPES && dtype_is_float(x->dtype) &&
           !statistic(x->notes, "min", &min) && !statistic(x->notes, "max", &max) && min >= -1 &&
           max <= 1 && max > min;
}

/* It keeps the range of its example at every scale: of what is not negative, too, where classes or indices
 * are made of it. */
static void keep_range(const Program *p, const ProgramInput *x, DraftTensor *t)
{
    int kept = is_within_one(x) || (p->recorded == RECORDED_RANGES && is_not_negative(x));
    if (!p->recorded || !kept || statistic(x->notes, "min", &t->low) ||
        statistic(x->notes, "max", &t->high))
        return;
    t->has_draw = t->fixed = 1;
    t->draw = DRAW_UNIFORM;
}

/* Floats of which each is 0 or 1, as their mean and deviation show. */
static int is_mask(const json_t *notes)
{
    double mean, std, min, max;
    const char *type = json_string_value(json_object_get(notes, "dtype"));
    if (!type || (!strstr(type, "float")) || statistic(notes, "mean", &mean) ||
        statistic(notes, "std", &std) || statistic(notes, "min", &min) ||
        statistic(notes, "max", &max))
        return 0;
    return min == 0 && max == 1 && fabs(std * std - mean * (1 - mean)) < 1e-9;
}

/* A buffer is not trained, so that one value, or small ones, stay what they are: a scale of quantised
 * weights. */
static void draw_buffer(const json_t *notes, DraftTensor *t)
{
    if (!json_is_true(json_object_get(notes, "buffer")) || !t->has_statistics) return;
    int one = t->min == t->max;
    if (!dtype_is_float(t->dtype) || !(t->min != 0 || t->max != 0) || (one && t->min == 1) ||
        (!one && fmax(fabs(t->min), fabs(t->max)) > SMALL_BUFFER))
        return;
    t->has_draw = 1, t->draw = DRAW_UNIFORM;
    t->low = one ? fmin(t->min / 2, t->min * 1.5) : t->min;
    t->high = one ? fmax(t->min / 2, t->min * 1.5) : t->max;
}

/* Weights of a model that nobody has trained move results by less than convolutions round: theirs become
 * those of a layer that keeps the size of what it takes. */
static void spread_weights(const Program *p, const ProgramInput *x, DraftTensor *t)
{
    SymValue size;
    double in = 1;
    for (int d = 1; d < x->rank; d++) {
        if (symbolic_value(&x->size[d], &p->symbols, NULL, &size, NULL) || size.is_real) return;
        in *= (double)size.integer;
    }
    double std = 1 / sqrt(fmax(in, 1));
    if (x->rank < 2 || !t->has_statistics || fabs(t->mean) > t->std || t->std >= std) return;
    t->mean = 0, t->std = std, t->min = -4 * std, t->max = 4 * std;
}

static int fill_input(Program *p, Parts *parts, const Lines *l, const ProgramInput *x,
                      DraftTensor *t, Error *err)
{
    *t = (DraftTensor){.name = lines_name(l, x)};
    t->dtype = x->dtype;
    if (x->dtype >= DTYPES_OF_INPUTS) {
        error_set(err, ERROR_UNSUPPORTED, "it has the type %s; convert it to float32",
                  dtype_name(x->dtype));
        return program_prefix_use(p, x, err);
    }
    if (fill_shape(p, parts, x->placeholder, t, err))
        return error_prefix(err, "input %.80s", x->name);
    if (x->kind != INPUT_ARGUMENT) t->parameter = x->name;
    int recorded = x->kind != INPUT_ARGUMENT || (p->recorded && is_not_negative(x));
    t->has_statistics = recorded && !statistic(x->notes, "mean", &t->mean) &&
                        !statistic(x->notes, "std", &t->std) &&
                        !statistic(x->notes, "min", &t->min) &&
                        !statistic(x->notes, "max", &t->max);
    if (p->spread && x->kind != INPUT_ARGUMENT) spread_weights(p, x, t);
    keep_range(p, x, t);
    if (x->kind == INPUT_ARGUMENT && is_mask(x->notes)) {
        t->has_draw = t->fixed = 1;
        t->draw = DRAW_INTEGER, t->low = 0, t->high = 1;
    }
    draw_buffer(x->notes, t);
    t->format = json_string_value(json_object_get(x->notes, "format"));
    t->has_range = !dtype_is_float(x->dtype) && !statistic(x->notes, "min", &t->min) &&
                   !statistic(x->notes, "max", &t->max);
    return 0;
}

/* Is a symbol in a text that stays? Axes that nothing names are left out, and so is a symbol that has no
 * axis. */
static int names_axis(const char *text, const char *axis)
{
    size_t len = strlen(axis);
    for (const char *p = text; len && (p = strstr(p, axis)); p += len) {
        const char *word = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
        if ((p == text || !strchr(word, p[-1])) && (!p[len] || !strchr(word, p[len]))) return 1;
    }
    return 0;
}

static int is_used(const Parts *parts, const char *axis)
{
    for (int i = 0; i < parts->n_shapes; i++)
        if (names_axis(parts->shapes[i], axis)) return 1;
    for (int i = 0; i < parts->draft.n_lines; i++)
        if (names_axis(parts->lines[i], axis)) return 1;
    return 0;
}

static void fill_axes(Program *p, Parts *parts)
{
    parts->axes = memory_array((size_t)p->symbols.n + 1, sizeof *parts->axes);
    for (int i = 0; i < p->symbols.n; i++) {
        const Symbol *s = &p->symbols.list[i];
        if (s->pinned || s->same || !is_used(parts, s->axis)) continue;
        parts->axes[parts->draft.n_axes++] = (DraftAxis){
            .name = s->axis, .size = s->own, .low = s->low, .high = s->high, .one = s->one};
    }
}

/* A constraint on an axis that is not there has no meaning for the task. */
static void drop_constraints(const Program *p, Parts *parts)
{
    int kept = 0;
    for (int i = 0; i < parts->n_constraints; i++) {
        char *text = parts->constraints[i];
        int stays = 1;
        for (int k = 0; k < p->symbols.n; k++) {
            const Symbol *s = &p->symbols.list[k];
            if (!s->pinned && !s->same && names_axis(text, s->axis) && !is_used(parts, s->axis))
                stays = 0;
        }
        if (stays)
            parts->constraints[kept++] = text;
        else
            free(text);
    }
    parts->n_constraints = kept;
}

/* Tasks have outputs of float types and int32. Indices and masks are converted by a line. */
static void fill_outputs(Program *p, const Lines *l, Parts *parts)
{
    parts->outputs = memory_array((size_t)l->n_outputs, sizeof *parts->outputs);
    for (int i = 0; i < l->n_outputs; i++) {
        const char *name = l->output[i], *original, *own = NULL;
        json_t *text;
        json_object_foreach(l->names, original, text)
        {
            if (!strcmp(json_string_value(text), name)) own = original;
        }
        DraftTensor *t = &parts->outputs[i];
        Dtype d = dtype_exported(
            json_integer_value(json_object_get(json_object_get(p->tensors, own), "dtype")));
        if (d >= DTYPES_OF_OUTPUTS && d != DTYPES) {
            int k = parts->n_casts++, is_float = dtype_is_float(d);
            snprintf(parts->name[k], GRAPH_NAME, "%.50s_%s", name, is_float ? "f32" : "i32");
            parts->cast[k] = memory_printf("%s = aten.to.dtype(%s, torch.%s)", parts->name[k], name,
                                           is_float ? "float32" : "int32");
            name = parts->name[k];
        }
        if (fill_shape(p, parts, own, t, NULL)) t->rank = -1; /* from the graph, then */
        t->name = name;
        t->dtype = DTYPES;
    }
    parts->draft.n_outputs = l->n_outputs;
}

/* The task is no whole module, as the export or the import says. */
static int is_part(const Program *p, const Lines *l)
{
    return l->cut.begun || json_object_get(p->notes, "cut");
}

/* Does the module return an input as it is? */
static int is_returned(const Lines *l, const char *name)
{
    json_t *result;
    size_t i;
    json_array_foreach(l->results, i, result)
    {
        const char *returned = json_string_value(result);
        if (returned && !strcmp(returned, name)) return 1;
    }
    return 0;
}

/* The inputs that stay, those of one kind in their order. */
static int fill_inputs(Program *p, const Lines *l, int arguments, Parts *parts, Error *err)
{
    for (int i = 0; i < p->n_inputs; i++) {
        const ProgramInput *x = &p->inputs[i];
        const char *name = lines_name(l, x);
        size_t len = strlen(name);
        int is_line = 0; /* of a constant */
        for (int k = 0; k < l->n && !is_line; k++)
            is_line = !l->list[k].node && !strncmp(l->list[k].text, name, len) &&
                      l->list[k].text[len] == ' ';
        int needed = l->used[i] || (!is_part(p, l) && (arguments || is_returned(l, name)));
        if (is_line || (x->kind == INPUT_ARGUMENT) != arguments || !needed) continue;
        DraftTensor *t = &parts->inputs[parts->draft.n_inputs++];
        if (fill_input(p, parts, l, x, t, err)) return -1;
        t->unused = !l->used[i];
    }
    return 0;
}

/* What a whole module returns, where that is not each output once, in order. */
static void fill_results(const Program *p, const Lines *l, Parts *parts)
{
    json_t *result;
    size_t i;
    int differs = json_array_size(l->results) != (size_t)l->n_outputs;
    if (is_part(p, l)) return;
    json_array_foreach(l->results, i, result)
    {
        differs |= !json_is_integer(result) || json_integer_value(result) != (json_int_t)i;
        if (json_is_string(result) && !p->quiet)
            log_warn("the module returns its input %s unchanged: it is no output of the task",
                     json_string_value(result));
    }
    if (differs) parts->draft.results = parts->results = json_dumps(l->results, JSON_COMPACT);
}

static int fill(Program *p, const Lines *l, Parts *parts, Error *err)
{
    Draft *d = &parts->draft;
    fill_outputs(p, l, parts);
    parts->inputs = memory_array((size_t)p->n_inputs + 1, sizeof *parts->inputs);
    parts->lines = memory_array((size_t)l->n + GRAPH_MAX_OUTPUTS, sizeof *parts->lines);
    for (int i = 0; i < l->n; i++)
        if (l->list[i].live) parts->lines[d->n_lines++] = l->list[i].text;
    for (int i = 0; i < parts->n_casts; i++) parts->lines[d->n_lines++] = parts->cast[i];
    if (fill_inputs(p, l, 1, parts, err) || fill_inputs(p, l, 0, parts, err)) return -1;
    fill_axes(p, parts);
    pins_constraints(p, parts->constraints, &parts->n_constraints);
    drop_constraints(p, parts);
    d->axes = parts->axes;
    d->inputs = parts->inputs;
    d->outputs = parts->outputs;
    const json_t *call = json_object_get(p->notes, "call");
    if (json_is_object(call)) d->call = parts->call = json_dumps(call, JSON_COMPACT);
    fill_results(p, l, parts);
    d->lines = parts->lines;
    d->constraints = (const char *const *)parts->constraints;
    d->n_constraints = parts->n_constraints;
    return 0;
}

static void parts_release(Parts *parts)
{
    free(parts->axes);
    free(parts->inputs);
    free(parts->outputs);
    free(parts->lines);
    for (int i = 0; i < parts->n_constraints; i++) free(parts->constraints[i]);
    for (int i = 0; i < parts->n_shapes; i++) free(parts->shapes[i]);
    for (int i = 0; i < parts->n_casts; i++) free(parts->cast[i]);
    free(parts->shapes);
    free(parts->call);
    free(parts->results);
}

/* Adds the module's line to an error of derive_task that names a line of the graph. Returns -1. */
static int place_line(const Lines *l, Error *err)
{
    const char *at = strstr(err->text, "graph[");
    char place[PROGRAM_PLACE] = "";
    int node = at ? atoi(at + strlen("graph[")) : -1;
    for (int i = 0; i < l->n && node >= 0; i++)
        if (l->list[i].live && !node--) program_place(l->list[i].node, place, sizeof place);
    return *place ? error_prefix(err, "%s", place) : -1;
}

/* A task of a part of the module has a tag, and what the part ends before is told. */
static void cut_says(Parts *parts, const ImportOptions *o, const Cut *cut, int quiet)
{
    for (int i = 0; i < o->n_tags && i < IMPORT_MAX_TAGS; i++) parts->tags[i] = o->tags[i];
    parts->draft.tags = parts->tags;
    parts->tags[parts->draft.n_tags++] = "cut";
    if (cut->begun && !quiet)
        log_warn("%s: the task %s it", cut->why.text,
                 cut->behind ? "begins behind" : "ends before");
}

/* 1: the graph is followed, and no task is derived of it at these sizes. */
static int import_program(Program *p, const ImportOptions *o, char **text, Error *err)
{
    Lines l;
    if (pins_find(p, err) || lines_write(p, &l, err)) return -1;
    Parts *parts = memory_alloc(sizeof *parts);
    parts->draft = (Draft){.name = o->name,
                           .description = o->description,
                           .tags = o->tags,
                           .n_tags = o->n_tags,
                           .level = o->level,
                           .precision = o->precision,
                           .budget = o->budget,
                           .shapes = o->shapes,
                           .n_shapes = o->n_shapes,
                           .heldout = o->heldout};
    if (is_part(p, &l)) cut_says(parts, o, &l.cut, p->quiet);
    int rc = lines_check(p, &l, err) || fill(p, &l, parts, err) ? -1 : 0;
    if (!rc && derive_task(&parts->draft, text, err)) rc = (place_line(&l, err), 1);
    parts_release(parts);
    free(parts);
    lines_release(&l);
    return rc;
}

/* The first dimension of an argument. */
static void mark_batches(Program *p)
{
    for (int i = 0; i < p->n_inputs; i++) {
        const ProgramInput *x = &p->inputs[i];
        if (x->kind != INPUT_ARGUMENT || !x->rank || x->size[0].n != 1) continue;
        const SymNode *d = &x->size[0].node[0];
        Symbol *s = d->kind == SYM_SYMBOL ? &p->symbols.list[d->a] : NULL;
        if (s && s->low == 2) s->one = 1;
    }
}

/* Which sizes one try of an import takes from the example. */
typedef enum { FIX_NONE, FIX_PARAMETERS, FIX_ALL } Fix;

/* What one try of an import changes: sizes, whether contents are those of the example where it has no
 * negative element, and whether weights of nearly zero are larger. */
typedef struct {
    Fix fixed;
    Recorded recorded;
    int spread;
} Try;

/* Pins the sizes of parameters, without those that arguments have too, or all sizes. Returns how many it
 * pins. */
static int fix_sizes(Program *p, Fix fixed)
{
    char given[SYMBOLS_MAX] = {0};
    int n = 0;
    for (int i = 0; i < p->n_inputs && fixed == FIX_PARAMETERS; i++)
        for (int d = 0; d < p->inputs[i].rank && p->inputs[i].kind == INPUT_ARGUMENT; d++)
            symbolic_uses(&p->inputs[i].size[d], &p->symbols, given);
    for (int i = 0; i < p->symbols.n && fixed != FIX_NONE; i++) {
        n += !given[i] && !p->symbols.list[i].pinned;
        p->symbols.list[i].pinned |= !given[i];
    }
    return n;
}

/* 1: no task is derived, *text is NULL, or it is degenerate. */
static int import_try(const Archive *a, Try how, const ImportOptions *o, char **text, Error *err)
{
    Program p;
    int rc = program_read(a->program.data, a->program.len, a->notes.len ? a->notes.data : NULL,
                          a->notes.len, &p, err);
    if (rc) return -1;
    *text = NULL;
    mark_batches(&p);
    p.spread = how.spread;
    p.quiet = how.fixed != FIX_NONE || how.recorded || how.spread;
    for (int i = 0; i < p.n_inputs; i++)
        if (is_not_negative(&p.inputs[i]) || is_within_one(&p.inputs[i])) p.recorded = how.recorded;
    int differs = p.recorded == how.recorded && (fix_sizes(&p, how.fixed) || how.fixed == FIX_NONE);
    rc = differs ? import_program(&p, o, text, err) : 1;
    if (!rc && strstr(*text, "\"degenerate\": \"")) rc = 1;
    program_release(&p);
    return rc;
}

/* Tries others in turn. A degenerate task may be one for its contents alone, or for sizes of parameters that
 * the module never has: a norm over two channels leaves their order. */
static int import_others(const Archive *a, const ImportOptions *o, int degenerate,
                         const Error *first, char **text)
{
    static const Try sizes[] = {{FIX_NONE, RECORDED_CONTENTS, 0},
                                {FIX_PARAMETERS, RECORDED_NONE, 0},
                                {FIX_PARAMETERS, RECORDED_CONTENTS, 0},
                                {FIX_ALL, RECORDED_NONE, 0},
                                {FIX_ALL, RECORDED_CONTENTS, 0},
                                {FIX_NONE, RECORDED_RANGES, 0},
                                {FIX_ALL, RECORDED_RANGES, 0}},
                     contents[] = {{FIX_NONE, RECORDED_CONTENTS, 0},
                                   {FIX_NONE, RECORDED_NONE, 1},
                                   {FIX_PARAMETERS, RECORDED_NONE, 1}};
    const Try *others = degenerate ? contents : sizes;
    int n = degenerate ? (int)(sizeof contents / sizeof *contents)
                       : (int)(sizeof sizes / sizeof *sizes),
        rc = 1;
    Error unused;
    for (int k = 0; rc == 1 && k < n; k++) {
        rc = import_try(a, others[k], o, text, &unused);
        if (rc == 1) free(*text);
        if (!rc && others[k].fixed)
            log_warn("%s: the task has the %s of the example alone",
                     degenerate ? "degenerate at other sizes" : first->text,
                     others[k].fixed == FIX_ALL ? "sizes" : "parameters' sizes");
    }
    return rc;
}

static int import_tries(const Archive *a, const ImportOptions *o, char **text, Error *err)
{
    int rc = import_try(a, (Try){FIX_NONE, RECORDED_NONE, 0}, o, text, err);
    char *degenerate = rc == 1 ? *text : NULL;
    if (rc == 1) rc = import_others(a, o, degenerate != NULL, err, text);
    if (rc && degenerate) {
        *text = degenerate;
        return 0;
    }
    free(degenerate);
    return rc;
}

int import_file(const char *path, const ImportOptions *o, char **text, Error *err)
{
    Archive a;
    if (archive_read(path, &a, err)) return -1;
    int rc = import_tries(&a, o, text, err);
    archive_release(&a);
    return rc ? error_prefix(err, "%s", path) : 0;
}
