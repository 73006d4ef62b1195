/* quern-kernel: prints the generator's candidate of a task, by a schedule or its defaults, or drawn ones. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/flags.h"
#include "base/log.h"
#include "generate/draw/draw.h"
#include "generate/draw/drawn_words.h"
#include "generate/rewrite/less.h"
#include "tasks/designs.h"
#include "tasks/task.h"

enum { SCHEDULE_MAX = 1 << 20 };

typedef struct {
    const char *name, *root, *schedule, *output, *without;
    const Task *task;
    int64_t seed, count;
    double mistakes;
    int texts, own;
    Designs designs;
} Options;

/* A schedule: lines, or a file that has some. */
static int read_schedule(const char *given, Genes *g, Error *err)
{
    Buffer b;
    if (strstr(given, "//@")) return genes_read(g, given, strlen(given), err);
    buffer_init(&b, SCHEDULE_MAX);
    int rc = file_read(given, SCHEDULE_MAX, &b, err);
    if (!rc) rc = genes_read(g, b.data, b.len, err);
    buffer_release(&b);
    return rc;
}

static int check_used(const Genes *g, Error *err)
{
    char text[GENES_NAME];
    const GenePoint *p = genes_unused(g);
    if (!p) return 0;
    gene_text(p, text);
    return error_set(err, ERROR_INVALID,
                     "schedule of %s: %s is no choice there; quern-kernel without --schedule "
                     "prints the lines of all choices",
                     p->of, text);
}

static int print_candidate(const Options *o, Error *err)
{
    Genes genes = {0};
    Generated g = {0};
    Task *own = o->own ? size_own(o->task) : NULL;
    int rc = 0;
    if (o->schedule) rc = read_schedule(o->schedule, &genes, err);
    if (!rc) rc = generate_least(own ? own : o->task, &genes, NULL, &g, err);
    if (!rc) rc = check_used(&genes, err);
    if (!rc) fputs(g.source, stdout);
    free(g.source);
    genes_free(&genes);
    free(own);
    return rc;
}

/* ---- drawn kernels ---- */

static void print_texts(const Drawn *d)
{
    Buffer lines;
    char analysis[DRAW_WORDS], design[DRAW_WORDS];
    buffer_init(&lines, SCHEDULE_MAX);
    genes_write(&d->genes, &lines);
    fprintf(stderr, "%sdistance=%d", lines.data, d->distance);
    if (d->slip) fprintf(stderr, " mistake=%s", slip_name(d->slip));
    draw_analysis(d, analysis);
    draw_design(d, design);
    fprintf(stderr, "\n%s\n%s\n", analysis, design);
    buffer_release(&lines);
}

/* Draws one kernel to stdout, or to the file OUTPUT/TASK-SEED.cu. */
static int draw(const Options *o, uint64_t seed, Error *err)
{
    Drawn d;
    char path[4096];
    const DrawOptions options = {seed, o->mistakes, designs_of(&o->designs, o->task->name)};
    if (draw_kernel(o->task, &options, &d, err)) return -1;
    int rc = 0;
    if (o->texts) print_texts(&d);
    snprintf(path, sizeof path, "%s/%s-%" PRIu64 ".cu", o->output ? o->output : "", o->task->name,
             seed);
    if (o->output)
        rc = file_write_atomic(path, d.source, strlen(d.source), err);
    else
        fputs(d.source, stdout);
    draw_release(&d);
    return rc;
}

static int run(Options *o, Error *err)
{
    if (o->seed < 0) return print_candidate(o, err);
    if (o->without && designs_read(o->without, &o->designs, NULL, err)) return -1;
    for (int64_t i = 0; i < o->count; i++)
        if (draw(o, (uint64_t)(o->seed + i), err)) return -1;
    return 0;
}

int main(int argc, char **argv)
{
    Options o = {.seed = -1, .count = 1};
    const Flag flags[] = {
        {"task", FLAG_TEXT, &o.name, "task, or the path of its folder", .required = 1},
        {"task-root", FLAG_TEXT, &o.root, "folder of the tasks"},
        {"schedule", FLAG_TEXT, &o.schedule,
         "`//@ schedule` lines, or a file with some, such as a kernel; defaults if not given"},
        {"own", FLAG_BOOL, &o.own,
         "choose the defaults at the module's own sizes, which a GPU times, where the task's timed "
         "ones are shortened"},
        {"seed", FLAG_INT, &o.seed,
         "draw the kernel that this number stands for, as the generator teaches", 0, 1e15},
        {"count", FLAG_INT, &o.count, "draw so many, of this seed and those after it", 1, 1e6},
        {"output", FLAG_TEXT, &o.output, "folder for drawn kernels, TASK-SEED.cu each; not stdout"},
        {"mistakes", FLAG_FLOAT, &o.mistakes, "share of drawn kernels with a mistake", 0, 1},
        {"texts", FLAG_BOOL, &o.texts,
         "genes, distance from the defaults, mistake, analysis and design of drawn kernels on "
         "stderr"},
        {"without", FLAG_TEXT, &o.without,
         "file of genes that are not drawn: lines of a task, or *, and NAME=VALUE..."},
        {0},
    };
    const FlagSpec spec = {
        .program = "quern-kernel",
        .synopsis = "--task NAME [--own --schedule LINES | --seed N [--count N --output DIR]]",
        .about = "Prints the kernel generator's candidate of a task, or drawn ones.",
        .flags = flags};
    const char *words[1];
    flags_parse(&spec, argc, argv, words);
    log_open("quern-kernel");
    Error err;
    TaskSet tasks = {0};
    task_at_path(&o.root, &o.name);
    int at = taskset_need(&tasks, o.root, o.name, &err);
    if (at < 0) log_die(&err);
    o.task = tasks.tasks[at];
    if (run(&o, &err)) log_die(&err);
    taskset_release(&tasks);
    designs_release(&o.designs);
    return log_close(EXIT_STATUS_OK);
}
