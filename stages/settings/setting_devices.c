/* Devices and device classes: DEVICES names what the local evaluators run on, DEVICE the class that
 * judges during the run, CLASSES those of its last pass. As a word, a class has "+" for a blank. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/words.h"
#include "eval/sim/time/profile.h"
#include "gpu/gpus.h"
#include "stages/settings/settings.h"

/* ---- GPUs ---- */

/* The GPUs of this machine as "cuda:0=NVIDIA+H200 cuda:1=...". */
static char *find_gpus(void)
{
    Gpu gpus[GPUS_MAX];
    Error err;
    Buffer b;
    int n = gpus_list(gpus, GPUS_MAX, &err);
    if (n < 0)
        log_info("there is a GPU here that cannot be used, so the simulator is: %s", err.text);
    buffer_init(&b, 1 << 16);
    for (int i = 0; i < n; i++) {
        setting_replace_letter(gpus[i].name, ' ', '+');
        buffer_printf(&b, "%scuda:%d=%s", i ? " " : "", gpus[i].ordinal, gpus[i].name);
    }
    return buffer_detach(&b);
}

/* The class of a GPU that was found, as a word; NULL: there is no such one. */
static const char *gpu_class(const Settings *s, const char *name, size_t len, size_t *class_len)
{
    const char *p = s->gpus, *word;
    size_t n;
    while ((word = setting_next_word(&p, &n))) {
        if (n <= len || memcmp(word, name, len) || word[len] != '=') continue;
        *class_len = n - len - 1;
        return word + len + 1;
    }
    return NULL;
}

/* Add every GPU that was found; returns how many there are. */
static int add_gpus(const Settings *s, char **local)
{
    const char *p = s->gpus, *word;
    int n_gpus = 0;
    size_t n;
    for (; (word = setting_next_word(&p, &n)); n_gpus++)
        setting_add_word(local, word, strcspn(word, "="));
    return n_gpus;
}

/* ---- names ---- */

static int is_simulated(const char *name, size_t len)
{
    const Profile *p;
    for (int i = 0; (p = profile_at(i)); i++)
        if (word_is(name, len, p->name)) return 1;
    return 0;
}

static int refuse_simulated(const Settings *s, SettingId id, const char *word, int len, Error *err)
{
    char names[256] = "";
    const Profile *p;
    for (int i = 0; (p = profile_at(i)); i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), " %s", p->name);
    return setting_refuse(s, id, err,
                          ": there is no %.*s; expected sim:PROFILE, where PROFILE is one of%s",
                          len, word, names);
}

/* A class that no evaluator can have. */
static int check_class(const Settings *s, SettingId id, const char *word, size_t len, Error *err)
{
    size_t n;
    if (len >= 4 && !memcmp(word, "sim:", 4))
        return is_simulated(word + 4, len - 4) ? 0 : refuse_simulated(s, id, word, (int)len, err);
    if (is_simulated(word, len))
        return setting_refuse(s, id, err,
                              ": %.*s: no evaluator has this class; the simulator's is sim:%.*s",
                              (int)len, word, (int)len, word);
    if (len >= 5 && !memcmp(word, "cuda:", 5)) {
        const char *class = gpu_class(s, word, len, &n);
        return setting_refuse(s, id, err, ": expected a device class%s%.*s; %.*s is a device",
                              class ? ", here " : ", such as NVIDIA+H200", class ? (int)n : 0,
                              class ? class : "", (int)len, word);
    }
    return 0;
}

static int refuse_gpu(const Settings *s, const char *word, int len, Error *err)
{
    char *here = memory_strdup("");
    const int n = add_gpus(s, &here);
    setting_refuse(s, SETTING_DEVICES, err, ": there is no %.*s here%s%s", len, word,
                   n ? ", but " : "", here);
    free(here);
    return -1;
}

/* ---- the three settings ---- */

static int add_device(Settings *s, const char *word, size_t len, Error *err)
{
    size_t n;
    if (len == 4 && !memcmp(word, "auto", 4)) {
        if (!add_gpus(s, &s->local)) setting_add_word(&s->local, "sim:h100", 8);
        return 0;
    }
    if (len >= 5 && !memcmp(word, "cuda:", 5)) {
        if (!gpu_class(s, word, len, &n)) return refuse_gpu(s, word, (int)len, err);
    } else if (check_class(s, SETTING_DEVICES, word, len, err)) {
        return -1;
    } else if (len < 4 || memcmp(word, "sim:", 4)) {
        return setting_refuse(s, SETTING_DEVICES, err,
                              ": expected auto, cuda:N or sim:PROFILE, found %.*s", (int)len, word);
    }
    setting_add_word(&s->local, word, len);
    return 0;
}

