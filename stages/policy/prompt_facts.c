/* A GPU's profile is found by the first word of the profile's title that names the model. */
#include "stages/policy/prompt_facts.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "artifacts/artifact.h"
#include "base/memory.h"
#include "eval/sim/time/profile.h"

static int read_baseline(void *ctx, const View *v, Error *err)
{
    PromptFacts *f = ctx;
    PromptBaseline b = {0};
    if (view_float(v, "baseline_us", &b.us, err) || view_bool(v, "predicted", &b.predicted, err))
        return -1;
    if (b.us <= 0) return 0; /* a baseline that failed has no time */
    if (!(b.task = view_strdup(v, "task", err))) return -1;
    f->baselines = memory_grow(f->baselines, (size_t)f->n + 1, sizeof *f->baselines);
    f->baselines[f->n++] = b;
    return 0;
}

int prompt_facts_load(int full, const char *device, const char *verdicts, PromptFacts *out,
                      Error *err)
{
    *out = (PromptFacts){.full = full, .device = device};
    return verdicts ? artifact_each(verdicts, "verdicts", read_baseline, out, err) : 0;
}

void prompt_facts_release(PromptFacts *f)
{
    for (int i = 0; i < f->n; i++) free(f->baselines[i].task);
    free(f->baselines);
    *f = (PromptFacts){0};
}

PromptStyle prompt_facts_style(const PromptFacts *f, const char *task)
{
    PromptStyle s = {.full = f->full, .device = f->device};
    for (int i = 0; i < f->n; i++)
        if (!strcmp(f->baselines[i].task, task)) {
            s.baseline_us = f->baselines[i].us;
            s.predicted = f->baselines[i].predicted;
        }
    return s;
}

/* The model in a title, "H100" of "H100 SXM, simulated". */
static size_t model_length(const char *title)
{
    const char *comma = strchr(title, ','), *sxm = strstr(title, " SXM");
    if (sxm && (!comma || sxm < comma)) return (size_t)(sxm - title);
    return comma ? (size_t)(comma - title) : strlen(title);
}

/* Whether the class has the model as words of its own. */
static int names_model(const char *class, const char *model, size_t n)
{
    for (const char *p = class; *p; p++)
        if (!strncasecmp(p, model, n) && !isalnum((unsigned char)p[n]) &&
            (p == class || !isalnum((unsigned char)p[-1])))
            return 1;
    return 0;
}

static const Profile *profile_of(const char *class)
{
    int simulated = !strncmp(class, "sim:", 4);
    const Profile *p;
    for (int i = 0; (p = profile_at(i)); i++) {
        if (simulated && !strcmp(class + 4, p->name)) return p;
        /* The PCIe cards of a model have other limits. */
        if (!simulated && !strcasestr(class, "PCIe") &&
            names_model(class, p->title, model_length(p->title)) && !strstr(class, " Ti"))
            return p;
    }
    return NULL;
}

double prompt_device_write(Buffer *out, const char *class)
{
    const Profile *p = profile_of(class);
    if (!p) {
        buffer_printf(out, "%s.\n", class);
        return 0;
    }
    const char *comma = strchr(p->title, ',');
    buffer_printf(out,
                  "%.*s (%s): %d SMs. An SM has %d registers of 32 bits, %u KiB of shared memory "
                  "(a block at most %u KiB;\n"
                  "above 48 KiB it must be dynamic), %d threads (a block at most %d) and %d fp32 "
                  "lanes. L2 holds %llu MiB, DRAM\n"
                  "moves %.0f GB/s, fp32 arithmetic reaches %.1f TFLOP/s.\n",
                  comma ? (int)(comma - p->title) : (int)strlen(p->title), p->title, p->arch,
                  p->sm_count, p->registers_per_sm, p->shared_per_sm >> 10,
                  p->shared_per_block >> 10, p->threads_per_sm, p->threads_per_block, p->fp32_lanes,
                  (unsigned long long)p->l2_size >> 20, p->dram_bytes_per_s / 1e9,
                  2.0 * p->fp32_lanes * p->sm_count * p->clock_hz / 1e12);
    return p->dram_bytes_per_s;
}
