/* jansson with errors that name the file and the field. The json_t types are jansson's. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* New reference, or NULL. Text with duplicate keys, NUL bytes or more than max bytes is refused. */
json_t *json_read_file(const char *path, size_t max, Error *err);
json_t *json_read_text(const char *text, size_t len, const char *where, Error *err);

/* Borrowed values of an object's fields. Returns NULL or -1 if the field is missing or of another type.
 * `where` names the object: "tasks/relu/task.json, inputs[0]". */
json_t *json_need_object(const json_t *obj, const char *key, const char *where, Error *err);
json_t *json_need_array(const json_t *obj, const char *key, const char *where, Error *err);
const char *json_need_text(const json_t *obj, const char *key, const char *where, Error *err);
int json_need_int(const json_t *obj, const char *key, const char *where, int64_t *out, Error *err);
int json_need_number(const json_t *obj, const char *key, const char *where, double *out,
                     Error *err);

#endif
