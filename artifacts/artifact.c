/* Reading and writing artifacts. Every record is checked against its schema on both sides. */
#include "artifacts/artifact.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "artifacts/scan.h"
#include "artifacts/schema.h"
#include "base/file.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/version.h"

/* ---- the payload as it is stored: records repeat their texts, and zlib takes a tenth to a twentieth of
 * them ---- */

enum { PACK_LEAST = 64 << 10, LEVEL = 6, MAX_RATIO = 1032 /* of deflate */, SLACK = 64 };

/* Packs into *out, an initialised buffer. Returns 1 when it is worth it, else 0. Equal bytes give equal bytes
 * with one version of zlib. */
static int pack_payload(const void *data, size_t len, Buffer *out)
{
    if (len < PACK_LEAST || len > UINT_MAX / 2) return 0;
    uLongf size = compressBound((uLong)len);
    unsigned char *packed = memory_alloc(size);
    int worth = compress2(packed, &size, data, (uLong)len, LEVEL) == Z_OK && size < len / 8 * 7 &&
                !buffer_append(out, packed, size);
    free(packed);
    return worth;
}

/* Unpacks into *out, an initialised buffer, exactly `expected` bytes, which the packed bytes must be able to
 * hold. `where` begins the error's sentence. */
static int unpack_payload(const void *data, size_t len, size_t expected, const char *where,
                          Buffer *out, Error *err)
{
    if (expected > len * MAX_RATIO + SLACK || expected > out->max)
        return error_set(err, ERROR_CORRUPT,
                         "%s, header, field packed: %zu bytes are claimed, which %zu packed bytes "
                         "cannot hold",
                         where, expected, len);
    unsigned char *bytes = memory_alloc(expected + 1);
    uLongf size = (uLongf)expected;
    int rc = uncompress(bytes, &size, data, (uLong)len);
    if (rc != Z_OK || size != expected)
        error_set(err, ERROR_CORRUPT, "%s: the packed records are damaged (zlib: %s)", where,
                  rc == Z_OK ? "fewer bytes than claimed" : zError(rc));
    else
        buffer_append(out, bytes, expected);
    free(bytes);
    return rc == Z_OK && size == expected ? 0 : -1;
}

static const char MAGIC[] = "quern";
enum { MAX_HEADER = 1 << 20, MIN_RECORD = 1 };
#define MAX_ARTIFACT ((size_t)4 << 30)

/* ---- the spec ---- */

void artifact_spec_init(ArtifactSpec *s, const char *kind, const char *producer)
{
    *s = (ArtifactSpec){.kind = kind, .producer = producer};
}

void artifact_spec_release(ArtifactSpec *s)
{
    for (int i = 0; i < s->n_config; i++) {
        free(s->config[i].key);
        free(s->config[i].value);
    }
    for (int i = 0; i < s->n_inputs; i++) free(s->inputs[i].path);
    *s = (ArtifactSpec){0};
}

/* Keeps the settings sorted by key, so that the digest does not depend on the order of calls. */
void artifact_spec_config(ArtifactSpec *s, const char *key, const char *fmt, ...)
{
    if (s->n_config == ARTIFACT_MAX_CONFIG) {
        fprintf(stderr, "quern: more than %d configuration values\n", ARTIFACT_MAX_CONFIG);
        abort();
    }
    va_list ap;
    va_start(ap, fmt);
    char *value;
    int n = vasprintf(&value, fmt, ap);
    va_end(ap);
    if (n < 0) value = memory_strdup("");
    int at = s->n_config++;
    for (; at > 0 && strcmp(s->config[at - 1].key, key) > 0; at--)
        s->config[at] = s->config[at - 1];
    s->config[at].key = memory_strdup(key);
    s->config[at].value = value;
}

void artifact_spec_input_digest(ArtifactSpec *s, const char *path, const char *hex)
{
    if (s->n_inputs == ARTIFACT_MAX_INPUTS) {
        fprintf(stderr, "quern: more than %d inputs\n", ARTIFACT_MAX_INPUTS);
        abort();
    }
    int i = s->n_inputs++;
    s->inputs[i].path = memory_strdup(path);
    snprintf(s->inputs[i].digest, sizeof s->inputs[i].digest, "%s", hex);
}

static void add_text(Digester *d, const char *s)
{
    digester_add_field(d, s, strlen(s));
}

