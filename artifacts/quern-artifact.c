/* quern-artifact: print, check, export and compare artifacts. */
#include <math.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "artifacts/artifact.h"
#include "artifacts/manifest.h"
#include "artifacts/schema.h"
#include "base/file.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"

enum { SHOWN_BYTES = 100, SHOWN_ELEMENTS = 6 };

/* ---- values as text ---- */

/* Prints the shortest decimal that reads back as the same double, with a point or an exponent. */
static void print_float(double v)
{
    char s[40];
    if (!isfinite(v)) {
        printf("\"%s\"", isnan(v) ? "NaN" : v > 0 ? "Infinity" : "-Infinity");
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(s, sizeof s, "%.*g", digits, v);
        if (strtod(s, NULL) == v) break;
    }
    printf("%s%s", s, strpbrk(s, ".e") ? "" : ".0");
}

/* Returns the length of the UTF-8 sequence at s. Returns 0 if it is overlong, cut, a surrogate or too
 * large. */
static size_t utf8_length(const unsigned char *s, size_t n)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t len = s[0] < 0x80                   ? 1
                 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2
                 : s[0] >= 0xe0 && s[0] < 0xf0 ? 3
                 : s[0] >= 0xf0 && s[0] < 0xf5 ? 4
                                               : 0;
    if (len == 0 || len > n) return 0;
    uint32_t c = len == 1 ? s[0] : s[0] & (0x7fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0;
        c = c << 6 | (s[i] & 0x3f);
    }
    return c < least[len] || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff ? 0 : len;
}

/* Prints a JSON string. Bytes that are not UTF-8 become U+FFFD, and no control character passes. */
static void print_text(const char *text, size_t n)
{
    const unsigned char *s = (const unsigned char *)text;
    putchar('"');
    for (size_t i = 0; i < n;) {
        size_t len = utf8_length(s + i, n - i);
        if (len == 0) {
            fputs("\\ufffd", stdout);
            i++;
            continue;
        }
        unsigned char c = s[i];
        if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c == '\n')
            fputs("\\n", stdout);
        else if (c == '\t')
            fputs("\\t", stdout);
        else if (c < 0x20 || c == 0x7f || (c == 0xc2 && s[i + 1] < 0xa0))
            printf("\\u%04x", c == 0xc2 ? s[i + 1] : c);
        else
            fwrite(s + i, 1, len, stdout);
        i += len;
    }
    putchar('"');
}

static void print_bytes(const char *data, size_t n)
{
    putchar('"');
    for (size_t i = 0;
         i < n;) { /* chunks are multiples of three bytes, so that only the last one is padded */
        unsigned char out[4096 + 1];
        int part = n - i > 3072 ? 3072 : (int)(n - i);
        EVP_EncodeBlock(out, (const unsigned char *)data + i, part);
        fputs((char *)out, stdout);
        i += (size_t)part;
    }
    putchar('"');
}

/* Prints a value as JSON. `brief` shortens long texts, bytes and lists and gives their length. */
static void print_value(const msgpack_object *o, int brief);

static void print_list(const msgpack_object_array *a, int brief)
{
    uint32_t shown = brief && a->size > SHOWN_ELEMENTS ? SHOWN_ELEMENTS : a->size;
    putchar('[');
    for (uint32_t i = 0; i < shown; i++) {
        if (i) putchar(',');
        print_value(&a->ptr[i], brief);
    }
    if (shown < a->size) printf(",... %u in all", a->size);
    putchar(']');
}

static void print_map(const msgpack_object_map *m, int brief)
{
    putchar('{');
    for (uint32_t i = 0; i < m->size; i++) {
        if (i) putchar(',');
        print_text(m->ptr[i].key.via.str.ptr, m->ptr[i].key.via.str.size);
        putchar(':');
        print_value(&m->ptr[i].val, brief);
    }
    putchar('}');
}

static void print_value(const msgpack_object *o, int brief)
{
    size_t n = o->via.str.size, shown = brief && n > SHOWN_BYTES ? SHOWN_BYTES : n;
    switch (o->type) {
    case MSGPACK_OBJECT_BOOLEAN: fputs(o->via.boolean ? "true" : "false", stdout); break;
    case MSGPACK_OBJECT_POSITIVE_INTEGER: printf("%llu", (unsigned long long)o->via.u64); break;
    case MSGPACK_OBJECT_NEGATIVE_INTEGER: printf("%lld", (long long)o->via.i64); break;
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64: print_float(o->via.f64); break;
    case MSGPACK_OBJECT_STR:
        while (shown < n && shown && (o->via.str.ptr[shown] & 0xc0) == 0x80)
            shown--; /* never cut inside a character */
        print_text(o->via.str.ptr, shown);
        if (shown < n) printf("... %zu bytes", n);
        break;
    case MSGPACK_OBJECT_BIN:
        print_bytes(o->via.bin.ptr, shown);
        if (shown < n) printf("... %zu bytes", n);
        break;
    case MSGPACK_OBJECT_ARRAY: print_list(&o->via.array, brief); break;
    case MSGPACK_OBJECT_MAP: print_map(&o->via.map, brief); break;
    default: fputs("null", stdout);
    }
}

