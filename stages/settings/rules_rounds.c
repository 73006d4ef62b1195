/* Stages 2 and 3: selfsup/N and crl/N. A round begins with the pool and the model that the one before has
 * left. */
#include "stages/settings/rules.h"

/* ---- the tables ---- */

static const Rule prompts[] = {
    {NULL, "{dir}/prompts.qa", "{pool} {run}/cfg/{stage} {run}/cfg/tasks {facts_file}",
     "$(prompt) --output $@ --pool {pool} $(tasks) --stage {stage}-{n} "
     "$({stage}_prompts) "
     "--style $(STYLE) $(facts) --seed $(SEED)"},
};

/* Answers, and their verdicts. The pool before a round tells which of its scores are records
 * (docs/gpu-verdict.md). */
static const Rule answers[] = {
    {NULL, "{turn}/samples.qa", "{asked} {manifest} {run}/cfg/{stage}",
     "$(answer) --policy {policy} --prompts {asked} --output $@ --stage {stage}-{n} "
     "{copies} $(SAMPLE) --seed $(SEED)"},
    {NULL, "{turn}/verdicts.qa", "{turn}/samples.qa {pool} {run}/cfg/device",
     "quern-evaluate {turn}/samples.qa --output $@ $(contents) --best {pool} --device $(device)"},
};

/* With TURNS above 1: the verdicts of the turn before go back, and each is answered once. */
static const Rule next_turn[] = {
    {NULL, "{turn}/prompts.qa",
     "{before}/samples.qa {before}/verdicts.qa {run}/cfg/crl {run}/cfg/tasks {facts_file}",
     "quern-refine --samples {before}/samples.qa --verdicts {before}/verdicts.qa --output $@ "
     "--turn {t} $(known_tasks) --style $(STYLE) $(facts)"},
};

/* All turns of a round, the first one first. */
static const Rule join[] = {
    {NULL, "{dir}/samples.qa", "{all_samples}", "quern-join --output $@ {all_samples}"},
    {NULL, "{dir}/verdicts.qa", "{all_verdicts}", "quern-join --output $@ {all_verdicts}"},
};

/* The pool after a round; its success, its scores, and how often the model's comparisons are right. */
static const Rule judged[] = {
    {NULL, "{dir}/pool.qa", "{dir}/samples.qa {dir}/verdicts.qa {pool} {dir}/prompts.qa {reviews}",
     "quern-pool --pool {pool} --samples {dir}/samples.qa --verdicts {dir}/verdicts.qa --output $@ "
     "--stage {stage} --round {n} --prompts {dir}/prompts.qa {reviewed}\n$(live)"},
    {NULL, "{dir}/metrics.qa", "{dir}/samples.qa {dir}/verdicts.qa {run}/cfg/tasks",
     "quern-figures --samples {dir}/samples.qa --verdicts {dir}/verdicts.qa --output $@ "
     "--tasks $(call quoted,$(TASKS)) --round {n}"},
};

static const Rule selfsup_model[] = {
    {"trained", "{dir}/model/manifest.qa",
     "{dir}/samples.qa {dir}/verdicts.qa {model}/manifest.qa {run}/sft/dataset.qa "
     "{run}/cfg/selfsup",
     "quern-selfsup --base {model} --samples {dir}/samples.qa --verdicts {dir}/verdicts.qa "
     "--history \"{history}\" --rehearse {run}/sft/dataset.qa --output {dir}/model $(SELFSUP) "
     "$(training) $(memory) --seed $(SEED)"},
};

/* Stage 3 remembers the hacks of each round. The reviews of a round's records may withhold their rewards.
 * With UPDATE=none its model stays as it is. */
static const Rule crl_model[] = {
    {NULL, "{dir}/hacks.qa", "{dir}/samples.qa {dir}/verdicts.qa {hacks}",
     "quern-hacks --samples {dir}/samples.qa --verdicts {dir}/verdicts.qa --hacks {hacks} "
     "--output $@"},
    {NULL, "{dir}/reviews.qa", "{dir}/samples.qa {dir}/verdicts.qa {pool} {hacks} {run}/cfg/crl",
     "quern-review --samples {dir}/samples.qa --verdicts {dir}/verdicts.qa --pool {pool} "
     "--hacks {hacks} --output $@ $(known_tasks) --judge $(JUDGE) {judge_spend} "
     "--device $(device) $(contents:--seed%=--eval-seed%)"},
    {"learn", "{dir}/model/manifest.qa",
     "{dir}/samples.qa {dir}/verdicts.qa {model}/manifest.qa {dir}/reviews.qa {run}/cfg/crl",
     "$(update) --base {model} --samples {dir}/samples.qa --verdicts {dir}/verdicts.qa "
     "--output {dir}/model --reviews {dir}/reviews.qa --history \"{history}\" "
     "--reference {selfsup_model} $(CRL) $(training) $(memory) --seed $(SEED)"},
};

