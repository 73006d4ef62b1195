/* What follows from the settings: digests of the files that a run is made from, and the flags that
 * several stages share. A digest is of names and contents, so that a file that was only touched
 * changes nothing. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/digest.h"
#include "base/memory.h"
#include "base/sort.h"
#include "eval/judge/verdict/verdict.h"
#include "stages/settings/settings.h"
#include "tasks/task.h"

/* ---- files ---- */

typedef struct {
    char **items;
    size_t n;
} Names;

static void names_add(Names *l, char *name)
{
    l->items = memory_grow(l->items, l->n + 1, sizeof *l->items);
    l->items[l->n++] = name;
}

static void names_release(Names *l)
{
    for (size_t i = 0; i < l->n; i++) free(l->items[i]);
    free(l->items);
}

/* Add the paths of what is in a folder: of its folders, or of its files. Symbolic links are
 * followed; with hidden, names that begin with a dot count too. */
static int list(const char *folder, int folders, int hidden, Names *out, Error *err)
{
    DIR *d = opendir(folder);
    struct dirent *e;
    if (!d) return error_errno(err, "cannot open the folder %s", folder);
    while ((e = readdir(d))) {
        struct stat st;
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        if (!hidden && e->d_name[0] == '.') continue;
        char *path = memory_printf("%s/%s", folder, e->d_name);
        if (!stat(path, &st) && (folders ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode)))
            names_add(out, path);
        else
            free(path);
    }
    closedir(d);
    if (out->n) sort_texts(out->items, out->n);
    return 0;
}

/* ---- a folder of kernels ---- */

/* A line "DIGEST  PATH" for each PATH/<task>/NAME.cu. */
static int list_kernels(const char *folder, Names *lines, Error *err)
{
    Names tasks = {0};
    int rc = list(folder, 1, 1, &tasks, err);
    for (size_t i = 0; i < tasks.n && !rc; i++) {
        Names files = {0};
        rc = list(tasks.items[i], 0, 1, &files, err);
        for (size_t k = 0; k < files.n && !rc; k++) {
            const char *path = files.items[k], *name = strrchr(path, '/') + 1;
            size_t len = strlen(name);
            char hex[DIGEST_HEX];
            if (len < 4 || strcmp(name + len - 3, ".cu")) continue;
            rc = file_digest(path, hex, NULL, err);
            if (!rc) names_add(lines, memory_printf("%s  %s\n", hex, path));
        }
        names_release(&files);
    }
    names_release(&tasks);
    return rc;
}

static int digest_kernels(const char *folder, char hex[DIGEST_HEX], Error *err)
{
    Names lines = {0};
    Digester g;
    Digest d;
    int rc = list_kernels(folder, &lines, err);
    if (lines.n) sort_texts(lines.items, lines.n);
    digester_init(&g);
    for (size_t i = 0; i < lines.n; i++) digester_add(&g, lines.items[i], strlen(lines.items[i]));
    digester_finish(&g, &d);
    digest_hex(&d, hex);
    names_release(&lines);
    return rc;
}

static int derive_kernels(Settings *s, Error *err)
{
    const char *p = setting_text(s, SETTING_TEACHERS), *word;
    char *digests = memory_strdup("");
    size_t n;
    int rc = 0;
    while (!rc && (word = setting_next_word(&p, &n))) {
        int file = n > 5 && !memcmp(word, "file:", 5);
        if (!file && (n <= 4 || memcmp(word, "dir:", 4))) continue;
        char hex[DIGEST_HEX], *folder = memory_strndup(word + 4 + file, n - 4 - (size_t)file);
        rc = file ? file_digest(folder, hex, NULL, err) : digest_kernels(folder, hex, err);
        char *more = memory_printf("%s%s%s", digests, *digests ? " " : "", rc ? "" : hex);
        free(digests);
        free(folder);
        digests = more;
    }
    setting_replace(s, SETTING_KERNELS, digests);
    return rc;
}

/* ---- tasks ---- */

/* all: the name and the first digits of the digest of each file are appended to it. */
static int add_task(Digester *g, Buffer *all, const char *path, size_t root, Error *err)
{
    Names files = {0};
    int rc = list(path, 0, 0, &files, err);
    for (size_t i = 0; i < files.n && !rc; i++) {
        char hex[DIGEST_HEX];
        const char *name = files.items[i] + root;
        rc = file_digest(files.items[i], hex, NULL, err);
        digester_add_field(g, name, strlen(name));
        digester_add_field(g, hex, rc ? 0 : strlen(hex));
        if (!rc) buffer_printf(all, "%s%s=%.12s", all->len ? " " : "", name, hex);
    }
    names_release(&files);
    return rc;
}

