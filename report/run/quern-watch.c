/* quern-watch: where a run stands, drawn again every second until the run ends. Where stdout is no
 * terminal it is printed once. The terminal is left as it was found. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"
#include "report/run/run_status.h"

static void screen_size(int *rows, int *columns)
{
    struct winsize w = {0};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) || !w.ws_row || !w.ws_col)
        w = (struct winsize){24, 80, 0, 0};
    *rows = w.ws_row;
    *columns = w.ws_col;
}

/* Appends a line without what is beyond the columns. Escape sequences and the later bytes of a letter
 * take no column. */
static void put_line(Buffer *out, const char *line, size_t n, int columns)
{
    int at = 0, escape = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)line[i];
        if (c == 033) escape = 1;
        if (!escape && (c & 0xc0) != 0x80 && at++ >= columns) continue;
        if (!escape && (c & 0xc0) == 0x80 && at > columns) continue;
        buffer_append(out, line + i, 1);
        if (escape && c == 'm') escape = 0;
    }
    buffer_puts(out, "\033[K\n");
}

/* The page from the top left corner, without the lines that the screen has no room for. */
static void put_page(Buffer *out, const char *text, const char *foot)
{
    int rows, columns, n = 0;
    screen_size(&rows, &columns);
    buffer_puts(out, "\033[H");
    for (const char *p = text; *p && n < rows - 2; n++) {
        size_t len = strcspn(p, "\n");
        put_line(out, p, len, columns);
        p += len + (p[len] == '\n');
    }
    put_line(out, foot, strlen(foot), columns);
    buffer_puts(out, "\033[J");
}

static int write_out(const Buffer *b)
{
    return -(fwrite(b->data, 1, b->len, stdout) != b->len || fflush(stdout));
}

/* One look at the run. *state is how it stands. */
static int look(const char *run, const char *runs, Buffer *text, int colours, RunState *state,
                Error *err)
{
    RunStatus s;
    int rc = run_status_read(run, runs, clock_unix(), &s, err);
    buffer_clear(text);
    if (!rc) run_status_text(&s, colours, text);
    *state = s.state;
    run_status_release(&s);
    return rc;
}

static int watch(const char *run, const char *runs, double every, RunState *state, Error *err)
{
    Buffer text, page;
    int rc;
    buffer_init(&text, 16 << 20);
    buffer_init(&page, 16 << 20);
    fputs("\033[?1049h\033[?25l", stdout); /* another screen, without a cursor */
    while (!(rc = look(run, runs, &text, run_status_colours(), state, err))) {
        buffer_clear(&page);
        put_page(&page, text.data, "Ctrl-C leaves this page; the run goes on.");
        if (write_out(&page) || *state != RUN_GOING || stop_requested()) break;
        struct pollfd stop = {.fd = stop_fd(), .events = POLLIN};
        poll(&stop, 1, (int)(every * 1000));
        if (stop_requested()) break;
    }
    fputs("\033[?25h\033[?1049l", stdout);
    if (!rc) fputs(text.data, stdout);
    fflush(stdout); /* before an error is told: it would go with the other screen */
    buffer_release(&text);
    buffer_release(&page);
    return rc;
}

int main(int argc, char **argv)
{
    const char *runs = "runs";
    double every = 1;
    const Flag flags[] = {{"runs", FLAG_TEXT, &runs, "the folder of the runs"},
                          {"every", FLAG_FLOAT, &every, "seconds between two looks", 0.1, 3600},
                          {0}};
    const FlagSpec spec = {
        .program = "quern-watch",
        .synopsis = "RUN [--every SECONDS]",
        .about =
            "Show what quern-status shows, again and again, until the run ends or Ctrl-C. Where "
            "the output is no terminal it is shown once. The exit status is 1 when the run "
            "failed.",
        .flags = flags,
        .min_words = 1,
        .max_words = 1};
    const char **words = memory_array((size_t)argc, sizeof *words);
    flags_parse(&spec, argc, argv, words);
    stop_install();
    Error err;
    RunState state;
    Buffer text;
    buffer_init(&text, 16 << 20);
    if (isatty(STDOUT_FILENO)) {
        if (watch(words[0], runs, every, &state, &err)) log_die(&err);
    } else {
        if (look(words[0], runs, &text, 0, &state, &err)) log_die(&err);
        fputs(text.data, stdout);
    }
    buffer_release(&text);
    free(words);
    return log_close(state == RUN_FAILED ? EXIT_STATUS_FAILED : EXIT_STATUS_OK);
}
