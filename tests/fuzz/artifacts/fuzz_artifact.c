/* Foreign bytes as one record, as a whole artifact file, and as a journal. The payload digest of a
 * mutant is put right where the header can be read, so that the reader is passed and records are
 * reached. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "artifacts/artifact.h"
#include "artifacts/journal.h"
#include "artifacts/scan.h"
#include "artifacts/schema.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char target[64], journal[96];

static void clean_up(void)
{
    unlink(target);
    unlink(journal);
}

static void once(void)
{
    if (*target) return;
    setenv("QUERN_LOG", "quiet", 1);
    log_open("fuzz_artifact");
    snprintf(target, sizeof target, "/tmp/quern-fuzz.%ld.qa", (long)getpid());
    snprintf(journal, sizeof journal, "%s.journal", target);
    atexit(clean_up);
}

static void write_plainly(const char *path, const void *data, size_t size)
{
    FILE *f = fopen(path, "wb");
    if (!f) return;
    fwrite(data, 1, size, f);
    fclose(f);
}

/* Every getter on every field, by a wrong type too. */
static void look_at(const View *v)
{
    for (uint32_t i = 0; i < v->map->via.map.size; i++) {
        const msgpack_object_kv *kv = &v->map->via.map.ptr[i];
        char *key = memory_strndup(kv->key.via.str.ptr, kv->key.via.str.size);
        Error err;
        View sub;
        int64_t *ints;
        double *floats, f;
        size_t n;
        const void *p;
        const char *s;
        int b;
        if (!view_ints(v, key, &ints, &n, &err)) free(ints);
        if (!view_floats(v, key, &floats, &n, &err)) free(floats);
        if (!view_map(v, key, &sub, &err)) look_at(&sub);
        if (!view_count(v, key, &n, &err) && n && !view_item(v, key, n - 1, &sub, &err))
            look_at(&sub);
        (void)(view_float(v, key, &f, &err) + view_bytes(v, key, &p, &n, &err) +
               view_text(v, key, &s, &n, &err) + view_bool(v, key, &b, &err));
        free(key);
    }
}

/* What is accepted must encode back to the same bytes or to fewer: lengths may have been written
 * wide. */
static void decode_one(const uint8_t *data, size_t size)
{
    msgpack_zone *zone = msgpack_zone_new(4096);
    View v;
    Error err;
    if (!view_decode(data, size, "fuzz", zone, &v, &err)) {
        look_at(&v);
        for (const char *const *k = (const char *const[]){"samples", "verdicts", "prompts", NULL};
             *k; k++)
            schema_check(*k, &v, &err);
        int embedded_nul = 0; /* keys with a NUL cannot go through the C-string interface */
        for (uint32_t i = 0; i < v.map->via.map.size; i++)
            embedded_nul |= memchr(v.map->via.map.ptr[i].key.via.str.ptr, 0,
                                   v.map->via.map.ptr[i].key.via.str.size) != NULL;
        Record *r = record_new();
        Buffer out;
        buffer_init(&out, 1 << 22);
        if (!embedded_nul) {
            record_copy(r, &v);
            if (record_encode(r, &out, &err) || out.len > size) abort();
        }
        buffer_release(&out);
        record_free(r);
    }
    msgpack_zone_free(zone);
}

static int replay(void *ctx, const void *payload, size_t len, Error *err)
{
    (void)ctx, (void)err;
    decode_one(payload, len);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ArtifactReader *r;
    Journal *j;
    ArtifactSpec spec;
    View v;
    Error err;
    once();
    decode_one(data, size);
    if (random_hash(data, size) % 8)
        return 0; /* files are slow: most inputs are tried as bytes only */
    uint8_t *fixed = malloc(size ? size : 1);
    memcpy(fixed, data, size);
    size_t used;
    uint8_t *digest = memmem(fixed, size,
                             "\xa6"
                             "digest\xd9\x40",
                             9);
    if (!scan_record(data, size, "fuzz", &used, &err) && digest &&
        (size_t)(digest - fixed) + 9 + 64 <= used) {
        Digest d;
        char hex[DIGEST_HEX];
        digest_of(fixed + used, size - used, &d);
        digest_hex(&d, hex);
        memcpy(digest + 9, hex, 64);
    }
    write_plainly(target, fixed, size);
    free(fixed);
    if (!artifact_open(target, NULL, &r, &err)) {
        while (artifact_next(r, &v, &err) == 1) look_at(&v);
        artifact_close(r);
    }
    artifact_spec_init(&spec, "metrics", "fuzz");
    (void)artifact_spec_input(&spec, target, &err);
    artifact_spec_release(&spec);
    artifact_spec_init(&spec, "metrics", "fuzz");
    write_plainly(journal, data, size);
    if (!journal_open(target, &spec, replay, NULL, &j, &err)) journal_remove(j, &err);
    return 0;
}
