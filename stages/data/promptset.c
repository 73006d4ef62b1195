/* Loads prompts, and makes sample records of their answers. */
#include "stages/data/promptset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "eval/candidate/answer.h"

/* Reads where a prompt stands in a sequence of turns. */
static int read_turn(const View *v, PromptItem *p, Error *err)
{
    p->turn = 1;
    p->group = view_strdup(v, view_has(v, "group") ? "group" : "id", err);
    if (!p->group || (view_has(v, "turn") && view_int(v, "turn", &p->turn, err))) return -1;
    if (view_has(v, "parent") && !(p->parent = view_strdup(v, "parent", err))) return -1;
    return 0;
}

static int read_copies(const View *v, PromptItem *p, Error *err)
{
    int64_t n;
    if (!view_has(v, "copies")) return 0;
    if (view_int(v, "copies", &n, err)) return -1;
    if (n < 1 || n > PROMPT_MAX_COPIES)
        return error_set(err, ERROR_CORRUPT, "%s, field copies: expected 1 to %d, found %lld",
                         v->where, PROMPT_MAX_COPIES, (long long)n);
    p->copies = (int)n;
    return 0;
}

static int read_shown(const View *v, PromptItem *p, Error *err)
{
    size_t n = 0;
    View one;
    if (!view_has(v, "exemplars")) return 0;
    if (view_count(v, "exemplars", &n, err)) return -1;
    p->shown = memory_array(n, sizeof *p->shown);
    for (size_t i = 0; i < n; i++) {
        if (view_item(v, "exemplars", i, &one, err) ||
            !(p->shown[p->n_shown] = view_strdup(&one, "id", err)))
            return -1;
        p->n_shown++;
    }
    return 0;
}

static int read_prompt(void *ctx, const View *v, Error *err)
{
    PromptSet *all = ctx;
    all->items = memory_grow(all->items, (size_t)all->n + 1, sizeof *all->items);
    PromptItem *p = &all->items[all->n++];
    *p = (PromptItem){.contrastive = view_text_is(v, "kind", "contrastive")};
    const ViewText texts[] = {
        {"id", &p->id}, {"task", &p->task}, {"split", &p->split}, {"text", &p->text}};
    return -(view_texts(v, texts, 4, err) || read_turn(v, p, err) || read_copies(v, p, err) ||
             read_shown(v, p, err));
}

int promptset_load(const char *path, PromptSet *out, Error *err)
{
    *out = (PromptSet){0};
    int rc = artifact_each(path, "prompts", read_prompt, out, err);
    if (rc) promptset_release(out);
    return rc;
}

static void release_item(PromptItem *p)
{
    free(p->id);
    free(p->task);
    free(p->split);
    free(p->text);
    free(p->group);
    free(p->parent);
    for (int i = 0; i < p->n_shown; i++) free(p->shown[i]);
    free(p->shown);
}

void promptset_release(PromptSet *p)
{
    for (long i = 0; i < p->n; i++) release_item(&p->items[i]);
    free(p->items);
    *p = (PromptSet){0};
}

void promptset_remove(PromptSet *p, long i)
{
    release_item(&p->items[i]);
    p->n--;
    memmove(p->items + i, p->items + i + 1, (size_t)(p->n - i) * sizeof *p->items);
}

long promptset_spread(PromptSet *p, int copies)
{
    long rows = 0;
    for (long i = 0; i < p->n; i++) {
        PromptItem *x = &p->items[i];
        if (!x->copies) x->copies = copies;
        x->first_row = rows;
        rows += x->copies;
    }
    return rows;
}

long promptset_row(const PromptSet *p, long row, int *copy)
{
    long low = 0, high = p->n - 1;
    while (low < high) {
        long middle = (low + high + 1) / 2;
        if (p->items[middle].first_row <= row)
            low = middle;
        else
            high = middle - 1;
    }
    *copy = (int)(row - p->items[low].first_row);
    return low;
}

uint64_t promptset_seed(const PromptItem *p, uint64_t seed, int trial)
{
    Random r;
    random_init(&r, seed ^ random_hash(p->id, strlen(p->id)), (uint64_t)trial);
    return random_u64(&r);
}

void promptset_ids(Record *r, const char *key, const int32_t *ids, size_t n)
{
    int64_t *wide = memory_array(n, sizeof *wide);
    for (size_t i = 0; i < n; i++) wide[i] = ids[i];
    record_ints(r, key, wide, n);
    free(wide);
}

Record *promptset_answer(const PromptItem *p, const PromptAnswer *a)
{
    Record *r = record_new();
    char id[512];
    snprintf(id, sizeof id, "%s/%d", p->id, a->trial);
    size_t code_len = 0;
    const char *code = strcmp(a->finish, "stop") ? NULL : answer_code(a->text, a->len, &code_len);
    record_text(r, "id", id);
    record_text(r, "task", p->task);
    record_text(r, "split", p->split);
    record_text(r, "stage", a->stage);
    record_text(r, "producer", a->producer);
    record_text(r, "group", p->group ? p->group : p->id);
    record_int(r, "trial", a->trial);
    record_int(r, "seed", (int64_t)(a->seed >> 1));
    record_text(r, "finish", a->finish);
    record_textn(r, "text", a->text, a->len);
    record_textn(r, "source", code ? code : "", code_len);
    record_text(r, "prompt", p->text);
    if (p->turn > 1) record_int(r, "turn", p->turn);
    if (p->parent) record_text(r, "parent", p->parent);
    return r;
}
