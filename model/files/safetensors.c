/* The reader maps the files and checks every offset before use: the files are untrusted. */
#include "model/files/safetensors.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/memory.h"
#include "model/core/halves.h"

/* MAX_HEADER is the limit of the format; the others are ours. */
enum { MAX_HEADER = 100000000, MAX_TENSORS = 1 << 18, MAX_SHARDS = 1024, MAX_INDEX = 64 << 20 };

typedef struct {
    void *map;
    size_t size;
    char *file; /* the name in the index, or the path */
} Shard;

typedef struct {
    SafetensorsTensor t;
    int shard;
    size_t begin; /* offset in the data of the shard */
} Entry;

struct Safetensors {
    Shard *shards;
    int n_shards;
    Entry *entries; /* sorted by name */
    size_t n;
};

/* The types of the format that are no Dtype. */
static const struct {
    const char *name;
    size_t bits;
} others[] = {
    {"U16", 16},        {"U32", 32},        {"U64", 64}, {"C64", 64},    {"F8_E8M0", 8},
    {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"F4", 4},   {"F6_E2M3", 6}, {"F6_E3M2", 6},
};

/* ---- reading ---- */

static int parse_offsets(const json_t *spec, const char *where, size_t data_size, Entry *e,
                         Error *err)
{
    json_t *offsets = json_need_array(spec, "data_offsets", where, err);
    if (!offsets) return -1;
    json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end))
        return error_set(err, ERROR_CORRUPT, "%s: data_offsets is expected to be two integers",
                         where);
    json_int_t b = json_integer_value(begin), z = json_integer_value(end);
    if (b < 0 || z < b || (uint64_t)z > data_size)
        return error_set(err, ERROR_CORRUPT,
                         "%s: data_offsets [%lld, %lld] are not within the %zu bytes of data",
                         where, (long long)b, (long long)z, data_size);
    e->begin = (size_t)b;
    e->t.bytes = (size_t)(z - b);
    return 0;
}

static int parse_shape(const json_t *spec, const char *where, Entry *e, Error *err)
{
    json_t *shape = json_need_array(spec, "shape", where, err);
    if (!shape) return -1;
    if (json_array_size(shape) > 8)
        return error_set(err, ERROR_LIMIT, "%s: expected at most 8 dimensions, found %zu", where,
                         json_array_size(shape));
    e->t.rank = (int)json_array_size(shape);
    size_t elements = 1;
    for (int i = 0; i < e->t.rank; i++) {
        json_t *d = json_array_get(shape, (size_t)i);
        if (!json_is_integer(d) || json_integer_value(d) < 0)
            return error_set(err, ERROR_CORRUPT,
                             "%s: shape[%d] is expected to be an integer of at least 0", where, i);
        e->t.shape[i] = json_integer_value(d);
        if (__builtin_mul_overflow(elements, (size_t)e->t.shape[i], &elements))
            return error_set(err, ERROR_CORRUPT, "%s: the product of the shape overflows", where);
    }
    e->t.elements = elements;
    return 0;
}

static int parse_tensor(const char *name, const json_t *spec, const char *file, size_t data_size,
                        Entry *e, Error *err)
{
    char where[400];
    snprintf(where, sizeof where, "%.120s: tensor %.200s", file, name);
    if (strlen(name) >= sizeof e->t.name)
        return error_set(err, ERROR_LIMIT, "%s: a name of more than 255 bytes", where);
    strcpy(e->t.name, name);
    if (!json_is_object(spec))
        return error_set(err, ERROR_CORRUPT, "%s: expected an object", where);
    if (json_object_size(spec) != 3)
        return error_set(err, ERROR_CORRUPT, "%s: expected dtype, shape and data_offsets only",
                         where);
    const char *dtype = json_need_text(spec, "dtype", where, err);
    if (!dtype) return -1;
    e->t.dtype = dtype_of_file_name(dtype);
    size_t bits = e->t.dtype == DTYPES ? 0 : 8 * dtype_size(e->t.dtype);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strcmp(dtype, others[i].name)) bits = others[i].bits;
    if (!bits) return error_set(err, ERROR_CORRUPT, "%s: unknown dtype %.40s", where, dtype);
    if (parse_shape(spec, where, e, err) || parse_offsets(spec, where, data_size, e, err))
        return -1;
    size_t total;
    if (__builtin_mul_overflow(e->t.elements, bits, &total) || total % 8 || total / 8 != e->t.bytes)
        return error_set(err, ERROR_CORRUPT,
                         "%s: %zu elements of %s do not take the %zu bytes of data_offsets", where,
                         e->t.elements, dtype, e->t.bytes);
    return 0;
}

