/* The best kernels of a run as files. Only regular .cu files are ever removed. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "report/report.h"

static int write_one(const Report *r, const ReportTask *t, const char *folder, Error *err)
{
    char *path = memory_printf("%s/%s.cu", folder, t->task->name);
    char *text =
        memory_printf("// %s: %s speedup %.3f on %s, found in %s%s\n%s", t->task->name,
                      t->predicted ? "predicted" : "measured", t->score, r->device, t->found,
                      t->task->degenerate ? " (a degenerate task)" : "", t->source);
    int rc = file_write_atomic(path, text, strlen(text), err);
    free(text);
    free(path);
    return rc;
}

static int was_written(const Report *r, const char *name, size_t len)
{
    const Task *task = taskset_find(&r->tasks, name, len);
    for (int i = 0; i < r->tasks.n; i++)
        if (r->task[i].task == task && r->task[i].source) return 1;
    return 0;
}

/* Removes the kernels of earlier reports that this one has not written. Links and folders are not a
 * report's and stay. */
static int remove_stale(const Report *r, const char *folder, Error *err)
{
    struct dirent **names = NULL;
    int n = scandir(folder, &names, NULL, alphasort),
        rc = n < 0 ? error_errno(err, "cannot read %s", folder) : 0;
    for (int i = 0; i < n; i++) {
        const char *name = names[i]->d_name, *end = strrchr(name, '.');
        struct stat st;
        if (!rc && *name != '.' && end && !strcmp(end, ".cu") &&
            !was_written(r, name, (size_t)(end - name))) {
            char *path = memory_printf("%s/%s", folder, name);
            if (!lstat(path, &st) && S_ISREG(st.st_mode) && unlink(path) && errno != ENOENT)
                rc = error_errno(err, "cannot remove %s", path);
            free(path);
        }
        free(names[i]);
    }
    free(names);
    return rc;
}

int best_write(const Report *r, const char *dir, Error *err)
{
    char *folder = memory_printf("%s/best", dir);
    int rc = file_mkdirs(folder, err);
    for (int i = 0; i < r->tasks.n && !rc; i++)
        if (r->task[i].source) rc = write_one(r, &r->task[i], folder, err);
    if (!rc) rc = remove_stale(r, folder, err);
    free(folder);
    return rc;
}
