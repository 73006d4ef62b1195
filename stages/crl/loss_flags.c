/* Flags hold names; the enums of stages/train/loss.h are found by their place in a list of
 * names. */
#include "stages/crl/loss_flags.h"

#include <stdio.h>
#include <string.h>

/* Copies name i of "a|b|c" into the flags' own memory. */
static const char *name_at(LossFlags *f, const char *names, int i)
{
    char *out = f->word[f->words++];
    int len;
    const char *name = loss_name(names, i, &len);
    snprintf(out, sizeof *f->word, "%.*s", len, name);
    return out;
}

void loss_flags_preset(LossFlags *f, const char *name)
{
    Loss l;
    if (!name || loss_preset(name, &l)) return;
    *f = (LossFlags){.loss = name,
                     .overlong = "keep",
                     .constant = "drop",
                     .eps_low = l.eps_low,
                     .eps_high = l.eps_high,
                     .dual_clip = l.dual_clip,
                     .kl = l.kl,
                     .kl_max = l.kl_max,
                     .cap = l.cap,
                     .longest = l.longest};
    f->advantage = name_at(f, LOSS_ADVANTAGES, (int)l.advantage);
    f->ratio = name_at(f, LOSS_RATIOS, (int)l.ratio);
    f->aggregation = name_at(f, LOSS_AGGREGATIONS, (int)l.aggregation);
    f->kl_form = name_at(f, LOSS_KLS, (int)l.kl_form);
    f->correction = name_at(f, LOSS_CORRECTIONS, (int)l.correction);
}

const char *loss_flags_named(int argc, char **argv)
{
    const char *found = NULL;
    for (int i = 1; i < argc && strcmp(argv[i], "--"); i++) {
        if (!strcmp(argv[i], "--loss") && i + 1 < argc) found = argv[i + 1];
        if (!strncmp(argv[i], "--loss=", 7)) found = argv[i] + 7;
    }
    return found;
}

void loss_from_flags(const LossFlags *f, const FlagSpec *spec, Loss *loss, GrpoOptions *g)
{
    *loss = (Loss){.advantage = (LossAdvantage)loss_choice(LOSS_ADVANTAGES, f->advantage),
                   .ratio = (LossRatio)loss_choice(LOSS_RATIOS, f->ratio),
                   .aggregation = (LossAggregation)loss_choice(LOSS_AGGREGATIONS, f->aggregation),
                   .kl_form = (LossKl)loss_choice(LOSS_KLS, f->kl_form),
                   .correction = (LossCorrection)loss_choice(LOSS_CORRECTIONS, f->correction),
                   .eps_low = f->eps_low,
                   .eps_high = f->eps_high,
                   .dual_clip = f->dual_clip,
                   .kl = f->kl,
                   .kl_max = f->kl_max,
                   .cap = f->cap,
                   .longest = (int)f->longest};
    g->advantage = loss->advantage;
    g->overlong = (Overlong)loss_choice(GRPO_OVERLONG, f->overlong);
    g->keep_constant = !strcmp(f->constant, "keep");
    g->longest = (int)f->longest;
    g->margin = (int)f->margin;
    if (f->dual_clip != 0 && f->dual_clip <= 1 + f->eps_high)
        flags_usage_error(spec, "--dual-clip expects 0 or more than 1 + --eps-high (%g), found %g",
                          1 + f->eps_high, f->dual_clip);
    if (loss->correction != LOSS_CORRECT_NONE && loss->ratio == LOSS_NO_RATIO)
        flags_usage_error(spec,
                          "--correction %s needs a --ratio other than none: it compares the "
                          "weights before the update "
                          "with the engine that sampled",
                          f->correction);
    if (g->overlong == OVERLONG_PENALTY && f->margin < 1)
        flags_usage_error(spec, "--overlong penalty needs --overlong-margin: how many tokens "
                                "before the limit it begins");
}
