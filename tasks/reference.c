/* Compiled references: shared libraries beside the programs, loaded on first use. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/process.h"
#include "tasks/task.h"

typedef void Reference(const int64_t *axis, const double *const *in, double *const *out);

/* Programs are in BUILD/bin and BUILD/fuzz, unit tests in BUILD/test/MODULE, libraries in
 * BUILD/tasks. */
static int find_library(const Task *t, char *path, size_t size, Error *err)
{
    const char *root = getenv("QUERN_REFERENCES");
    if (root && *root) {
        snprintf(path, size, "%s/%s.so", root, t->name);
    } else {
        char self[3072];
        if (process_self_dir(self, sizeof self, err)) return -1;
        struct stat st;
        snprintf(path, size, "%s/../tasks/%s.so", self, t->name);
        if (stat(path, &st)) snprintf(path, size, "%s/../../tasks/%s.so", self, t->name);
    }
    struct stat library, source;
    char source_path[4096];
    if (stat(path, &library))
        return error_set(
            err, ERROR_NOT_FOUND,
            "task %s: its compiled reference was not found (looked for %s): run make build",
            t->name, path);
    snprintf(source_path, sizeof source_path, "%s/reference.c", t->dir);
    if (!stat(source_path, &source) && (library.st_mtim.tv_sec < source.st_mtim.tv_sec ||
                                        (library.st_mtim.tv_sec == source.st_mtim.tv_sec &&
                                         library.st_mtim.tv_nsec < source.st_mtim.tv_nsec)))
        return error_set(err, ERROR_CORRUPT, "task %s: %s is older than %s: run make build",
                         t->name, path, source_path);
    return 0;
}

int task_reference(Task *t, const Workload *w, const double *const *in, double *const *out,
                   Error *err)
{
    if (!t->library) {
        char path[4096];
        if (find_library(t, path, sizeof path, err)) return -1;
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!library) return error_set(err, ERROR_CORRUPT, "task %s: %s", t->name, dlerror());
        if (!dlsym(library, "reference")) {
            dlclose(library);
            return error_set(err, ERROR_CORRUPT, "task %s: %s defines no function \"reference\"",
                             t->name, path);
        }
        t->library = library;
    }
    union {
        void *object;
        Reference *function;
    } symbol = {dlsym(t->library, "reference")};
    symbol.function(w->axis, in, out);
    return 0;
}
