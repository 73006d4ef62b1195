/* quern-report: writes best/<task>.cu, report.tsv and report.html of a finished run, in this order,
 * so that a report.tsv or a page without --live has all the rest. With --live the page alone, of a run
 * that is going on. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"
#include "report/report.h"

static int write_file(const char *dir, const char *name, const Buffer *b, Error *err)
{
    char *path = memory_printf("%s/%s", dir, name);
    int rc = file_write_atomic(path, b->data, b->len, err);
    free(path);
    return rc;
}

/* Writes DIR/unjudged, which mk/last shows, where over a tenth of the verdicts is missing; else removes
 * one of an earlier report. */
static int write_unjudged(const Report *r, const char *dir, Error *err)
{
    Buffer b;
    buffer_init(&b, 1 << 12);
    char *path = memory_printf("%s/unjudged", dir);
    int rc = 0;
    if (summary_unjudged(r, &b))
        rc = write_file(dir, "unjudged", &b, err);
    else if (unlink(path) && errno != ENOENT)
        rc = error_errno(err, "cannot remove %s", path);
    free(path);
    buffer_release(&b);
    return rc;
}

static int write_report(const Report *r, const char *dir, Error *err)
{
    TableRow rows[TABLE_ROWS];
    Buffer tsv, page, text;
    buffer_init(&tsv, 1 << 20);
    buffer_init(&page, 64 << 20);
    buffer_init(&text, 1 << 20);
    table_rows(r, rows);
    table_tsv(rows, &tsv);
    int rc = -(best_write(r, dir, err) || write_unjudged(r, dir, err) ||
               html_page(r, rows, &page, err) || write_file(dir, "report.tsv", &tsv, err) ||
               write_file(dir, "report.html", &page, err));
    summary_write(r, dir, &text);
    if (!rc) fputs(text.data, stdout);
    buffer_release(&text);
    buffer_release(&tsv);
    buffer_release(&page);
    return rc;
}

/* The time that the last page took, which its end tells; 0 when there is none. */
static double last_duration(const char *page)
{
    char tail[64] = "";
    double elapsed = 0;
    FILE *f = fopen(page, "re");
    if (!f) return 0;
    if (!fseek(f, -(long)sizeof tail + 1, SEEK_END) && fread(tail, 1, sizeof tail - 1, f)) {
        const char *at = strstr(tail, "<!-- took ");
        if (at) elapsed = strtod(at + 10, NULL);
    }
    fclose(f);
    return elapsed;
}

/* Writes the page of a run that is going on, unless the last one was written so lately that pages take
 * more than a twentieth of the time. */
static int write_live(const char *dir, Error *err)
{
    double start = clock_seconds();
    struct stat st;
    RunStatus s;
    ReportFiles f = {0};
    Report r = {0};
    RunNumbers numbers = {0};
    TableRow rows[TABLE_ROWS];
    Buffer page;
    char *path = memory_printf("%s/report.html", dir);
    int early = !stat(path, &st) && clock_unix() - (double)st.st_mtime < 20 * last_duration(path);
    free(path);
    if (early) return 0;
    buffer_init(&page, 64 << 20);
    int rc = run_status_read(dir, ".", clock_unix(), &s, err);
    if (!rc) {
        report_files_find(&s.folder, &f);
        rc = report_load(&f, &r, err);
    }
    if (!rc) {
        r.live = &s;
        run_numbers_read(&s.folder, 1, &numbers);
        r.numbers = &numbers;
        r.rules = s.rules;
        r.n_rules = s.n_rules;
        table_rows(&r, rows);
        rc = html_page(&r, rows, &page, err);
    }
    if (!rc) {
        buffer_printf(&page, "<!-- took %.2f s -->\n", clock_seconds() - start);
        rc = write_file(dir, "report.html", &page, err);
    }
    report_release(&r);
    report_files_release(&f);
    run_status_release(&s);
    run_numbers_release(&numbers);
    buffer_release(&page);
    return rc;
}

/* Where the report's folder belongs to a run, the run's steps and the times of its programs are
 * shown. They last until the program ends. */
