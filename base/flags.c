/* Parses argv against a table of flags. The state of the last parse is kept for flags_given. */
#include "base/flags.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/exit_status.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/version.h"
#include "base/words.h"

enum { HELP_COLUMNS = 100, HELP_MAX = 1 << 20 };

static const FlagSpec *parsed; /* the program's, from flags_parse on */
static unsigned char *given;   /* for each flag of its table: 1 when it was given */
static int checking;

int flags_checking(void)
{
    return checking;
}

void flags_checked(void)
{
    if (checking) exit(EXIT_STATUS_OK);
}

static const char *kind_word(FlagKind k)
{
    return k == FLAG_INT ? " N" : k == FLAG_FLOAT ? " X" : k == FLAG_BOOL ? "" : " TEXT";
}

static void add_default(Buffer *b, const Flag *f)
{
    if (f->kind == FLAG_INT) buffer_printf(b, " (default %lld)", (long long)*(int64_t *)f->target);
    if (f->kind == FLAG_FLOAT) buffer_printf(b, " (default %g)", *(double *)f->target);
    const char *text = f->kind == FLAG_TEXT ? *(const char **)f->target : NULL;
    size_t n = text ? strlen(text) : 0;
    if (f->kind == FLAG_CHOICE) text = word_chosen(f->choices, *(int *)f->target, &n);
    if (n) buffer_printf(b, " (default %.*s)", (int)n, text);
    if (f->required) buffer_puts(b, " (required)");
}

/* Prints a text in lines of at most HELP_COLUMNS, broken at blanks and after "|". The first begins
 * at `column`; lines after a break begin with `margin` blanks, or below the second field of a row
 * "  NAME   TEXT". A newline in the text ends a line, too. */
static void print_wrapped(const char *text, int column, int margin)
{
    int indent = margin;
    while (*text) {
        size_t blanks = strspn(text, " "), word = strcspn(text + blanks, " \n|");
        if (text[blanks + word] == '|') word++;
        if (!column && blanks) indent = (int)(blanks + word + strspn(text + blanks + word, " "));
        if (word && column > indent && (size_t)column + blanks + word > HELP_COLUMNS) {
            printf("\n%*s", indent, "");
            column = indent;
            text += blanks;
            blanks = 0;
        }
        printf("%.*s", (int)(blanks + word), text);
        column += (int)(blanks + word);
        text += blanks + word;
        if (*text != '\n') continue;
        putchar('\n');
        column = 0;
        indent = margin;
        text++;
    }
    putchar('\n');
}

/* Ends the program after --help or --version. */
static _Noreturn void end_printed(const FlagSpec *spec)
{
    if (!fflush(stdout) && !ferror(stdout)) exit(EXIT_STATUS_OK);
    fprintf(stderr, "%s: cannot write to stdout: %s\n", spec->program, strerror(errno));
    exit(EXIT_STATUS_SYSTEM);
}

static _Noreturn void help(const FlagSpec *spec)
{
    Buffer b;
    buffer_init(&b, HELP_MAX);
    printf("usage: %s ", spec->program);
    print_wrapped(spec->synopsis, (int)strlen(spec->program) + 8, 8);
    putchar('\n');
    print_wrapped(spec->about, 0, 0);
    putchar('\n');
    for (const Flag *f = spec->flags; f && f->name; f++) {
        printf("  %s--%s%s\n        ", strcmp(f->name, "output") ? "" : "-o, ", f->name,
               kind_word(f->kind));
        buffer_clear(&b);
        buffer_puts(&b, f->help);
        if (f->choices) buffer_printf(&b, ": %s", f->choices);
        add_default(&b, f);
        print_wrapped(b.data, 8, 8);
    }
    printf("  -h, --help\n  --version\n");
    buffer_release(&b);
    end_printed(spec);
}

_Noreturn void flags_usage_error(const FlagSpec *spec, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "%s: ", spec->program);
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, "; see %s --help\n", spec->program);
    va_end(ap);
    exit(EXIT_STATUS_USAGE);
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

int flags_given(const char *name)
{
    const Flag *f = find(parsed, name, strlen(name));
    return f && given[f - parsed->flags];
}

