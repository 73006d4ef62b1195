/* quern-generate: composes tasks from the operator library. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "tasks/derive/derive.h"

/* ---- one composition: a graph of a family, drawn ---- */

enum {
    COMPOSE_AXES = 6,
    COMPOSE_INPUTS = 8,
    COMPOSE_LINES = 10,
    COMPOSE_PARTS = 8, /* primitives of one composition */
    COMPOSE_TEXT = 160
};

/* A composition and the texts that its draft names; it must not be moved. */
typedef struct {
    Draft draft;
    char name[64];
    int n_parts;
    const char *part[COMPOSE_PARTS]; /* in order: "add_bias", "softmax", "relu" */
    DraftAxis axes[COMPOSE_AXES];
    DraftTensor inputs[COMPOSE_INPUTS], output;
    char line[COMPOSE_LINES][COMPOSE_TEXT];
    const char *lines[COMPOSE_LINES], *tags[COMPOSE_PARTS + 4];
    Dtype dtype;
} Composition;

typedef enum { WITH_NOTHING, WITH_COL, WITH_FULL, WITH_ROW } Operand;

typedef struct {
    const char *part, *line;
    Operand with;
    const char *input; /* the name of the operand */
} Point;

static const Point points[] = {
    {"relu", "aten.relu.default($)", WITH_NOTHING, NULL},
    {"gelu", "aten.gelu.default($)", WITH_NOTHING, NULL},
    {"silu", "aten.silu.default($)", WITH_NOTHING, NULL},
    {"sigmoid", "aten.sigmoid.default($)", WITH_NOTHING, NULL},
    {"tanh", "aten.tanh.default($)", WITH_NOTHING, NULL},
    {"leaky", "aten.leaky_relu.default($, 0.1)", WITH_NOTHING, NULL},
    {"softplus", "aten.softplus.default($)", WITH_NOTHING, NULL},
    {"hswish", "aten.hardswish.default($)", WITH_NOTHING, NULL},
    {"clamp", "aten.clamp.default($, -1.5, 1.5)", WITH_NOTHING, NULL},
    {"bias", "aten.add.Tensor($, bias)", WITH_COL, "bias"},
    {"scale", "aten.mul.Tensor($, scale)", WITH_COL, "scale"},
    {"res", "aten.add.Tensor($, res)", WITH_FULL, "res"},
    {"gate", "aten.mul.Tensor($, gate)", WITH_FULL, "gate"},
    {"rowmul", "aten.mul.Tensor($, factor)", WITH_ROW, "factor"},
};
enum { N_POINTS = sizeof points / sizeof *points, N_ALONE = 9 };

/* Of one value a row: operands are vectors of the rows. */
static const Point row_points[] = {
    {"silu", "aten.silu.default($)", WITH_NOTHING, NULL},
    {"gelu", "aten.gelu.default($)", WITH_NOTHING, NULL},
    {"leaky", "aten.leaky_relu.default($, 0.1)", WITH_NOTHING, NULL},
    {"rowmul", "aten.mul.Tensor($, factor)", WITH_COL, "factor"},
    {"rowadd", "aten.add.Tensor($, offset)", WITH_COL, "offset"},
};
enum { N_ROW_POINTS = sizeof row_points / sizeof *row_points };

typedef enum { TO_SAME, TO_ROWS, TO_NUMBER } Shape;

typedef struct {
    const char *part, *line;
    Shape to;
    const char *input; /* an operand of the columns' size; "target": of x's shape */
} Core;

typedef struct {
    const char *name;
    int weight, before, after; /* points before and after the core, at most */
    int n_cores;
    Core cores[5];
} Family;

