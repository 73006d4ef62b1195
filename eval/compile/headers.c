/* A file is read and scanned for #include lines once, and kept. No condition of the preprocessor is
 * evaluated: every #include counts. Sources never decide which path is read outside of the roots.
 */
#include "eval/compile/headers.h"

#include <ctype.h>
#include <limits.h>
#include <search.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "base/embed.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/sort.h"
#include "base/words.h"
#include "eval/compile/macros.h"

/* Headers that a candidate gets instead of the system's: of the C library, and <cuda.h>. The texts are
 * written for NVRTC. All C headers are one text. */

EMBED(prelude_cuh, "eval/compile/prelude.cuh")
EMBED(driver_types_cuh, "eval/compile/driver_types.cuh")

static const char *const prelude_names[] = {
    "quern_prelude.h", "math.h",    "cmath",   "stdint.h", "cstdint", "float.h",
    "cfloat",          "limits.h",  "climits", "stddef.h", "cstddef", "stdio.h",
    "cstdio",          "stdlib.h",  "cstdlib", "assert.h", "cassert", "string.h",
    "cstring",         "stdbool.h", "cuda.h",  "algorithm"};

/* the i-th of them; NULL beyond the last */
static const char *prelude_name(int i)
{
    return i < (int)(sizeof prelude_names / sizeof *prelude_names) ? prelude_names[i] : NULL;
}

/* NULL: none of them */
static const char *prelude_text(const char *name)
{
    for (int i = 0; prelude_name(i); i++)
        if (!strcmp(prelude_names[i], name))
            return strcmp(name, "cuda.h") ? prelude_cuh : driver_types_cuh;
    return NULL;
}

enum {
    HEADER_MAX_BYTES = 4 << 20,
    HEADERS_MAX_BYTES = 128 << 20,
    HEADERS_MAX = 8192,
    NAME_MAX_BYTES = 200,
    FOLDERS_MAX = 16
};

typedef struct File File;

typedef struct {
    char *spelled;
    File *file; /* NULL: spelled is the use of a macro */
} Include;

struct File {
    char *path; /* the key in Headers.tree */
    int root;
    size_t base; /* the length of the root's folder in path */
    int named;   /* in a folder that the user named */
    char *name;  /* of a named file: the name under which other files include it */
    char *text;
    Digest digest; /* of the text of a named file */
    Include *includes;
    int n_includes, scanned;
    /* The names of this file in the headers of source number `generation`. */
    int generation, n_aliases;
    const char *aliases[8];
};

typedef struct {
    char dir[4096];
    size_t base;
    int named;
} Root;

struct Headers {
    Root *roots; /* in search order */
    int n_roots;
    Macros *macros; /* of all headers that were read */
    Macros *all;    /* with those of the current source */
    void *tree;     /* of File by path */
    File **files;
    int n_files, generation;
    size_t bytes;
    int full; /* a file was left out, since the limits were reached */
    const char **names, **texts;
    int n, capacity;
    void *given;      /* of Given by name */
    char cutlass[32]; /* its version */
    int has_cutlass;  /* the last root is CUTLASS's */
    Digester taken;   /* of the current source's headers from named folders */
    int n_taken, takes_cutlass;
    char taken_hex[DIGEST_HEX];
};

static void add_root(Headers *h, const char *dir, const char *below, int named)
{
    h->roots = memory_grow(h->roots, (size_t)h->n_roots + 1, sizeof *h->roots);
    Root *r = &h->roots[h->n_roots++];
    snprintf(r->dir, sizeof r->dir, "%.4000s%s", dir, below);
    r->base = strlen(dir);
    r->named = named;
}

/* Add a folder of $QUERN_INCLUDE by its real path, in which its files must be. */
static int add_folder(Headers *h, const char *name, size_t len, Error *err)
{
    char dir[4096], real[PATH_MAX];
    struct stat st;
    if (len >= sizeof dir)
        return error_set(err, ERROR_USAGE, "QUERN_INCLUDE: a name of %zu bytes", len);
    memcpy(dir, name, len);
    dir[len] = 0;
    if (*dir != '/')
        return error_set(err, ERROR_USAGE,
                         "QUERN_INCLUDE: expected the whole path of a folder, found \"%s\"", dir);
    if (!realpath(dir, real) || stat(real, &st)) return error_errno(err, "QUERN_INCLUDE: %s", dir);
    if (!S_ISDIR(st.st_mode) || !real[1])
        return error_set(err, ERROR_USAGE, "QUERN_INCLUDE: %s: expected a folder of headers", dir);
    if (strlen(real) > 4000)
        return error_set(err, ERROR_USAGE,
                         "QUERN_INCLUDE: %s: expected a path of at most 4000 bytes", real);
    if (headers_named_folders(h) == FOLDERS_MAX)
        return error_set(err, ERROR_USAGE, "QUERN_INCLUDE: expected at most %d folders",
                         FOLDERS_MAX);
    add_root(h, real, "", 1);
    return 0;
}

