/* The PTX of the engine's sources, which the tests of one `make test` compile once: it is kept in
 * $QUERN_TEST_CACHE. The compilation is the engine's own, or one with its flags. Include after
 * cmocka.h. */
#ifndef TESTS_UNIT_EVAL_ENGINE_PTX_H
#define TESTS_UNIT_EVAL_ENGINE_PTX_H

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cache.h"
#include "base/file.h"
#include "base/memory.h"
#include "gpu/nvrtc.h"
#include "tests/fixture_path.h"

/* The key of a source's PTX: the text, the headers beside it and the architecture ("sm_90"). */
static inline void engine_key(const char *arch, const char *text, size_t len, char key[DIGEST_HEX])
{
    static const char name[] = "engine PTX of a test";
    static const char *const folders[] = {"model/cuda", "model/cuda/decode"};
    Digester d;
    Digest digest;
    digester_init(&d);
    digester_add_field(&d, name, sizeof name);
    digester_add_field(&d, arch, strlen(arch));
    digester_add_field(&d, text, len);
    for (int i = 0; i < 2; i++) {
        char pattern[600];
        glob_t found = {0};
        snprintf(pattern, sizeof pattern, "%s/*.cuh", fixture_path(folders[i]));
        if (glob(pattern, 0, NULL, &found)) fail_msg("no %s", pattern);
        for (size_t k = 0; k < found.gl_pathc; k++) {
            Buffer header;
            Error err;
            buffer_init(&header, (size_t)1 << 24);
            if (file_read(found.gl_pathv[k], (size_t)1 << 24, &header, &err))
                fail_msg("%s", err.text);
            digester_add_field(&d, header.data, header.len);
            buffer_release(&header);
        }
        globfree(&found);
    }
    digester_finish(&d, &digest);
    digest_hex(&digest, key);
}

static inline Cache *engine_test_cache(void)
{
    const char *dir = getenv("QUERN_TEST_CACHE");
    return dir ? cache_open(dir, (size_t)1 << 30) : NULL;
}

/* Returns the kept PTX, which the caller frees, or NULL. */
static inline char *engine_kept_ptx(const char *arch, const char *text, size_t len)
{
    char key[DIGEST_HEX], *ptx = NULL;
    Cache *cache = engine_test_cache();
    Buffer kept;
    if (!cache) return NULL;
    engine_key(arch, text, len, key);
    buffer_init(&kept, NVRTC_MAX_PTX);
    if (cache_get(cache, key, NVRTC_MAX_PTX, &kept) && kept.len)
        ptx = memory_strndup(kept.data, kept.len);
    buffer_release(&kept);
    cache_close(cache);
    return ptx;
}

static inline void engine_keep_ptx(const char *arch, const char *text, size_t len, const char *ptx)
{
    char key[DIGEST_HEX];
    Cache *cache = engine_test_cache();
    if (!cache) return;
    engine_key(arch, text, len, key);
    cache_put(cache, key, ptx, strlen(ptx));
    cache_close(cache);
}

#endif
