/* The PTX of the engine's sources. The compilation is the engine's own, or one with its flags. Include after
 * cmocka.h. */
#ifndef TESTS_UNIT_EVAL_ENGINE_PTX_H
#define TESTS_UNIT_EVAL_ENGINE_PTX_H

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "tests/fixture_path.h"
#include "tests/unit/eval/kept_ptx.h"

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

/* Returns the kept PTX, which the caller frees, or NULL. */
static inline char *engine_kept_ptx(const char *arch, const char *text, size_t len)
{
    char key[DIGEST_HEX];
    engine_key(arch, text, len, key);
    return kept_ptx(key);
}

static inline void engine_keep_ptx(const char *arch, const char *text, size_t len, const char *ptx)
{
    char key[DIGEST_HEX];
    engine_key(arch, text, len, key);
    keep_ptx(key, ptx);
}

#endif