void artifact_spec_digest(const ArtifactSpec *s, Digest *out)
{
    Digester d;
    char versions[64];
    snprintf(versions, sizeof versions, "%d %d %s", ARTIFACT_FORMAT, schema_version(s->kind),
             quern_version);
    digester_init(&d);
    add_text(&d, versions);
    add_text(&d, s->kind);
    add_text(&d, s->producer);
    for (int i = 0; i < s->n_config; i++) {
        add_text(&d, s->config[i].key);
        add_text(&d, s->config[i].value);
    }
    add_text(&d, "inputs"); /* separates the settings from the inputs */
    for (int i = 0; i < s->n_inputs; i++) add_text(&d, s->inputs[i].digest);
    digester_finish(&d, out);
}

/* ---- the header ---- */

static void fill_header(Record *r, const ArtifactSpec *s, long count, const char *digest,
                        int64_t packed)
{
    record_text(r, "magic", MAGIC);
    record_int(r, "format", ARTIFACT_FORMAT);
    record_text(r, "kind", s->kind);
    record_int(r, "schema", schema_version(s->kind));
    record_text(r, "producer", s->producer);
    record_text(r, "version", quern_version);
    Record *config = record_map(r, "config");
    for (int i = 0; i < s->n_config; i++) record_text(config, s->config[i].key, s->config[i].value);
    for (int i = 0; i < s->n_inputs; i++) {
        Record *input = record_item(r, "inputs");
        record_text(input, "path", s->inputs[i].path);
        record_text(input, "digest", s->inputs[i].digest);
    }
    if (!s->n_inputs) record_texts(r, "inputs", NULL, 0);
    record_int(r, "count", count);
    record_text(r, "digest", digest);
    if (packed) record_int(r, "packed", packed);
}

/* Checks that the header has every field, of the right type and of a version that this program reads. */
static int check_header(const View *h, Error *err)
{
    int64_t format, schema, count;
    View config;
    size_t n;
    const char *s;
    if (!view_text_is(h, "magic", MAGIC))
        return error_set(err, ERROR_CORRUPT,
                         "%s: expected a Quern artifact (magic \"quern\"), found another file",
                         h->where);
    if (view_int(h, "format", &format, err)) return -1;
    if (format != ARTIFACT_FORMAT)
        return error_set(
            err, ERROR_CORRUPT,
            "%s, field format: expected %d, found %lld: written by another version of Quern",
            h->where, ARTIFACT_FORMAT, (long long)format);
    if (view_text(h, "kind", &s, &n, err) || view_int(h, "schema", &schema, err) ||
        view_text(h, "producer", &s, &n, err) || view_text(h, "version", &s, &n, err) ||
        view_map(h, "config", &config, err) || view_count(h, "inputs", &n, err) ||
        view_int(h, "count", &count, err))
        return -1;
    for (size_t i = 0; i < n; i++) {
        View input;
        size_t len;
        if (view_item(h, "inputs", i, &input, err) || view_text(&input, "path", &s, &len, err) ||
            view_text(&input, "digest", &s, &len, err))
            return -1;
    }
    char *kind = view_strdup(h, "kind", err);
    int known = schema_version(kind);
    int rc = 0;
    if (!known)
        rc = error_set(err, ERROR_CORRUPT, "%s, field kind: '%s' is no kind of artifact", h->where,
                       kind);
    else if (schema != known)
        rc = error_set(err, ERROR_CORRUPT,
                       "%s, field schema: expected version %d of '%s', found %lld", h->where, known,
                       kind, (long long)schema);
    free(kind);
    if (rc) return rc;
    if (count < 0)
        return error_set(err, ERROR_CORRUPT, "%s, field count: expected 0 or more, found %lld",
                         h->where, (long long)count);
    if (view_text(h, "digest", &s, &n, err)) return -1;
    if (n != DIGEST_HEX - 1)
        return error_set(err, ERROR_CORRUPT,
                         "%s, field digest: expected %d hex digits, found %zu bytes", h->where,
                         DIGEST_HEX - 1, n);
    return 0;
}