/* Without CUDA's headers every source that includes one would be blamed for it. */
static int need_cuda(const char *include_dir, Error *err)
{
    char path[5000];
    snprintf(path, sizeof path, "%.4096s/cuda_fp16.h", include_dir);
    if (*include_dir && file_exists(path)) return 0;
    return error_set(err, ERROR_COMPILER,
                     "NVRTC is there without the CUDA toolkit's headers (expected %s%s): name a "
                     "whole toolkit in CUDA_HOME, or "
                     "run: make deps",
                     *include_dir ? path : "cuda_fp16.h",
                     *include_dir ? "" : " in a toolkit's include folder");
}

/* The number behind a word of a text, or -1. */
static int number_behind(const char *text, const char *word)
{
    const char *p = strstr(text, word);
    return p ? atoi(p + strlen(word)) : -1;
}

/* CUTLASS's folder, by its real path. */
static void add_cutlass(Headers *h, const char *dir)
{
    char real[PATH_MAX], path[PATH_MAX + 32];
    Buffer text;
    if (!*dir || !realpath(dir, real) || strlen(real) > 4000) return;
    snprintf(path, sizeof path, "%s/cutlass/version.h", real);
    buffer_init(&text, HEADER_MAX_BYTES);
    if (!file_read(path, HEADER_MAX_BYTES, &text, NULL)) {
        snprintf(h->cutlass, sizeof h->cutlass, "CUTLASS %d.%d.%d",
                 number_behind(text.data, "define CUTLASS_MAJOR "),
                 number_behind(text.data, "define CUTLASS_MINOR "),
                 number_behind(text.data, "define CUTLASS_PATCH "));
        add_root(h, real, "", 1);
        h->has_cutlass = 1;
    }
    buffer_release(&text);
}

int headers_open(const char *include_dir, const char *folders, const char *cutlass, Headers **out,
                 Error *err)
{
    if (need_cuda(include_dir, err)) return -1;
    Headers *h = memory_alloc(sizeof *h);
    h->macros = macros_open(NULL);
    add_root(h, include_dir, "", 0);
    add_root(h, include_dir, "/cccl", 0);
    for (const char *p = folders; *p; p += *p == ':') {
        size_t len = strcspn(p, ":");
        if (len && add_folder(h, p, len, err)) {
            headers_close(h);
            return -1;
        }
        p += len;
    }
    add_cutlass(h, cutlass);
    *out = h;
    return 0;
}

static void keep_file(void *node)
{
    (void)node; /* Headers.files owns it */
}

/* Free everything that was read. */
static void forget(Headers *h)
{
    tdestroy(h->tree, keep_file);
    tdestroy(h->given, free);
    for (int i = 0; i < h->n_files; i++) {
        File *f = h->files[i];
        for (int k = 0; k < f->n_includes; k++) free(f->includes[k].spelled);
        free(f->includes);
        free(f->path);
        free(f->name);
        free(f->text);
        free(f);
    }
    macros_close(h->macros);
    h->macros = NULL;
    h->tree = h->given = NULL;
    h->n_files = 0;
    h->bytes = 0;
}

void headers_close(Headers *h)
{
    forget(h);
    free(h->roots);
    free(h->files);
    free(h->names);
    free(h->texts);
    free(h);
}

/* The path to read, in `real`. A file of a named folder must really be in a named folder: 0 when it
 * is not. */
static int readable(const Headers *h, const Root *root, const char *path, char real[PATH_MAX])
{
    struct stat st;
    if (!root->named) return snprintf(real, PATH_MAX, "%s", path) < PATH_MAX;
    if (!realpath(path, real) || stat(real, &st) || !S_ISREG(st.st_mode)) return 0;
    for (int i = 0; i < h->n_roots; i++) {
        const Root *r = &h->roots[i];
        if (r->named && !strncmp(real, r->dir, r->base) && real[r->base] == '/') return 1;
    }
    return 0;
}

/* The file by path, read at its first use, or NULL. Missing files are not remembered, since a
 * source can name any number of them. */
