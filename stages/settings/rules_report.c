/* What the report compares: the final model of each stage with the same prompts and number of samples,
 * and the best kernels on every class of devices. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "stages/settings/rules.h"

static const Rule sampled[] = {
    {NULL, "{dir}/samples.qa", "{asked} {manifest} {run}/cfg/report {wait}",
     "quern-sample --policy {policy} --prompts {asked} --output $@ --stage {stage} "
     "--copies $(REPORT_SAMPLES) $(SAMPLE) --seed $(SEED)"},
    {NULL, "{dir}/verdicts.qa", "{dir}/samples.qa {run}/cfg/device",
     "quern-evaluate {dir}/samples.qa --output $@ $(contents) --device $(device)"},
};

/* The pool of the whole run, with the report's samples. */
static const Rule compared[] = {
    {NULL, "{dir}/pool.qa", "{dir}/samples.qa {dir}/verdicts.qa {pool}",
     "quern-pool --pool {pool} --samples {dir}/samples.qa --verdicts {dir}/verdicts.qa --output $@ "
     "--prompts {asked} --stage {stage} --round 0"},
    {NULL, "{dir}/metrics.qa", "{dir}/samples.qa {dir}/verdicts.qa {run}/cfg/tasks",
     "quern-figures --samples {dir}/samples.qa --verdicts {dir}/verdicts.qa --output $@ "
     "--tasks $(call quoted,$(TASKS))"},
};

static const Rule judged_on[] = {
    {NULL, "{run}/best/verdicts-{file}.qa", "{run}/best/samples.qa {run}/cfg/device",
     "{fleet}quern-evaluate {run}/best/samples.qa --output $@ $(contents) $(again) "
     "--device {class}"},
};

#define PRINT(r, table) rules_print_table(r, table, sizeof(table) / sizeof *(table))

/* A program that samples or trains a checkpoint takes the memory that is free (docs/model.md), and a second
 * one would find too little. So these wait for the rounds and for each other. */
static void print_sampled(Rules *r)
{
    const Settings *s = r->settings;
    rules_set(r, "wait", *s->checkpoint && !*s->endpoint ? "| {before}" : "");
    PRINT(r, sampled);
    rules_set(r, "before", "{dir}/samples.qa");
    rules_add(r, "figures", " ", "{dir}/metrics.qa");
}

static void print_stage(Rules *r, const char *stage, const char *model)
{
    rules_set(r, "stage", stage);
    rules_set(r, "dir", "{run}/report/{stage}");
    rules_use_model(r, model);
    print_sampled(r);
    PRINT(r, compared);
    rules_set(r, "pool", "{dir}/pool.qa");
}

/* word: a class as CLASSES has it, NVIDIA+H200. A simulated one that no local evaluator serves brings its
 * own. */
static void print_class(Rules *r, const char *word)
{
    const Settings *s = r->settings;
    char *class = memory_strdup(word), *file = memory_strdup(word),
         *judge = memory_strdup(setting_text(s, SETTING_DEVICE));
    setting_replace_letter(class, '+', ' ');
    setting_replace_letter(judge, ' ', '+');
    setting_replace_letter(file, ':', '-');
    setting_replace_letter(file, '/', '-');
    const int own = !strncmp(word, "sim:", 4) && strcmp(word, judge) &&
                    !setting_has_word(s->local_classes, word, strlen(word));
    char *quoted = setting_shell_word(class);
    rules_set_text(r, "word", word);
    rules_set_text(r, "class", quoted);
    rules_set_text(r, "file", file);
    rules_set(r, "fleet", own ? "quern-fleet run --devices {word} --workers 1 -- $(B)/" : "");
    PRINT(r, judged_on);
    rules_add(r, "class_files", " ", "{run}/best/verdicts-{file}.qa");
    free(quoted);
    free(judge);
    free(file);
    free(class);
}

void rules_print_report(Rules *r)
{
    const Settings *s = r->settings;
    const char *p = setting_text(s, SETTING_CLASSES), *word;
    size_t n;
    rules_set(r, "crl_model", "{model}");
    rules_set(r, "before", *rules_word(r, "updates") ? "{model}/manifest.qa" : "{pool}");
    rules_set(r, "asked", "{run}/report/prompts.qa");
    print_stage(r, "sft", "{run}/sft/model");
    print_stage(r, "selfsup", "{selfsup_model}");
    print_stage(r, "crl", "{crl_model}");
    rules_set(r, "class_files", "");
    while ((word = setting_next_word(&p, &n))) {
        char *class = memory_strndup(word, n);
        print_class(r, class);
        free(class);
    }
}
