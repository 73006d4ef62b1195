/* What a prompt says of the device and of the baselines: the limits of the GPU that judges, from the
 * simulator's profiles, and each task's time of speedup 1.0, from verdicts. */
#ifndef STAGES_POLICY_PROMPT_FACTS_H
#define STAGES_POLICY_PROMPT_FACTS_H

#include "base/buffer.h"
#include "base/flags.h"
#include "stages/policy/prompt.h"

typedef struct {
    char *task;
    double us;
    int predicted;
} PromptBaseline;

typedef struct {
    int full;
    const char *device; /* the class, borrowed; NULL: none is named */
    PromptBaseline *baselines;
    int n;
} PromptFacts;

/* Loads the baselines' times from a verdicts artifact; verdicts NULL: none is known. full and device
 * are kept. The caller releases *out in any case. */
int prompt_facts_load(int full, const char *device, const char *verdicts, PromptFacts *out,
                      Error *err);
void prompt_facts_release(PromptFacts *f);
/* The style of a task's prompts. */
PromptStyle prompt_facts_style(const PromptFacts *f, const char *task);

/* Appends a line with the limits of a device class, "sim:h100" or "NVIDIA H200"; of a GPU without a
 * profile only its name. Returns the bytes that its DRAM moves in a second; 0: unknown. */
double prompt_device_write(Buffer *out, const char *device_class);

/* Rows of the flag table of a program that writes prompts; full: 1 for full ones. */
#define PROMPT_FACTS_FLAGS(full, device, baselines)                                  \
    FLAG("style", FLAG_CHOICE, &(full), "of the prompts", .choices = "brief|full"),  \
        FLAG("device", FLAG_TEXT, &(device), "class that judges, for full prompts"), \
        FLAG("baselines", FLAG_TEXT, &(baselines),                                   \
             "verdicts of the baselines, whose times full prompts say", .aside = 1)

#endif