static File *file_at(Headers *h, const Root *root, const char *path)
{
    char real[PATH_MAX];
    File probe = {.path = (char *)(size_t)path};
    File *const *found = tfind(&probe, &h->tree, sort_by_text);
    if (found) return *found;
    if (!readable(h, root, path, real)) return NULL;
    if (h->n_files == HEADERS_MAX || h->bytes >= HEADERS_MAX_BYTES) {
        h->full |= file_exists(real);
        return NULL;
    }
    Buffer text;
    buffer_init(&text, HEADER_MAX_BYTES);
    if (file_read(real, HEADER_MAX_BYTES, &text, NULL)) {
        buffer_release(&text);
        return NULL;
    }
    File *f = memory_alloc(sizeof *f);
    f->path = memory_strdup(path);
    f->root = (int)(root - h->roots);
    f->base = root->base;
    f->named = root->named;
    h->bytes += text.len;
    if (f->named) digest_of(text.data, text.len, &f->digest);
    f->text = text.len ? buffer_detach(&text) : memory_strdup("");
    buffer_release(&text);
    h->files = memory_grow(h->files, (size_t)h->n_files + 1, sizeof *h->files);
    h->files[h->n_files++] = f;
    tsearch(f, &h->tree, sort_by_text);
    return f;
}

/* Fold "a/../b" to "b". -1: the name is absolute, empty, too long or leads out of its root. */
static int normalise(const char *name, char *out, size_t size)
{
    size_t n = 0;
    if (*name == '/') return -1;
    while (*name) {
        size_t len = strcspn(name, "/");
        if (len == 2 && !memcmp(name, "..", 2)) {
            if (!n) return -1;
            while (n && out[n - 1] != '/') n--;
            if (n) n--;
        } else if (len && !(len == 1 && *name == '.')) {
            if (n + len + 2 > size) return -1;
            if (n) out[n++] = '/';
            memcpy(out + n, name, len);
            n += len;
        }
        name += len + (name[len] == '/');
    }
    out[n] = 0;
    return n ? 0 : -1;
}

static File *resolve_at(Headers *h, const Root *root, const char *dir, size_t dir_len,
                        const char *relative)
{
    char clean[1024], path[6000];
    if (normalise(relative, clean, sizeof clean)) return NULL;
    snprintf(path, sizeof path, "%.*s/%s", (int)dir_len, dir, clean);
    return file_at(h, root, path);
}

static File *resolve(Headers *h, const File *includer, const char *name, int quoted);

/* A header of the C++ library: CCCL's of that name, in namespace std. NULL: CCCL has none. */
static File *standard(Headers *h, const char *name)
{
    static const char root[] = "/quern/std";
    char path[NAME_MAX_BYTES + sizeof root], whole[NAME_MAX_BYTES];
    if (strpbrk(name, "./") || !strncmp(name, "__", 2) ||
        (size_t)snprintf(path, sizeof path, "%s/%s", root, name) >= sizeof path ||
        (size_t)snprintf(whole, sizeof whole, "cuda/std/%s", name) >= sizeof whole)
        return NULL;
    File probe = {.path = path}, *const *found = tfind(&probe, &h->tree, sort_by_text);
    if (found) return *found;
    if (h->n_files == HEADERS_MAX) return NULL;
    if (!resolve(h, NULL, whole, 0)) { /* some are internal: <cuda/std/__algorithm_> */
        if ((size_t)snprintf(whole, sizeof whole, "cuda/std/__%s_", name) >= sizeof whole ||
            !resolve(h, NULL, whole, 0))
            return NULL;
    }
    File *f = memory_alloc(sizeof *f);
    f->path = memory_strdup(path);
    f->base = sizeof root - 1;
    f->text = memory_printf("#include <%s>\nnamespace cuda { namespace std {} }\nnamespace std { "
                            "using namespace ::cuda::std; }\n",
                            whole);
    h->files = memory_grow(h->files, (size_t)h->n_files + 1, sizeof *h->files);
    h->files[h->n_files++] = f;
    tsearch(f, &h->tree, sort_by_text);
    return f;
}

