/* quern-import: makes a task of a PyTorch archive. */
#include <ctype.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/words.h"
#include "tasks/derive/derive.h"
#include "tasks/derive/shapes.h"
#include "tasks/import/import.h"

enum { NAME_SIZE = 64 };

/* The archive's name as an identifier: "19_ReLU.pt2" becomes m19_relu. */
static void default_name(const char *path, char out[NAME_SIZE])
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t len = strcspn(name, "."), n = 0;
    if (!isalpha((unsigned char)*name)) out[n++] = 'm';
    for (size_t i = 0; i < len && n + 1 < NAME_SIZE; i++)
        out[n++] = word_has(name[i]) ? (char)tolower((unsigned char)name[i]) : '_';
    out[n] = 0;
}

static int import(const char *path, const char *folder, const ImportOptions *o)
{
    char *text, *dir = memory_printf("%s/%s", folder, o->name),
                *file = memory_printf("%s/task.json", dir),
                *own = memory_printf("%s/reference.c", dir);
    Error err;
    int rc = import_file(path, o, &text, &err);
    if (!rc && file_exists(own)) {
        rc = error_set(&err, ERROR_USAGE,
                       "%s is a task with files of its own: choose another --name", dir);
        free(text);
    } else if (!rc) {
        rc = file_mkdirs(dir, &err) || file_write_atomic(file, text, strlen(text), &err);
        free(text);
    }
    if (rc) log_die(&err);
    printf("%s\n", dir);
    free(dir);
    free(file);
    free(own);
    return 0;
}

/* Precision, budget and shapes by their words. The caller frees *list. */
typedef struct {
    const char *precision, *budget, *shapes;
} Words;

static void read_words(const FlagSpec *spec, const Words *w, Precision *precision,
                       DraftShape **list, ImportOptions *o)
{
    Error err;
    ErrorBudget allowed;
    if (precision_named(w->precision, precision, &err)) log_die(&err);
    if (budget_named(w->budget, &allowed, &err))
        flags_usage_error(spec, "--tolerance: %s", err.text);
    if (shapes_read(w->shapes, list, &o->n_shapes, &err))
        flags_usage_error(spec, "--shapes: %s", err.text);
    o->precision = strcmp(w->precision, "default") ? precision : NULL;
    o->budget = budget_is_set(&allowed) ? w->budget : NULL;
    o->shapes = *list;
}

int main(int argc, char **argv)
{
    derive_prepare(argv);
    const char *output = NULL, *name = NULL, *tag = "imported";
    Words given = {"default", "", ""};
    int64_t level = 1;
    int heldout = 0;
    Flag flags[] = {
        {"output", FLAG_TEXT, &output, "folder of tasks, which gets a folder for this one",
         .required = 1},
        {"name", FLAG_TEXT, &name, "of the task; else the archive's"},
        {"level", FLAG_INT, &level, "1: one operator, 2: a few, 3: a model", 1, 3},
        {"split", FLAG_CHOICE, &heldout, "whether training may use it", .choices = "train|heldout"},
        {"precision", FLAG_TEXT, &given.precision,
         "how eager PyTorch computes float32; highest: without TF32",
         .choices = "default|highest|high|medium"},
        {"tolerance", FLAG_TEXT, &given.budget,
         "the error that is allowed: 2x, times eager PyTorch's own, or 1e-3"},
        {"shapes", FLAG_TEXT, &given.shapes,
         "timed sizes and weights: 'rows=1 rows=64:3 rows=8192'"},
        {"tag", FLAG_TEXT, &tag, "of the task"},
        {0}};
    FlagSpec spec = {.program = "quern-import",
                     .synopsis = "FILE.pt2 -o TASKS [--name NAME] [--level N] [--split SPLIT]",
                     .about = "Makes a task of a PyTorch module that tools/export.py or "
                              "torch.export.save wrote, and prints its folder. A module that "
                              "cannot be a task is refused with the operator and the line.",
                     .flags = flags,
                     .min_words = 1,
                     .max_words = 1};
    const char **words = memory_array((size_t)argc, sizeof *words);
    char own[NAME_SIZE];
    omp_set_num_threads(1); /* a derivation works on small arrays, for which threads mostly wait */
    flags_parse(&spec, argc, argv, words);
    default_name(words[0], own);
    Precision precision;
    DraftShape *list;
    ImportOptions o = {.name = name ? name : own,
                       .tags = &tag,
                       .n_tags = 1,
                       .level = (int)level,
                       .heldout = heldout};
    read_words(&spec, &given, &precision, &list, &o);
    if (!word_is_name(o.name, NAME_SIZE))
        flags_usage_error(&spec, "--name %s: letters, digits and _ expected, at most %d", o.name,
                          NAME_SIZE - 1);
    int status = import(words[0], output, &o);
    free(list);
    free(words);
    return log_close(status);
}