#define SIZE "[cols]"
static const Family families[] = {
    {"point", 14, 4, 0, 1, {{NULL, NULL, TO_SAME, NULL}}},
    {"fold",
     10,
     2,
     1,
     5,
     {{"sum", "aten.sum.dim_IntList($, [1])", TO_ROWS, NULL},
      {"mean", "aten.mean.dim($, [1])", TO_ROWS, NULL},
      {"amax", "aten.amax.default($, [1])", TO_ROWS, NULL},
      {"amin", "aten.amin.default($, [1])", TO_ROWS, NULL},
      {"norm", "aten.linalg_vector_norm.default($, 2, [1])", TO_ROWS, NULL}}},
    {"softmax",
     10,
     2,
     1,
     2,
     {{"softmax", "aten.softmax.int($, 1)", TO_SAME, NULL},
      {"logsoftmax", "aten.log_softmax.int($, 1)", TO_SAME, NULL}}},
    {"norm",
     12,
     2,
     1,
     3,
     {{"layernorm", "aten.layer_norm.default($, " SIZE ", weight, None, 1e-5)", TO_SAME, "weight"},
      {"rmsnorm", "aten.rms_norm.default($, " SIZE ", weight, 1e-6)", TO_SAME, "weight"},
      {"center", "aten.mean.dim($, [1], True)|aten.sub.Tensor($1, $)", TO_SAME, NULL}}},
    {"product",
     14,
     1,
     2,
     2,
     {{"linear", "aten.linear.default($, weight)", TO_SAME, NULL},
      {"mm", "aten.mm.default($, weight)", TO_SAME, NULL}}},
    {"turn", 5, 2, 0, 1, {{"turn", "aten.t.default($)", TO_SAME, NULL}}},
    {"scan", 5, 1, 1, 1, {{"cumsum", "aten.cumsum.default($, 1)", TO_SAME, NULL}}},
    {"window",
     6,
     0,
     1,
     3,
     {{"conv", "aten.conv2d.default($, weight, bias)", TO_SAME, NULL},
      {"maxpool", "aten.max_pool2d.default($, [2, 2], [2, 2])", TO_SAME, NULL},
      {"avgpool", "aten.avg_pool2d.default($, [2, 2], [2, 2])", TO_SAME, NULL}}},
    {"loss",
     4,
     1,
     0,
     2,
     {{"mse", "aten.mse_loss.default($, target)", TO_NUMBER, "target"},
      {"l1", "aten.l1_loss.default($, target)", TO_NUMBER, "target"}}},
};
enum { N_FAMILIES = sizeof families / sizeof *families };

static const Family others[] = {
    {"columns", 1, 1, 0, 1, {{"colsum", "aten.sum.dim_IntList($, [0])", TO_ROWS, NULL}}},
    {"triangle", 1, 1, 1, 1, {{"triu", "aten.triu.default($)", TO_SAME, NULL}}},
    {"argument", 1, 2, 0, 1, {{"maxcol", "aten.amax.default($, [0])", TO_ROWS, NULL}}},
    {"flip", 1, 2, 0, 1, {{"flip", "aten.flip.default($, [1])", TO_SAME, NULL}}},
};
enum { N_OTHERS = sizeof others / sizeof *others };

/* The families that tasks to learn from have, and those that only the held-out family split has. */
static int compose_families(void)
{
    int n = 0;
    for (int i = 0; i < N_FAMILIES; i++) n += families[i].weight;
    return n;
}

/* ---- building ---- */

typedef struct {
    Composition *c;
    Random *random;
    const char *rows, *cols; /* of the value that is built last */
    int per_row;             /* it has one element a row */
    char last[8];
} Build;

static int below(Build *b, int n)
{
    return (int)random_below(b->random, (uint64_t)n);
}

static void axis(Build *b, const char *name, int64_t size)
{
    Draft *d = &b->c->draft;
    b->c->axes[d->n_axes++] = (DraftAxis){.name = name, .size = size};
}

static DraftTensor *input(Build *b, const char *name, int rank, const char *const *shape)
{
    Draft *d = &b->c->draft;
    DraftTensor *x = &b->c->inputs[d->n_inputs++];
    *x = (DraftTensor){.name = name, .dtype = b->c->dtype, .rank = rank};
    for (int k = 0; k < rank; k++) x->shape[k] = shape[k];
    return x;
}

/* A weight: its elements are drawn around a mean. */
static void weight(DraftTensor *x, double mean, double std)
{
    x->parameter = x->name;
    x->has_statistics = 1;
    x->mean = mean;
    x->std = std;
    x->min = mean - 4 * std;
    x->max = mean + 4 * std;
}

static int has_input(const Build *b, const char *name)
{
    for (int i = 0; i < b->c->draft.n_inputs; i++)
        if (!strcmp(b->c->inputs[i].name, name)) return 1;
    return 0;
}

