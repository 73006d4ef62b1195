/* The writer: atomic files, with the index after the shards that it names. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "model/core/halves.h"
#include "model/files/safetensors.h"

enum { MAX_HEADER = 100000000, MAX_FILES = 1024 }; /* limits of readers */

static int out_by_name(const void *x, const void *y)
{
    const SafetensorsOut *const *a = x, *const *b = y;
    return strcmp((*a)->name, (*b)->name);
}

static size_t out_elements(const SafetensorsOut *t)
{
    size_t n = 1;
    for (int i = 0; i < t->rank; i++) n *= (size_t)t->shape[i];
    return n;
}

/* Write the header as the reference writer does: metadata first, tensors in the order of their
 * data, and spaces until the data is 8-byte aligned. */
static int render_header(const SafetensorsOut *const *order, size_t n, Dtype stored, Buffer *b,
                         Error *err)
{
    size_t at = 0;
    buffer_puts(b, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (size_t i = 0; i < n; i++) {
        const SafetensorsOut *t = order[i];
        if (i && !strcmp(t->name, order[i - 1]->name))
            return error_set(err, ERROR_INVALID, "tensor %s is given twice", t->name);
        json_t *name = json_string(t->name);
        char *quoted = name ? json_dumps(name, JSON_ENCODE_ANY) : NULL;
        json_decref(name);
        if (!quoted || strlen(t->name) > 255 || t->rank < 0 || t->rank > 8) {
            free(quoted);
            return error_set(err, ERROR_INVALID,
                             "tensor %.300s cannot be written: its name or its rank", t->name);
        }
        size_t bytes = out_elements(t) * dtype_size(stored);
        char shape[200];
        size_t k = 0;
        for (int d = 0; d < t->rank; d++)
            k += (size_t)snprintf(shape + k, sizeof shape - k, "%s%lld", d ? "," : "",
                                  (long long)t->shape[d]);
        shape[k] = 0;
        buffer_printf(b, ",%s:{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}", quoted,
                      dtype_file_name(stored), shape, at, at + bytes);
        free(quoted);
        at += bytes;
    }
    buffer_puts(b, "}");
    while (b->len % 8) buffer_puts(b, " ");
    return b->full ? error_set(err, ERROR_LIMIT,
                               "the header of %zu tensors takes more than %d bytes", n, MAX_HEADER)
                   : 0;
}

/* Convert numbers [first, first + n) to the stored type. */
static void render(const SafetensorsOut *t, size_t first, size_t n, Dtype stored, float *wide,
                   uint16_t *half)
{
    if (t->data)
        memcpy(wide, t->data + first, n * sizeof *wide);
    else
        t->read(t->from, first, n, wide);
    if (stored == DTYPE_F32) return;
    for (size_t i = 0; i < n; i++)
        half[i] = stored == DTYPE_BF16 ? float_to_bf16(wide[i]) : float_to_f16(wide[i]);
}

static int write_data(int fd, const SafetensorsOut *t, Dtype stored, const char *path, Error *err)
{
    enum { PIECE = 1 << 20 };
    size_t n = out_elements(t), piece = n < PIECE ? n : PIECE;
    float *wide = memory_array(piece, sizeof *wide);
    uint16_t *half = memory_array(piece, sizeof *half);
    int rc = 0;
    for (size_t at = 0; at < n && !rc; at += PIECE) {
        size_t k = n - at < PIECE ? n - at : PIECE;
        render(t, at, k, stored, wide, half);
        rc = file_write_all(fd, stored == DTYPE_F32 ? (const void *)wide : half,
                            k * dtype_size(stored), path, err);
    }
    free(wide);
    free(half);
    return rc;
}

int safetensors_write(const char *path, const SafetensorsOut *tensors, size_t n, Dtype stored,
                      Error *err)
{
    if (stored != DTYPE_F32 && stored != DTYPE_BF16 && stored != DTYPE_F16)
        return error_set(err, ERROR_UNSUPPORTED, "%s: only F32, BF16 and F16 are written", path);
    const SafetensorsOut **order = memory_array(n, sizeof *order);
    for (size_t i = 0; i < n; i++) order[i] = &tensors[i];
    qsort(order, n, sizeof *order, out_by_name);
    Buffer header;
    buffer_init(&header, MAX_HEADER);
    char temp[4096];
    int fd = -1,
        rc = render_header(order, n, stored, &header, err) ? error_prefix(err, "%s", path) : 0;
    if (!rc) rc = (fd = file_begin(path, temp, sizeof temp, err)) < 0 ? -1 : 0;
    if (!rc) {
        unsigned char length[8];
        for (int i = 0; i < 8; i++) length[i] = (unsigned char)((uint64_t)header.len >> 8 * i);
        rc = -(file_write_all(fd, length, 8, path, err) ||
               file_write_all(fd, header.data, header.len, path, err));
        for (size_t i = 0; i < n && !rc; i++) rc = write_data(fd, order[i], stored, path, err);
        if (rc)
            file_abandon(fd, temp);
        else
            rc = file_commit(fd, temp, path, err);
    }
    buffer_release(&header);
    free(order);
    return rc;
}

/* ---- the directory of a model ---- */

/* Remove files of an earlier save that this one did not write: model-0000i-of-0000n of another n,
 * or files of the other kind. */
static int remove_others(const char *dir, int files, Error *err)
{
    DIR *d = opendir(dir);
    if (!d) return error_errno(err, "cannot open directory %s", dir);
    int rc = 0;
    for (struct dirent *e; !rc && (e = readdir(d));) {
        int i, n, end = 0;
        int shard = sscanf(e->d_name, "model-%5d-of-%5d.safetensors%n", &i, &n, &end) == 2 && end &&
                    !e->d_name[end];
        int single = !strcmp(e->d_name, "model.safetensors"),
            index = !strcmp(e->d_name, "model.safetensors.index.json");
        if (!(shard && (files == 1 || n != files)) && !(single && files > 1) &&
            !(index && files == 1))
            continue;
        char *path = memory_printf("%s/%s", dir, e->d_name);
        if (unlink(path) && errno != ENOENT) rc = error_errno(err, "cannot remove %s", path);
        free(path);
    }
    closedir(d);
    return rc;
}

/* Assign whole tensors, in order, to files. Returns the number of files. */
static int divide(const SafetensorsOut *tensors, size_t n, Dtype stored, size_t max_bytes,
                  int *file)
{
    size_t used = 0;
    int files = 1;
    for (size_t i = 0; i < n; i++) {
        size_t bytes = out_elements(&tensors[i]) * dtype_size(stored);
        if (used && used + bytes > max_bytes) {
            files++;
            used = 0;
        }
        used += bytes;
        file[i] = files;
    }
    return files;
}

static int write_index(const char *dir, const SafetensorsOut *tensors, size_t n, const int *file,
                       int files, Dtype stored, Error *err)
{
    json_t *map = json_object(), *doc;
    size_t bytes = 0;
    char name[64];
    for (size_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "model-%05d-of-%05d.safetensors", file[i], files);
        json_object_set_new(map, tensors[i].name, json_string(name));
        bytes += out_elements(&tensors[i]) * dtype_size(stored);
    }
    doc = json_pack("{s{sI}so}", "metadata", "total_size", (json_int_t)bytes, "weight_map", map);
    char *text = doc ? json_dumps(doc, JSON_INDENT(2) | JSON_SORT_KEYS) : NULL;
    char *path = memory_printf("%s/model.safetensors.index.json", dir);
    int rc = text ? file_write_atomic(path, text, strlen(text), err)
                  : error_set(err, ERROR_INVALID, "%s: the index cannot be written", path);
    free(path);
    free(text);
    json_decref(doc);
    return rc;
}

int safetensors_write_model(const char *dir, const SafetensorsOut *tensors, size_t n, Dtype stored,
                            size_t max_bytes, Error *err)
{
    int *file = memory_array(n, sizeof *file), files = divide(tensors, n, stored, max_bytes, file),
        rc = 0;
    if (files > MAX_FILES)
        rc = error_set(err, ERROR_LIMIT, "%s: %d files of at most %zu bytes are too many", dir,
                       files, max_bytes);
    size_t at = 0;
    for (int f = 1; f <= files && !rc; f++) {
        size_t k = at;
        while (k < n && file[k] == f) k++;
        char *path = files == 1 ? memory_printf("%s/model.safetensors", dir)
                                : memory_printf("%s/model-%05d-of-%05d.safetensors", dir, f, files);
        rc = safetensors_write(path, tensors + at, k - at, stored, err);
        free(path);
        at = k;
    }
    if (!rc && files > 1) rc = write_index(dir, tensors, n, file, files, stored, err);
    free(file);
    return rc ? rc : remove_others(dir, files, err);
}
