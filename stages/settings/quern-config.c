/* quern-config: the settings of a run, checked and resolved, as a Make fragment. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/paths.h"
#include "stages/settings/settings.h"

enum { MAX_FRAGMENT = 64 << 20 };

typedef struct {
    const char *share, *found, *output;
    int check, table;
    char **command; /* what follows "--", or NULL */
} Options;

/* Print a text on stdout. */
static int put(const Buffer *b)
{
    fwrite(b->data, 1, b->len, stdout);
    return log_close(0);
}

static int print_table(void)
{
    Buffer b;
    buffer_init(&b, MAX_FRAGMENT);
    settings_table_print(&b);
    int status = put(&b);
    buffer_release(&b);
    return status;
}

/* The text of --help, with the settings. Lives until the program ends. */
static const char *about(void)
{
    Buffer b;
    buffer_init(&b, MAX_FRAGMENT);
    buffer_puts(&b,
                "Resolves the settings of a run and checks every value. The first of these that "
                "names a setting\ncounts: NAME=VALUE here, the environment (some settings), the "
                "file CONFIG, the profile's file,\nthe default. Prints the Make fragment that "
                "pipeline.mk includes. With a COMMAND, runs it with\nQUERN_TASKS set "
                "instead of printing.\n\nsettings, with their defaults:\n");
    settings_help_print(&b);
    return buffer_detach(&b);
}

/* Where configs/ and tasks/ are: "." in Quern's own folder, for short names. */
static const char *find_share(char share[PATH_MAX], Error *err)
{
    char root[PATH_MAX], here[PATH_MAX];
    if (paths_root(root, sizeof root, err)) return NULL;
    if (!realpath(root, share)) {
        error_errno(err, "cannot find the folder %s", root);
        return NULL;
    }
    return realpath(".", here) && !strcmp(here, share) ? "." : share;
}

/* Write the fragment, unless the file has that text already. */
static int write_fragment(const char *path, const Buffer *text, Error *err)
{
    Buffer old;
    buffer_init(&old, MAX_FRAGMENT);
    int same = file_exists(path) && !file_read(path, MAX_FRAGMENT, &old, NULL) &&
               old.len == text->len && !memcmp(old.data, text->data, text->len);
    buffer_release(&old);
    if (same) return 0;
    const char *slash = strrchr(path, '/');
    char *folder = memory_strndup(path, slash ? (size_t)(slash - path) : 0);
    int rc = *folder ? file_mkdirs(folder, err) : 0;
    free(folder);
    return rc ? -1 : file_write_atomic(path, text->data, text->len, err);
}

/* Replace this process by the command. */
static int run_command(const Settings *s, char **command, Error *err)
{
    char root[PATH_MAX];
    const char *tasks = setting_text(s, SETTING_TASK_ROOT);
    if (!realpath(tasks, root)) return error_errno(err, "tasks folder %s", tasks);
    setenv("QUERN_TASKS", root, 1);
    execvp(command[0], command);
    return error_errno(err, "cannot run %s", command[0]);
}

/* Where the fragment goes: to the file, to nobody where a command follows, else to stdout. */
static int put_fragment(const Options *o, const Settings *s, Error *err)
{
    Buffer b;
    int status = 0;
    buffer_init(&b, MAX_FRAGMENT);
    settings_print(s, &b);
    if (b.full)
        status = error_set(err, ERROR_LIMIT, "the rules of so many rounds take more than 64 MiB");
    else if (o->output)
        status = settings_keep_report(s, err) ? -1 : write_fragment(o->output, &b, err);
    else if (!o->command)
        status = put(&b);
    buffer_release(&b);
    return status;
}

static int run(const Options *o, const char *const *words, int n, Settings *s, Error *err)
{
    if (settings_resolve(words, n, s, err) || settings_check(s, err)) return -1;
    if (o->check && (settings_check_programs(s, err) || settings_advise(s, err))) return -1;
    if (settings_derive(s, err) || settings_check_tasks(s, err)) return -1;
    const int status = put_fragment(o, s, err);
    return status || !o->command ? status : run_command(s, o->command, err);
}

int main(int argc, char **argv)
{
    Options o = {0};
    char root[PATH_MAX];
    const Flag flags[] = {
        {"share", FLAG_TEXT, &o.share, "folder that holds configs/ and tasks/, if not Quern's own"},
        {"output", FLAG_TEXT, &o.output, "file to write, when it changes, instead of stdout"},
        {"check", FLAG_BOOL, &o.check,
         "check too what takes longer: flags, by the stages' programs, and evaluators"},
        {"found", FLAG_TEXT, &o.found,
         "the GPUs of this machine, cuda:0=NVIDIA+H200,..., instead of asking the driver"},
        {"table", FLAG_BOOL, &o.table, "print all settings and variables as Markdown, and end"},
        {0}};
    const FlagSpec spec = {.program = "quern-config",
                           .synopsis = "[flags] [NAME=VALUE...] [-- COMMAND...]",
                           .about = about(),
                           .flags = flags,
                           .max_words = -1};
    int own = 1;
    while (own < argc && strcmp(argv[own], "--")) own++;
    if (own + 1 < argc) o.command = argv + own + 1;
    const char **words = memory_array((size_t)argc, sizeof *words);
    int n = flags_parse(&spec, own, argv, words);
    log_open("quern");
    if (o.table) return print_table();
    Error err = {0};
    if (!o.share) o.share = find_share(root, &err);
    if (!o.share) log_die(&err);
    Settings s = {.share = o.share, .found = o.found};
    int status = run(&o, words, n, &s, &err);
    if (status < 0) log_die(&err);
    settings_release(&s);
    free(words);
    return status;
}
