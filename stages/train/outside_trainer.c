/* A keeper process leads the group of the command, so that nothing outlives this process. */
#include "stages/train/outside_trainer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "artifacts/manifest.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/words.h"
#include "model/files/model_files.h"
#include "model/files/safetensors.h"
#include "stages/policy/policy.h"

enum { GRACE_S = 30, MAX_JSON = 1 << 24 };

/* ---- out ---- */

static json_t *ids_of(const int32_t *ids, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++) json_array_append_new(list, json_integer(ids[i]));
    return list;
}

static void add_logp(json_t *line, const char *key, const float *lp, int n)
{
    if (!lp) return;
    json_t *list = json_array();
    for (int i = 0; i < n; i++) json_array_append_new(list, json_real(lp[i]));
    json_object_set_new(line, key, list);
}

/* Adds the texts, unless they are not UTF-8, which sampled bytes need not be. */
static void add_messages(json_t *line, const Example *e)
{
    if (!e->user || !e->assistant) return;
    json_t *list = json_pack("[{s:s,s:s},{s:s,s:s}]", "role", "user", "content", e->user, "role",
                             "assistant", "content", e->assistant);
    if (list) json_object_set_new(line, "messages", list);
}

static int write_line(int fd, const char *path, const Example *e, Error *err)
{
    int n = e->len - e->prompt;
    json_t *line = json_object();
    json_object_set_new(line, "prompt_ids", ids_of(e->ids, e->prompt));
    json_object_set_new(line, "answer_ids", ids_of(e->ids + e->prompt, n));
    json_object_set_new(line, "advantage", json_real(e->advantage));
    add_logp(line, "old_logp", e->old_logp, n);
    add_logp(line, "sampler_logp", e->sampler_logp, n);
    add_logp(line, "ref_logp", e->ref_logp, n);
    add_messages(line, e);
    char *text = json_dumps(line, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(line);
    if (!text)
        return error_set(err, ERROR_INVALID, "%s: an example cannot be written as JSON", path);
    int rc = -(file_write_all(fd, text, strlen(text), path, err) ||
               file_write_all(fd, "\n", 1, path, err));
    free(text);
    return rc;
}

static int write_dataset(const char *path, const Example *ex, long n, Error *err)
{
    char temp[PATH_MAX];
    int fd = file_begin(path, temp, sizeof temp, err);
    if (fd < 0) return -1;
    for (long i = 0; i < n; i++)
        if (write_line(fd, path, &ex[i], err)) {
            file_abandon(fd, temp);
            return -1;
        }
    return file_commit(fd, temp, path, err);
}

static json_t *name_of(const char *names, int i)
{
    size_t len;
    const char *name = word_chosen(names, i, &len);
    return json_stringn(name, len);
}

static json_t *loss_of(const Loss *l)
{
    json_t *j = json_pack("{s:f,s:f,s:f,s:f,s:f,s:f,s:i}", "eps_low", l->eps_low, "eps_high",
                          l->eps_high, "dual_clip", l->dual_clip, "kl", l->kl, "kl_max", l->kl_max,
                          "correction_cap", l->cap, "longest", l->longest);
    json_object_set_new(j, "advantage", name_of(LOSS_ADVANTAGES, (int)l->advantage));
    json_object_set_new(j, "ratio", name_of(LOSS_RATIOS, (int)l->ratio));
    json_object_set_new(j, "aggregation", name_of(LOSS_AGGREGATIONS, (int)l->aggregation));
    json_object_set_new(j, "kl_form", name_of(LOSS_KLS, (int)l->kl_form));
    json_object_set_new(j, "correction", name_of(LOSS_CORRECTIONS, (int)l->correction));
    return j;
}

/* Full paths; reference is NULL without a KL term. */
typedef struct {
    const char *base, *reference, *dataset, *output, *state;
} Paths;

static int write_settings(const char *path, const OutsideTrainer *o, long n, const Paths *at,
                          Error *err)
{
    const TrainingOptions *t = o->training;
    json_t *j = json_pack("{s:s,s:I,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:i,s:i,s:I,s:i,s:I}", "stage",
                          o->stage, "examples", (json_int_t)n, "learning_rate", t->lr, "warmup",
                          t->warmup, "final_learning_rate", t->final_lr, "clip_norm", t->clip_norm,
                          "weight_decay", t->weight_decay, "beta1", 0.9, "beta2", t->beta2, "batch",
                          t->batch, "epochs", t->epochs, "first_examples", (json_int_t)t->n_first,
                          "first_epochs", t->first_epochs, "seed", (json_int_t)t->seed);
    json_t *lora = o->lora.rank ? json_pack("{s:i,s:f,s:b}", "r", o->lora.rank, "alpha",
                                            o->lora.alpha, "rslora", o->lora.rslora)
                                : json_null();
    json_object_set_new(j, "loss", loss_of(&t->loss));
    json_object_set_new(j, "lora", lora);
    const char *const paths[][2] = {{"base", at->base},
                                    {"reference", at->reference},
                                    {"dataset", at->dataset},
                                    {"output", at->output},
                                    {"state", at->state}};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        json_object_set_new(j, paths[i][0], paths[i][1] ? json_string(paths[i][1]) : json_null());
    char *text = json_dumps(j, JSON_INDENT(1) | JSON_SORT_KEYS);
    json_decref(j);
    int rc = text ? file_write_atomic(path, text, strlen(text), err)
                  : error_set(err, ERROR_INVALID, "%s: cannot be written as JSON", path);
    free(text);
    return rc;
}

/* ---- the command ---- */

static pid_t group; /* the keeper's process group, for the signal handler */

static void end_all(int sig)
{
    (void)sig;
    kill(-group, SIGKILL);
}

/* The keeper: leads the process group of the command and waits for it. When the parent dies, even
 * by SIGKILL, the system sends the keeper a signal and the keeper kills the group. */
static _Noreturn void run_keeper(const char *command, pid_t parent)
{
    setpgid(0, 0);
    group = getpid();
    signal(SIGUSR1, end_all);
    prctl(PR_SET_PDEATHSIG, SIGUSR1);
    if (getppid() != parent) _exit(127);
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    pid_t sh = fork();
    if (sh == 0) {
        static const int all[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ, SIGUSR1};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) signal(all[i], SIG_DFL);
        int null = open("/dev/null", O_RDONLY);
        if (null < 0 || dup2(null, 0) < 0 || dup2(2, 1) < 0)
            _exit(127); /* its stdout goes to stderr, since it is status */
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    int status = 127 << 8;
    while (sh > 0 && waitpid(sh, &status, 0) < 0 && errno == EINTR) continue;
    _exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

/* Waits for the keeper. Returns its exit status, or -1 when the command had to be ended. */
static int wait_for(pid_t keeper, double limit_s, Error *err)
{
    double until = clock_seconds() + limit_s;
    int status, ending = 0;
    for (;;) {
        pid_t p = waitpid(keeper, &status, WNOHANG);
        if (p == keeper || (p < 0 && errno != EINTR)) break;
        double now = clock_seconds();
        if (!ending && (stop_requested() || now > until)) {
            ending = stop_requested() ? 1 : 2;
            if (ending == 1) log_info("stopping the trainer: it has %d s to end", GRACE_S);
            kill(-keeper, SIGTERM);
            until = now + GRACE_S;
        } else if (ending && now > until) {
            kill(-keeper, SIGKILL);
        }
        clock_sleep(0.02);
    }
    kill(-keeper, SIGKILL); /* processes that the command has left */
    if (ending == 1)
        return error_set(err, ERROR_STOPPED,
                         "the trainer was stopped; the same command calls it again");
    if (ending == 2)
        return error_set(err, ERROR_CHILD, "the trainer took more than %.0f s and was ended",
                         limit_s);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run_command(const OutsideTrainer *o, const char *settings, Error *err)
{
    pid_t parent = getpid(), keeper = fork();
    if (keeper < 0) return error_errno(err, "cannot start the trainer");
    if (keeper == 0) {
        if (setenv("QUERN_TRAINING", settings, 1)) _exit(127);
        run_keeper(o->command, parent);
    }
    setpgid(keeper, keeper);
    int status = wait_for(keeper, o->limit_s, err);
    if (status <= 0) return status;
    if (status > 128)
        return error_set(err, ERROR_CHILD, "the trainer '%s' ended by signal %d", o->command,
                         status - 128);
    return error_set(err, ERROR_CHILD, "the trainer '%s' ended with exit %d", o->command, status);
}

/* ---- back ---- */

static int check_adapter(const char *dir, Error *err)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/adapter_config.json", dir);
    json_t *j = json_read_file(path, MAX_JSON, err);
    if (!j) return -1;
    int64_t r = 0;
    const char *type = json_need_text(j, "peft_type", path, err);
    int rc = -(!type || json_need_int(j, "r", path, &r, err));
    if (!rc && (strcmp(type, "LORA") || r < 1))
        rc = error_set(err, ERROR_CORRUPT,
                       "%s: expected peft_type LORA and r of 1 or more, found %s and %lld", path,
                       type, (long long)r);
    json_decref(j);
    Safetensors *st = NULL;
    snprintf(path, sizeof path, "%s/adapter_model.safetensors", dir);
    if (!rc) rc = safetensors_open(path, &st, err);
    if (!rc && safetensors_count(st) == 0)
        rc = error_set(err, ERROR_CORRUPT, "%s: expected the adapter's tensors, found none", path);
    if (st) safetensors_close(st);
    return rc;
}

static int check_checkpoint(const char *dir, Error *err)
{
    char path[PATH_MAX];
    Buffer b;
    ModelConfig c;
    snprintf(path, sizeof path, "%s/config.json", dir);
    buffer_init(&b, MAX_JSON);
    int rc =
        -(file_read(path, MAX_JSON, &b, err) || model_config_parse(b.data, b.len, path, &c, err));
    buffer_release(&b);
    Safetensors *st;
    if (rc || safetensors_open(dir, &st, err)) return -1;
    const SafetensorsTensor *t = safetensors_find(st, "model.embed_tokens.weight");
    if (!t || t->rank != 2 || t->shape[0] != c.vocab || t->shape[1] != c.hidden)
        rc = error_set(
            err, ERROR_CORRUPT,
            "%s: expected model.embed_tokens.weight of %d x %d, as config.json says, found %s", dir,
            c.vocab, c.hidden, t ? "another shape" : "none");
    safetensors_close(st);
    return rc;
}

/* Sets the path of the adapter's base: the command may have written a name on a hub. */
static int name_base(const char *dir, const char *base, Error *err)
{
    char path[PATH_MAX], inner[PATH_MAX];
    snprintf(path, sizeof path, "%s/adapter_config.json", dir);
    snprintf(inner, sizeof inner, "%s/adapter_config.json", base);
    json_t *j = json_read_file(path, MAX_JSON, err),
           *of_base = file_exists(inner) ? json_read_file(inner, MAX_JSON, err) : NULL;
    const char *root = json_string_value(json_object_get(of_base, "base_model_name_or_path"));
    if (j) json_object_set_new(j, "base_model_name_or_path", json_string(root ? root : base));
    char *text = j ? json_dumps(j, JSON_INDENT(2) | JSON_SORT_KEYS) : NULL;
    int rc = text ? file_write_atomic(path, text, strlen(text), err)
                  : error_set(err, ERROR_INVALID, "%s: cannot be written again", path);
    free(text);
    json_decref(j);
    json_decref(of_base);
    return rc;
}

static int add_tokenizer(const char *dir, const char *base, Error *err)
{
    char from[PATH_MAX], to[PATH_MAX];
    Policy p;
    Buffer b;
    snprintf(from, sizeof from, "%s/tokenizer.json", base);
    snprintf(to, sizeof to, "%s/tokenizer.json", dir);
    buffer_init(&b, (size_t)1 << 30);
    int rc = file_exists(to)                                                                ? 0
             : file_read(from, b.max, &b, err) || file_write_atomic(to, b.data, b.len, err) ? -1
                                                                                            : 0;
    buffer_release(&b);
    if (rc || policy_extras(base, dir, 1, err) || policy_tokenizer(dir, &p, err)) return -1;
    policy_release(&p);
    return 0;
}

/* Checks what the command has written into dir, and makes it the model directory o->output. */
static int take_back(const OutsideTrainer *o, const char *dir, const char *base, Error *err)
{
    char config[PATH_MAX], adapter[PATH_MAX];
    snprintf(config, sizeof config, "%s/config.json", dir);
    snprintf(adapter, sizeof adapter, "%s/adapter_config.json", dir);
    int rc = 0;
    if (file_exists(adapter))
        rc = -(check_adapter(dir, err) || name_base(dir, base, err));
    else if (file_exists(config))
        rc = check_checkpoint(dir, err);
    else
        rc = error_set(err, ERROR_INVALID,
                       "expected config.json or adapter_config.json in %s, found neither", dir);
    if (rc || add_tokenizer(dir, base, err)) {
        if (err && err->code == ERROR_NOT_FOUND) err->code = ERROR_CHILD; /* not the user's file */
        return error_prefix(err, "what the trainer wrote is no model");
    }
    if (manifest_remove(o->output, err) || file_remove_tree(o->output, err)) return -1;
    if (rename(dir, o->output)) return error_errno(err, "cannot rename %s to %s", dir, o->output);
    return file_sync_dir(o->output, err) ? -1 : manifest_write(o->output, o->spec, err);
}

/* Empties the folder unless it belongs to the same work: the state/ of other work must not be
 * used. */
static int claim_folder(const char *folder, const ArtifactSpec *spec, Error *err)
{
    char path[PATH_MAX], hex[DIGEST_HEX];
    Digest d;
    Buffer b;
    artifact_spec_digest(spec, &d);
    digest_hex(&d, hex);
    snprintf(path, sizeof path, "%s/work", folder);
    buffer_init(&b, 256);
    int same = !file_read(path, 256, &b, NULL) && !strcmp(b.data, hex);
    buffer_release(&b);
    if (same) return 0;
    return -(file_remove_tree(folder, err) || file_mkdirs(folder, err) ||
             file_write_atomic(path, hex, strlen(hex), err));
}

int outside_train(const OutsideTrainer *o, const Example *ex, long n, Error *err)
{
    char at[PATH_MAX], base[PATH_MAX], reference[PATH_MAX], folder[PATH_MAX],
        dataset[PATH_MAX + 32], settings[PATH_MAX + 32], output[PATH_MAX + 32],
        state[PATH_MAX + 32];
    snprintf(at, sizeof at, "%s.trainer", o->output);
    if (!realpath(o->base, base)) return error_errno(err, "cannot find the base model %s", o->base);
    if (o->reference && !realpath(o->reference, reference))
        return error_errno(err, "cannot find %s", o->reference);
    if (claim_folder(at, o->spec, err)) return -1;
    if (!realpath(at, folder)) return error_errno(err, "cannot find %s", at);
    snprintf(dataset, sizeof dataset, "%s/dataset.jsonl", folder);
    snprintf(settings, sizeof settings, "%s/training.json", folder);
    snprintf(output, sizeof output, "%s/output", folder);
    snprintf(state, sizeof state, "%s/state", folder);
    const Paths paths = {base, o->reference ? reference : NULL, dataset, output, state};
    if (file_remove_tree(output, err) || file_mkdirs(output, err) || file_mkdirs(state, err) ||
        write_dataset(dataset, ex, n, err) || write_settings(settings, o, n, &paths, err))
        return -1;
    log_info("%ld examples are in %s; the trainer is called: %s", n, dataset, o->command);
    if (run_command(o, settings, err) || take_back(o, output, base, err)) return -1;
    return file_remove_tree(folder, err);
}