/* Adds the lines of a text, which '|' parts; '$1' is the value before the first of them. */
static void add_lines(Build *b, const char *text)
{
    static const char *const names[] = {"h", "q", "z", "d", "f", "e", "u", "o", "s", "c"};
    char first[8];
    memcpy(first, b->last, sizeof first);
    while (*text) {
        Draft *d = &b->c->draft;
        char *line = b->c->line[d->n_lines];
        size_t n = (size_t)snprintf(line, COMPOSE_TEXT, "%s = ", names[d->n_lines]);
        for (; *text && *text != '|'; text++) {
            int is_first = *text == '$' && text[1] == '1';
            if (*text == '$')
                n += (size_t)snprintf(line + n, COMPOSE_TEXT - n, "%s", is_first ? first : b->last);
            else
                line[n++] = *text;
            text += is_first;
        }
        line[n] = 0;
        text += *text == '|';
        snprintf(b->last, sizeof b->last, "%s", names[d->n_lines++]);
    }
}

static void add_part(Build *b, const char *part)
{
    b->c->part[b->c->n_parts++] = part;
}

static int has_part(const Build *b, const char *part)
{
    for (int i = 0; i < b->c->n_parts; i++)
        if (!strcmp(b->c->part[i], part)) return 1;
    return 0;
}

static void operand(Build *b, const Point *p)
{
    if (p->with == WITH_FULL) input(b, p->input, 2, (const char *[]){b->rows, b->cols});
    if (p->with == WITH_ROW) input(b, p->input, 2, (const char *[]){b->rows, "1"});
    if (p->with == WITH_COL)
        input(b, p->input, 1, (const char *[]){b->per_row ? b->rows : b->cols});
}

/* Adds n points, no two of them the same; no activation follows another one. */
static void add_points(Build *b, int n)
{
    int alone = 0;
    for (int tries = 0; n > 0 && tries < 40; tries++) {
        const Point *p =
            b->per_row ? &row_points[below(b, N_ROW_POINTS)] : &points[below(b, N_POINTS)];
        if (has_part(b, p->part) || (p->input && has_input(b, p->input))) continue;
        if (p->with == WITH_NOTHING && alone) continue;
        alone = p->with == WITH_NOTHING;
        operand(b, p);
        add_part(b, p->part);
        add_lines(b, p->line);
        n--;
    }
}

static void add_core(Build *b, const Core *core)
{
    if (!core->part) return;
    if (core->input && !strcmp(core->input, "target"))
        input(b, "target", 2, (const char *[]){b->rows, b->cols});
    else if (core->input)
        weight(input(b, core->input, 1, (const char *[]){b->cols}), 1, 0.25);
    add_part(b, core->part);
    add_lines(b, core->line);
    if (core->to == TO_ROWS) b->per_row = 1;
}

static int64_t pick(Build *b, const int64_t *sizes, int n)
{
    return sizes[below(b, n)];
}

static void matrix(Build *b, const Family *f)
{
    static const int64_t cols[] = {512, 768, 1024, 2048, 4096};
    int turn = !strcmp(f->name, "turn");
    int64_t n = pick(b, cols, 5);
    axis(b, "rows", (INT64_C(1) << 24) / n / 256 * 256);
    axis(b, "cols", n);
    if (turn)
        input(b, "x", 2, (const char *[]){"cols", "rows"});
    else
        input(b, "x", 2, (const char *[]){"rows", "cols"});
    const Core *core = &f->cores[below(b, f->n_cores)];
    int least = core->part ? core->to == TO_NUMBER ? 0 : 1 : 2;
    int before = least >= f->before ? f->before : least + below(b, f->before - least + 1);
    int after = f->after ? below(b, f->after + 1) : 0;
    if (turn) {
        add_core(b, core);
        add_points(b, 1 + below(b, 3));
        return;
    }
    add_points(b, before);
    add_core(b, core);
    if (core->to != TO_NUMBER) add_points(b, after);
}

