/* The loss of stage 3 as flags. --loss names a published combination, whose values become the
 * defaults of the other flags. */
#ifndef STAGES_CRL_LOSS_FLAGS_H
#define STAGES_CRL_LOSS_FLAGS_H

#include "base/flags.h"
#include "stages/crl/grpo.h"
#include "stages/data/stage_config.h"

typedef struct {
    const char *loss, *advantage, *ratio, *aggregation, *kl_form, *correction, *overlong, *constant;
    double eps_low, eps_high, dual_clip, kl, kl_max, cap;
    int64_t longest, margin;
    char word[5][24]; /* the preset's texts, so the struct must not move */
    int words;
} LossFlags;

/* Rows of a flag table. Most are in the header of an artifact only when they differ from the
 * default. */
#define LOSS_FLAGS(f)                                                                                \
    {"loss",     FLAG_TEXT, &(f).loss,     "whose values are the defaults of the next ones", 0, 0,   \
     LOSS_NAMES, 0,         CONFIG_CHANGED},                                                         \
        {"advantage",     FLAG_TEXT, &(f).advantage, "of an answer in its group", 0, 0,              \
         LOSS_ADVANTAGES, 0,         CONFIG_CHANGED},                                                \
        {"ratio",     FLAG_TEXT, &(f).ratio,    "to the weights before the update", 0, 0,            \
         LOSS_RATIOS, 0,         CONFIG_CHANGED},                                                    \
        {"aggregation",     FLAG_TEXT, &(f).aggregation, "of the tokens' losses", 0, 0,              \
         LOSS_AGGREGATIONS, 0,         CONFIG_CHANGED},                                              \
        {"eps-low", FLAG_FLOAT, &(f).eps_low, "ratio's lower clip", 0, 1},                           \
        {"eps-high", FLAG_FLOAT, &(f).eps_high, "ratio's upper clip", 0, 10},                        \
        {"dual-clip",                                                                                \
         FLAG_FLOAT,                                                                                 \
         &(f).dual_clip,                                                                             \
         "for bad answers no pull beyond this ratio, above 1; 0: none",                              \
         0,                                                                                          \
         100,                                                                                        \
         .aside = CONFIG_CHANGED},                                                                   \
        {"kl", FLAG_FLOAT, &(f).kl, "beta of the KL term; 0: none, as most such work does", 0, 100}, \
        {"kl-form", FLAG_TEXT, &(f).kl_form, "its estimate", 0, 0, LOSS_KLS, 0, CONFIG_CHANGED},     \
        {"kl-max",                                                                                   \
         FLAG_FLOAT,                                                                                 \
         &(f).kl_max,                                                                                \
         "a token's KL is held below it; 0: not",                                                    \
         0,                                                                                          \
         1000,                                                                                       \
         .aside = CONFIG_CHANGED},                                                                   \
        {"correction",                                                                               \
         FLAG_TEXT,                                                                                  \
         &(f).correction,                                                                            \
         "importance weights, where another engine sampled",                                         \
         0,                                                                                          \
         0,                                                                                          \
         LOSS_CORRECTIONS,                                                                           \
         0,                                                                                          \
         CONFIG_CHANGED},                                                                            \
        {"correction-cap",       FLAG_FLOAT, &(f).cap, "above it they are cut, or masked", 1, 1000,  \
         .aside = CONFIG_CHANGED},                                                                   \
        {"longest",                                                                                  \
         FLAG_INT,                                                                                   \
         &(f).longest,                                                                               \
         "tokens of the longest answer; 0: what the samples were allowed",                           \
         0,                                                                                          \
         131072,                                                                                     \
         .aside = CONFIG_CHANGED},                                                                   \
        {"overlong",    FLAG_TEXT, &(f).overlong, "answers that the limit cut", 0, 0,                \
         GRPO_OVERLONG, 0,         CONFIG_CHANGED},                                                  \
        {"overlong-margin",                                                                          \
         FLAG_INT,                                                                                   \
         &(f).margin,                                                                                \
         "tokens before the limit where the penalty begins",                                         \
         0,                                                                                          \
         131072,                                                                                     \
         .aside = CONFIG_CHANGED},                                                                   \
    {                                                                                                \
        "constant-groups", FLAG_TEXT, &(f).constant, "groups with one reward", 0, 0, "drop|keep",    \
            0, CONFIG_CHANGED                                                                        \
    }

/* Sets the defaults of a combination (LOSS_NAMES). NULL or an unknown name changes nothing. */
void loss_flags_preset(LossFlags *f, const char *name);
/* Returns the --loss of a command line that is not parsed yet, or NULL. */
const char *loss_flags_named(int argc, char **argv);
/* Sets the loss and the options that the flags give, after parsing. A combination without sense is
 * a usage error. */
void loss_from_flags(const LossFlags *f, const FlagSpec *spec, Loss *loss, GrpoOptions *g);

#endif