#define PRINT(r, table) rules_print_table(r, table, sizeof(table) / sizeof *(table))

/* ---- a round ---- */

/* The eight rounds before, oldest first. Stage 2 learns from their kernels; stage 3 has their rewards in
 * its statistics, each at half the weight of the next, so that older ones do not matter. */
static void set_history(Rules *r, long n)
{
    enum { ROUNDS = 8 };
    rules_set(r, "history", "");
    for (long k = n > ROUNDS ? n - ROUNDS : 1; k < n; k++) {
        rules_set_number(r, "k", k);
        rules_add(r, "history", ",", "{run}/{stage}/{k}/samples.qa:{run}/{stage}/{k}/verdicts.qa");
    }
}

static void print_turns(Rules *r, long turns)
{
    rules_set(r, "turn", turns > 1 ? "{dir}/turn-1" : "{dir}");
    rules_set(r, "asked", "{dir}/prompts.qa");
    rules_set(r, "copies", "$({stage}_copies)");
    PRINT(r, answers);
    if (turns < 2) return;
    rules_set(r, "all_samples", "{turn}/samples.qa");
    rules_set(r, "all_verdicts", "{turn}/verdicts.qa");
    rules_set(r, "copies", "--copies 1");
    for (long t = 2; t <= turns; t++) {
        rules_set_number(r, "t", t);
        rules_set(r, "before", "{turn}");
        rules_set(r, "turn", "{dir}/turn-{t}");
        rules_set(r, "asked", "{turn}/prompts.qa");
        PRINT(r, next_turn);
        PRINT(r, answers);
        rules_add(r, "all_samples", " ", "{turn}/samples.qa");
        rules_add(r, "all_verdicts", " ", "{turn}/verdicts.qa");
    }
    PRINT(r, join);
}

static void begin_stage(Rules *r, const char *stage)
{
    rules_set(r, "stage", stage);
    rules_set(r, "reviews", "");
    rules_set(r, "reviewed", "");
}

static void begin_round(Rules *r, long n)
{
    rules_set_number(r, "n", n);
    rules_set(r, "dir", "{run}/{stage}/{n}");
    set_history(r, n);
}

static void end_round(Rules *r)
{
    rules_set(r, "pool", "{dir}/pool.qa");
    rules_add(r, "figures", " ", "{dir}/metrics.qa");
}

static void print_selfsup(Rules *r)
{
    const long rounds = setting_number(r->settings, SETTING_SELFSUP_ROUNDS);
    begin_stage(r, "selfsup");
    for (long n = 1; n <= rounds; n++) {
        begin_round(r, n);
        PRINT(r, prompts);
        print_turns(r, 1);
        PRINT(r, judged);
        PRINT(r, selfsup_model);
        end_round(r);
        rules_use_model(r, "{dir}/model");
    }
    rules_set(r, "selfsup_pool", "{pool}");
    rules_set(r, "selfsup_model", "{model}");
}

static void print_crl_round(Rules *r, long turns)
{
    rules_set(r, "reviews", "{dir}/reviews.qa");
    rules_set(r, "reviewed", "--reviews {reviews}");
    PRINT(r, prompts);
    print_turns(r, turns);
    PRINT(r, judged);
    PRINT(r, crl_model);
    end_round(r);
    rules_set(r, "hacks", "{dir}/hacks.qa");
    if (*rules_word(r, "updates")) rules_use_model(r, "{dir}/model");
}

static void print_crl(Rules *r)
{
    const Settings *s = r->settings;
    const long rounds = setting_number(s, SETTING_ROUNDS);
    begin_stage(r, "crl");
    for (long n = 1; n <= rounds; n++) {
        begin_round(r, n);
        print_crl_round(r, setting_number(s, SETTING_TURNS));
    }
}

void rules_print_rounds(Rules *r)
{
    const Settings *s = r->settings;
    const int learn = setting_is(s, SETTING_UPDATE, "learn");
    rules_set(r, "updates", learn ? "yes" : "");
    rules_set(r, "learn", s->trained && learn ? "yes" : "");
    rules_set(r, "judge_spend", setting_is(s, SETTING_JUDGE, "none") ? "" : "$(spend)");
    rules_set(r, "hacks", "{run}/collect/hacks.qa");
    rules_set(r, "figures", "");
    rules_use_model(r, "{run}/sft/model");
    print_selfsup(r);
    print_crl(r);
}
