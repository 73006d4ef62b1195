/* The file is read once; its lines are cut in place. */
#include "lab/mutate/survivors.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"

enum { MAX_FILE = 16 << 20, FIELDS = 6 };

static const char *const names[] = {"new", "equivalent", "permitted", "wrong"};

const char *survivor_class_name(SurvivorClass c)
{
    return names[c];
}

static int class_of(const char *name)
{
    for (int c = SURVIVOR_EQUIVALENT; c <= SURVIVOR_WRONG; c++)
        if (!strcmp(names[c], name)) return c;
    return -1;
}

static int read_line(Survivors *s, char *line, Error *err)
{
    char *field[FIELDS], *next = line;
    for (int i = 0; i < FIELDS; i++)
        if (!(field[i] = strsep(&next, "\t")))
            return error_set(err, ERROR_CORRUPT, "expected %d fields, found %d", FIELDS, i);
    int class = class_of(field[4]);
    if (class < 0)
        return error_set(err, ERROR_CORRUPT, "expected equivalent, permitted or wrong, found '%s'",
                         field[4]);
    if (strlen(field[1]) != SURVIVOR_DIGEST)
        return error_set(err, ERROR_CORRUPT, "expected a digest of %d digits, found '%s'",
                         SURVIVOR_DIGEST, field[1]);
    if (s->n % 64 == 0) s->at = memory_grow(s->at, (size_t)s->n + 64, sizeof *s->at);
    s->at[s->n++] =
        (Survivor){field[0], field[1], field[2], field[3], field[5], (SurvivorClass) class};
    return 0;
}

int survivors_read(const char *path, Survivors *out, Error *err)
{
    Buffer b;
    int n = 0;
    memset(out, 0, sizeof *out);
    buffer_init(&b, MAX_FILE);
    int rc = file_read(path, MAX_FILE, &b, err);
    char *next = out->text = buffer_detach(&b);
    for (char *line; !rc && (line = strsep(&next, "\n"));) {
        n++;
        if (*line && *line != '#' && (rc = read_line(out, line, err)))
            error_prefix(err, "%s:%d", path, n);
    }
    return rc;
}

SurvivorClass survivors_class(const Survivors *s, const Survivor *mutant)
{
    for (int i = 0; i < s->n; i++) {
        const Survivor *known = &s->at[i];
        if (!strncmp(known->digest, mutant->digest, SURVIVOR_DIGEST) &&
            !strcmp(known->place, mutant->place) && !strcmp(known->kind, mutant->kind) &&
            !strcmp(known->task, mutant->task))
            return known->class;
    }
    return SURVIVOR_NEW;
}

void survivors_release(Survivors *s)
{
    free(s->at);
    free(s->text);
    memset(s, 0, sizeof *s);
}