static void note_run(Report *r, const char *dir)
{
    static RunNumbers numbers;
    static RunFolder folder;
    static RunRule *rules;
    if (run_folder_open(dir, ".", &folder, NULL) || run_logs_read(dir, &rules, &r->n_rules, NULL))
        return;
    run_numbers_read(&folder, 1, &numbers);
    r->numbers = &numbers;
    r->rules = rules;
}

/* Ends with a usage error unless all of a finished run's files are named. */
static void check_given(const FlagSpec *spec, const ReportFiles *f)
{
    for (int s = REPORT_SFT; s < REPORT_STAGES; s++)
        if (!f->samples[s] || !f->verdicts[s])
            flags_usage_error(spec, "--%s-samples and --%s-verdicts are needed, but for --live",
                              report_stage_names[s], report_stage_names[s]);
    if (!f->samples[REPORT_COLLECT] != !f->verdicts[REPORT_COLLECT])
        flags_usage_error(spec, "--collect-samples and --collect-verdicts go together");
    if (!f->again_samples != !f->again_verdicts)
        flags_usage_error(spec, "--again-samples and --again-verdicts go together");
}

int main(int argc, char **argv)
{
    const char *output = NULL;
    int live = 0;
    ReportFiles f = {.run = "run", .profile = "default", .device = "sim:h100"};
    const Flag flags[] = {
        {"output", FLAG_TEXT, &output, "folder of the report", .required = 1},
        {"live", FLAG_BOOL, &live,
         "the page of a run that is going on, from what its folder has; no other flag counts"},
        {"tasks", FLAG_TEXT, &f.tasks, "names, comma separated; all when left out"},
        {"task-root", FLAG_TEXT, &f.task_root, "folder of the tasks"},
        {"run", FLAG_TEXT, &f.run, "its name"},
        {"profile", FLAG_TEXT, &f.profile, "its profile"},
        {"device", FLAG_TEXT, &f.device, "class that the run was judged on"},
        {"collect-samples", FLAG_TEXT, &f.samples[REPORT_COLLECT], "what the teachers wrote"},
        {"collect-verdicts", FLAG_TEXT, &f.verdicts[REPORT_COLLECT], "its verdicts"},
        {"sft-samples", FLAG_TEXT, &f.samples[REPORT_SFT], "of the stage's final model"},
        {"sft-verdicts", FLAG_TEXT, &f.verdicts[REPORT_SFT], "its verdicts"},
        {"selfsup-samples", FLAG_TEXT, &f.samples[REPORT_SELFSUP], "of the stage's final model"},
        {"selfsup-verdicts", FLAG_TEXT, &f.verdicts[REPORT_SELFSUP], "its verdicts"},
        {"crl-samples", FLAG_TEXT, &f.samples[REPORT_CRL], "of the stage's final model"},
        {"crl-verdicts", FLAG_TEXT, &f.verdicts[REPORT_CRL], "its verdicts"},
        {"pool", FLAG_TEXT, &f.pool, "of the whole run"},
        {"again-samples", FLAG_TEXT, &f.again_samples,
         "the best of the pool and of each stage's samples"},
        {"again-verdicts", FLAG_TEXT, &f.again_verdicts,
         "their verdicts on other inputs than those that chose them"},
        {"results", FLAG_TEXT, &f.results, "the pool's best on every device class"},
        {"rounds", FLAG_TEXT, &f.rounds, "verdicts of each round, oldest first, comma separated"},
        {"ledger", FLAG_TEXT, &f.ledger, "what endpoints cost; it need not exist"},
        {0}};
    const FlagSpec spec = {
        "quern-report", "--output DIR --sft-samples FILE --sft-verdicts FILE ...",
        "Write report.html, report.tsv and best/<task>.cu of a finished run.", flags};
    flags_parse(&spec, argc, argv, (const char **)argv);
    if (!live) check_given(&spec, &f);
    log_open("quern-report");
    stop_install();
    Error err;
    Report r;
    if (live) {
        if (write_live(output, &err)) log_die(&err);
        return log_close(0);
    }
    if (file_mkdirs(output, &err) || report_load(&f, &r, &err)) log_die(&err);
    note_run(&r, output);
    if (write_report(&r, output, &err)) log_die(&err);
    report_release(&r);
    return log_close(0);
}