/* Decodes and checks the header at the start of data. Sets *used to its length. */
static int decode_header(const char *path, const void *data, size_t len, msgpack_zone *zone,
                         View *out, size_t *used, Error *err)
{
    char where[sizeof out->where];
    snprintf(where, sizeof where, "%s, header", path);
    if (!len)
        return error_set(err, ERROR_CORRUPT, "%s: expected a Quern artifact, found an empty file",
                         path);
    if (scan_record(data, len, where, used, err) || view_decode(data, *used, where, zone, out, err))
        return -1;
    return check_header(out, err);
}

/* ---- writing ---- */

struct ArtifactWriter {
    char *path;
    const ArtifactSpec *spec;
    Buffer payload;
    long count;
    Digester digester;
    msgpack_zone zone; /* holds one record while it is checked */
    Record *header;
};

int artifact_create(const char *path, const ArtifactSpec *spec, ArtifactWriter **out, Error *err)
{
    if (!schema_version(spec->kind))
        return error_set(err, ERROR_CORRUPT, "%s: '%s' is no kind of artifact", path, spec->kind);
    /* A folder that cannot be written is reported before the work, not after it. */
    char *dir = memory_strdup(path), *slash = strrchr(dir, '/');
    if (slash) slash[slash == dir] = 0;
    int bad = access(slash ? dir : ".", W_OK);
    free(dir);
    if (bad) return error_errno(err, "cannot write in the directory of %s", path);
    ArtifactWriter *w = memory_alloc(sizeof *w);
    if (!msgpack_zone_init(&w->zone, MSGPACK_ZONE_CHUNK_SIZE)) {
        free(w);
        return error_set(err, ERROR_MEMORY, "out of memory for %s", path);
    }
    w->path = memory_strdup(path);
    w->spec = spec;
    buffer_init(&w->payload, MAX_ARTIFACT);
    digester_init(&w->digester);
    w->header = record_new();
    *out = w;
    return 0;
}

Record *artifact_summary(ArtifactWriter *w)
{
    return record_map(w->header, "summary");
}

/* Checks the record that begins at payload[start]. Removes it again if it is wrong. */
static int accept_record(ArtifactWriter *w, size_t start, Error *err)
{
    char where[256];
    View v;
    snprintf(where, sizeof where, "%s, record %ld", w->path, w->count);
    const char *data = w->payload.data + start;
    size_t len = w->payload.len - start;
    int rc = view_decode(data, len, where, &w->zone, &v, err)
                 ? -1
                 : schema_check(w->spec->kind, &v, err);
    msgpack_zone_clear(&w->zone);
    if (rc) {
        w->payload.len = start;
        w->payload.data[start] = 0;
        return -1;
    }
    digester_add(&w->digester, data, len);
    w->count++;
    return 0;
}

int artifact_write(ArtifactWriter *w, const Record *r, Error *err)
{
    size_t start = w->payload.len;
    if (record_encode(r, &w->payload, err))
        return error_prefix(err, "%s, record %ld", w->path, w->count);
    return accept_record(w, start, err);
}

int artifact_put(ArtifactWriter *w, Record *r, Error *err)
{
    int rc = artifact_write(w, r, err);
    record_free(r);
    return rc;
}

int artifact_write_encoded(ArtifactWriter *w, const void *data, size_t len, Error *err)
{
    size_t start = w->payload.len;
    if (buffer_append(&w->payload, data, len))
        return error_set(err, ERROR_LIMIT, "%s, record %ld: more than %zu bytes of records",
                         w->path, w->count, w->payload.max);
    return accept_record(w, start, err);
}

static void free_writer(ArtifactWriter *w)
{
    buffer_release(&w->payload);
    msgpack_zone_destroy(&w->zone);
    record_free(w->header);
    free(w->path);
    free(w);
}

int artifact_finish(ArtifactWriter *w, Error *err)
{
    Digest digest;
    char hex[DIGEST_HEX], temp[4096];
    digester_finish(&w->digester, &digest);
    digest_hex(&digest, hex);
    Buffer header, packed;
    buffer_init(&header, MAX_HEADER);
    buffer_init(&packed, MAX_ARTIFACT);
    int is_packed = pack_payload(w->payload.data, w->payload.len, &packed);
    const Buffer *payload = is_packed ? &packed : &w->payload;
    fill_header(w->header, w->spec, w->count, hex, is_packed ? (int64_t)w->payload.len : 0);
    int rc = record_encode(w->header, &header, err) ? error_prefix(err, "%s, header", w->path) : 0;
    int fd = rc ? -1 : file_begin(w->path, temp, sizeof temp, err);
    if (fd < 0) {
        rc = -1;
    } else if (file_write_all(fd, header.data, header.len, temp, err) ||
               file_write_all(fd, payload->data, payload->len, temp, err)) {
        file_abandon(fd, temp);
        rc = -1;
    } else {
        rc = file_commit(fd, temp, w->path, err);
    }
    buffer_release(&header);
    buffer_release(&packed);
    free_writer(w);
    return rc;
}

