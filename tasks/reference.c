/* References: a graph is executed; others are shared libraries beside the programs, loaded on first
 * use. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/file.h"
#include "base/process.h"
#include "tasks/task_graph.h"

enum { SOURCE_MAX = 1 << 20 };

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
    if (access(path, R_OK))
        return error_set(
            err, ERROR_NOT_FOUND,
            "task %s: its compiled reference was not found (looked for %s): run make build",
            t->name, path);
    return 0;
}

/* Make puts the SHA-256 of reference.c into the library, so that a moved or copied tree is as good as
 * the one that was built. */
static int check_source(const Task *t, void *library, const char *path, Error *err)
{
    char source[4096], hex[DIGEST_HEX];
    Buffer text;
    Digest d;
    const char *built = dlsym(library, "reference_source");
    snprintf(source, sizeof source, "%s/reference.c", t->dir);
    buffer_init(&text, SOURCE_MAX);
    if (file_read(source, SOURCE_MAX, &text, err)) {
        buffer_release(&text);
        return -1;
    }
    digest_of(text.data, text.len, &d);
    digest_hex(&d, hex);
    buffer_release(&text);
    if (!built || !strcmp(built, hex)) return 0;
    return error_set(err, ERROR_INVALID, "task %s: %s was built from another %s: run make build",
                     t->name, path, source);
}

int task_reference(Task *t, const Workload *w, const double *const *in, double *const *out,
                   Error *err)
{
    if (t->graph) return task_graph_reference(t, w, in, out, err);
    if (!t->library) {
        char path[4096];
        if (find_library(t, path, sizeof path, err)) return -1;
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!library) return error_set(err, ERROR_CORRUPT, "task %s: %s", t->name, dlerror());
        if (check_source(t, library, path, err)) {
            dlclose(library);
            return -1;
        }
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
