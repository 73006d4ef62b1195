/* quern-generate: composes tasks from the operator library. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"
#include "tasks/generate/compose.h"

/* ---- a set of composed tasks ---- */

enum { GENERATE_MAX = 512 };

typedef struct {
    int train, composition, family;
    uint64_t seed;
    const char *beside; /* folder of a set; NULL: none */
} GenerateSpec;

enum { TRIES = 200 };

typedef struct {
    Composition **list;
    char **text; /* the task.json of each, as a task to learn from */
    int n, heldout[GENERATE_MAX];
    const char *beside; /* folder of another set, or NULL */
} Set;

static int same_parts(const Composition *a, const Composition *b)
{
    if (a->n_parts != b->n_parts) return 0;
    for (int i = 0; i < a->n_parts; i++)
        if (strcmp(a->part[i], b->part[i])) return 0;
    return 1;
}

/* Whether the other set has the composition, which its name tells, in any precision. */
static int is_beside(const Set *set, const char *name)
{
    static const char *const ends[] = {"_f16", "_bf16"}, *const others[] = {"", "_f16", "_bf16"};
    size_t n = strlen(name);
    int found = 0;
    if (!set->beside) return 0;
    for (int i = 0; i < 2; i++) {
        size_t end = strlen(ends[i]);
        if (n > end && !strcmp(name + n - end, ends[i])) n -= end;
    }
    for (int i = 0; i < 3 && !found; i++) {
        char *path = memory_printf("%s/%.*s%s", set->beside, (int)n, name, others[i]);
        found = file_exists(path);
        free(path);
    }
    return found;
}

static int is_known(const Set *set, const Composition *c)
{
    if (is_beside(set, c->name)) return 1;
    for (int i = 0; i < set->n; i++)
        if (same_parts(set->list[i], c) || !strcmp(set->list[i]->name, c->name)) return 1;
    return 0;
}

/* The task.json of a composition; NULL where derive refuses it or finds that algebra removes its work. */
static char *derived(const Composition *c)
{
    char *text;
    Error err;
    if (derive_task(&c->draft, &text, &err)) {
        log_debug("%s is drawn again: %s", c->name, err.text);
        return NULL;
    }
    if (!strstr(text, "\"degenerate\"")) return text;
    log_debug("%s is drawn again: it is degenerate", c->name);
    free(text);
    return NULL;
}

/* Adds a composition of a family that differs from those in the set. */
static int add_new(Set *set, Random *random, int family, int other)
{
    Composition *c = memory_alloc(sizeof *c);
    for (int i = 0; i < TRIES; i++) {
        compose(random, family, other, c);
        char *text = is_known(set, c) ? NULL : derived(c);
        if (!text) continue;
        set->text[set->n] = text;
        set->list[set->n++] = c;
        return 1;
    }
    free(c);
    return 0;
}

/* Adds n compositions: the families in turn, as often as their weights say. */
static int add_many(Set *set, Random *random, int n, int other, Error *err)
{
    int families = other ? compose_other_families() : compose_families(), added = 0, missed = 0;
    for (int turn = 0; added < n && missed < families; turn++) {
        /* A stride that shares no factor with most numbers mixes the families. */
        int family = other ? turn % families : (int)((int64_t)turn * 31 % families);
        int found = add_new(set, random, family, other);
        added += found;
        missed = found ? 0 : missed + 1;
    }
    if (added == n) return 0;
    return error_set(err, ERROR_LIMIT, "expected %d different compositions, found %d", n, added);
}

static int count_part(const Set *set, const char *part)
{
    int n = 0;
    for (int i = 0; i < set->n; i++)
        for (int k = 0; !set->heldout[i] && k < set->list[i]->n_parts; k++)
            n += !strcmp(set->list[i]->part[k], part);
    return n;
}

/* A task may be held out if each of its primitives stays in another one. */
static int can_hold_out(const Set *set, int i)
{
    const Composition *c = set->list[i];
    if (set->heldout[i] || c->n_parts < 2) return 0;
    for (int k = 0; k < c->n_parts; k++)
        if (count_part(set, c->part[k]) < 2) return 0;
    return 1;
}