/* Search beside the includer when quoted, then in the roots. */
static File *resolve(Headers *h, const File *includer, const char *name, int quoted)
{
    char relative[2048];
    const char *slash = includer ? strrchr(includer->path, '/') : NULL;
    if (quoted && slash && (size_t)(slash - includer->path) > includer->base) {
        const char *inside = includer->path + includer->base + 1;
        snprintf(relative, sizeof relative, "%.*s/%s", (int)(slash - inside), inside, name);
        File *f =
            resolve_at(h, &h->roots[includer->root], includer->path, includer->base, relative);
        if (f) return f;
    }
    for (int i = 0; i < h->n_roots; i++) {
        File *f = resolve_at(h, &h->roots[i], h->roots[i].dir, strlen(h->roots[i].dir), name);
        if (f) return f;
    }
    return includer && !includer->named ? NULL : standard(h, name);
}

/* The text after the # of a directive; NULL when the line is no directive. */
static const char *directive(const char *line, const char *end)
{
    while (line < end && isblank((unsigned char)*line)) line++;
    if (line == end || *line++ != '#') return NULL;
    while (line < end && isblank((unsigned char)*line)) line++;
    return line;
}

/* The end of the line at p, with the lines that are spliced to it. */
static const char *line_end(const char *p, const char *end)
{
    for (const char *eol;; p = eol + 1) {
        eol = memchr(p, '\n', (size_t)(end - p));
        if (!eol) return end;
        const char *last = eol > p && eol[-1] == '\r' ? eol - 1 : eol;
        if (last == p || last[-1] != '\\') return eol;
    }
}

typedef struct {
    char name[NAME_MAX_BYTES], kind; /* kind: '<', '"', or 0 for the use of a macro */
    const char *at;                  /* its bracket or quote, in the text */
} IncludeName;

/* Read the name in "include <name>". Returns 0 for another directive. */
static int include_name(const char *p, const char *end, IncludeName *out)
{
    if (end - p < 9 || memcmp(p, "include", 7)) return 0;
    p += 7;
    while (p < end && isblank((unsigned char)*p)) p++;
    if (p == end) return 0;
    size_t n = 0;
    out->at = p;
    out->kind = *p == '<' || *p == '"' ? *p : 0;
    if (out->kind) {
        const char *stop = memchr(p + 1, out->kind == '"' ? '"' : '>', (size_t)(end - p - 1));
        n = stop ? (size_t)(stop - p - 1) : 0;
    } else if (isblank((unsigned char)p[-1])) {
        n = macros_use_length(p, end);
    }
    if (!n || n >= sizeof out->name) return 0;
    memcpy(out->name, p + (out->kind != 0), n);
    out->name[n] = 0;
    return 1;
}

/* The name under which a named file is given to NVRTC: its path from the root, unless that name
 * finds another file. */
static const char *name_of(Headers *h, File *f)
{
    const char *from_root = f->path + f->base + 1;
    char name[6100];
    if (f->name) return f->name;
    if (prelude_text(from_root) || resolve(h, NULL, from_root, 0) != f)
        snprintf(name, sizeof name, "folder%d:%s", f->root, from_root);
    else
        snprintf(name, sizeof name, "%s", from_root);
    return f->name = memory_strdup(name);
}

static void remember_include(File *f, const char *spelled, File *file)
{
    f->includes = memory_grow(f->includes, (size_t)f->n_includes + 1, sizeof *f->includes);
    f->includes[f->n_includes++] = (Include){memory_strdup(spelled), file};
}

/* A text with some of its lines changed: what it is so far, and what is not copied yet. */
typedef struct {
    Buffer text;
    const char *rest;
} Rewriting;

static void rewrite_up_to(Rewriting *w, const char *p)
{
    buffer_append(&w->text, w->rest, (size_t)(p - w->rest));
    w->rest = p;
}

/* Note an #include of f. NVRTC finds a header only by the name in the #include. In named folders
 * two files may mean different files by "common.h", so the line is rewritten with name_of the file.
 */
static void note_include(Headers *h, File *f, const IncludeName *n, Rewriting *w)
{
    if (!n->kind || prelude_text(n->name)) {
        if (!n->kind) remember_include(f, n->name, NULL);
        return;
    }
    File *file = resolve(h, f, n->name, n->kind == '"');
    if (!file) return;
    if (!f->named || !file->named || !strcmp(n->name, name_of(h, file))) {
        remember_include(f, n->name, file);
        return;
    }
    rewrite_up_to(w, n->at);
    buffer_printf(&w->text, "<%s>", file->name);
    w->rest = n->at + strlen(n->name) + 2;
    remember_include(f, file->name, file);
}

