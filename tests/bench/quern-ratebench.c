/* quern-ratebench: what an instruction or an access pattern costs, one after another (tests/bench/rates).
 * On a GPU it prints measured times, on a simulator predicted ones, and --measured holds the second against
 * the first. A pattern runs in a loop in a kernel beside relu's. The time of the same launches without the
 * loop is subtracted. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/embed.h"
#include "base/file.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"
#include "eval/judge/evaluator.h"
#include "eval/judge/statistics.h"

enum { MAX_PATTERNS = 500, MAX_LAUNCHES = 500, MAX_FILE = 1 << 20 };

EMBED(patterns_text, "tests/bench/rates/patterns.tsv")
EMBED(kernel_text, "tests/bench/rates/kernel.cu")

typedef struct {
    const char *name, *kind, *trips, *launch, *statement; /* of the table's text */
    double us, measured;                                  /* without relu's own time; NAN: none */
} Pattern;

typedef struct {
    char *text;
    Pattern pattern[MAX_PATTERNS];
    int n, n_empty;
    Pattern empty[MAX_LAUNCHES]; /* one a launch */
} Table;

static int read_table(Table *t, Error *err)
{
    char *rest = t->text = memory_printf("%s", patterns_text), *line;
    while ((line = strsep(&rest, "\n"))) {
        Pattern *p = &t->pattern[t->n];
        if (!*line || *line == '#') continue;
        *p = (Pattern){.name = strsep(&line, "\t"),
                       .kind = strsep(&line, "\t"),
                       .trips = strsep(&line, "\t"),
                       .launch = strsep(&line, "\t"),
                       .statement = line,
                       .us = NAN,
                       .measured = NAN};
        if (!p->statement || ++t->n == MAX_PATTERNS)
            return error_set(err, ERROR_INVALID,
                             "patterns.tsv, %s: five fields and at most %d rows expected", p->name,
                             MAX_PATTERNS - 1);
    }
    return 0;
}

/* ---- the source of a pattern ---- */

static int uses(const Pattern *p, const char *word)
{
    return strstr(p->statement, word) != NULL;
}

/* Returns the elements of the local array that the statement indexes by `mine[... & LAST]`; 0: none. */
static int local_elements(const Pattern *p)
{
    const char *index = strstr(p->statement, "mine["), *mask = index ? strchr(index, '&') : NULL;
    return mask ? atoi(mask + 1) + 1 : 0;
}

static void add_plan(Buffer *b, const Pattern *p, int memory)
{
    int blocks, threads;
    if (memory)
        buffer_printf(b,
                      "//@ buffer float scratch[65536]\n//@ buffer unsigned words[65536]\n"
                      "//@ buffer float far[%s]\n//@ launch clear<<<256, 256>>>(scratch, words)\n",
                      uses(p, "far") ? "16777216" : "1");
    if (sscanf(p->launch, "%dx%d", &blocks, &threads) == 2)
        buffer_printf(b, "//@ launch pattern<<<min(ceil_div(n, %d), %d), %d>>>", threads, blocks,
                      threads);
    else
        buffer_printf(b, "//@ launch pattern<<<%s, 256>>>",
                      uses(p, "other") ? "ceil_div(n, 512) * 2" : "ceil_div(n, 256)");
    buffer_printf(b, "(x, y, n%s)\n//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)\n",
                  memory ? ", scratch, words, far" : "");
}

static void write_source(Buffer *b, const Pattern *p)
{
    size_t kind = strlen(p->kind);
    int memory = uses(p, "scratch") || uses(p, "words[") || uses(p, "far"),
        one = p->kind[kind - 1] == '1';
    add_plan(b, p, memory);
    if (memory) buffer_printf(b, "#define MEMORY\n");
    if (uses(p, "big") || uses(p, "ints") || uses(p, "base") || uses(p, "other"))
        buffer_printf(b, "#define SHARED\n");
    if (uses(p, "other")) buffer_printf(b, "#define CLUSTER\n");
    if (uses(p, "signal")) buffer_printf(b, "#define SIGNAL\n");
    if (local_elements(p)) buffer_printf(b, "#define LOCAL %d\n", local_elements(p));
    if (!strcmp(p->kind, "tensor"))
        buffer_printf(b, "#define MATRIX\n");
    else
        buffer_printf(b, "#define KIND %.*s\n#define %s\n", (int)kind - one, p->kind,
                      one ? "ONE" : "FOUR");
    buffer_printf(b, "#define TRIPS %s\n#define STATEMENT %s\n%s", p->trips, p->statement,
                  kernel_text);
}

