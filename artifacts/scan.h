/* A walk over msgpack bytes that allocates nothing: every claimed length is checked against the
 * bytes present before msgpack-c, which allocates by the claim, sees them. It also holds records
 * to their canonical form: a map whose keys are texts, sorted, each once; no extension types. */
#ifndef ARTIFACTS_SCAN_H
#define ARTIFACTS_SCAN_H

#include <stddef.h>

#include "base/error.h"

enum { SCAN_MAX_DEPTH = 8 };

/* Length of the map that data begins with, in *used. `where` names the record in errors. */
int scan_record(const void *data, size_t len, const char *where, size_t *used, Error *err);

#endif