static void product(Build *b, const Family *f)
{
    static const int64_t sizes[] = {1024, 1536, 2048, 4096}, depths[] = {256, 512, 1024};
    const Core *core = &f->cores[below(b, 2)];
    int linear = !strcmp(core->part, "linear"), fold = below(b, 4);
    axis(b, "m", pick(b, sizes, 4));
    axis(b, "n", pick(b, sizes, 4));
    axis(b, "k", pick(b, depths, 3));
    b->rows = "m";
    b->cols = "k";
    input(b, "x", 2, (const char *[]){"m", "k"});
    weight(linear ? input(b, "weight", 2, (const char *[]){"n", "k"})
                  : input(b, "weight", 2, (const char *[]){"k", "n"}),
           0, 0.06);
    if (below(b, 3) == 0) add_points(b, 1);
    add_part(b, core->part);
    add_lines(b, core->line);
    b->cols = "n";
    add_points(b, 1 + below(b, 2));
    if (fold == 0) add_core(b, &families[2].cores[0]);
    if (fold == 1) add_core(b, &families[1].cores[below(b, 3)]);
}

static void window(Build *b, const Family *f)
{
    const Core *core = &f->cores[below(b, 3)];
    int conv = !strcmp(core->part, "conv");
    axis(b, "batch", 16);
    axis(b, conv ? "cin" : "c", conv ? 32 : 64);
    if (conv) axis(b, "cout", 64);
    axis(b, "height", 56);
    axis(b, "width", 56);
    input(b, "x", 4, (const char *[]){"batch", conv ? "cin" : "c", "height", "width"});
    if (conv) {
        weight(input(b, "weight", 4, (const char *[]){"cout", "cin", "3", "3"}), 0, 0.06);
        weight(input(b, "bias", 1, (const char *[]){"cout"}), 0, 0.5);
    }
    if (!conv) {
        const Point *p = &points[below(b, N_ALONE)];
        add_part(b, p->part);
        add_lines(b, p->line);
    }
    add_part(b, core->part);
    add_lines(b, core->line);
    const Point *p = &points[below(b, N_ALONE)];
    if (!conv && below(b, 2)) return;
    if (has_part(b, p->part)) return;
    add_part(b, p->part);
    add_lines(b, p->line);
}

static void finish(Build *b, const char *family, int floats_only)
{
    Composition *c = b->c;
    Draft *d = &c->draft;
    size_t len = 0;
    for (int i = 0; i < c->n_parts; i++)
        len +=
            (size_t)snprintf(c->name + len, sizeof c->name - len, "%s%s", i ? "_" : "", c->part[i]);
    if (c->dtype != DTYPE_F32 && !floats_only && len + 6 < sizeof c->name)
        snprintf(c->name + len, sizeof c->name - len, c->dtype == DTYPE_F16 ? "_f16" : "_bf16");
    /* The last result is y: its name has one letter too. */
    c->line[d->n_lines - 1][0] = 'y';
    for (int i = 0; i < d->n_lines; i++) c->lines[i] = c->line[i];
    c->output = (DraftTensor){.name = "y", .dtype = DTYPES, .rank = -1};
    c->tags[d->n_tags++] = "composed";
    c->tags[d->n_tags++] = family;
    d->name = c->name;
    d->op_type = family;
    d->tags = c->tags;
    d->level = c->n_parts > 1 ? 2 : 1;
    d->axes = c->axes;
    d->inputs = c->inputs;
    d->outputs = &c->output;
    d->n_outputs = 1;
    d->lines = c->lines;
}

/* Draws one of family 0 to n - 1; other: of the other families. */
static void compose(Random *random, int family, int other, Composition *out)
{
    Build b = {.c = out, .random = random, .rows = "rows", .cols = "cols", .last = "x"};
    const Family *f = others;
    memset(out, 0, sizeof *out);
    if (other) {
        f = &others[family];
    } else {
        for (f = families; family >= f->weight; f++) family -= f->weight;
    }
    int kind = below(&b, 5), floats_only = other || !strcmp(f->name, "scan") ||
                                           !strcmp(f->name, "window") || !strcmp(f->name, "loss");
    out->dtype = floats_only || kind < 3 ? DTYPE_F32 : kind == 3 ? DTYPE_F16 : DTYPE_BF16;
    if (!strcmp(f->name, "product"))
        product(&b, f);
    else if (!strcmp(f->name, "window"))
        window(&b, f);
    else
        matrix(&b, f);
    finish(&b, f->name, floats_only);
}

