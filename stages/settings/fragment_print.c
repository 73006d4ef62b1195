/* The Make fragment that pipeline.mk includes. Every assignment has `override`, since the values of
 * Make's command line, which a Make below it inherits, would otherwise hide the checked ones. */
#include <ctype.h>
#include <stdlib.h>

#include "base/memory.h"
#include "stages/policy/budget.h"
#include "stages/settings/settings.h"

/* The text as Make reads it back: "$" doubled, and no letter that ends a value. */
static void print_escaped(Buffer *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '$')
            buffer_puts(out, "$$");
        else if (*text == '#')
            buffer_puts(out, "$(hash)");
        else
            buffer_append(out, text, 1);
    }
    if (out->len && out->data[out->len - 1] == '\\') buffer_puts(out, "$(empty)");
}

static void print_value(Buffer *out, const char *name, const char *text)
{
    buffer_printf(out, "override %s :=%s", name, *text ? " " : "");
    print_escaped(out, text);
    buffer_puts(out, "\n");
}

/* The words without runs of blanks, as Make's strip leaves them. */
static void append_stripped(Buffer *out, const char *text)
{
    for (; *text; text++) {
        int blank = isspace((unsigned char)*text);
        if (!blank || (text[1] && !isspace((unsigned char)text[1])))
            buffer_append(out, blank ? " " : text, 1);
    }
}

static void print_stamp(const Settings *s, int stamp, Buffer *out)
{
    Buffer text;
    char *name = memory_printf("stamp_%s", stamp_names[stamp]);
    buffer_init(&text, 1 << 18);
    for (SettingId i = 0; i < SETTING_COUNT; i++) {
        if (!(setting_table[i].stamps & 1u << stamp)) continue;
        buffer_printf(&text, "%s%s=", text.len ? " " : "", setting_table[i].name);
        append_stripped(&text, setting_text(s, i));
    }
    print_value(out, name, text.data);
    buffer_release(&text);
    free(name);
}

static void print_word(Buffer *out, const char *name, const char *text)
{
    char *word = *text ? setting_shell_word(text) : memory_strdup("");
    print_value(out, name, word);
    free(word);
}

static void print_lists(const Settings *s, Buffer *out)
{
    Budget b;
    if (!budget_parse(setting_text(s, SETTING_BUDGET), &b, NULL) && b.seconds > 0)
        buffer_printf(out, "override budget_seconds := %.0f\n", b.seconds);
    print_value(out, "found_gpus", s->gpus);
    print_value(out, "local_devices", s->local);
    print_word(out, "device", setting_text(s, SETTING_DEVICE));
    print_word(out, "teachers", setting_text(s, SETTING_TEACHERS));
    print_word(out, "endpoint", s->endpoint);
    print_word(out, "checkpoint", s->checkpoint);
    print_value(out, "trained", s->trained ? "yes" : "");
    print_value(out, "stamp_tasks", s->tasks_digest);
    print_value(out, "tasks_files", s->tasks_files);
}

void settings_print(const Settings *s, Buffer *out)
{
    buffer_printf(
        out,
        "# The settings of run %s, by quern-config: for pipeline.mk, which includes them. "
        "They are\n# resolved again at every start, so that a change here is lost.\n"
        "override empty :=\noverride hash := \\#\n",
        setting_text(s, SETTING_RUN));
    for (SettingId i = 0; i < SETTING_COUNT; i++) {
        if (setting_table[i].kind == SETTING_KIND_DERIVED) continue;
        buffer_printf(out, "# from %s\n", s->value[i].origin ? s->value[i].origin : "the default");
        print_value(out, setting_table[i].name, setting_text(s, i));
    }
    for (int i = 0; i < s->lab.n; i++) {
        buffer_printf(out, "# from %s\n", s->lab.items[i].value.origin);
        print_value(out, s->lab.items[i].name, s->lab.items[i].value.text);
    }
    buffer_puts(out, "\n# ---- what follows from them ----\noverride lab :=");
    for (int i = 0; i < s->lab.n; i++) buffer_printf(out, " %s", s->lab.items[i].name);
    buffer_puts(out, "\n");
    for (SettingId i = 0; i < SETTING_COUNT; i++)
        if (setting_table[i].kind == SETTING_KIND_DERIVED)
            print_value(out, setting_table[i].name, setting_text(s, i));
    print_lists(s, out);
    buffer_puts(out, "\n# ---- stamps: a stage is made again when its text changes ----\n");
    for (int i = 0; i < STAMP_COUNT; i++) print_stamp(s, i, out);
    buffer_puts(out, "\n# ---- rules: stages 2 and 3, round by round, and the report's ----\n");
    settings_print_rules(s, out);
}