/* cub.cuh includes parts that only a host can use, and NVRTC refuses those. Leave them out. */
static int only_for_hosts(const File *f, const char *name)
{
    static const char all[] = "/cub/cub.cuh", device[] = "cub/device/",
                      allocator[] = "cub/util_allocator.cuh";
    size_t n = strlen(f->path);
    if (f->named || n < sizeof all || strcmp(f->path + n - (sizeof all - 1), all)) return 0;
    return !strncmp(name, device, sizeof device - 1) || !strcmp(name, allocator);
}

/* The name of an enumerator that the line before "# define NAME" begins ("NAME ="), as in the C library and
 * in CUTLASS, with its bytes in *n. Where NAME is a macro already that line is none. NULL: it is none. */
static const char *enumerator(const char *before, const char *directive_at, const char *eol,
                              size_t *n)
{
    static const char lead[] = "define";
    const char *p = directive_at + sizeof lead - 1;
    if (!before || eol - directive_at < (ptrdiff_t)sizeof lead ||
        memcmp(directive_at, lead, sizeof lead - 1))
        return NULL;
    while (p < eol && isblank((unsigned char)*p)) p++;
    *n = word_length(p, eol);
    while (isblank((unsigned char)*before)) before++;
    if (!*n || strncmp(before, p, *n)) return NULL;
    for (before += *n; isblank((unsigned char)*before);) before++;
    return *before == '=' && before[1] == '\n' ? p : NULL;
}

static void scan_file(Headers *h, File *f)
{
    IncludeName name;
    const char *p = f->text, *end = p + strlen(p), *before = NULL;
    Rewriting w = {.rest = p};
    buffer_init(&w.text, 2 * HEADER_MAX_BYTES);
    while (p < end) {
        const char *eol = line_end(p, end), *word = directive(p, eol);
        int found = word && include_name(word, eol, &name);
        if (found && only_for_hosts(f, name.name)) {
            rewrite_up_to(&w, p);
            w.rest = eol;
        } else if (found) {
            note_include(h, f, &name, &w);
        } else if (word) {
            size_t n;
            const char *again = enumerator(before, word, eol, &n);
            if (again) rewrite_up_to(&w, before);
            if (again) buffer_printf(&w.text, "#undef %.*s\n", (int)n, again);
            macros_define(h->macros, f, word, (size_t)(eol - word));
        }
        before = p;
        p = eol + 1;
    }
    if ((w.text.len || w.rest != f->text) &&
        !buffer_append(&w.text, w.rest, (size_t)(end - w.rest))) {
        free(f->text);
        f->text = buffer_detach(&w.text);
    }
    buffer_release(&w.text);
}

typedef struct {
    const char *name;
    int generation;
} Given;

/* Give NVRTC a header. Each name is given once, since NVRTC refuses a second text of that name. */
static void give(Headers *h, const char *name, const char *text)
{
    Given probe = {name, 0}, **found = tfind(&probe, &h->given, sort_by_text);
    Given *given = found ? *found : NULL;
    if (!given) {
        given = memory_alloc(sizeof *given);
        given->name = name;
        tsearch(given, &h->given, sort_by_text);
    }
    if (given->generation == h->generation) return;
    given->generation = h->generation;
    if (h->n == h->capacity) {
        h->capacity = h->capacity ? 2 * h->capacity : 64;
        h->names = memory_grow(h->names, (size_t)h->capacity, sizeof *h->names);
        h->texts = memory_grow(h->texts, (size_t)h->capacity, sizeof *h->texts);
    }
    h->names[h->n] = name;
    h->texts[h->n++] = text;
}

/* Add the name and the text of a named file to the key of the result, which knows CUTLASS's version. */
static void note_taken(Headers *h, const char *name, const File *f)
{
    int is_cutlass = h->has_cutlass && f->root == h->n_roots - 1;
    h->takes_cutlass |= is_cutlass;
    if (is_cutlass) return;
    if (!h->n_taken++) digester_init(&h->taken);
    digester_add_field(&h->taken, name, strlen(name));
    digester_add_field(&h->taken, f->digest.bytes, sizeof f->digest.bytes);
}

static void add(Headers *h, const char *name, File *f);
static void add_from_source(Headers *h, const char *name);

typedef struct {
    Headers *h;
    const File *includer;
} MacroUse;

/* Only macro definitions of this source and of its headers count, not those that earlier sources included. */
static int in_closure(const void *owner, void *context)
{
    const MacroUse *use = context;
    return !owner || ((const File *)owner)->generation == use->h->generation;
}

