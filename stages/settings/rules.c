/* The words of the rules, their printer, and what all rules of a run share. */
#include "stages/settings/rules.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { MAX_TEXT = 4 << 20 };

static int find(const Rules *r, const char *name, size_t n)
{
    for (int i = 0; i < r->n; i++)
        if (!strncmp(r->words[i].name, name, n) && !r->words[i].name[n]) return i;
    return -1;
}

const char *rules_word(const Rules *r, const char *name)
{
    int i = find(r, name, strlen(name));
    assert(i >= 0);
    return r->words[i].value;
}

/* The text with the values of its words. Runs of blanks, such as around an empty word, become one. */
static char *expand(const Rules *r, const char *text)
{
    Buffer b;
    buffer_init(&b, MAX_TEXT);
    for (size_t n; *text; text += n) {
        n = strcspn(text, "{ ");
        buffer_append(&b, text, n);
        if (text[n] == ' ') {
            if (b.len && b.data[b.len - 1] != ' ') buffer_puts(&b, " ");
            n++;
        } else if (text[n] == '{') {
            const char *name = text + n + 1;
            size_t length = strcspn(name, "}");
            int i = find(r, name, length);
            assert(i >= 0 && name[length]);
            buffer_puts(&b, r->words[i].value);
            n += length + 2;
        }
    }
    while (b.len && b.data[b.len - 1] == ' ') b.data[--b.len] = 0;
    assert(!b.full);
    char *out = buffer_detach(&b);
    buffer_release(&b);
    return out;
}

static void assign(Rules *r, const char *name, char *value)
{
    int i = find(r, name, strlen(name));
    if (i < 0) {
        i = r->n++;
        r->words = memory_grow(r->words, (size_t)r->n, sizeof *r->words);
        r->words[i].name = name;
    } else {
        free(r->words[i].value);
    }
    r->words[i].value = value;
}

void rules_set(Rules *r, const char *name, const char *text)
{
    assign(r, name, expand(r, text));
}

void rules_set_text(Rules *r, const char *name, const char *text)
{
    assign(r, name, memory_strdup(text));
}

void rules_set_number(Rules *r, const char *name, long n)
{
    assign(r, name, memory_printf("%ld", n));
}

void rules_add(Rules *r, const char *name, const char *between, const char *text)
{
    const char *old = rules_word(r, name);
    char *more = expand(r, text);
    char *all = memory_printf("%s%s%s", old, *old && *more ? between : "", more);
    free(more);
    assign(r, name, all);
}

/* An endpoint alone is sampled as it is. One with BASE has the model as its adapter. */
void rules_use_model(Rules *r, const char *model)
{
    const Settings *s = r->settings;
    rules_set(r, "model", model);
    rules_set(r, "manifest", s->trained ? "{model}/manifest.qa" : "");
    rules_set(r, "policy",
              !*s->endpoint ? "{model} $(engine)"
              : s->trained  ? "$(asks) --adapter {model}"
                            : "$(asks)");
}

/* The name of the step that makes a file, which its log has, too: "crl-3-prompts". */
static char *step_name(const Rules *r, const char *target)
{
    char *name = memory_strdup(target + strlen(rules_word(r, "run")) + 1),
         *dot = strrchr(name, '.');
    if (dot) *dot = 0;
    for (char *p = name; (p = strchr(p, '/'));) *p = '-';
    return name;
}

static void print_rule(Rules *r, const Rule *rule)
{
    if (rule->when && !*rules_word(r, rule->when)) return;
    char *target = expand(r, rule->target), *needs = expand(r, rule->needs),
         *command = expand(r, rule->command), *name = step_name(r, target);
    buffer_printf(r->out, "\n%s: %s\n%s: %s\n\t$(run) $(B)/", name, target, target, needs);
    for (const char *p = command; *p; p++)
        buffer_append(r->out, *p == '\n' ? "\n\t" : p, *p == '\n' ? 2 : 1);
    buffer_puts(r->out, "\n");
    buffer_printf(&r->steps, " %s", name);
    free(name);
    free(command);
    free(needs);
    free(target);
}

void rules_print_table(Rules *r, const Rule *table, size_t n)
{
    for (size_t i = 0; i < n; i++) print_rule(r, &table[i]);
}

void rules_release(Rules *r)
{
    while (r->n) free(r->words[--r->n].value);
    free(r->words);
    buffer_release(&r->steps);
}

void settings_print_rules(const Settings *s, Buffer *out)
{
    Rules r = {.settings = s, .out = out};
    buffer_init(&r.steps, MAX_TEXT);
    char *run = memory_printf("%s/%s", setting_text(s, SETTING_RUNS), setting_text(s, SETTING_RUN));
    rules_set_text(&r, "run", run);
    free(run);
    rules_set(&r, "trained", s->trained ? "yes" : "");
    rules_set(&r, "facts_file",
              setting_is(s, SETTING_STYLE, "full") ? "{run}/baselines/verdicts.qa" : "");
    rules_set(&r, "pool", "{run}/collect/pool.qa");
    rules_print_rounds(&r);
    rules_set(&r, "selfsup_end", s->trained ? "{selfsup_model}/manifest.qa" : "{selfsup_pool}");
    rules_set(&r, "crl_manifest", "{manifest}");
    rules_print_report(&r);
    buffer_printf(out, "\n.PHONY:%s\n\n", r.steps.data);
    static const char *const shared[] = {"facts_file", "selfsup_end", "crl_manifest",
                                         "hacks",      "figures",     "class_files"};
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        buffer_printf(out, "override %s := %s\n", shared[i], rules_word(&r, shared[i]));
    rules_release(&r);
}
