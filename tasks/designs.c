/* The file of designs that are not drawn. */
#include "tasks/designs.h"

#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/words.h"

enum { MAX_FILE = 16 << 20 };

/* Takes a line without its end; a blank one is nothing. */
static int take_line(const char *path, char *line, int number, Designs *out, Error *err)
{
    char *task = line + strspn(line, " \t"), *rest = task + strcspn(task, " \t");
    if (!*task) return 0;
    if (*rest) *rest++ = 0;
    for (const char *p = rest; *(p += strspn(p, " \t")); p += strcspn(p, " \t")) {
        size_t n = strcspn(p, " \t"), sign = strcspn(p, "= \t");
        if (sign == 0 || sign + 1 >= n)
            return error_set(err, ERROR_INVALID, "%s:%d: expected NAME=VALUE, found '%.*s'", path,
                             number, (int)n, p);
    }
    out->lines = memory_grow(out->lines, (size_t)out->n + 1, sizeof *out->lines);
    out->lines[out->n].task = memory_strdup(task);
    out->lines[out->n++].designs = memory_strdup(rest);
    return 0;
}

int designs_read(const char *path, Designs *out, ArtifactSpec *spec, Error *err)
{
    Buffer text;
    char hex[DIGEST_HEX];
    int rc = 0, number = 0;
    *out = (Designs){0};
    buffer_init(&text, MAX_FILE);
    if (file_read(path, MAX_FILE, &text, err) || file_digest(path, hex, NULL, err)) rc = -1;
    char *line = text.data, *end;
    for (; !rc && line && *line; line = end) {
        end = line + strcspn(line, "\n");
        if (*end) *end++ = 0;
        rc = take_line(path, line, ++number, out, err);
    }
    if (!rc && spec) artifact_spec_input_digest(spec, path, hex);
    buffer_release(&text);
    return rc;
}

void designs_release(Designs *d)
{
    for (int i = 0; i < d->n; i++) {
        free(d->lines[i].task);
        free(d->lines[i].designs);
    }
    free(d->lines);
    *d = (Designs){0};
}

const char *designs_of(const Designs *d, const char *task)
{
    for (int i = 0; d && i < d->n; i++)
        if (!strcmp(d->lines[i].task, "*") || !strcmp(d->lines[i].task, task))
            return d->lines[i].designs;
    return NULL;
}

int designs_has(const char *list, const char *family, const char *name, const char *value,
                size_t len)
{
    for (const char *p = list; p && *(p += strspn(p, " \t")); p += strcspn(p, " \t")) {
        const char *end = p + strcspn(p, " \t"), *at = p + strcspn(p, "/ \t");
        if (*at == '/' && !word_is(p, (size_t)(at - p), family)) continue;
        at = *at == '/' ? at + 1 : p;
        size_t sign = strcspn(at, "=");
        if (!word_is(at, sign, name)) continue;
        at += sign + 1;
        if ((size_t)(end - at) == len && !memcmp(at, value, len)) return 1;
    }
    return 0;
}
