/* Paths of fixtures and tasks for tests: fixture_path("tests/fixtures/x") below the source tree. */
#ifndef TESTS_FIXTURE_PATH_H
#define TESTS_FIXTURE_PATH_H

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/paths.h"

/* The text lives until eight further calls. */
static inline const char *fixture_path(const char *relative)
{
    static char texts[8][PATH_MAX + 512];
    static int next;
    char root[PATH_MAX], *text = texts[next++ % 8];
    Error err;
    if (paths_root(root, sizeof root, &err)) {
        fprintf(stderr, "%s\n", err.text);
        abort();
    }
    snprintf(text, sizeof *texts, "%s/%s", root, relative);
    return text;
}

#endif
