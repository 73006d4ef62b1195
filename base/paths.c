/* Finds the root folder from the path of the running program. */
#include "base/paths.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/process.h"

static int holds_tasks(const char *dir)
{
    char path[PATH_MAX];
    struct stat st;
    int n = snprintf(path, sizeof path, "%s/tasks", dir);
    return n > 0 && (size_t)n < sizeof path && !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* The folder that `build`/root names. 0: the file is there, and so is the folder. */
static int named_by(const char *build, char *out, size_t size)
{
    char path[PATH_MAX], line[PATH_MAX];
    snprintf(path, sizeof path, "%s/root", build);
    FILE *f = fopen(path, "re");
    if (!f) return -1;
    char *read = fgets(line, sizeof line, f);
    fclose(f);
    if (!read) return -1;
    line[strcspn(line, "\n")] = 0;
    snprintf(path, sizeof path, "%s/%s", build, line);
    char *real = realpath(path, NULL);
    int found = real && strlen(real) < size && holds_tasks(real);
    if (found) strcpy(out, real);
    free(real);
    return found ? 0 : -1;
}

int paths_root(char *out, size_t size, Error *err)
{
    char self[3072], dir[PATH_MAX];
    if (process_self_dir(self, sizeof self, err)) return -1;
    for (int up = 1; up <= 2; up++) {
        snprintf(dir, sizeof dir, "%s%s", self, up == 1 ? "/.." : "/../..");
        if (!named_by(dir, out, size)) return 0;
    }
    static const char *const installed[] = {"../../../share/quern", "../share/quern"};
    for (int i = 0; i < 2; i++) {
        snprintf(dir, sizeof dir, "%s/%s", self, installed[i]);
        char *real = holds_tasks(dir) ? realpath(dir, NULL) : NULL;
        if (!real) continue;
        snprintf(out, size, "%s", real);
        free(real);
        return 0;
    }
    return error_set(err, ERROR_NOT_FOUND,
                     "Quern's files were not found from %s: expected a build folder with a file "
                     "`root`, or PREFIX/share/quern",
                     self);
}

char *paths_in_root(const char *relative, Error *err)
{
    char root[PATH_MAX];
    if (paths_root(root, sizeof root, err)) return NULL;
    return memory_printf("%s/%s", root, relative);
}
