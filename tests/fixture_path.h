/* Paths and texts of fixtures and tasks for tests: fixture_path("tests/fixtures/x") below the source tree. */
#ifndef TESTS_FIXTURE_PATH_H
#define TESTS_FIXTURE_PATH_H

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
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

/* The text of a file of tests/fixtures: fixture_text("sim/halves.cu"). It lives as long as the test. */
static inline const char *fixture_text(const char *name)
{
    enum { FILES = 64, MAX_BYTES = 1 << 20 };
    static struct {
        char name[64], *text;
    } files[FILES];
    int i = 0;
    char path[128];
    Buffer b;
    Error err;
    while (i < FILES && files[i].text && strcmp(files[i].name, name)) i++;
    if (i < FILES && files[i].text) return files[i].text;
    snprintf(path, sizeof path, "tests/fixtures/%s", name);
    buffer_init(&b, MAX_BYTES);
    if (i == FILES || file_read(fixture_path(path), MAX_BYTES, &b, &err)) {
        fprintf(stderr, "the fixture %s cannot be read\n", name);
        abort();
    }
    snprintf(files[i].name, sizeof files[i].name, "%s", name);
    return files[i].text = buffer_detach(&b);
}

#endif