void artifact_abandon(ArtifactWriter *w)
{
    if (!w) return;
    Digest unused;
    digester_finish(&w->digester, &unused);
    free_writer(w);
}

int artifact_end(ArtifactWriter *w, int rc, Error *err)
{
    if (!rc) return artifact_finish(w, err);
    artifact_abandon(w);
    return -1;
}

/* ---- reading ---- */

struct ArtifactReader {
    char *path;
    Buffer data;   /* the header and the records; of a packed file the records alone */
    Buffer packed; /* a packed file, of which the header is a view */
    msgpack_zone *zone;
    View header;
    char digest[DIGEST_HEX];
    size_t *offsets; /* count + 1 of them */
    long count, next;
};

void artifact_close(ArtifactReader *r)
{
    if (!r) return;
    if (r->zone) msgpack_zone_free(r->zone);
    buffer_release(&r->data);
    buffer_release(&r->packed);
    free(r->offsets);
    free(r->path);
    free(r);
}

/* Finds where each record begins by walking the structure of the payload, without decoding values. */
static int find_records(ArtifactReader *r, size_t start, Error *err)
{
    int64_t count;
    if (view_int(&r->header, "count", &count, err)) return -1;
    size_t left = r->data.len - start;
    if ((uint64_t)count > left / MIN_RECORD)
        return error_set(err, ERROR_CORRUPT,
                         "%s, header, field count: %lld records are claimed, %zu bytes are present",
                         r->path, (long long)count, left);
    r->count = (long)count;
    r->offsets = memory_array((size_t)count + 1, sizeof *r->offsets);
    r->offsets[0] = start;
    for (long i = 0; i < r->count; i++) {
        char where[256];
        size_t used, at = r->offsets[i];
        snprintf(where, sizeof where, "%s, record %ld", r->path, i);
        if (scan_record(r->data.data + at, r->data.len - at, where, &used, err)) return -1;
        r->offsets[i + 1] = at + used;
    }
    size_t end = r->offsets[r->count];
    if (end != r->data.len)
        return error_set(err, ERROR_CORRUPT, "%s: %zu bytes follow the last of %ld records",
                         r->path, r->data.len - end, r->count);
    return 0;
}

static int check_digest(ArtifactReader *r, Error *err)
{
    Digest d;
    size_t start = r->offsets[0];
    digest_of(r->data.data + start, r->data.len - start, &d);
    digest_hex(&d, r->digest);
    if (view_text_is(&r->header, "digest", r->digest)) return 0;
    return error_set(
        err, ERROR_CORRUPT,
        "%s, header, field digest: the payload's digest is %s, the header says another: damaged",
        r->path, r->digest);
}

/* Moves the file to r->packed and its records to r->data. */
static int unpack(ArtifactReader *r, size_t start, Error *err)
{
    int64_t bytes;
    if (view_int(&r->header, "packed", &bytes, err)) return -1;
    r->packed = r->data;
    buffer_init(&r->data, MAX_ARTIFACT);
    return unpack_payload(r->packed.data + start, r->packed.len - start,
                          bytes < 0 ? SIZE_MAX : (size_t)bytes, r->path, &r->data, err);
}

/* Reads the header at the beginning of r->data. */
static int open_header(ArtifactReader *r, const char *kind, size_t *used, Error *err)
{
    if (!r->zone) return error_set(err, ERROR_MEMORY, "out of memory for %s", r->path);
    if (decode_header(r->path, r->data.data, r->data.len, r->zone, &r->header, used, err))
        return -1;
    if (!kind || view_text_is(&r->header, "kind", kind)) return 0;
    char *found = view_strdup(&r->header, "kind", err);
    error_set(err, ERROR_CORRUPT, "%s: expected an artifact of kind '%s', found '%s'", r->path,
              kind, found);
    free(found);
    return -1;
}

