/* The rules of a run's rounds and of its report, for Make: one plain rule a step.
 *
 * A step is a row of a table: what it makes, from what, and by which command, with words in braces for
 * what differs from round to round. "{dir}/prompts.qa" is runs/x/crl/3/prompts.qa in round 3 of stage
 * 3. The printed rule has the paths themselves; what is the same in all rounds stays a variable of
 * pipeline.mk, such as $(SEED), and so do the programs that an experiment may replace: $(prompt). */
#ifndef STAGES_SETTINGS_RULES_H
#define STAGES_SETTINGS_RULES_H

#include "stages/settings/settings.h"

typedef struct {
    const char *when;    /* a word: the rule is there where that has a value; NULL: always */
    const char *target;  /* the file that is made */
    const char *needs;   /* what it is made from; behind "|" what it only waits for */
    const char *command; /* a program and its arguments; behind "\n" more lines of the recipe */
} Rule;

typedef struct {
    const char *name;
    char *value;
} RuleWord;

/* The words, and where the rules go. */
typedef struct {
    RuleWord *words;
    int n;
    const Settings *settings;
    Buffer *out;
    Buffer steps; /* the short names of the printed rules: " crl-3-prompts crl-3-samples" */
} Rules;

/* Set a word. Words in braces in the text stand for their values of now. name outlives the rules. */
void rules_set(Rules *r, const char *name, const char *text);
void rules_set_number(Rules *r, const char *name, long n);
/* The same with a text whose braces and blanks mean nothing. */
void rules_set_text(Rules *r, const char *name, const char *text);
/* Set model, policy and manifest: a model directory, what samples it, and its file, if one is trained. */
void rules_use_model(Rules *r, const char *model);
/* Append to a word's value, behind `between` where it has one; the text as for rules_set. */
void rules_add(Rules *r, const char *name, const char *between, const char *text);
/* The value of a word that was set. */
const char *rules_word(const Rules *r, const char *name);
/* Print the rules of a table with the words of now. */
void rules_print_table(Rules *r, const Rule *table, size_t n);
void rules_release(Rules *r);

/* Stages 2 and 3. Leaves in pool, hacks and model what the last round has made, and in figures the
 * list of all rounds' metrics. */
void rules_print_rounds(Rules *r);
/* The report's part, after that: adds to figures, and sets class_files. */
void rules_print_report(Rules *r);

#endif
