/* quern-clean: shows the space of a run, and frees what no later command needs. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/sort.h"

enum { OPEN_FOLDERS = 16 };

static struct {
    const char *runs;
    int free, all;
} args = {.runs = "runs"};

static const Flag flags[] = {
    {"runs", FLAG_TEXT, &args.runs, "the folder of the runs"},
    {"free", FLAG_BOOL, &args.free,
     "remove the private queue's data, and what interrupted programs have left"},
    {"all", FLAG_BOOL, &args.all, "remove the whole run, its report and kernels included"},
    {0}};
static const FlagSpec spec = {
    .program = "quern-clean",
    .synopsis = "RUN [--free | --all]",
    .about = "Show what a run takes on the disk, and what of it can go: the data of its private "
             "queue, and checkpoints, journals and temporary files that interrupted programs have "
             "left. --free removes these; a finished run stays up to date, an unfinished one "
             "continues with less of its work kept. A run that is going on is refused.",
    .flags = flags,
    .min_words = 1,
    .max_words = 1};

/* nftw has no context argument; one walk at a time. */
static struct {
    long long bytes, spare;
    int remove;
    const char *queue;
    Error *err;
} sum;

static int ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);
    return n > k && !strcmp(s + n - k, end);
}

/* Is the file, or a folder that it is in, a left-over? */
static int is_spare(const char *path)
{
    if (!strncmp(path, sum.queue, strlen(sum.queue)) && path[strlen(sum.queue)] == '/') return 1;
    return strstr(path, ".checkpoint") || strstr(path, ".tmp.") || strstr(path, ".trainer/") ||
           ends_with(path, ".journal") || ends_with(path, ".damaged");
}

static int add_file(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)at;
    if (kind != FTW_F && kind != FTW_SL) return 0;
    long long bytes = (long long)st->st_blocks * 512;
    sum.bytes += bytes;
    if (!is_spare(path)) return 0;
    sum.spare += bytes;
    if (!sum.remove || !unlink(path) || errno == ENOENT) return 0;
    error_errno(sum.err, "cannot remove %s", path);
    return 1;
}

static int measure(const char *path, int remove_spare, Error *err)
{
    sum.bytes = sum.spare = 0;
    sum.remove = remove_spare;
    sum.err = err;
    int rc = nftw(path, add_file, OPEN_FOLDERS, FTW_PHYS);
    if (rc > 0) return -1; /* add_file has said why */
    return rc ? error_errno(err, "cannot read %s", path) : 0;
}

/* The fleet of a live run holds this lock (queue/fleet.c). */
static int refuse_live(const char *queue, Error *err)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/lock", queue);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return 0;
    int busy = flock(fd, LOCK_EX | LOCK_NB) != 0;
    close(fd);
    return busy ? error_set(err, ERROR_INVALID, "the run is going on: end it first, or wait") : 0;
}

static int show(const char *run, Error *err)
{
    char *names[PATH_MAX / 16], path[PATH_MAX];
    int n = 0, rc = 0;
    long long bytes = 0, spare = 0;
    DIR *d = opendir(run);
    if (!d) return error_errno(err, "cannot open %s", run);
    for (struct dirent *e; n < (int)(sizeof names / sizeof *names) && (e = readdir(d));)
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
            names[n++] = memory_strdup(e->d_name);
    closedir(d);
    sort_texts(names, (size_t)n);
    printf("%-24s %10s %12s\n", "in the run", "MB", "can go, MB");
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", run, names[i]);
        if (!rc && !(rc = measure(path, 0, err))) {
            printf("%-24s %10.1f %12.1f\n", names[i], (double)sum.bytes / 1e6,
                   (double)sum.spare / 1e6);
            bytes += sum.bytes;
            spare += sum.spare;
        }
        free(names[i]);
    }
    if (!rc) printf("%-24s %10.1f %12.1f\n", "all", (double)bytes / 1e6, (double)spare / 1e6);
    return rc;
}

static int clean(const char *run, Error *err)
{
    if (args.all) return file_remove_tree(run, err);
    if (args.free && measure(run, 1, err)) return -1;
    if (args.free) log_info("%.1f MB are free again", (double)sum.spare / 1e6);
    return show(run, err);
}

int main(int argc, char **argv)
{
    const char **words = memory_array((size_t)argc, sizeof *words);
    char run[PATH_MAX], queue[PATH_MAX + 8];
    Error err;
    flags_parse(&spec, argc, argv, words);
    if (args.free && args.all) flags_usage_error(&spec, "--free and --all exclude each other");
    if (!*words[0] || strstr(words[0], "..") || words[0][0] == '/')
        flags_usage_error(&spec, "expected the name of a run, found '%s'", words[0]);
    int n = snprintf(run, sizeof run, "%s/%s", args.runs, words[0]);
    struct stat st;
    if (n < 0 || (size_t)n >= sizeof run || stat(run, &st) || !S_ISDIR(st.st_mode)) {
        error_set(&err, ERROR_NOT_FOUND, "there is no run %s", run);
        log_die(&err);
    }
    snprintf(queue, sizeof queue, "%s/queue", run);
    sum.queue = queue;
    if (((args.free || args.all) && refuse_live(queue, &err)) || clean(run, &err)) log_die(&err);
    free(words);
    return log_close(EXIT_STATUS_OK);
}
