/* PTX that the tests of one `make test` compile once: it is kept in $QUERN_TEST_CACHE, where that is set, by
 * a key that has all that the PTX depends on. Include after cmocka.h. */
#ifndef TESTS_UNIT_EVAL_KEPT_PTX_H
#define TESTS_UNIT_EVAL_KEPT_PTX_H

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cache.h"
#include "base/memory.h"
#include "gpu/nvrtc.h"

static inline Cache *kept_cache(void)
{
    const char *dir = getenv("QUERN_TEST_CACHE");
    return dir ? cache_open(dir, (size_t)1 << 30) : NULL;
}

/* Returns the kept PTX, which the caller frees, or NULL. */
static inline char *kept_ptx(const char key[DIGEST_HEX])
{
    char *ptx = NULL;
    Cache *cache = kept_cache();
    Buffer kept;
    if (!cache) return NULL;
    buffer_init(&kept, NVRTC_MAX_PTX);
    if (cache_get(cache, key, NVRTC_MAX_PTX, &kept) && kept.len)
        ptx = memory_strndup(kept.data, kept.len);
    buffer_release(&kept);
    cache_close(cache);
    return ptx;
}

static inline void keep_ptx(const char key[DIGEST_HEX], const char *ptx)
{
    Cache *cache = kept_cache();
    if (!cache) return;
    cache_put(cache, key, ptx, strlen(ptx));
    cache_close(cache);
}

#endif