static int check_devices(Settings *s, Error *err)
{
    const char *list = setting_text(s, SETTING_DEVICES), *p = list, *word;
    size_t n, class_len;
    int ask = 0;
    while ((word = setting_next_word(&p, &n)))
        ask |= (n == 4 && !memcmp(word, "auto", 4)) || (n >= 5 && !memcmp(word, "cuda:", 5));
    s->gpus = !ask ? memory_strdup("") : s->found ? memory_strdup(s->found) : find_gpus();
    s->local = memory_strdup("");
    s->local_classes = memory_strdup("");
    for (p = list; (word = setting_next_word(&p, &n));)
        if (add_device(s, word, n, err)) return -1;
    if (!*s->local)
        return setting_refuse(s, SETTING_DEVICES, err,
                              " names no device; expected auto, cuda:N or sim:PROFILE, by comma");
    for (p = s->local; (word = setting_next_word(&p, &n));) {
        const char *class = gpu_class(s, word, n, &class_len);
        setting_add_word(&s->local_classes, class ? class : word, class ? class_len : n);
    }
    return 0;
}

/* What another set of GPUs than the run's own must not change unasked: the class that judged it. */
static int check_judge(const Settings *s, Error *err)
{
    char *path = settings_in_run(s, "cfg/device");
    const char *now = setting_text(s, SETTING_DEVICE), *end;
    Buffer b;
    int rc = 0;
    buffer_init(&b, 4096);
    if (file_exists(path) && !file_read(path, 4096, &b, NULL) && !strncmp(b.data, "DEVICE=", 7) &&
        (end = strstr(b.data, " HARNESS="))) {
        const char *then = b.data + 7;
        size_t n = (size_t)(end - then);
        if (n && (strlen(now) != n || memcmp(then, now, n)))
            rc = error_set(err, ERROR_USAGE,
                           "%s/%s was judged on %.*s, and what is found here is %s: DEVICES=%.*s "
                           "judges all of it again, RUN=NAME is another run",
                           setting_text(s, SETTING_RUNS), setting_text(s, SETTING_RUN), (int)n,
                           then, now, (int)strcspn(s->local, " "), s->local);
    }
    buffer_release(&b);
    free(path);
    return rc;
}

static int check_device(Settings *s, Error *err)
{
    const int given = s->value[SETTING_DEVICE].text != NULL;
    char *first = memory_strndup(s->local_classes, strcspn(s->local_classes, " "));
    setting_default(s, SETTING_DEVICE, first, "the first of DEVICES");
    free(first);
    char *device = s->value[SETTING_DEVICE].text;
    setting_replace_letter(device, '+', ' ');
    if (!*device)
        return setting_refuse(s, SETTING_DEVICE, err,
                              " names no class; leave it out for the class of DEVICES");
    if (check_class(s, SETTING_DEVICE, device, strlen(device), err)) return -1;
    const int found = !given && setting_has_word(setting_text(s, SETTING_DEVICES), "auto", 4);
    return found ? check_judge(s, err) : 0;
}

/* The class that judges and those of the local GPUs, then every simulated one. */
static char *all_classes(const Settings *s)
{
    char *out = memory_strdup(""), *judge = memory_strdup(setting_text(s, SETTING_DEVICE));
    const char *p = s->local_classes, *word;
    const Profile *profile;
    size_t n;
    setting_replace_letter(judge, ' ', '+');
    if (strncmp(judge, "sim:", 4)) setting_add_word(&out, judge, strlen(judge));
    while ((word = setting_next_word(&p, &n)))
        if (n < 4 || memcmp(word, "sim:", 4)) setting_add_word(&out, word, n);
    for (int i = 0; (profile = profile_at(i)); i++) {
        char name[64];
        snprintf(name, sizeof name, "sim:%s", profile->name);
        setting_add_word(&out, name, strlen(name));
    }
    free(judge);
    return out;
}

static int check_classes(Settings *s, Error *err)
{
    char *all = all_classes(s), *classes = memory_strdup("");
    setting_default(s, SETTING_CLASSES, all, "the default");
    free(all);
    const char *p = setting_text(s, SETTING_CLASSES), *word;
    size_t n;
    int rc = 0;
    while (!rc && (word = setting_next_word(&p, &n))) {
        rc = check_class(s, SETTING_CLASSES, word, n, err);
        setting_add_word(&classes, word, n);
    }
    if (!rc && !*classes)
        rc = setting_refuse(s, SETTING_CLASSES, err,
                            " names no class; leave it out for the GPUs' and every simulated one");
    setting_replace(s, SETTING_CLASSES, classes);
    return rc;
}

int settings_check_devices(Settings *s, Error *err)
{
    if (check_devices(s, err) || check_device(s, err)) return -1;
    return check_classes(s, err);
}