/* ---- the commands; each returns the exit status ---- */

static int complain(const Error *err)
{
    fprintf(stderr, "quern-artifact: %s\n", err->text);
    return error_exit_status(err->code);
}

static int show(const char *path, int64_t records)
{
    ArtifactReader *r;
    Error err;
    View v;
    if (artifact_open(path, NULL, &r, &err)) return complain(&err);
    printf("%s\n", file_label(path));
    const msgpack_object_map *h = &artifact_header(r)->map->via.map;
    for (uint32_t i = 0; i < h->size; i++) {
        printf("  ");
        print_text(h->ptr[i].key.via.str.ptr, h->ptr[i].key.via.str.size);
        printf(": ");
        print_value(&h->ptr[i].val, 0);
        putchar('\n');
    }
    int rc = 0;
    for (long i = 0; i < records && (rc = artifact_next(r, &v, &err)) == 1; i++) {
        printf("record %ld\n", i);
        for (uint32_t k = 0; k < v.map->via.map.size; k++) {
            const msgpack_object_kv *kv = &v.map->via.map.ptr[k];
            printf("  ");
            print_text(kv->key.via.str.ptr, kv->key.via.str.size);
            printf(": ");
            print_value(&kv->val, 1);
            putchar('\n');
        }
    }
    if (rc >= 0 && records < artifact_count(r))
        printf("... %ld records in all\n", artifact_count(r));
    artifact_close(r);
    return rc < 0 ? complain(&err) : 0;
}

/* Checks structure, digest and schema of every record. */
static int validate(const char *path)
{
    ArtifactReader *r;
    Error err;
    View v;
    int rc;
    if (artifact_open(path, NULL, &r, &err)) return complain(&err);
    char *kind = view_strdup(artifact_header(r), "kind", &err);
    while ((rc = artifact_next(r, &v, &err)) == 1)
        if (schema_check(kind, &v, &err)) {
            rc = -1;
            break;
        }
    if (!rc)
        printf("%s: ok, %s, %ld records, payload %s\n", file_label(path), kind, artifact_count(r),
               artifact_digest(r));
    free(kind);
    artifact_close(r);
    return rc < 0 ? complain(&err) : 0;
}

/* A model directory: its manifest, as validate has it, and the digest of every file that it names. */
static int verify_model(const char *dir)
{
    Error err;
    long files;
    if (manifest_verify(dir, &files, &err)) return complain(&err);
    printf("%s: ok, %ld files\n", dir, files);
    return 0;
}

static int export(const char *path)
{
    ArtifactReader *r;
    Error err;
    View v;
    int rc;
    if (artifact_open(path, NULL, &r, &err)) return complain(&err);
    while ((rc = artifact_next(r, &v, &err)) == 1 && !ferror(stdout)) {
        print_value(v.map, 0);
        putchar('\n');
    }
    artifact_close(r);
    return rc < 0 ? complain(&err) : 0;
}

static int key_order(const msgpack_object *a, const msgpack_object *b)
{
    uint32_t na = a->via.str.size, nb = b->via.str.size;
    int c = memcmp(a->via.str.ptr, b->via.str.ptr, na < nb ? na : nb);
    return c ? c : na < nb ? -1 : na > nb;
}

static void print_side(const char *path, const msgpack_object *o)
{
    printf("  %s: ", path);
    if (o)
        print_value(o, 1);
    else
        fputs("no such field", stdout);
    putchar('\n');
}

/* Floats are compared as bits, as the digest does: a NaN equals itself, and -0 differs from 0. */
static int values_equal(const msgpack_object *a, const msgpack_object *b)
{
    if (a->type != b->type) return 0;
    if (a->type == MSGPACK_OBJECT_FLOAT64)
        return !memcmp(&a->via.f64, &b->via.f64, sizeof a->via.f64);
    if (a->type == MSGPACK_OBJECT_ARRAY) {
        if (a->via.array.size != b->via.array.size) return 0;
        for (uint32_t i = 0; i < a->via.array.size; i++)
            if (!values_equal(&a->via.array.ptr[i], &b->via.array.ptr[i])) return 0;
        return 1;
    }
    if (a->type == MSGPACK_OBJECT_MAP) {
        if (a->via.map.size != b->via.map.size) return 0;
        for (uint32_t i = 0; i < a->via.map.size; i++)
            if (key_order(&a->via.map.ptr[i].key, &b->via.map.ptr[i].key) ||
                !values_equal(&a->via.map.ptr[i].val, &b->via.map.ptr[i].val))
                return 0;
        return 1;
    }
    return msgpack_object_equal(*a, *b);
}