static int by_offset(const void *x, const void *y)
{
    const Entry *a = x, *b = y;
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    return (a->t.bytes > b->t.bytes) - (a->t.bytes < b->t.bytes);
}

static int by_name(const void *x, const void *y)
{
    return strcmp(((const Entry *)x)->t.name, ((const Entry *)y)->t.name);
}

/* Check that the tensors are adjacent: no hole, no overlap, and nothing after the last. */
static int check_layout(Entry *e, size_t n, const char *file, size_t data_size, Error *err)
{
    qsort(e, n, sizeof *e, by_offset);
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        if (e[i].begin != at)
            return error_set(
                err, ERROR_CORRUPT,
                "%s: tensor %s: data_offsets begin at %zu, expected %zu (no hole, no overlap)",
                file, e[i].t.name, e[i].begin, at);
        at += e[i].t.bytes;
    }
    if (at != data_size)
        return error_set(err, ERROR_CORRUPT, "%s: the tensors end at %zu of %zu bytes of data",
                         file, at, data_size);
    return 0;
}

static int check_metadata(const json_t *meta, const char *file, Error *err)
{
    if (!json_is_object(meta))
        return error_set(err, ERROR_CORRUPT, "%s: __metadata__ is expected to be an object", file);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)meta, key, value) if (!json_is_string(value)) return error_set(
        err, ERROR_CORRUPT, "%s: __metadata__.%.100s is expected to be a text", file, key);
    return 0;
}

static int parse_header(Safetensors *s, int shard, const json_t *header, size_t data_at, Error *err)
{
    const Shard *sh = &s->shards[shard];
    size_t data_size = sh->size - data_at, first = s->n, count = json_object_size(header);
    if (count > MAX_TENSORS - s->n)
        return error_set(err, ERROR_LIMIT, "%s: expected at most %d tensors, found %zu", sh->file,
                         MAX_TENSORS, s->n + count);
    s->entries = memory_grow(s->entries, s->n + count, sizeof *s->entries);
    const char *name;
    json_t *spec;
    json_object_foreach((json_t *)header, name, spec)
    {
        if (!strcmp(name, "__metadata__")) {
            if (check_metadata(spec, sh->file, err)) return -1;
            continue;
        }
        Entry *e = &s->entries[s->n];
        memset(e, 0, sizeof *e);
        e->shard = shard;
        if (parse_tensor(name, spec, sh->file, data_size, e, err)) return -1;
        e->t.data = (const char *)sh->map + data_at + e->begin;
        s->n++;
    }
    return check_layout(s->entries + first, s->n - first, sh->file, data_size, err);
}

static int map_file(const char *path, Shard *out, Error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe is refused, not awaited */
    if (fd < 0) return error_errno(err, "cannot open %s", path);
    struct stat st;
    int rc = 0;
    if (fstat(fd, &st))
        rc = error_errno(err, "cannot stat %s", path);
    else if (!S_ISREG(st.st_mode))
        rc = error_set(err, ERROR_CORRUPT, "%s: expected a regular file", path);
    else if (st.st_size < 10)
        rc = error_set(err, ERROR_CORRUPT, "%s: %lld bytes are too few for a safetensors file",
                       path, (long long)st.st_size);
    else {
        void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (map == MAP_FAILED)
            rc = error_errno(err, "cannot map %s", path);
        else
            *out = (Shard){.map = map, .size = (size_t)st.st_size};
    }
    close(fd);
    return rc;
}

