/* quern-report: writes best/<task>.cu, report.tsv and report.html of a finished run, in this order,
 * so that a report.html has all the rest. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static int write_report(const Report *r, const char *dir, Error *err)
{
    TableRow rows[TABLE_ROWS];
    Buffer tsv, page;
    buffer_init(&tsv, 1 << 20);
    buffer_init(&page, 64 << 20);
    table_rows(r, rows);
    table_tsv(rows, &tsv);
    int rc = best_write(r, dir, err) || html_page(r, rows, &page, err) ||
                     write_file(dir, "report.tsv", &tsv, err) ||
                     write_file(dir, "report.html", &page, err)
                 ? -1
                 : 0;
    if (!rc) fputs(tsv.data, stdout);
    buffer_release(&tsv);
    buffer_release(&page);
    return rc;
}

int main(int argc, char **argv)
{
    const char *output = NULL;
    ReportFiles f = {.run = "run", .profile = "default", .device = "sim:h100"};
    const Flag flags[] = {
        {"output", FLAG_TEXT, &output, "folder of the report", .required = 1},
        {"tasks", FLAG_TEXT, &f.tasks, "names, comma separated; all when left out"},
        {"task-root", FLAG_TEXT, &f.task_root, "folder of the tasks"},
        {"run", FLAG_TEXT, &f.run, "its name"},
        {"profile", FLAG_TEXT, &f.profile, "its profile"},
        {"device", FLAG_TEXT, &f.device, "class that the run was judged on"},
        {"collect-samples", FLAG_TEXT, &f.samples[REPORT_COLLECT], "what the teachers wrote"},
        {"collect-verdicts", FLAG_TEXT, &f.verdicts[REPORT_COLLECT], "its verdicts"},
        {"sft-samples", FLAG_TEXT, &f.samples[REPORT_SFT], "of the stage's final model",
         .required = 1},
        {"sft-verdicts", FLAG_TEXT, &f.verdicts[REPORT_SFT], "its verdicts", .required = 1},
        {"selfsup-samples", FLAG_TEXT, &f.samples[REPORT_SELFSUP], "of the stage's final model",
         .required = 1},
        {"selfsup-verdicts", FLAG_TEXT, &f.verdicts[REPORT_SELFSUP], "its verdicts", .required = 1},
        {"crl-samples", FLAG_TEXT, &f.samples[REPORT_CRL], "of the stage's final model",
         .required = 1},
        {"crl-verdicts", FLAG_TEXT, &f.verdicts[REPORT_CRL], "its verdicts", .required = 1},
        {"pool", FLAG_TEXT, &f.pool, "of the whole run"},
        {"again-samples", FLAG_TEXT, &f.again_samples,
         "the best of the pool and of each stage's samples"},
        {"again-verdicts", FLAG_TEXT, &f.again_verdicts,
         "their verdicts on other inputs than those that chose them"},
        {"results", FLAG_TEXT, &f.results, "the pool's best on every device class"},
        {"rounds", FLAG_TEXT, &f.rounds, "verdicts of each round, oldest first, comma separated"},
        {0}};
    const FlagSpec spec = {"quern-report",
                           "--output DIR --sft-samples FILE --sft-verdicts FILE ...",
                           "Write report.html, report.tsv and best/<task>.cu of a finished run.",
                           flags,
                           0,
                           0,
                           0};
    flags_parse(&spec, argc, argv, (const char **)argv);
    if (!f.samples[REPORT_COLLECT] != !f.verdicts[REPORT_COLLECT])
        flags_usage_error(&spec, "--collect-samples and --collect-verdicts go together");
    if (!f.again_samples != !f.again_verdicts)
        flags_usage_error(&spec, "--again-samples and --again-verdicts go together");
    log_open("quern-report");
    stop_install();
    Error err;
    Report r;
    if (file_mkdirs(output, &err) || report_load(&f, &r, &err) || write_report(&r, output, &err))
        log_die(&err);
    log_info("wrote %s/report.html", output);
    report_release(&r);
    return log_close(0);
}
