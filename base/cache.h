/* Compile results on disk by the digest of all that decides them. A file that is torn, damaged,
 * another key's or gone is a miss; writing is temporary file and rename, so processes may share a
 * folder. Only entries are removed: what else a folder holds is not the cache's. */
#ifndef BASE_CACHE_H
#define BASE_CACHE_H

#include <stddef.h>

#include "base/buffer.h"
#include "base/digest.h"

typedef struct Cache Cache;

Cache *cache_open(const char *dir, size_t max_bytes); /* the folder is made at the first write */
void cache_close(Cache *c);
int cache_get(Cache *c, const char key[DIGEST_HEX], size_t max, Buffer *out); /* 1: found */
void cache_put(Cache *c, const char key[DIGEST_HEX], const void *data, size_t len);

/* Where what one user's processes may share is kept: $QUERN_CACHE, else ~/.cache/quern. -1: neither
 * it nor HOME is set, or the name does not fit. */
int cache_folder(char *out, size_t size);

#endif
