/* Where a setting's value comes from: command line, environment, CONFIG, profile, default, in this
 * order. The first source that names a setting counts, whatever the later ones say. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "stages/settings/fragment.h"
#include "stages/settings/settings.h"

const char *setting_text(const Settings *s, SettingId id)
{
    return s->value[id].text ? s->value[id].text : "";
}

int setting_is(const Settings *s, SettingId id, const char *text)
{
    return !strcmp(setting_text(s, id), text);
}

long setting_number(const Settings *s, SettingId id)
{
    return atol(setting_text(s, id));
}

char *settings_in_run(const Settings *s, const char *name)
{
    return memory_printf("%s/%s/%s", setting_text(s, SETTING_RUNS), setting_text(s, SETTING_RUN),
                         name);
}

static void set_value(SettingValue *v, const char *text, const char *origin)
{
    char *copy = memory_strdup(text), *from = memory_strdup(origin);
    free(v->text);
    free(v->origin);
    *v = (SettingValue){copy, from};
}

void setting_default(Settings *s, SettingId id, const char *text, const char *origin)
{
    if (!s->value[id].text) set_value(&s->value[id], text, origin);
}

void setting_replace(Settings *s, SettingId id, char *text)
{
    free(s->value[id].text);
    s->value[id].text = text;
}

int setting_refuse(const Settings *s, SettingId id, Error *err, const char *fmt, ...)
{
    char rest[900];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(rest, sizeof rest, fmt, ap);
    va_end(ap);
    return error_set(err, ERROR_USAGE, "%s=%s%s", setting_table[id].name, setting_text(s, id),
                     rest);
}

/* ---- experiments ---- */

static int is_lab(const char *name, size_t len)
{
    return len > 4 && !memcmp(name, "LAB_", 4) &&
           strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") >= len;
}

/* The place of a value; one that is new has no text. */
static SettingValue *lab_value(LabSettings *l, const char *name, size_t len)
{
    for (int i = 0; i < l->n; i++)
        if (!strncmp(l->items[i].name, name, len) && !l->items[i].name[len])
            return &l->items[i].value;
    l->items = memory_grow(l->items, (size_t)l->n + 1, sizeof *l->items);
    l->items[l->n].name = memory_strndup(name, len);
    l->items[l->n].value = (SettingValue){0};
    return &l->items[l->n++].value;
}

static void lab_release(LabSettings *l)
{
    for (int i = 0; i < l->n; i++) {
        free(l->items[i].name);
        free(l->items[i].value.text);
        free(l->items[i].value.origin);
    }
    free(l->items);
    *l = (LabSettings){0};
}

/* ---- the command line ---- */

static int unknown(const char *name, const char *value, Error *err)
{
    const char *instead = setting_replacement(name), *near = setting_suggestion(name);
    if (instead)
        return error_set(err, ERROR_UNKNOWN_NAME, "%s=%s: %s is gone: %s", name, value, name,
                         instead);
    if (near)
        return error_set(err, ERROR_UNKNOWN_NAME,
                         "%s=%s: there is no such variable; did you mean %s?", name, value, near);
    return error_set(err, ERROR_UNKNOWN_NAME,
                     "%s=%s: there is no such variable; make help lists them", name, value);
}

/* Set the value without blanks at its ends, which Make would not keep either. */
static int set_trimmed(SettingValue *v, const char *text, const char *origin, const char *name,
                       Error *err)
{
    while (isspace((unsigned char)*text)) text++;
    size_t n = strlen(text);
    while (n && isspace((unsigned char)text[n - 1])) n--;
    char *value = memory_strndup(text, n);
    int rc = strpbrk(value, "\n\r")
                 ? error_set(err, ERROR_USAGE, "%s: expected one line, found several", name)
                 : 0;
    if (!rc) set_value(v, value, origin);
    free(value);
    return rc;
}

static int take_word(Settings *s, const char *word, Error *err)
{
    const char *sign = strchr(word, '=');
    if (!sign || sign == word)
        return error_set(err, ERROR_USAGE, "expected NAME=VALUE, found '%s'", word);
    size_t len = (size_t)(sign - word);
    SettingId id = setting_find(word, len);
    if (is_lab(word, len))
        return set_trimmed(lab_value(&s->lab, word, len), sign + 1, "the command line", "LAB_...",
                           err);
    if (id < SETTING_COUNT)
        return set_trimmed(&s->value[id], sign + 1, "the command line", setting_table[id].name,
                           err);
    char *name = memory_strndup(word, len);
    int rc = variable_known(name) ? 0 : unknown(name, sign + 1, err);
    free(name);
    return rc;
}

/* ---- the environment ---- */

static int take_environment(Settings *s, Error *err)
{
    for (SettingId i = 0; i < SETTING_COUNT; i++) {
        const char *text = setting_table[i].environment ? getenv(setting_table[i].name) : NULL;
        if (i == SETTING_TASK_ROOT && text && !*text) continue; /* as if it were not set */
        if (text && !s->value[i].text &&
            set_trimmed(&s->value[i], text, "the environment", setting_table[i].name, err))
            return -1;
    }
    return 0;
}