/* ---- a set of composed tasks ---- */

enum { GENERATE_MAX = 512 };

typedef struct {
    int train, composition, family;
    uint64_t seed;
    const char *beside; /* folder of a set; NULL: none */
} GenerateSpec;

enum { TRIES = 200 };

typedef struct {
    Composition **list;
    char **text; /* the task.json of each, as a task to learn from */
    int n, heldout[GENERATE_MAX];
    const char *beside; /* folder of another set, or NULL */
} Set;

static int same_parts(const Composition *a, const Composition *b)
{
    if (a->n_parts != b->n_parts) return 0;
    for (int i = 0; i < a->n_parts; i++)
        if (strcmp(a->part[i], b->part[i])) return 0;
    return 1;
}

/* Whether the other set has the composition, which its name tells, in any precision. */
static int is_beside(const Set *set, const char *name)
{
    static const char *const ends[] = {"_f16", "_bf16"}, *const precisions[] = {"", "_f16",
                                                                                "_bf16"};
    size_t n = strlen(name);
    int found = 0;
    if (!set->beside) return 0;
    for (int i = 0; i < 2; i++) {
        size_t end = strlen(ends[i]);
        if (n > end && !strcmp(name + n - end, ends[i])) n -= end;
    }
    for (int i = 0; i < 3 && !found; i++) {
        char *path = memory_printf("%s/%.*s%s", set->beside, (int)n, name, precisions[i]);
        found = file_exists(path);
        free(path);
    }
    return found;
}

static int is_known(const Set *set, const Composition *c)
{
    if (is_beside(set, c->name)) return 1;
    for (int i = 0; i < set->n; i++)
        if (same_parts(set->list[i], c) || !strcmp(set->list[i]->name, c->name)) return 1;
    return 0;
}

/* The task.json of a composition; NULL where derive refuses it or finds that algebra removes its work. */
static char *derived(const Composition *c)
{
    char *text;
    Error err;
    if (derive_task(&c->draft, &text, &err)) {
        log_debug("%s is drawn again: %s", c->name, err.text);
        return NULL;
    }
    if (!strstr(text, "\"degenerate\"")) return text;
    log_debug("%s is drawn again: it is degenerate", c->name);
    free(text);
    return NULL;
}

/* Adds a composition of a family that differs from those in the set. */
static int add_new(Set *set, Random *random, int family, int other)
{
    Composition *c = memory_alloc(sizeof *c);
    for (int i = 0; i < TRIES; i++) {
        compose(random, family, other, c);
        char *text = is_known(set, c) ? NULL : derived(c);
        if (!text) continue;
        set->text[set->n] = text;
        set->list[set->n++] = c;
        return 1;
    }
    free(c);
    return 0;
}

/* Adds n compositions: the families in turn, as often as their weights say. */
static int add_many(Set *set, Random *random, int n, int other, Error *err)
{
    int all = other ? N_OTHERS : compose_families(), added = 0, missed = 0;
    for (int turn = 0; added < n && missed < all; turn++) {
        /* A stride that shares no factor with most numbers mixes the families. */
        int family = other ? turn % all : (int)((int64_t)turn * 31 % all);
        int found = add_new(set, random, family, other);
        added += found;
        missed = found ? 0 : missed + 1;
    }
    if (added == n) return 0;
    return error_set(err, ERROR_LIMIT, "expected %d different compositions, found %d", n, added);
}

static int count_part(const Set *set, const char *part)
{
    int n = 0;
    for (int i = 0; i < set->n; i++)
        for (int k = 0; !set->heldout[i] && k < set->list[i]->n_parts; k++)
            n += !strcmp(set->list[i]->part[k], part);
    return n;
}

/* A task may be held out if each of its primitives stays in another one. */
static int can_hold_out(const Set *set, int i)
{
    const Composition *c = set->list[i];
    if (set->heldout[i] || c->n_parts < 2) return 0;
    for (int k = 0; k < c->n_parts; k++)
        if (count_part(set, c->part[k]) < 2) return 0;
    return 1;
}