static void add_by_macro(void *context, const char *header)
{
    const MacroUse *use = context;
    if (!use->includer && !prelude_text(header)) add_from_source(use->h, header);
    if (!use->includer) return;
    File *f = prelude_text(header) ? NULL : resolve(use->h, use->includer, header, 0);
    size_t n = f ? strlen(f->path) : 0, k = strlen(header);
    if (k <= n && !strcmp(f->path + n - k, header)) add(use->h, header, f);
}

/* includer NULL: the candidate. */
static void add_macro(Headers *h, const File *includer, const char *use)
{
    macros_expand(h->all, use, in_closure, add_by_macro, &(MacroUse){h, includer});
}

/* Give one file under one name, and the files that it includes. The depth of the recursion is the
 * headers' own nesting: a file is entered once per name, and the candidate's text never. */
static void add(Headers *h, const char *name, File *f)
{
    int fresh = f->generation != h->generation;
    if (fresh) f->generation = h->generation, f->n_aliases = 0;
    for (int i = 0; i < f->n_aliases; i++)
        if (!strcmp(f->aliases[i], name)) return;
    if (f->n_aliases == (int)(sizeof f->aliases / sizeof *f->aliases)) return;
    if (!f->scanned) {
        f->scanned = 1;
        scan_file(h, f);
    }
    size_t n = strlen(f->path), k = strlen(name);
    /* A name that stays valid: the end of the path where it is equal, else the includer's copy. */
    const char *kept = k <= n && !strcmp(f->path + n - k, name) ? f->path + n - k : name;
    f->aliases[f->n_aliases++] = kept;
    give(h, kept, f->text);
    if (f->named) note_taken(h, kept, f);
    if (!fresh) return;
    for (int i = 0; i < f->n_includes; i++) {
        const Include *inc = &f->includes[i];
        if (inc->file)
            add(h, inc->spelled, inc->file);
        else
            add_macro(h, f, inc->spelled);
    }
}

static void add_from_source(Headers *h, const char *name)
{
    File *f = resolve(h, NULL, name, 0);
    size_t n = f ? strlen(f->path) : 0, k = strlen(name);
    /* Names such as "./x.h", which are no end of a path, are not supported in a candidate. */
    if (f && k <= n && !strcmp(f->path + n - k, name)) add(h, name, f);
}

/* Each line of the candidate that is a directive, once for the definitions, then for the headers. */
static void read_candidate(Headers *h, const char *source, size_t len, int headers)
{
    IncludeName name;
    for (const char *p = source, *end = source + len, *eol; p < end; p = eol + 1) {
        eol = line_end(p, end);
        const char *word = directive(p, eol);
        if (!word) continue;
        int found = include_name(word, eol, &name);
        if (!headers && !found) macros_define(h->all, NULL, word, (size_t)(eol - word));
        if (!headers || !found) continue;
        if (!name.kind)
            add_macro(h, NULL, name.name);
        else if (!prelude_text(name.name))
            add_from_source(h, name.name);
    }
}

static void collect(Headers *h, const char *source, size_t len)
{
    h->n = h->n_taken = h->takes_cutlass = h->full = 0;
    h->taken_hex[0] = 0;
    h->generation++;
    for (int i = 0; prelude_name(i); i++) give(h, prelude_name(i), prelude_text(prelude_name(i)));
    h->all = macros_open(h->macros);
    read_candidate(h, source, len, 0);
    read_candidate(h, source, len, 1);
    macros_close(h->all);
    h->all = NULL;
    if (h->n_taken) {
        Digest d;
        digester_finish(&h->taken, &d);
        digest_hex(&d, h->taken_hex);
    }
}

int headers_collect(Headers *h, const char *source, size_t len, const char *const **names,
                    const char *const **texts)
{
    int kept = h->n_files;
    collect(h, source, len);
    if (h->full && kept) { /* the headers of earlier sources take the room */
        forget(h);
        h->macros = macros_open(NULL);
        collect(h, source, len);
    }
    *names = h->names;
    *texts = h->texts;
    return h->n;
}

int headers_none(const Headers *h)
{
    return !prelude_name(h->n) && prelude_name(h->n - 1); /* as many */
}

int headers_named_folders(const Headers *h)
{
    int n = 0;
    for (int i = 0; i < h->n_roots; i++) n += h->roots[i].named;
    return n - h->has_cutlass;
}

const char *headers_cutlass(const Headers *h)
{
    return h->cutlass;
}

int headers_takes_cutlass(const Headers *h)
{
    return h->takes_cutlass;
}

const char *headers_taken(const Headers *h)
{
    return h->taken_hex;
}
