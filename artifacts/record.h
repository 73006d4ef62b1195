/* Records: msgpack maps with sorted keys and 64-bit floats, so that equal content is equal bytes.
 * Building keeps values in any order; encoding sorts. A key given twice is a programming error
 * (assert). Text that is not valid UTF-8 is stored as given, in a msgpack str. */
#ifndef ARTIFACTS_RECORD_H
#define ARTIFACTS_RECORD_H

#include <msgpack.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

typedef struct Record Record;

Record *record_new(void);
void record_free(Record *r); /* and its children */
void record_text(Record *r, const char *key, const char *s);
void record_textn(Record *r, const char *key, const char *s, size_t n);
void record_bytes(Record *r, const char *key, const void *data, size_t n);
void record_int(Record *r, const char *key, int64_t x);
void record_float(Record *r, const char *key, double x);
void record_bool(Record *r, const char *key, int x);
void record_ints(Record *r, const char *key, const int64_t *x, size_t n); /* copied */
void record_floats(Record *r, const char *key, const double *x, size_t n);
void record_texts(Record *r, const char *key, const char *const *x, size_t n);
Record *record_map(Record *r, const char *key);  /* a nested map; owned by r */
Record *record_item(Record *r, const char *key); /* append a map to the list `key`; owned by r */
int record_encode(const Record *r, Buffer *out, Error *err); /* appended to out */

/* A read-only map inside a msgpack zone that the reader owns. `where` goes into errors:
 * "runs/x/samples.qa, record 12". Getters return 0, or -1 with file, record and field. */
typedef struct {
    const msgpack_object *map;
    char where[256];
} View;

/* Decodes one msgpack map. The zone owns the objects; text points into `data`. Every claimed size is
 * checked against the bytes present, and the depth is at most 8. */
int view_decode(const void *data, size_t len, const char *where, msgpack_zone *zone, View *out,
                Error *err);

/* The same, for `read` alone: returns what that returns, else -1. */
typedef int ViewRead(const View *v, void *out, Error *err);
int view_read(const void *data, size_t len, const char *where, ViewRead *read, void *out,
              Error *err);

int view_has(const View *v, const char *key);
int view_text(const View *v, const char *key, const char **s, size_t *n,
              Error *err); /* not NUL-terminated */
/* Whether the field is there and is this text. */
int view_text_is(const View *v, const char *key, const char *want);
char *view_strdup(const View *v, const char *key, Error *err); /* caller frees; NULL on error */
/* Copies several texts, which the caller frees, also after an error. */
typedef struct {
    const char *key;
    char **copy;
} ViewText;
int view_texts(const View *v, const ViewText *texts, int n, Error *err);
/* Copy a text of less than `size` bytes, none of them 0. */
int view_copy(const View *v, const char *key, char *out, size_t size, Error *err);
int view_bytes(const View *v, const char *key, const void **p, size_t *n, Error *err);
int view_int(const View *v, const char *key, int64_t *out, Error *err);
int view_float(const View *v, const char *key, double *out, Error *err); /* takes integers too */
int view_bool(const View *v, const char *key, int *out, Error *err);
int view_ints(const View *v, const char *key, int64_t **out, size_t *n,
              Error *err); /* caller frees */
int view_floats(const View *v, const char *key, double **out, size_t *n,
                Error *err); /* caller frees */
int view_map(const View *v, const char *key, View *out, Error *err);
int view_count(const View *v, const char *key, size_t *n, Error *err); /* length of a list */
int view_text_at(const View *v, const char *key, size_t i, const char **s, size_t *n,
                 Error *err); /* i-th text of a list */
int view_item(const View *v, const char *key, size_t i, View *out,
              Error *err); /* i-th map of a list */

/* Copies every field of v into r, except those that r has already. */
void record_copy(Record *r, const View *v);

#endif