/* Prints up to `limit` fields in which two maps differ. Returns how many it printed. */
static int diff_maps(const char *what, const View *a, const View *b, const char *const path[2],
                     int limit)
{
    const msgpack_object_map *x = &a->map->via.map, *y = &b->map->via.map;
    int found = 0;
    for (uint32_t i = 0, k = 0; (i < x->size || k < y->size) && found < limit;) {
        int c = i == x->size ? 1 : k == y->size ? -1 : key_order(&x->ptr[i].key, &y->ptr[k].key);
        if (c == 0 && values_equal(&x->ptr[i].val, &y->ptr[k].val)) {
            i++, k++;
            continue;
        }
        const msgpack_object *key = c <= 0 ? &x->ptr[i].key : &y->ptr[k].key;
        printf("%s, field ", what);
        print_text(key->via.str.ptr, key->via.str.size);
        printf(" differs\n");
        print_side(path[0], c <= 0 ? &x->ptr[i].val : NULL);
        print_side(path[1], c >= 0 ? &y->ptr[k].val : NULL);
        found++;
        if (c <= 0) i++;
        if (c >= 0) k++;
    }
    return found;
}

static int diff_records(ArtifactReader *a, ArtifactReader *b, const char *const path[2], Error *err)
{
    View x, y;
    for (long i = 0;; i++) {
        int more_a = artifact_next(a, &x, err),
            more_b = more_a < 0 ? -1 : artifact_next(b, &y, err);
        if (more_a < 0 || more_b < 0) return -1;
        if (!more_a && !more_b) break;
        if (!more_a || !more_b) {
            printf("record %ld is only in %s\n", i, path[!more_a]);
            return 1;
        }
        char what[40];
        snprintf(what, sizeof what, "record %ld", i);
        if (diff_maps(what, &x, &y, path, 1)) return 1;
    }
    printf("the payloads differ in their encoding only\n");
    return 1;
}

static int diff(const char *const path[2])
{
    ArtifactReader *a, *b;
    Error err;
    if (artifact_open(path[0], NULL, &a, &err)) return complain(&err);
    if (artifact_open(path[1], NULL, &b, &err)) {
        artifact_close(a);
        return complain(&err);
    }
    diff_maps("header", artifact_header(a), artifact_header(b), path, 100);
    int rc = strcmp(artifact_digest(a), artifact_digest(b)) ? diff_records(a, b, path, &err) : 0;
    if (!rc)
        printf("the payloads are equal: %ld records, %s\n", artifact_count(a), artifact_digest(a));
    artifact_close(a);
    artifact_close(b);
    return rc < 0 ? complain(&err) : rc;
}

int main(int argc, char **argv)
{
    int64_t records = 3;
    const Flag flags[] = {
        {"records", FLAG_INT, &records, "how many records to show", 0, 1e12},
        {0},
    };
    const FlagSpec spec = {
        .program = "quern-artifact",
        .synopsis = "show|validate|export|diff|verify-model FILE...",
        .about =
            "show: the header and the first records, long values shortened. validate: structure, "
            "digest and schema; exit 1 and one sentence for a bad file. export: JSON lines, bytes "
            "as base64, NaN and infinities as texts. diff A B: header and records; exit 1 when the "
            "payloads differ. verify-model DIR: a model's manifest, and the digest of every file "
            "that it names. The file - is standard input.",
        .flags = flags,
        .min_words = 2,
        .max_words = -1,
    };
    const char **words = memory_array((size_t)argc, sizeof *words);
    int n = flags_parse(&spec, argc, argv, words), status = 0;
    const char *command = words[0];
    flags_stdin_once(&spec, words, n);
    if (flags_given("records") && strcmp(command, "show"))
        flags_usage_error(&spec, "--records is for show");
    if (!strcmp(command, "diff")) {
        if (n != 3) flags_usage_error(&spec, "diff expects two files, found %d", n - 1);
        status = diff((const char *const[2]){words[1], words[2]});
    } else if (!strcmp(command, "show") || !strcmp(command, "validate") ||
               !strcmp(command, "export") || !strcmp(command, "verify-model")) {
        for (int i = 1; i < n; i++) {
            int one = *command == 's'                    ? show(words[i], records)
                      : *command == 'e'                  ? export(words[i])
                      : !strcmp(command, "verify-model") ? verify_model(words[i])
                                                         : validate(words[i]);
            if (one > status) status = one;
        }
    } else {
        flags_usage_error(
            &spec, "expected show, validate, export, diff or verify-model, found '%s'", command);
    }
    free(words);
    return log_close(status);
}
