/* Files are digested and copied in chunks, since a checkpoint may be larger than memory. */
#include "stages/data/manifest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"

enum { MAX_FILES = 1024, CHUNK = 1 << 20 };

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int is_covered(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && (!strcmp(dot, ".json") || !strcmp(dot, ".safetensors") ||
                   !strcmp(dot, ".jinja") || !strcmp(dot, ".txt"));
}

/* Lists the files that the manifest covers, sorted by name. Returns how many, or -1. The caller
 * frees the names. */
static int list_files(const char *dir, char *names[MAX_FILES], Error *err)
{
    DIR *d = opendir(dir);
    if (!d) return error_errno(err, "cannot open directory %s", dir);
    int n = 0, seen = 0;
    for (struct dirent *e; (e = readdir(d));)
        if (is_covered(e->d_name) && ++seen <= MAX_FILES) names[n++] = memory_strdup(e->d_name);
    closedir(d);
    qsort(names, (size_t)n, sizeof *names, by_name);
    if (seen <= MAX_FILES) return n;
    while (n) free(names[--n]);
    return error_set(err, ERROR_LIMIT, "%s: expected at most %d files of a model, found %d", dir,
                     MAX_FILES, seen);
}

static int digest_file(const char *path, char hex[DIGEST_HEX], int64_t *bytes, Error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return error_errno(err, "cannot open %s", path);
    char *chunk = memory_alloc(CHUNK);
    Digester g;
    Digest d;
    ssize_t n;
    *bytes = 0;
    digester_init(&g);
    while ((n = read(fd, chunk, CHUNK)) != 0) {
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) break;
        digester_add(&g, chunk, (size_t)n);
        *bytes += n;
    }
    int rc = n < 0 ? error_errno(err, "cannot read %s", path) : 0;
    digester_finish(&g, &d);
    digest_hex(&d, hex);
    free(chunk);
    close(fd);
    return rc;
}

static int write_entry(const char *dir, const char *name, ArtifactWriter *w, Error *err)
{
    char path[4096], hex[DIGEST_HEX];
    int64_t bytes = 0;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (digest_file(path, hex, &bytes, err)) return -1;
    Record *r = record_new();
    record_text(r, "name", name);
    record_text(r, "digest", hex);
    record_int(r, "bytes", bytes);
    int rc = artifact_write(w, r, err);
    record_free(r);
    return rc;
}

static void manifest_path(const char *dir, char out[4096])
{
    snprintf(out, 4096, "%s/manifest.qa", dir);
}

int manifest_write(const char *dir, const ArtifactSpec *spec, Error *err)
{
    char path[4096];
    char **names = memory_array(MAX_FILES, sizeof *names);
    ArtifactWriter *w = NULL;
    int n = list_files(dir, names, err), rc = n < 0 ? -1 : 0;
    manifest_path(dir, path);
    if (!rc) rc = artifact_create(path, spec, &w, err);
    for (int i = 0; i < n; i++) {
        if (!rc) rc = write_entry(dir, names[i], w, err);
        free(names[i]);
    }
    free(names);
    return artifact_end(w, rc, err);
}

int manifest_remove(const char *dir, Error *err)
{
    char path[4096];
    manifest_path(dir, path);
    return unlink(path) && errno != ENOENT ? error_errno(err, "cannot remove %s", path) : 0;
}

static int copy_file(const char *from, const char *to, Error *err)
{
    char temp[4096];
    int in = open(from, O_RDONLY | O_CLOEXEC), out = -1;
    if (in < 0) return error_errno(err, "cannot open %s", from);
    char *chunk = memory_alloc(CHUNK);
    ssize_t n = -1;
    int rc = (out = file_begin(to, temp, sizeof temp, err)) < 0 ? -1 : 0;
    while (!rc && (n = read(in, chunk, CHUNK)) != 0) {
        if (n < 0 && errno == EINTR) continue;
        rc = n < 0 ? error_errno(err, "cannot read %s", from)
                   : file_write_all(out, chunk, (size_t)n, to, err);
    }
    if (rc && out >= 0) file_abandon(out, temp);
    if (!rc) rc = file_commit(out, temp, to, err);
    free(chunk);
    close(in);
    return rc;
}

int manifest_carry_over(const char *from, const char *dir, const ArtifactSpec *spec, Error *err)
{
    char a[4096], b[4096];
    if (manifest_remove(dir, err) || file_remove_tree(dir, err) || file_mkdirs(dir, err)) return -1;
    char **names = memory_array(MAX_FILES, sizeof *names);
    int n = list_files(from, names, err), rc = n < 0 ? -1 : 0;
    for (int i = 0; i < n; i++) {
        snprintf(a, sizeof a, "%s/%s", from, names[i]);
        snprintf(b, sizeof b, "%s/%s", dir, names[i]);
        if (!rc && link(a, b)) rc = copy_file(a, b, err);
        free(names[i]);
    }
    free(names);
    return rc ? -1 : manifest_write(dir, spec, err);
}

int manifest_input(const char *dir, ArtifactSpec *spec, Error *err)
{
    char path[4096];
    manifest_path(dir, path);
    return artifact_spec_input(spec, path, err);
}

int manifest_same(const char *dir, const ArtifactSpec *spec)
{
    char path[4096];
    manifest_path(dir, path);
    return artifact_same(spec, path);
}

int manifest_digest(const char *dir, char hex[DIGEST_HEX], Error *err)
{
    char path[4096];
    ArtifactReader *r;
    manifest_path(dir, path);
    if (artifact_open(path, "manifest", &r, err)) return -1;
    snprintf(hex, DIGEST_HEX, "%s", artifact_digest(r));
    artifact_close(r);
    return 0;
}
