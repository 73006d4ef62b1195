/* Foreign bytes as a file of settings: read line by line, and as the CONFIG of a run whose settings
 * are then checked. The file is a descriptor in memory; "include 200" in it names the file itself. */
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/paths.h"
#include "stages/settings/fragment.h"
#include "stages/settings/settings.h"

#define FILE_PATH "/proc/self/fd/200"
enum { FILE_FD = 200 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int blank(char c)
{
    return c && strchr(" \t\n\v\f\r", c) != NULL;
}

/* What a line promises: a name of Make's letters, and a value in one line without blanks around it. */
static int take(void *ctx, const FragmentLine *line, Error *err)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
    size_t n = strlen(line->value);
    (void)ctx;
    (void)err;
    if (!*line->name || line->name[strspn(line->name, letters)]) abort();
    if (blank(line->value[0]) || (n && blank(line->value[n - 1])) || strchr(line->value, '\n'))
        abort();
    if (!strchr(line->where, ':')) abort();
    return 0;
}

static void put(const uint8_t *data, size_t size)
{
    static int fd = -1;
    if (fd < 0) {
        int new = memfd_create("settings", 0);
        if (new < 0 || dup2(new, FILE_FD) < 0) abort();
        close(new);
        fd = FILE_FD;
    }
    if (ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char root[PATH_MAX], *tasks;
    Error err;
    if (!tasks) {
        if (paths_root(root, sizeof root, &err)) abort();
        tasks = memory_printf("QUERN_TASKS=%s/tasks", root);
    }
    put(data, size);
    if (fragment_read(FILE_PATH, root, take, NULL, &err) && !*err.text) abort();
    const char *words[] = {"CONFIG=" FILE_PATH, tasks};
    Settings s = {.share = root, .found = ""};
    if (settings_resolve(words, 2, &s, &err) || settings_check(&s, &err))
        if (!*err.text) abort();
    settings_release(&s);
    return 0;
}