static int open_reader(ArtifactReader *r, const char *path, const char *kind, Error *err)
{
    size_t used;
    if (file_read(path, MAX_ARTIFACT, &r->data, err) || open_header(r, kind, &used, err)) return -1;
    if (view_has(&r->header, "packed")) {
        if (unpack(r, used, err)) return -1;
        used = 0;
    }
    return find_records(r, used, err) ? -1 : check_digest(r, err);
}

/* Makes a reader for a path that has no end to be waited for: no device and no pipe but a shell's. */
static ArtifactReader *new_reader(const char *path, Error *err)
{
    struct stat st;
    if (strcmp(path, "-") && strncmp(path, "/dev/fd/", 8) && !stat(path, &st) &&
        (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode) || S_ISFIFO(st.st_mode))) {
        error_set(err, ERROR_CORRUPT, "%s: expected a file, found a device or a pipe", path);
        return NULL;
    }
    ArtifactReader *r = memory_alloc(sizeof *r);
    r->path = memory_strdup(file_label(path));
    buffer_init(&r->data, 0);
    buffer_init(&r->packed, 0);
    r->zone = msgpack_zone_new(1 << 16);
    return r;
}

int artifact_open(const char *path, const char *kind, ArtifactReader **out, Error *err)
{
    ArtifactReader *r = new_reader(path, err);
    if (r && !open_reader(r, path, kind, err)) {
        *out = r;
        return 0;
    }
    artifact_close(r);
    return -1;
}

int artifact_peek(const char *path, const char *kind, ArtifactReader **out, Error *err)
{
    ArtifactReader *r = new_reader(path, err);
    FILE *f = r ? fopen(path, "rbe") : NULL;
    if (!f) {
        artifact_close(r);
        return r ? error_errno(err, "cannot open %s", path) : -1;
    }
    char *front = memory_alloc(MAX_HEADER);
    size_t used, n = fread(front, 1, MAX_HEADER, f);
    int rc = ferror(f) ? error_errno(err, "cannot read %s", path) : 0;
    fclose(f);
    buffer_init(&r->data, MAX_HEADER);
    if (!rc) rc = -(buffer_append(&r->data, front, n) || open_header(r, kind, &used, err));
    free(front);
    if (rc)
        artifact_close(r);
    else
        *out = r;
    return rc;
}

int artifact_spec_input(ArtifactSpec *s, const char *path, Error *err)
{
    ArtifactReader *r;
    if (artifact_peek(path, NULL, &r, err)) return -1;
    char *digest = view_strdup(&r->header, "digest", err);
    artifact_spec_input_digest(s, path, digest);
    free(digest);
    artifact_close(r);
    return 0;
}

long artifact_count(const ArtifactReader *r)
{
    return r->count;
}

const View *artifact_header(const ArtifactReader *r)
{
    return &r->header;
}

const char *artifact_digest(const ArtifactReader *r)
{
    return r->digest;
}

int artifact_next(ArtifactReader *r, View *out, Error *err)
{
    if (r->next == r->count) return 0;
    char where[sizeof out->where];
    snprintf(where, sizeof where, "%s, record %ld", r->path, r->next);
    size_t at = r->offsets[r->next];
    if (view_decode(r->data.data + at, r->offsets[r->next + 1] - at, where, r->zone, out, err))
        return -1;
    r->next++;
    return 1;
}

int artifact_records(ArtifactReader *r, ArtifactEach *each, void *ctx, Error *err)
{
    View v;
    int rc = 0, more = 0;
    while (!rc && (more = artifact_next(r, &v, err)) == 1) rc = each(ctx, &v, err);
    return rc < 0 || more < 0 ? -1 : 0;
}

int artifact_each(const char *path, const char *kind, ArtifactEach *each, void *ctx, Error *err)
{
    ArtifactReader *r;
    if (artifact_open(path, kind, &r, err)) return -1;
    int rc = artifact_records(r, each, ctx, err);
    artifact_close(r);
    return rc;
}

int artifact_raw(const ArtifactReader *r, long index, const void **data, size_t *len)
{
    if (index < 0 || index >= r->next) return -1;
    *data = r->data.data + r->offsets[index];
    *len = r->offsets[index + 1] - r->offsets[index];
    return 0;
}