static int hold_out(Set *set, Random *random, int n, Error *err)
{
    for (int done = 0, tries = 0; done < n; tries++) {
        int i = (int)random_below(random, (uint64_t)set->n);
        if (can_hold_out(set, i)) set->heldout[i] = 1, done++;
        if (tries > GENERATE_MAX * 100)
            return error_set(
                err, ERROR_LIMIT,
                "expected %d compositions to hold out, found %d whose parts others have", n, done);
    }
    return 0;
}

static int write_text(const char *folder, const char *name, const char *text, Error *err)
{
    char *dir = memory_printf("%s/%s", folder, name), *file = memory_printf("%s/task.json", dir);
    int rc = file_mkdirs(dir, err) || file_write_atomic(file, text, strlen(text), err) ? -1 : 0;
    free(dir);
    free(file);
    return rc;
}

static int write_all(const Set *set, int first_other, const char *folder, Error *err)
{
    for (int i = 0; i < set->n; i++) {
        Composition *c = set->list[i];
        c->draft.heldout = set->heldout[i] || i >= first_other;
        if (c->draft.heldout)
            c->tags[c->draft.n_tags++] = i < first_other ? "composition" : "family";
        if (c->draft.heldout ? derive_write(&c->draft, folder, err)
                             : write_text(folder, c->name, set->text[i], err))
            return -1;
    }
    return 0;
}

static int fill(Set *set, const GenerateSpec *s, const char *folder, Error *err)
{
    Random random;
    random_init(&random, s->seed, random_hash("compose", 7));
    if (add_many(set, &random, s->train + s->composition, 0, err)) return -1;
    int first_other = set->n;
    return hold_out(set, &random, s->composition, err) ||
                   add_many(set, &random, s->family, 1, err) ||
                   write_all(set, first_other, folder, err)
               ? -1
               : 0;
}

/* Writes folder/NAME/task.json for each. Equal specs give equal bytes. Compositions that derive refuses, or
 * finds degenerate, are drawn again, and so are those with the name of a task in `beside`, in any
 * precision. LIMIT: so many different ones are not to be had. */
static int generate_tasks(const GenerateSpec *s, const char *folder, Error *err)
{
    if (s->train + s->composition + s->family > GENERATE_MAX)
        return error_set(err, ERROR_LIMIT, "expected at most %d tasks", GENERATE_MAX);
    if (s->beside && !file_exists(s->beside))
        return error_set(err, ERROR_IO, "there is no folder %s", s->beside);
    Set set = {.list = memory_array(GENERATE_MAX, sizeof *set.list),
               .text = memory_array(GENERATE_MAX, sizeof *set.text),
               .beside = s->beside};
    int rc = fill(&set, s, folder, err);
    for (int i = 0; i < set.n; i++) {
        free(set.list[i]);
        free(set.text[i]);
    }
    free(set.list);
    free(set.text);
    return rc;
}

int main(int argc, char **argv)
{
    const char *folder = NULL, *beside = NULL, *words[1];
    int64_t train = 60, composition = 16, family = 4, seed = 1;
    const Flag flags[] = {
        {"train", FLAG_INT, &train, "tasks to learn from", 0, GENERATE_MAX},
        {"composition", FLAG_INT, &composition,
         "tasks held out: each primitive is in a task to learn from, the combination is not", 0,
         GENERATE_MAX},
        {"family", FLAG_INT, &family, "tasks held out, of families that no task to learn from has",
         0, GENERATE_MAX},
        {"seed", FLAG_INT, &seed, "of the compositions", 0, 1e15},
        {"beside", FLAG_TEXT, &beside, "folder of a set that has none of these compositions"},
        {"output", FLAG_TEXT, &folder, "folder of the set; a folder for each task is made in it",
         .required = 1},
        {0}};
    const FlagSpec spec = {
        .program = "quern-generate",
        .synopsis = "-o DIR [--train N] [--composition N] [--family N] [--seed N] [--beside DIR]",
        .about =
            "Composes tasks from the operator library: pointwise chains, folds over rows, softmax, "
            "norms, products, scans, convolutions, pools and losses.",
        .flags = flags};
    flags_parse(&spec, argc, argv, words);
    log_open("quern-generate");
    const GenerateSpec s = {(int)train, (int)composition, (int)family, (uint64_t)seed, beside};
    Error err;
    if (generate_tasks(&s, folder, &err)) log_die(&err);
    return log_close(0);
}