void flags_stdin_once(const FlagSpec *spec, const char *const *words, int n)
{
    int seen = 0;
    for (int i = 0; i < n; i++)
        if (words[i] && !strcmp(words[i], "-") && seen++)
            flags_usage_error(spec, "standard input (-) is given twice");
}

void flags_need_files(const FlagSpec *spec, const char *const *words, int n)
{
    flags_stdin_once(spec, words, n);
    for (int i = 0; i < n; i++)
        if (words[i] && strcmp(words[i], "-") && !file_exists(words[i]))
            flags_usage_error(spec, "cannot open %s: No such file or directory", words[i]);
}

/* Handles argv[i]. Returns how many words it took. */
static int one_flag(const FlagSpec *spec, int argc, char **argv, int i)
{
    const char *name = argv[i] + 2, *eq = strchr(name, '=');
    size_t n = eq ? (size_t)(eq - name) : strlen(name);
    if (!strcmp(name, "help")) help(spec);
    if (!strcmp(name, "version")) {
        printf("%s %s\n", spec->program, quern_version);
        end_printed(spec);
    }
    if (spec->checkable && !strcmp(name, "check-flags")) {
        if (checking++) flags_usage_error(spec, "--check-flags is given twice");
        return 1;
    }
    const Flag *f = find(spec, name, n);
    if (!f) flags_usage_error(spec, "unknown flag '--%.*s'", (int)n, name);
    if (given[f - spec->flags]++) flags_usage_error(spec, "--%s is given twice", f->name);
    if (f->kind == FLAG_BOOL) {
        if (eq) flags_usage_error(spec, "--%s takes no value", f->name);
        *(int *)f->target = 1;
        return 1;
    }
    const char *value = eq ? eq + 1 : i + 1 < argc ? argv[i + 1] : NULL;
    if (!value) flags_usage_error(spec, "--%s expects a value", f->name);
    int place = f->choices ? word_choice(f->choices, value) : 0;
    if (place < 0)
        flags_usage_error(spec, "--%s expects one of %s, found '%s'", f->name, f->choices, value);
    if (f->kind == FLAG_TEXT)
        *(const char **)f->target = value;
    else if (f->kind == FLAG_CHOICE)
        *(int *)f->target = place;
    else
        set_number(spec, f, value);
    return eq ? 1 : 2;
}

/* Returns the long form of "-h" and "-o", the only short flags, or NULL. */
static char *long_form(const FlagSpec *spec, const char *word)
{
    static char help[] = "--help", output[] = "--output";
    if (!strcmp(word, "-h")) return help;
    return !strcmp(word, "-o") && find(spec, "output", 6) ? output : NULL;
}

static void begin(const FlagSpec *spec)
{
    size_t n = 0;
    while (spec->flags && spec->flags[n].name) n++;
    free(given);
    given = memory_array(n, sizeof *given);
    parsed = spec;
    checking = 0;
}

int flags_parse(const FlagSpec *spec, int argc, char **argv, const char **words)
{
    int n = 0, only_words = 0;
    log_open(spec->program);
    begin(spec);
    for (int i = 1; i < argc;) {
        if (only_words || argv[i][0] != '-' || !argv[i][1]) {
            if (spec->max_words < 0 || n < spec->max_words) words[n] = argv[i];
            n++;
            i++;
            only_words |= spec->stop_at_word;
            continue;
        }
        char *name = long_form(spec, argv[i]);
        if (name) argv[i] = name;
        if (argv[i][1] != '-')
            flags_usage_error(spec, "unknown flag '%s' (flags are long: --name)", argv[i]);
        if (argv[i][2]) {
            i += one_flag(spec, argc, argv, i);
        } else {
            only_words = 1;
            i++;
        }
    }
    for (const Flag *f = spec->flags; f && f->name; f++) {
        if (!f->required || *(const char **)f->target) continue;
        if (!checking) flags_usage_error(spec, "--%s is required", f->name);
        *(const char **)f->target = "";
    }
    if ((n < spec->min_words && !checking) || (spec->max_words >= 0 && n > spec->max_words))
        flags_usage_error(spec, "expected %s%s%s, found %d word%s", spec->program,
                          *spec->synopsis ? " " : "", spec->synopsis, n, n == 1 ? "" : "s");
    return n;
}
