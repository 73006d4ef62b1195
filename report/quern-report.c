/* quern-report: writes best/<task>.cu, report.tsv and report.html of a finished run into its folder, in this
 * order, so that a report.tsv or a page without --live has all the rest. With --live the page alone, of a run
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

/* Whether the last page was written so lately that pages take more than a twentieth of the time. */
static int is_early(const char *dir)
{
    struct stat st;
    char *path = memory_printf("%s/report.html", dir);
    int early = !stat(path, &st) && clock_unix() - (double)st.st_mtime < 20 * last_duration(path);
    free(path);
    return early;
}

static int write_live(const Report *r, const char *dir, double start, Error *err)
{
    TableRow rows[TABLE_ROWS];
    Buffer page;
    buffer_init(&page, 64 << 20);
    table_rows(r, rows);
    int rc = html_page(r, rows, &page, err);
    buffer_printf(&page, "<!-- took %.2f s -->\n", clock_seconds() - start);
    if (!rc) rc = write_file(dir, "report.html", &page, err);
    buffer_release(&page);
    return rc;
}

/* A finished run has samples of each stage. */
static int check_finished(const ReportFiles *f, const char *dir, Error *err)
{
    for (int s = REPORT_SFT; s < REPORT_STAGES; s++)
        if (!f->samples[s])
            return error_set(err, ERROR_INVALID,
                             "%s/report/%s has no samples.qa and verdicts.qa: the run is not "
                             "finished; --live shows what it has",
                             dir, report_stage_names[s]);
    return 0;
}

static int make(const char *dir, int live, Error *err)
{
    double start = clock_seconds();
    RunStatus s;
    ReportFiles f = {0};
    Report r = {0};
    RunNumbers numbers = {0};
    int rc = run_status_read(dir, ".", clock_unix(), &s, err);
    if (!rc) {
        report_files_find(&s.folder, &f);
        rc = (!live && check_finished(&f, dir, err)) || report_load(&f, &r, err) ? -1 : 0;
    }
    if (!rc) {
        run_numbers_read(&s.folder, 1, &numbers);
        r.live = live ? &s : NULL;
        r.numbers = &numbers;
        r.rules = s.rules;
        r.n_rules = s.n_rules;
        rc = live ? write_live(&r, dir, start, err) : write_report(&r, dir, err);
    }
    report_release(&r);
    report_files_release(&f);
    run_status_release(&s);
    run_numbers_release(&numbers);
    return rc;
}

int main(int argc, char **argv)
{
    const char *output = NULL;
    int live = 0;
    const Flag flags[] = {
        {"output", FLAG_TEXT, &output, "folder of the run, and of its report", .required = 1},
        {"live", FLAG_BOOL, &live, "the page of a run that is going on, from what its folder has"},
        {0}};
    const FlagSpec spec = {"quern-report", "--output RUN [--live]",
                           "Write report.html, report.tsv and best/<task>.cu of a finished run.",
                           flags};
    flags_parse(&spec, argc, argv, (const char **)argv);
    stop_install();
    Error err;
    if (!(live && is_early(output)) && make(output, live, &err)) log_die(&err);
    return log_close(0);
}