/* ---- files ---- */

typedef struct {
    SettingValue value[SETTING_COUNT];
    LabSettings lab;
} Layer;

static void set_line(SettingValue *v, const FragmentLine *line)
{
    if (!line->weak || !v->text) set_value(v, line->value, line->where);
}

static int take_line(void *ctx, const FragmentLine *line, Error *err)
{
    Layer *l = ctx;
    const size_t len = strlen(line->name);
    const SettingId id = setting_find(line->name, len);
    if (is_lab(line->name, len)) {
        set_line(lab_value(&l->lab, line->name, len), line);
        return 0;
    }
    const char *instead = id == SETTING_COUNT ? setting_replacement(line->name) : NULL;
    if (instead)
        return error_set(err, ERROR_UNKNOWN_NAME, "%s: %s is gone: %s", line->where, line->name,
                         instead);
    const char *near = id == SETTING_COUNT ? setting_suggestion(line->name) : NULL;
    if (id == SETTING_COUNT)
        return error_set(err, ERROR_UNKNOWN_NAME, "%s: %s: there is no such setting%s%s%s",
                         line->where, line->name, near ? "; did you mean " : "", near ? near : "",
                         near ? "?" : "");
    if (id == SETTING_CONFIG)
        return error_set(err, ERROR_USAGE, "%s: CONFIG is for the command line; expected include",
                         line->where);
    set_line(&l->value[id], line);
    return 0;
}

/* The file's settings where no source before it had them. */
static int take_file(Settings *s, const char *path, Error *err)
{
    Layer l = {0};
    int rc = fragment_read(path, s->share, take_line, &l, err);
    for (SettingId i = 0; i < SETTING_COUNT; i++) {
        if (!rc && !s->value[i].text) {
            s->value[i] = l.value[i];
            continue;
        }
        free(l.value[i].text);
        free(l.value[i].origin);
    }
    for (int i = 0; i < l.lab.n && !rc; i++) {
        const char *name = l.lab.items[i].name;
        SettingValue *v = lab_value(&s->lab, name, strlen(name));
        if (!v->text) set_value(v, l.lab.items[i].value.text, l.lab.items[i].value.origin);
    }
    lab_release(&l.lab);
    return rc;
}

static int take_config(Settings *s, Error *err)
{
    const char *name = setting_text(s, SETTING_CONFIG);
    if (!*name) return 0;
    char *path = fragment_find(name, NULL, s->share);
    int rc = path ? take_file(s, path, err)
                  : setting_refuse(s, SETTING_CONFIG, err, ": there is no such file");
    free(path);
    return rc;
}

/* QUERN_TASKS is there and is another folder than Quern's own. */
static int has_other_tasks(const Settings *s)
{
    const char *root = s->value[SETTING_TASK_ROOT].text;
    char *own = memory_printf("%s/tasks", s->share), *a = root ? realpath(root, NULL) : NULL,
         *b = realpath(own, NULL);
    int other = root && !(a && b && !strcmp(a, b));
    free(own);
    free(a);
    free(b);
    return other;
}

/* The tasks that a profile names are Quern's own: in another folder all tasks count. */
static int take_profile(Settings *s, Error *err)
{
    if (has_other_tasks(s))
        setting_default(s, SETTING_TASKS, setting_table[SETTING_TASKS].fallback,
                        SETTING_ALL_OF_ROOT);
    setting_default(s, SETTING_PROFILE, setting_table[SETTING_PROFILE].fallback, "the default");
    const char *name = setting_text(s, SETTING_PROFILE);
    char *path = memory_printf("configs/%s.mk", name);
    char *found = *name && !strchr(name, '/') ? fragment_find(path, NULL, s->share) : NULL;
    int rc = found ? take_file(s, found, err)
                   : setting_refuse(s, SETTING_PROFILE, err,
                                    ": expected the name of a file in configs/, such as smoke or "
                                    "default");
    free(path);
    free(found);
    return rc;
}

static void take_defaults(Settings *s)
{
    for (SettingId i = 0; i < SETTING_COUNT; i++)
        if (setting_table[i].fallback)
            setting_default(s, i, setting_table[i].fallback, "the default");
}

int settings_resolve(const char *const *words, int n, Settings *s, Error *err)
{
    for (int i = 0; i < n; i++)
        if (take_word(s, words[i], err)) return -1;
    if (take_environment(s, err) || take_config(s, err) || take_profile(s, err)) return -1;
    take_defaults(s);
    return 0;
}

void settings_release(Settings *s)
{
    for (SettingId i = 0; i < SETTING_COUNT; i++) {
        free(s->value[i].text);
        free(s->value[i].origin);
    }
    lab_release(&s->lab);
    free(s->gpus);
    free(s->local);
    free(s->local_classes);
    free(s->endpoint);
    free(s->checkpoint);
    free(s->starter);
    free(s->tasks_digest);
    free(s->tasks_files);
    *s = (Settings){0};
}
