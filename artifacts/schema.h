/* The fields of each kind of artifact: name, type, optional or not. Unknown fields are refused, so that a
 * misspelt name cannot pass.
 *
 * Types: t text, b bytes, i int, f float, B bool, I ints, F floats, T texts, m map, L list of maps. */
#ifndef ARTIFACTS_SCHEMA_H
#define ARTIFACTS_SCHEMA_H

#include "artifacts/record.h"

int schema_version(const char *kind); /* 0 for an unknown kind */
/* "id t task t turn i?": the fields of a kind with their types; ? marks an optional one. NULL for an unknown
 * kind. */
const char *schema_fields(const char *kind);
/* Checks one record against the table of its kind. */
int schema_check(const char *kind, const View *v, Error *err);

#endif