/* Open one file. `file` is its name in messages and in the index. */
static int open_shard(Safetensors *s, const char *path, const char *file, Error *err)
{
    Shard sh;
    if (map_file(path, &sh, err)) return -1;
    sh.file = memory_strdup(file);
    s->shards = memory_grow(s->shards, (size_t)s->n_shards + 1, sizeof *s->shards);
    s->shards[s->n_shards++] = sh;
    const unsigned char *p = sh.map;
    uint64_t length = 0;
    for (int i = 7; i >= 0; i--) length = length << 8 | p[i];
    if (length > MAX_HEADER || length > sh.size - 8)
        return error_set(
            err, ERROR_CORRUPT,
            "%s: the header claims %llu bytes, the file has %zu (and the format allows %d)", file,
            (unsigned long long)length, sh.size - 8, MAX_HEADER);
    if (length < 2 || p[8] != '{')
        return error_set(err, ERROR_CORRUPT, "%s: expected '{' at the start of the header", file);
    char where[300];
    snprintf(where, sizeof where, "%.250s: header", file);
    json_t *header = json_read_text((const char *)p + 8, (size_t)length, where, err);
    if (!header) return -1;
    int rc = parse_header(s, s->n_shards - 1, header, 8 + (size_t)length, err);
    json_decref(header);
    return rc;
}

static int sort_names(Safetensors *s, const char *path, Error *err)
{
    qsort(s->entries, s->n, sizeof *s->entries, by_name);
    for (size_t i = 1; i < s->n; i++)
        if (!by_name(&s->entries[i - 1], &s->entries[i]))
            return error_set(err, ERROR_CORRUPT, "%s: tensor %s is in two shards", path,
                             s->entries[i].t.name);
    return 0;
}

static const Entry *find_entry(const Safetensors *s, const char *name)
{
    Entry key;
    if (strlen(name) >= sizeof key.t.name) return NULL;
    strcpy(key.t.name, name);
    return s->n ? bsearch(&key, s->entries, s->n, sizeof *s->entries, by_name) : NULL;
}

static int find_shard(const Safetensors *s, const char *file)
{
    for (int i = 0; i < s->n_shards; i++)
        if (!strcmp(s->shards[i].file, file)) return i;
    return -1;
}

/* Read model.safetensors.index.json: open every file that it names, then find every tensor in its
 * file. */
static int open_index(Safetensors *s, const char *dir, const char *index, Error *err)
{
    json_t *doc = json_read_file(index, MAX_INDEX, err);
    json_t *map = doc ? json_need_object(doc, "weight_map", index, err) : NULL;
    int rc = map ? 0 : -1;
    const char *name;
    json_t *value;
    json_object_foreach(map, name, value)
    {
        const char *file = json_string_value(value);
        if (rc) break;
        if (!file || !*file || strchr(file, '/') || *file == '.')
            rc = error_set(err, ERROR_CORRUPT,
                           "%s: weight_map.%.200s is expected to be a file name", index, name);
        else if (find_shard(s, file) < 0) {
            char path[4096];
            int n = snprintf(path, sizeof path, "%s/%s", dir, file);
            if (s->n_shards == MAX_SHARDS)
                rc =
                    error_set(err, ERROR_LIMIT, "%s: expected at most %d files", index, MAX_SHARDS);
            else if (n < 0 || (size_t)n >= sizeof path)
                rc = error_set(err, ERROR_LIMIT, "%s: path too long: %.200s", index, file);
            else
                rc = open_shard(s, path, file, err);
        }
    }
    if (!rc) rc = sort_names(s, index, err);
    json_object_foreach(map, name, value)
    {
        if (rc) break;
        const Entry *e = find_entry(s, name);
        if (!e || e->shard != find_shard(s, json_string_value(value)))
            rc = error_set(err, ERROR_CORRUPT, "%s: tensor %.200s is not in %.200s", index, name,
                           json_string_value(value));
    }
    json_decref(doc);
    return rc;
}

