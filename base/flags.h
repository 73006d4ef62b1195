/* Long command-line flags with checked values: --name VALUE or --name=VALUE, --name alone for
 * FLAG_BOOL. -h is short for --help, and -o for a flag named output. Each flag may be given once.
 * "--" ends the flags; "-" is a positional word, by which a program that reads a stream means
 * standard input. --help prints the usage on stdout and exits 0, --version likewise. A wrong flag
 * or value prints one sentence on stderr and exits with EXIT_STATUS_USAGE. For main only.
 *
 * --check-flags, which --help does not list, asks a program whether its other flags are right: it
 * exits 0 or with the usage error, and reads and writes nothing. quern-config checks the settings
 * of a run so. A required flag may then be missing, and reads as an empty text. */
#ifndef BASE_FLAGS_H
#define BASE_FLAGS_H

#include <stdint.h>

typedef enum { FLAG_BOOL, FLAG_INT, FLAG_FLOAT, FLAG_TEXT, FLAG_CHOICE } FlagKind;

typedef struct {
    const char *name; /* without the dashes; NULL ends the table */
    FlagKind kind;
    void *target;        /* int *, int64_t *, double *, const char **, int *; the default */
    const char *help;    /* a phrase; the default is appended */
    double min, max;     /* for FLAG_INT and FLAG_FLOAT when min < max */
    const char *choices; /* "one|two": of a FLAG_TEXT, or NULL; of a FLAG_CHOICE */
    int required;        /* FLAG_TEXT must be given */
    int aside; /* not part of the resolved configuration: a file name, or a matter of speed */
} Flag;

/* A row of a flag table, in a macro of rows. */
#define FLAG(...)   \
    {               \
        __VA_ARGS__ \
    }

typedef struct {
    const char *program;  /* "quern-eval" */
    const char *synopsis; /* "--task NAME --device DEVICE FILE.cu" */
    const char *about;    /* a paragraph */
    const Flag *flags;
    int min_words, max_words; /* positional words; max_words -1: any number */
    int stop_at_word; /* the first positional word ends the flags (quern-fleet run -- CMD) */
    int checkable;    /* the program takes --check-flags: its main calls flags_checked */
} FlagSpec;

/* Opens the log under the program's name (base/log.h). Puts the positional words into `words`, an array of
 * max_words entries, of argc where max_words is -1. More words are a usage error. Returns their number. */
int flags_parse(const FlagSpec *spec, int argc, char **argv, const char **words);

/* Returns 1 when the flag stood on the command line that was parsed last. */
int flags_given(const char *name);

/* A usage error when "-" is among the n words more than once. A word may be NULL. */
void flags_stdin_once(const FlagSpec *spec, const char *const *words, int n);
/* The same, and a usage error when a word is neither "-" nor a file that exists. */
void flags_need_files(const FlagSpec *spec, const char *const *words, int n);

/* Whether --check-flags was given. */
int flags_checking(void);
/* After all checks of the flags: exits 0 when --check-flags was given. */
void flags_checked(void);

/* Prints one sentence on stderr and exits with 2. For checks between flags. */
_Noreturn void flags_usage_error(const FlagSpec *spec, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