static int hold_out(Set *set, Random *random, int n, Error *err)
{
    for (int done = 0, tries = 0; done < n; tries++) {
        int i = (int)random_below(random, (uint64_t)set->n);
        if (can_hold_out(set, i)) set->heldout[i] = 1, done++;
        if (tries > GENERATE_MAX * 100)
            return error_set(
                err, ERROR_LIMIT,
                "expected %d compositions to hold out, found %d whose parts others have", n, done);
    }
    return 0;
}

static int write_text(const char *folder, const char *name, const char *text, Error *err)
{
    char *dir = memory_printf("%s/%s", folder, name), *file = memory_printf("%s/task.json", dir);
    int rc = file_mkdirs(dir, err) || file_write_atomic(file, text, strlen(text), err) ? -1 : 0;
    free(dir);
    free(file);
    return rc;
}

static int write_all(const Set *set, int first_other, const char *folder, Error *err)
{
    for (int i = 0; i < set->n; i++) {
        Composition *c = set->list[i];
        c->draft.heldout = set->heldout[i] || i >= first_other;
        if (c->draft.heldout)
            c->tags[c->draft.n_tags++] = i < first_other ? "composition" : "family";
        if (c->draft.heldout ? derive_write(&c->draft, folder, err)
                             : write_text(folder, c->name, set->text[i], err))
            return -1;
    }
    return 0;
}

static int fill(Set *set, const GenerateSpec *s, const char *folder, Error *err)
{
    Random random;
    random_init(&random, s->seed, random_hash("compose", 7));
    if (add_many(set, &random, s->train + s->composition, 0, err)) return -1;
    int first_other = set->n;
    return hold_out(set, &random, s->composition, err) ||
                   add_many(set, &random, s->family, 1, err) ||
                   write_all(set, first_other, folder, err)
               ? -1
               : 0;
}

/* Writes folder/NAME/task.json for each. Equal specs give equal bytes. Compositions that derive refuses, or
 * finds degenerate, are drawn again, and so are those with the name of a task in `beside`, in any
 * precision. LIMIT: so many different ones are not to be had. */
static int generate_tasks(const GenerateSpec *s, const char *folder, Error *err)
{
    if (s->train + s->composition + s->family > GENERATE_MAX)
        return error_set(err, ERROR_LIMIT, "expected at most %d tasks", GENERATE_MAX);
    if (s->beside && !file_exists(s->beside))
        return error_set(err, ERROR_IO, "there is no folder %s", s->beside);
    Set set = {.list = memory_array(GENERATE_MAX, sizeof *set.list),
               .text = memory_array(GENERATE_MAX, sizeof *set.text),
               .beside = s->beside};
    int rc = fill(&set, s, folder, err);
    for (int i = 0; i < set.n; i++) {
        free(set.list[i]);
        free(set.text[i]);
    }
    free(set.list);
    free(set.text);
    return rc;
}

int main(int argc, char **argv)
{
    const char *folder = NULL, *beside = NULL, *words[1];
    int64_t train = 60, composition = 16, family = 4, seed = 1;
    const Flag flags[] = {
        {"train", FLAG_INT, &train, "tasks to learn from", 0, GENERATE_MAX},
        {"composition", FLAG_INT, &composition,
         "tasks held out: each primitive is in a task to learn from, the combination is not", 0,
         GENERATE_MAX},
        {"family", FLAG_INT, &family, "tasks held out, of families that no task to learn from has",
         0, GENERATE_MAX},
        {"seed", FLAG_INT, &seed, "of the compositions", 0, 1e15},
        {"beside", FLAG_TEXT, &beside, "folder of a set that has none of these compositions"},
        {"output", FLAG_TEXT, &folder, "folder of the set; a folder for each task is made in it",
         .required = 1},
        {0}};
    const FlagSpec spec = {
        .program = "quern-generate",
        .synopsis = "-o DIR [--train N] [--composition N] [--family N] [--seed N] [--beside DIR]",
        .about =
            "Composes tasks from the operator library: pointwise chains, folds over rows, softmax, "
            "norms, products, scans, convolutions, pools and losses.",
        .flags = flags};
    flags_parse(&spec, argc, argv, words);
    const GenerateSpec s = {(int)train, (int)composition, (int)family, (uint64_t)seed, beside};
    Error err;
    if (generate_tasks(&s, folder, &err)) log_die(&err);
    return log_close(0);
}
