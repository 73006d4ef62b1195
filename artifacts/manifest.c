/* Files are digested and copied in chunks, since a checkpoint may be larger than memory. */
#include "artifacts/manifest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "artifacts/schema.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/sort.h"

enum { MAX_FILES = 1024, CHUNK = 1 << 20 };

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
    sort_texts(names, (size_t)n);
    if (seen <= MAX_FILES) return n;
    while (n) free(names[--n]);
    return error_set(err, ERROR_LIMIT, "%s: expected at most %d files of a model, found %d", dir,
                     MAX_FILES, seen);
}

static int write_entry(const char *dir, const char *name, ArtifactWriter *w, Error *err)
{
    char path[4096], hex[DIGEST_HEX];
    int64_t bytes = 0;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (file_digest(path, hex, &bytes, err)) return -1;
    Record *r = record_new();
    record_text(r, "name", name);
    record_text(r, "digest", hex);
    record_int(r, "bytes", bytes);
    return artifact_put(w, r, err);
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

/* Checks one file of a model: the digest of its content is what the manifest's record says. */
static int verify_file(void *ctx, const View *v, Error *err)
{
    const char *dir = ctx;
    if (schema_check("manifest", v, err)) return -1;
    char *name = view_strdup(v, "name", err), hex[DIGEST_HEX];
    const char *expected;
    size_t len;
    int rc = name && !view_text(v, "digest", &expected, &len, err) ? 0 : -1;
    char *path = memory_printf("%s/%s", dir, name ? name : "");
    if (!rc && file_digest(path, hex, NULL, err)) {
        rc = -1;
        if (err->code == ERROR_NOT_FOUND)
            error_set(err, ERROR_CORRUPT, "%s is not there, and its manifest names it", path);
    } else if (!rc && (strlen(hex) != len || memcmp(hex, expected, len))) {
        rc = error_set(err, ERROR_CORRUPT, "%s is not what its manifest says", path);
    }
    free(path);
    free(name);
    return rc;
}

int manifest_verify(const char *dir, long *files, Error *err)
{
    char path[4096];
    ArtifactReader *r;
    manifest_path(dir, path);
    if (artifact_open(path, "manifest", &r, err)) return -1;
    int rc = artifact_records(r, verify_file, (void *)(uintptr_t)dir, err);
    if (files) *files = artifact_count(r);
    artifact_close(r);
    return rc;
}

int manifest_check(const char *dir, Error *err)
{
    enum { KEPT = 8 };
    static struct stat seen[KEPT]; /* the manifests of the last models that were whole */
    static int next;
    char path[4096];
    struct stat st;
    manifest_path(dir, path);
    if (stat(path, &st)) return errno == ENOENT ? 0 : error_errno(err, "cannot read %s", path);
    for (int i = 0; i < KEPT; i++)
        if (seen[i].st_ino == st.st_ino && seen[i].st_dev == st.st_dev &&
            seen[i].st_ctim.tv_sec == st.st_ctim.tv_sec &&
            seen[i].st_ctim.tv_nsec == st.st_ctim.tv_nsec)
            return 0;
    if (manifest_verify(dir, NULL, err)) return -1;
    seen[next++ % KEPT] = st;
    return 0;
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
    if (manifest_check(from, err)) return -1; /* the new manifest would hide its damage */
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
