/* Parses argv against a table of flags. */
#include "base/flags.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/version.h"

static int checking;

int flags_checking(void)
{
    return checking;
}

void flags_checked(void)
{
    if (checking) exit(0);
}

static const char *kind_word(FlagKind k)
{
    return k == FLAG_INT ? " N" : k == FLAG_FLOAT ? " X" : k == FLAG_TEXT ? " TEXT" : "";
}

static void print_default(const Flag *f)
{
    if (f->kind == FLAG_INT) printf(" (default %lld)", (long long)*(int64_t *)f->target);
    if (f->kind == FLAG_FLOAT) printf(" (default %g)", *(double *)f->target);
    const char *text = f->kind == FLAG_TEXT ? *(const char **)f->target : NULL;
    if (text && *text) printf(" (default %s)", text);
    if (f->required) printf(" (required)");
}

static _Noreturn void help(const FlagSpec *spec)
{
    printf("usage: %s %s\n\n%s\n\n", spec->program, spec->synopsis, spec->about);
    for (const Flag *f = spec->flags; f && f->name; f++) {
        printf("  --%s%s\n        %s", f->name, kind_word(f->kind), f->help);
        if (f->choices) printf(": %s", f->choices);
        print_default(f);
        putchar('\n');
    }
    printf("  --help\n  --version\n");
    exit(fflush(stdout) ? 1 : 0);
}

_Noreturn void flags_usage_error(const FlagSpec *spec, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "%s: ", spec->program);
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, "; see %s --help\n", spec->program);
    va_end(ap);
    exit(2);
}

static int chosen(const char *choices, const char *value)
{
    size_t n = strlen(value);
    for (const char *p = choices; p; p = strchr(p, '|') ? strchr(p, '|') + 1 : NULL)
        if (!strncmp(p, value, n) && (p[n] == 0 || p[n] == '|')) return 1;
    return 0;
}

static void set_number(const FlagSpec *spec, const Flag *f, const char *value)
{
    char *rest;
    errno = 0;
    long long whole = 0;
    double x;
    if (f->kind == FLAG_INT) {
        whole = strtoll(value, &rest, 10);
        x = (double)whole;
    } else {
        x = strtod(value, &rest);
    }
    if (errno || rest == value || *rest || !isfinite(x))
        flags_usage_error(spec, "--%s expects %s, found '%s'", f->name,
                          f->kind == FLAG_INT ? "an integer" : "a number", value);
    if (f->min < f->max && (x < f->min || x > f->max))
        flags_usage_error(spec, "--%s expects a value from %g to %g, found %s", f->name, f->min,
                          f->max, value);
    if (f->kind == FLAG_INT)
        *(int64_t *)f->target = whole;
    else
        *(double *)f->target = x;
}

static const Flag *find(const FlagSpec *spec, const char *name, size_t n)
{
    for (const Flag *f = spec->flags; f && f->name; f++)
        if (strlen(f->name) == n && !strncmp(f->name, name, n)) return f;
    return NULL;
}

/* Handle argv[i]; returns how many words it took. */
static int one_flag(const FlagSpec *spec, int argc, char **argv, int i)
{
    const char *name = argv[i] + 2, *eq = strchr(name, '=');
    size_t n = eq ? (size_t)(eq - name) : strlen(name);
    if (!strcmp(name, "help")) help(spec);
    if (!strcmp(name, "version")) {
        printf("%s %s\n", spec->program, quern_version);
        exit(fflush(stdout) ? 1 : 0);
    }
    if (spec->checkable && !strcmp(name, "check-flags")) {
        checking = 1;
        return 1;
    }
    const Flag *f = find(spec, name, n);
    if (!f) flags_usage_error(spec, "unknown flag '--%.*s'", (int)n, name);
    if (f->kind == FLAG_BOOL) {
        if (eq) flags_usage_error(spec, "--%s takes no value", f->name);
        *(int *)f->target = 1;
        return 1;
    }
    const char *value = eq ? eq + 1 : i + 1 < argc ? argv[i + 1] : NULL;
    if (!value) flags_usage_error(spec, "--%s expects a value", f->name);
    if (f->kind == FLAG_TEXT) {
        if (f->choices && !chosen(f->choices, value))
            flags_usage_error(spec, "--%s expects one of %s, found '%s'", f->name, f->choices,
                              value);
        *(const char **)f->target = value;
    } else {
        set_number(spec, f, value);
    }
    return eq ? 1 : 2;
}

int flags_parse(const FlagSpec *spec, int argc, char **argv, const char **words)
{
    static char output[] =
        "--output"; /* "-o FILE", the one short form: everybody's fingers know it */
    int n = 0, only_words = 0;
    for (int i = 1; i < argc;) {
        if (!only_words && !strcmp(argv[i], "--")) {
            only_words = 1;
            i++;
        } else if (!only_words && !strcmp(argv[i], "-o") && find(spec, "output", 6)) {
            argv[i] = output;
            i += one_flag(spec, argc, argv, i);
        } else if (!only_words && argv[i][0] == '-' && argv[i][1] == '-') {
            i += one_flag(spec, argc, argv, i);
        } else if (!only_words && argv[i][0] == '-' && argv[i][1]) {
            flags_usage_error(spec, "unknown flag '%s' (flags are long: --name)", argv[i]);
        } else {
            words[n++] = argv[i++];
            only_words |= spec->stop_at_word;
        }
    }
    for (const Flag *f = spec->flags; f && f->name; f++) {
        if (!f->required || *(const char **)f->target) continue;
        if (!checking) flags_usage_error(spec, "--%s is required", f->name);
        *(const char **)f->target = "";
    }
    if (checking) return n;
    if (n < spec->min_words || (spec->max_words >= 0 && n > spec->max_words))
        flags_usage_error(spec, "expected %s %s, found %d word%s", spec->program, spec->synopsis, n,
                          n == 1 ? "" : "s");
    return n;
}
