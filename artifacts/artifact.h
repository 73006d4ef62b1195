/* The artifact format. A file has one kind: a msgpack map as header, then one msgpack map a record.
 *
 *   header: magic "quern", format (int), kind, schema (int), producer, version, config (map of
 *           texts, resolved), inputs (list of {path, digest} with payload digests), count, digest
 *           (SHA-256 hex of the payload: all record bytes), packed (of a payload that is stored as
 *           a zlib stream: its bytes), summary (of some kinds: a map of what many ask for)
 *
 * The payload holds no clock times, host names or process ids, so that equal work gives an equal
 * digest. A writer collects the records and writes header and payload at the end, by file_begin and
 * file_commit. A stage first asks artifact_same whether its target exists with the same producer,
 * settings and input digests; such a target is touched and not made again. */
#ifndef ARTIFACTS_ARTIFACT_H
#define ARTIFACTS_ARTIFACT_H

#include "artifacts/record.h"
#include "base/digest.h"

enum { ARTIFACT_FORMAT = 1, ARTIFACT_MAX_CONFIG = 64, ARTIFACT_MAX_INPUTS = 64 };

/* The header of a target. Two targets with the same spec are the same work. */
typedef struct {
    const char *kind;     /* samples verdicts dataset prompts pool results metrics manifest */
    const char *producer; /* the program: "quern-filter" */
    struct {
        char *key, *value;
    } config[ARTIFACT_MAX_CONFIG];
    int n_config;
    struct {
        char *path;
        char digest[DIGEST_HEX];
    } inputs[ARTIFACT_MAX_INPUTS];
    int n_inputs;
} ArtifactSpec;

void artifact_spec_init(ArtifactSpec *s, const char *kind, const char *producer);
void artifact_spec_release(ArtifactSpec *s);
void artifact_spec_config(ArtifactSpec *s, const char *key, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
int artifact_spec_input(ArtifactSpec *s, const char *path,
                        Error *err); /* reads the digest from its header */
/* An input that is not an artifact, such as a task set. The caller computes its digest. */
void artifact_spec_input_digest(ArtifactSpec *s, const char *path, const char *hex);
void artifact_spec_digest(const ArtifactSpec *s,
                          Digest *out); /* of producer, config, input digests */

/* Returns 1 if path exists and was made from the same spec: it is touched, "same" is logged, and a
 * journal of this spec beside it is removed. Its header gets the paths of the spec where it has others. A
 * journal of another spec is unfinished work and stays. Returns 0 if there is work to do, or if the target
 * is damaged. */
int artifact_same(const ArtifactSpec *s, const char *path);

typedef struct ArtifactWriter ArtifactWriter;
/* The writer keeps the pointer to spec: it must live until artifact_finish or artifact_abandon. */
int artifact_create(const char *path, const ArtifactSpec *spec, ArtifactWriter **out, Error *err);
int artifact_write(ArtifactWriter *w, const Record *r, Error *err); /* checks the kind's schema */
int artifact_put(ArtifactWriter *w, Record *r, Error *err);         /* writes r and frees it */
int artifact_write_encoded(ArtifactWriter *w, const void *data, size_t len,
                           Error *err); /* one encoded record */
/* The map in the header that artifact_peek reads without the records. Call it once at most. */
Record *artifact_summary(ArtifactWriter *w);
int artifact_finish(ArtifactWriter *w, Error *err); /* commits and frees w, also on error */
void artifact_abandon(ArtifactWriter *w);
/* Ends a writer whose records were written with this return code: finishes it, or after a failure
 * abandons it and returns -1. */
int artifact_end(ArtifactWriter *w, int rc, Error *err);

typedef struct ArtifactReader ArtifactReader;
/* Reads the whole file, or standard input for the path "-", and checks its digest and count. kind
 * NULL accepts any kind. */
int artifact_open(const char *path, const char *kind, ArtifactReader **out, Error *err);
/* Reads the header alone: the reader gives no records, and nothing of them is checked. */
int artifact_peek(const char *path, const char *kind, ArtifactReader **out, Error *err);
void artifact_close(ArtifactReader *r);
long artifact_count(const ArtifactReader *r);
const View *artifact_header(const ArtifactReader *r);
const char *artifact_digest(const ArtifactReader *r); /* payload digest, hex */
/* Was it made from this spec: kind, producer, version, settings and input digests? */
int artifact_matches(const ArtifactReader *r, const ArtifactSpec *s);
/* Returns 1 with the next record, 0 at the end, -1 on damage. The view lives until artifact_close. */
int artifact_next(ArtifactReader *r, View *out, Error *err);
/* Called with a record: 0 goes on, 1 ends the reading, -1 is an error. */
typedef int ArtifactEach(void *ctx, const View *v, Error *err);
/* Calls each for the records of an open artifact that were not read yet, in order; 0 or -1. */
int artifact_records(ArtifactReader *r, ArtifactEach *each, void *ctx, Error *err);
/* Opens an artifact, calls each for its records and closes it. */
int artifact_each(const char *path, const char *kind, ArtifactEach *each, void *ctx, Error *err);
int artifact_raw(const ArtifactReader *r, long index, const void **data,
                 size_t *len); /* of a record already read */

#endif
