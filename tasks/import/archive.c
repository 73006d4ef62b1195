/* Reads the program and the notes of a .pt2 archive with libzip. */
#include "tasks/import/archive.h"

#include <string.h>
#include <sys/stat.h>
#include <zip.h>

enum { READ_STEP = 1 << 16 };

static int zip_failure(Error *err, const char *name, zip_error_t *e)
{
    ErrorCode code = ERROR_CORRUPT;
    if (zip_error_system_type(e) == ZIP_ET_SYS && zip_error_code_zip(e) != ZIP_ER_NOZIP)
        code = zip_error_code_zip(e) == ZIP_ER_NOENT ? ERROR_NOT_FOUND : ERROR_IO;
    error_set(err, code, "%s: expected a .pt2 archive of torch.export.save: %s", name,
              zip_error_strerror(e));
    zip_error_fini(e);
    return -1;
}

/* Is `name` "FOLDER/tail"? */
static int below_folder(const char *name, const char *tail)
{
    const char *slash = strchr(name, '/');
    return slash && slash != name && !strcmp(slash + 1, tail);
}

static int check_name(const char *file, const char *name, Error *err)
{
    size_t len = strlen(name);
    if (!len || len >= ARCHIVE_MAX_NAME)
        return error_set(err, ERROR_LIMIT, "%s: an entry's name has %zu bytes, 1 to %d expected",
                         file, len, ARCHIVE_MAX_NAME - 1);
    int climbs = !strcmp(name, "..") || !strncmp(name, "../", 3) || strstr(name, "/../") ||
                 (len > 2 && !strcmp(name + len - 3, "/.."));
    if (*name == '/' || *name == '\\' || strchr(name, ':') || climbs)
        return error_set(err, ERROR_CORRUPT,
                         "%s: the entry \"%.200s\" has a path outside of the archive", file, name);
    return 0;
}

static int read_entry(zip_t *z, zip_uint64_t index, const char *file, size_t limit, Buffer *out,
                      Error *err)
{
    zip_stat_t st;
    if (out->len) return error_set(err, ERROR_CORRUPT, "%s: it holds more than one program", file);
    if (zip_stat_index(z, index, 0, &st) || !(st.valid & ZIP_STAT_SIZE))
        return error_set(err, ERROR_CORRUPT, "%s: an entry without a size", file);
    if (st.size > limit)
        return error_set(err, ERROR_LIMIT,
                         "%s: %.200s has %llu bytes unpacked, at most %zu expected", file, st.name,
                         (unsigned long long)st.size, limit);
    zip_file_t *f = zip_fopen_index(z, index, 0);
    if (!f)
        return error_set(err, ERROR_CORRUPT, "%s: %.200s cannot be opened: %s", file, st.name,
                         zip_strerror(z));
    char part[READ_STEP];
    zip_int64_t n;
    int rc = 0;
    buffer_clear(out);
    while ((n = zip_fread(f, part, sizeof part)) > 0)
        if (buffer_append(out, part, (size_t)n)) break;
    if (n < 0)
        rc = error_set(err, ERROR_CORRUPT, "%s: %.200s is damaged: %s", file, st.name,
                       zip_file_strerror(f));
    else if (n > 0 || out->len != st.size)
        rc = error_set(err, ERROR_CORRUPT, "%s: %.200s has another size than the archive says",
                       file, st.name);
    zip_fclose(f);
    return rc;
}

static int read_entries(zip_t *z, const char *file, Archive *out, Error *err)
{
    zip_int64_t n = zip_get_num_entries(z, 0);
    int old = 0;
    if (n < 0 || n > ARCHIVE_MAX_ENTRIES)
        return error_set(err, ERROR_LIMIT, "%s: %lld entries, at most %d expected", file,
                         (long long)n, ARCHIVE_MAX_ENTRIES);
    for (zip_uint64_t i = 0; i < (zip_uint64_t)n; i++) {
        const char *name = zip_get_name(z, i, 0);
        if (!name || check_name(file, name, err))
            return name ? -1
                        : error_set(err, ERROR_CORRUPT, "%s: an entry without a name: %s", file,
                                    zip_strerror(z));
        old |= !strcmp(name, "serialized_exported_program.json");
        int rc = 0;
        if (below_folder(name, "models/model.json"))
            rc = read_entry(z, i, file, ARCHIVE_MAX_PROGRAM, &out->program, err);
        else if (below_folder(name, "extra/quern.json"))
            rc = read_entry(z, i, file, ARCHIVE_MAX_NOTES, &out->notes, err);
        if (rc) return -1;
    }
    if (out->program.len) return 0;
    return error_set(err, old ? ERROR_UNSUPPORTED : ERROR_CORRUPT,
                     old ? "%s: an archive of torch 2.7 or older; export it with torch 2.8 or later"
                         : "%s: no exported program in it; a file of torch.export.save is expected",
                     file);
}

static int read_source(zip_source_t *source, const char *name, Archive *out, Error *err)
{
    zip_error_t e;
    zip_error_init(&e);
    zip_t *z = zip_open_from_source(source, ZIP_RDONLY, &e);
    if (!z) {
        zip_source_free(source);
        return zip_failure(err, name, &e);
    }
    zip_error_fini(&e);
    buffer_init(&out->program, ARCHIVE_MAX_PROGRAM);
    buffer_init(&out->notes, ARCHIVE_MAX_NOTES);
    int rc = read_entries(z, name, out, err);
    zip_discard(z);
    if (rc) archive_release(out);
    return rc;
}

int archive_read(const char *path, Archive *out, Error *err)
{
    zip_error_t e;
    zip_error_init(&e);
    struct stat st;
    if (stat(path, &st)) return error_set(err, ERROR_NOT_FOUND, "there is no file %s", path);
    if (S_ISDIR(st.st_mode)) return error_set(err, ERROR_NOT_FOUND, "%s is a folder", path);
    zip_source_t *source = zip_source_file_create(path, 0, -1, &e);
    if (!source) return zip_failure(err, path, &e);
    zip_error_fini(&e);
    return read_source(source, path, out, err);
}

int archive_read_bytes(const void *data, size_t len, const char *name, Archive *out, Error *err)
{
    zip_error_t e;
    zip_error_init(&e);
    zip_source_t *source = zip_source_buffer_create(data, len, 0, &e);
    if (!source) return zip_failure(err, name, &e);
    zip_error_fini(&e);
    return read_source(source, name, out, err);
}

void archive_release(Archive *a)
{
    buffer_release(&a->program);
    buffer_release(&a->notes);
}