/* ---- times ---- */

static double time_of(Evaluator *e, const Pattern *p)
{
    Verdict v;
    Buffer source;
    buffer_init(&source, 1 << 16);
    write_source(&source, p);
    evaluator_run(e, "relu", source.data, source.len, &v);
    double us = v.timing ? statistics_median(v.timing->candidate_us, v.timing->n) : NAN;
    if (v.outcome != OUTCOME_OK)
        log_warn("%s: %s: %s", p->name, outcome_name(v.outcome), v.message);
    verdict_release(&v);
    buffer_release(&source);
    return us;
}

/* The time of the launch without a loop. */
static double empty_time(Evaluator *e, Table *t, const char *launch)
{
    for (int i = 0; i < t->n_empty; i++)
        if (!strcmp(t->empty[i].launch, launch)) return t->empty[i].us;
    Pattern *p = &t->empty[t->n_empty++];
    *p = (Pattern){
        .name = "empty", .kind = "float", .trips = "0", .launch = launch, .statement = ""};
    return p->us = time_of(e, p);
}

/* Prints a row a pattern. */
static void measure(Evaluator *e, Table *t, const char *only)
{
    for (int i = 0; i < t->n; i++) {
        Pattern *p = &t->pattern[i];
        if (only && !strstr(p->name, only)) continue;
        p->us = time_of(e, p);
        if (atoi(p->trips)) p->us -= empty_time(e, t, p->launch);
        if (isnan(p->measured))
            printf("%s\t%.2f\n", p->name, p->us);
        else
            printf("%s\t%.2f\t%.2f\t%.3f\n", p->name, p->us, p->measured, p->us / p->measured);
        fflush(stdout);
    }
}

static int read_measured(const char *path, Table *t, Error *err)
{
    Buffer text;
    char name[128], *save = NULL;
    double us;
    buffer_init(&text, 1);
    int rc = file_read(path, MAX_FILE, &text, err);
    if (!rc) rc = buffer_append(&text, "", 1);
    for (char *line = rc ? NULL : strtok_r(text.data, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        if (sscanf(line, "%127s %lf", name, &us) != 2) continue;
        for (int i = 0; i < t->n; i++)
            if (!strcmp(t->pattern[i].name, name)) t->pattern[i].measured = us;
    }
    buffer_release(&text);
    return rc;
}

/* Counts the predictions within 1.25 and 1.5 times the measured time. */
static void summarize(const Table *t)
{
    int n = 0, near = 0, nearer = 0;
    for (int i = 0; i < t->n; i++) {
        const Pattern *p = &t->pattern[i];
        if (isnan(p->us) || isnan(p->measured) || p->measured <= 0) continue;
        double ratio = p->us > 0 ? p->us / p->measured : 0, off = ratio > 1 ? ratio : 1 / ratio;
        n++, near += off <= 1.5, nearer += off <= 1.25;
    }
    if (n)
        printf("# %d patterns, %d (%.0f%%) within 1.5, %d (%.0f%%) within 1.25\n", n, near,
               100.0 * near / n, nearer, 100.0 * nearer / n);
}

int main(int argc, char **argv)
{
    const char *device = "sim:h100", *measured = NULL, *only = NULL;
    Flag flags[] = {
        {.name = "device", .kind = FLAG_TEXT, .target = &device, .help = "where the kernels run"},
        {.name = "measured",
         .kind = FLAG_TEXT,
         .target = &measured,
         .help = "what a GPU printed, to hold the times against"},
        {.name = "only", .kind = FLAG_TEXT, .target = &only, .help = "a part of patterns' names"},
        {.name = NULL}};
    FlagSpec spec = {.program = "quern-ratebench",
                     .synopsis = "[--device sim:h100] [--measured FILE] [--only TEXT]",
                     .about = "Time instructions and access patterns, in microseconds.",
                     .flags = flags};
    static Table table;
    Error err;
    Evaluator *e;
    flags_parse(&spec, argc, argv, NULL);
    log_open("quern-ratebench");
    if (read_table(&table, &err) || (measured && read_measured(measured, &table, &err)) ||
        evaluator_open(&(EvaluatorOptions){.device = device, .cache_dir = "", .seed = 1}, &e, &err))
        log_die(&err);
    measure(e, &table, only);
    if (measured) summarize(&table);
    evaluator_close(e);
    free(table.text);
    return log_close(0);
}
