/* Results that are dear on disk, of compilations and of measurements, named by the digest of
 * everything that decides them. A file that is missing, torn, damaged or of another key is a miss.
 * Entries are written to a temporary file and renamed, so that processes can share a folder. Only
 * entries are ever removed. */
#ifndef BASE_CACHE_H
#define BASE_CACHE_H

#include <stddef.h>

#include "base/buffer.h"
#include "base/digest.h"

typedef struct Cache Cache;

enum { CACHE_FOLDER_BYTES = 1 << 30 }; /* of a user's folder, unless something else is asked for */

Cache *cache_open(const char *dir, size_t max_bytes); /* the folder is made at the first write */
void cache_close(Cache *c);
int cache_get(Cache *c, const char key[DIGEST_HEX], size_t max, Buffer *out); /* 1: found */
void cache_put(Cache *c, const char key[DIGEST_HEX], const void *data, size_t len);

/* The cache folder of this user: $QUERN_CACHE, else ~/.cache/quern. Returns -1 if neither QUERN_CACHE
 * nor HOME is set, or if the name does not fit. */
int cache_folder(char *out, size_t size);

#endif