static int derive_tasks(Settings *s, Error *err)
{
    const char *root = setting_text(s, SETTING_TASK_ROOT);
    char **paths, hex[DIGEST_HEX];
    int n, rc = 0;
    Digester g;
    Digest d;
    Buffer all;
    if (taskset_paths(root, setting_text(s, SETTING_TASKS), &paths, &n, err)) return -1;
    digester_init(&g);
    buffer_init(&all, 64 << 20);
    if (!setting_is(s, SETTING_PRECISION, "default"))
        digester_add_field(&g, setting_text(s, SETTING_PRECISION),
                           strlen(setting_text(s, SETTING_PRECISION)));
    if (!setting_is(s, SETTING_TOLERANCE, "default"))
        digester_add_field(&g, setting_text(s, SETTING_TOLERANCE),
                           strlen(setting_text(s, SETTING_TOLERANCE)));
    for (int i = 0; i < n && !rc; i++) rc = add_task(&g, &all, paths[i], strlen(root) + 1, err);
    digester_finish(&g, &d);
    digest_hex(&d, hex);
    taskset_paths_free(paths, n);
    s->tasks_digest = memory_strdup(hex);
    s->tasks_files = buffer_detach(&all);
    buffer_release(&all);
    return rc;
}

/* ---- flags ---- */

/* Append " --flag VALUE" to a text of flags; value NULL: the flag alone. */
static void add_flag(Buffer *b, const char *flag, const char *value)
{
    buffer_printf(b, "%s%s%s%s", b->len ? " " : "", flag, value ? " " : "", value ? value : "");
}

/* Puts the flags that `names` lists, each with its value, into `named`, and the rest of the text into
 * `other`. */
static void split_flags(const char *text, const char *names, Buffer *named, Buffer *other)
{
    for (const char *p = text; *(p += strspn(p, " \t"));) {
        const char *word = p;
        size_t n = strcspn(p, " \t"), name = strcspn(p, "= \t");
        int is_named = setting_has_word(names, word, name);
        p += n;
        if (is_named && name == n) { /* its value is the next word */
            p += strspn(p, " \t");
            p += strcspn(p, " \t");
        }
        Buffer *to = is_named ? named : other;
        buffer_printf(to, "%s%.*s", to->len ? " " : "", (int)(p - word), word);
    }
}

static void keep_flags(Settings *s, SettingId id, Buffer *b)
{
    setting_replace(s, id, buffer_detach(b));
}

void settings_split(Settings *s)
{
    static const SettingId of[2][3] = {
        {SETTING_PROMPTS, SETTING_PROMPT_FLAGS, SETTING_COPIES},
        {SETTING_SELFSUP_PROMPTS, SETTING_SELFSUP_PROMPT_FLAGS, SETTING_SELFSUP_COPIES}};
    Buffer copies, other;
    buffer_init(&copies, 1 << 16);
    buffer_init(&other, 1 << 16);
    for (int i = 0; i < 2; i++) {
        split_flags(setting_text(s, of[i][0]), "--copies", &copies, &other);
        keep_flags(s, of[i][1], &other);
        keep_flags(s, of[i][2], &copies);
    }
    buffer_release(&other);
    buffer_release(&copies);
}

static void add_engine(const Settings *s, Buffer *b)
{
    const char *engine = setting_text(s, SETTING_ENGINE), *gpus = setting_text(s, SETTING_GPUS);
    if (strcmp(engine, "cpu")) add_flag(b, "--engine", engine);
    if (*gpus && strcmp(gpus, "1")) add_flag(b, "--gpus", gpus);
}

static void derive_flags(Settings *s)
{
    Buffer b, memory;
    const char *trainer = setting_text(s, SETTING_TRAINER);
    const char *start = *s->checkpoint ? s->checkpoint : s->starter;
    char *word = setting_shell_word(start);
    buffer_init(&b, 1 << 16);
    buffer_init(&memory, 1 << 16);
    if (*start) add_flag(&b, "--base", word);
    free(word);
    word = setting_shell_word(setting_text(s, SETTING_CHAT));
    if (*setting_text(s, SETTING_CHAT)) add_flag(&b, "--chat", word);
    free(word);
    keep_flags(s, SETTING_BASE_FLAGS, &b);
    add_engine(s, &b);
    keep_flags(s, SETTING_ENGINE_FLAGS, &b);
    add_engine(s, &b);
    if (*setting_text(s, SETTING_LORA)) add_flag(&b, "--lora", setting_text(s, SETTING_LORA));
    split_flags(setting_text(s, SETTING_TRAINING), "--max-tokens --recompute --trainer-hours",
                &memory, &b);
    if (*trainer) {
        word = setting_shell_word(trainer);
        add_flag(&b, "--trainer", word);
        free(word);
    }
    keep_flags(s, SETTING_TRAINING_FLAGS, &b);
    keep_flags(s, SETTING_MEMORY_FLAGS, &memory);
    buffer_release(&memory);
    buffer_release(&b);
}

int settings_derive(Settings *s, Error *err)
{
    setting_replace(s, SETTING_HARNESS, memory_strdup(VERDICT_HARNESS));
    derive_flags(s);
    if (derive_kernels(s, err)) return -1;
    return derive_tasks(s, err);
}