/* ---- the same work? ---- */

/* Compares the reader's header with the one that this spec would write, field by field as bytes.
 * Paths of inputs may differ, their digests may not. */
int artifact_matches(const ArtifactReader *r, const ArtifactSpec *s)
{
    ArtifactSpec found;
    View config, input;
    size_t n = 0;
    char *kind = view_strdup(&r->header, "kind", NULL),
         *producer = view_strdup(&r->header, "producer", NULL);
    artifact_spec_init(&found, kind, producer);
    int same = view_text_is(&r->header, "version", quern_version) &&
               !view_map(&r->header, "config", &config, NULL) &&
               config.map->via.map.size == (uint32_t)s->n_config &&
               !view_count(&r->header, "inputs", &n, NULL) && n == (size_t)s->n_inputs;
    for (int i = 0; same && i < s->n_config; i++) {
        char *value = view_strdup(&config, s->config[i].key, NULL);
        if (value) artifact_spec_config(&found, s->config[i].key, "%s", value);
        same = value != NULL;
        free(value);
    }
    for (size_t i = 0; same && i < n; i++) {
        same = !view_item(&r->header, "inputs", i, &input, NULL);
        char *digest = same ? view_strdup(&input, "digest", NULL) : NULL;
        if (digest) artifact_spec_input_digest(&found, "", digest);
        free(digest);
    }
    Digest a, b;
    artifact_spec_digest(&found, &a);
    artifact_spec_digest(s, &b);
    artifact_spec_release(&found);
    free(kind);
    free(producer);
    return same && !memcmp(a.bytes, b.bytes, sizeof a.bytes);
}

/* Removes the journal that a process leaves if it is killed between the commit of its target and the
 * removal of the journal. A journal that begins with another digest, or that is being written, stays. */
static void remove_left_journal(const ArtifactSpec *s, const char *path)
{
    char *journal = memory_printf("%s.journal", path);
    unsigned char begins[4 + DIGEST_BYTES]; /* length and payload of the first record */
    static const unsigned char length[4] = {DIGEST_BYTES};
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    Digest d;
    artifact_spec_digest(s, &d);
    int fd = open(journal, O_RDWR | O_CLOEXEC);
    if (fd >= 0 && !fcntl(fd, F_SETLK, &l) &&
        read(fd, begins, sizeof begins) == (ssize_t)sizeof begins &&
        !memcmp(begins, length, sizeof length) &&
        !memcmp(begins + sizeof length, d.bytes, sizeof d.bytes) && !unlink(journal))
        log_info("%s: removed: the target is whole", journal);
    if (fd >= 0) close(fd);
    free(journal);
}

/* Whether the header names other paths of inputs than the spec: after the run was moved, or a damage. */
static int has_other_paths(const ArtifactReader *r, const ArtifactSpec *s)
{
    int other = 0;
    for (int i = 0; i < s->n_inputs && !other; i++) {
        View input;
        other = view_item(&r->header, "inputs", (size_t)i, &input, NULL) ||
                !view_text_is(&input, "path", s->inputs[i].path);
    }
    return other;
}

/* Writes the same records below the header of this spec. */
static int write_again(ArtifactReader *r, const ArtifactSpec *s, const char *path, Error *err)
{
    ArtifactWriter *w;
    if (artifact_create(path, s, &w, err)) return -1;
    int rc = 0;
    for (long i = 0; i < r->count && !rc; i++)
        rc = artifact_write_encoded(w, r->data.data + r->offsets[i],
                                    r->offsets[i + 1] - r->offsets[i], err);
    return artifact_end(w, rc, err);
}

int artifact_same(const ArtifactSpec *s, const char *path)
{
    if (!file_exists(path)) return 0;
    ArtifactReader *r;
    Error err;
    if (artifact_open(path, NULL, &r, &err)) {
        log_info("%s; making it again", err.text);
        return 0;
    }
    int same = artifact_matches(r, s);
    if (same && has_other_paths(r, s)) /* only its maker knows a summary */
        same = !view_has(&r->header, "summary") && !write_again(r, s, path, &err);
    artifact_close(r);
    if (!same || file_touch(path, &err)) return 0;
    remove_left_journal(s, path);
    log_info("%s: same", path);
    return 1;
}