int safetensors_open(const char *path, Safetensors **out, Error *err)
{
    *out = NULL;
    Safetensors *s = memory_alloc(sizeof *s);
    struct stat st;
    int rc;
    if (stat(path, &st))
        rc = error_errno(err, "cannot open %s", path);
    else if (S_ISDIR(st.st_mode)) {
        char *index = memory_printf("%s/model.safetensors.index.json", path);
        char *single = memory_printf("%s/model.safetensors", path);
        /* As transformers does: a single file goes before an index. */
        if (access(single, F_OK) && !access(index, F_OK))
            rc = open_index(s, path, index, err);
        else
            rc = -(open_shard(s, single, single, err) || sort_names(s, path, err));
        free(index);
        free(single);
    } else
        rc = -(open_shard(s, path, path, err) || sort_names(s, path, err));
    if (rc)
        safetensors_close(s);
    else
        *out = s;
    return rc;
}

void safetensors_close(Safetensors *s)
{
    if (!s) return;
    for (int i = 0; i < s->n_shards; i++) {
        munmap(s->shards[i].map, s->shards[i].size);
        free(s->shards[i].file);
    }
    free(s->shards);
    free(s->entries);
    free(s);
}

size_t safetensors_count(const Safetensors *s)
{
    return s->n;
}

const SafetensorsTensor *safetensors_at(const Safetensors *s, size_t i)
{
    return i < s->n ? &s->entries[i].t : NULL;
}

const SafetensorsTensor *safetensors_find(const Safetensors *s, const char *name)
{
    const Entry *e = find_entry(s, name);
    return e ? &e->t : NULL;
}

static void shape_text(int rank, const int64_t *shape, char *out, size_t size)
{
    size_t at = (size_t)snprintf(out, size, "[");
    for (int i = 0; i < rank && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%lld", i ? ", " : "", (long long)shape[i]);
    if (at < size) snprintf(out + at, size - at, "]");
}

const SafetensorsTensor *safetensors_need(const Safetensors *s, const char *name, int rank,
                                          const int64_t *shape, Error *err)
{
    const Entry *e = find_entry(s, name);
    if (!e) {
        error_set(err, ERROR_CORRUPT, "%s: no tensor %s",
                  s->n_shards ? s->shards[0].file : "safetensors", name);
        return NULL;
    }
    const char *file = s->shards[e->shard].file;
    const SafetensorsTensor *t = &e->t;
    if (t->rank != rank || (rank && memcmp(t->shape, shape, (size_t)rank * sizeof *shape))) {
        char want[200], found[200];
        shape_text(rank, shape, want, sizeof want);
        shape_text(t->rank, t->shape, found, sizeof found);
        error_set(err, ERROR_CORRUPT, "%s: tensor %s: expected the shape %s, found %s", file, name,
                  want, found);
        return NULL;
    }
    if (t->dtype != DTYPES && dtype_is_float(t->dtype) && !dtype_is_float8(t->dtype)) return t;
    error_set(err, ERROR_CORRUPT, "%s: tensor %s: expected F32, BF16, F16 or F64", file, name);
    return NULL;
}

void safetensors_floats(const SafetensorsTensor *t, size_t first, size_t n, float *dst)
{
    const char *p = t->data;
    if (t->dtype == DTYPE_F32)
        memcpy(dst, p + first * sizeof *dst, n * sizeof *dst);
    else if (t->dtype == DTYPE_F64) {
        for (size_t i = 0; i < n; i++) {
            double d;
            memcpy(&d, p + 8 * (first + i), 8);
            dst[i] = (float)d;
        }
    } else {
        for (size_t i = 0; i < n; i++) {
            uint16_t h;
            memcpy(&h, p + 2 * (first + i), 2);
            dst[i] = t->dtype == DTYPE_BF16 ? bf16_to_float(h) : f16_to_float(h);
        }
    }
}

int safetensors_read_f32(const Safetensors *s, const char *name, int rank, const int64_t *shape,
                         float *dst, Error *err)
{
    const SafetensorsTensor *t = safetensors_need(s, name, rank, shape, err);
    if (!t) return -1;
    safetensors_floats(t, 0, t->elements, dst);
    return 0;
}
