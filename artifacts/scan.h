/* Inside artifacts: the bytes of records, before they are decoded.
 *
 * scan_record is a walk over msgpack bytes that allocates nothing. It checks every claimed length
 * against the bytes present before msgpack-c, which allocates by the claim, reads them. It also
 * requires the canonical form of a record: a map with sorted, unique text keys and no extension
 * types. */
#ifndef ARTIFACTS_SCAN_H
#define ARTIFACTS_SCAN_H

#include <stddef.h>

#include "base/error.h"

enum { SCAN_MAX_DEPTH = 8 };

/* Sets *used to the length of the map that data begins with. `where` names the record in errors. */
int scan_record(const void *data, size_t len, const char *where, size_t *used, Error *err);

#endif
