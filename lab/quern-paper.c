/* quern-paper: a page with a run's numbers beside the paper's. */
#include <stdio.h>

#include "base/flags.h"
#include "base/log.h"
#include "lab/paper.h"
#include "report/run/run_folder.h"

enum { MAX_PAGE = 16 << 20 };

int main(int argc, char **argv)
{
    const char *runs = "runs", *words[1];
    const Flag flags[] = {{"runs", FLAG_TEXT, &runs, "folder that holds the runs"}, {0}};
    const FlagSpec spec = {.program = "quern-paper",
                           .synopsis = "RUN >paper.html",
                           .about = "Print a page with a run's numbers in the paper's tables.",
                           .flags = flags,
                           .min_words = 1,
                           .max_words = 1};
    flags_parse(&spec, argc, argv, words);
    Error err;
    RunFolder folder;
    ReportFiles files;
    Report r;
    Buffer page;
    if (run_folder_open(words[0], runs, &folder, &err)) log_die(&err);
    report_files_find(&folder, &files);
    if (report_load(&files, &r, &err)) log_die(&err);
    buffer_init(&page, MAX_PAGE);
    buffer_puts(&page,
                "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Quern: ");
    html_text(&page, folder.name);
    buffer_puts(&page, "</title>\n<style>\n");
    page_style(&page);
    buffer_puts(&page, "</style></head>\n<body><main>\n");
    paper_write(&r, &page);
    buffer_puts(&page, "</main></body></html>\n");
    fwrite(page.data, 1, page.len, stdout);
    buffer_release(&page);
    report_release(&r);
    report_files_release(&files);
    run_folder_release(&folder);
    return log_close(0);
}
