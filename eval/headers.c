#include "eval/headers.h"

#include <ctype.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/memory.h"

enum { HEADER_MAX_BYTES = 4 << 20, HEADERS_MAX_BYTES = 128 << 20, HEADERS_MAX = 8192, NAME_MAX_BYTES = 200 };

typedef struct File File;

typedef struct {
    char *spelled;
    File *file;
} Include;

struct File {
    char *path;                 /* the tree's key; NULL text: no such file */
    char *text;
    Include *includes;
    int n_includes, scanned;
    /* The names under which the current source's closure has it. */
    int generation, n_aliases;
    const char *aliases[8];
};

struct Headers {
    char include_dir[4096];
    void *tree;                 /* of File by path */
    File **files;
    int n_files, generation;
    size_t bytes;
    const char **names, **texts;
    int n, capacity;
};

/* What nvcc would have declared by itself, for NVRTC. */
static const char prelude[] =
    "#ifndef QUERN_PRELUDE\n"
    "#define QUERN_PRELUDE\n"
    "using int8_t = signed char; using uint8_t = unsigned char;\n"
    "using int16_t = signed short; using uint16_t = unsigned short;\n"
    "using int32_t = signed int; using uint32_t = unsigned int;\n"
    "using int64_t = signed long long; using uint64_t = unsigned long long;\n"
    "#ifndef INFINITY\n#define INFINITY __int_as_float(0x7f800000)\n#endif\n"
    "#ifndef NAN\n#define NAN __int_as_float(0x7fffffff)\n#endif\n"
    "#ifndef FLT_MAX\n#define FLT_MAX 3.402823466e+38f\n#define FLT_MIN 1.175494351e-38f\n"
    "#define FLT_EPSILON 1.192092896e-07f\n#endif\n"
    "#ifndef M_PI\n#define M_PI 3.14159265358979323846\n#define M_SQRT1_2 0.70710678118654752440\n"
    "#define M_SQRT2 1.41421356237309504880\n#define M_2_SQRTPI 1.12837916709551257390\n#define M_LOG2E "
    "1.4426950408889634074\n#endif\n"
    "#ifndef INT_MAX\n#define INT_MAX 2147483647\n#define INT_MIN (-2147483647 - 1)\n#define UINT_MAX 4294967295u\n"
    "#endif\n"
    "#endif\n";

static const char *const prelude_names[] = {"quern_prelude.h", "math.h",   "cmath",    "stdint.h", "cstdint",
                                            "float.h",         "cfloat",   "limits.h", "climits",  "stddef.h",
                                            "cstddef",         "stdio.h",  "cstdio",   "stdlib.h", "cstdlib",
                                            "assert.h",        "cassert"};

static int is_prelude(const char *name)
{
    for (size_t i = 0; i < sizeof prelude_names / sizeof *prelude_names; i++)
        if (!strcmp(prelude_names[i], name)) return 1;
    return 0;
}

Headers *headers_open(const char *include_dir)
{
    Headers *h = memory_alloc(sizeof *h);
    snprintf(h->include_dir, sizeof h->include_dir, "%s", include_dir);
    return h;
}

static void keep_file(void *node)
{
    (void)node; /* freed through Headers.files */
}

void headers_close(Headers *h)
{
    tdestroy(h->tree, keep_file);
    for (int i = 0; i < h->n_files; i++) {
        File *f = h->files[i];
        for (int k = 0; k < f->n_includes; k++) free(f->includes[k].spelled);
        free(f->includes);
        free(f->path);
        free(f->text);
        free(f);
    }
    free(h->files);
    free(h->names);
    free(h->texts);
    free(h);
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(((const File *)a)->path, ((const File *)b)->path);
}

/* The file by path, read once; its text is NULL when there is none. */
static File *file_at(Headers *h, const char *path)
{
    File probe = {.path = (char *)(size_t)path};
    File *const *found = tfind(&probe, &h->tree, compare_paths);
    if (found) return *found;
    if (h->n_files == HEADERS_MAX) return NULL;
    File *f = memory_alloc(sizeof *f);
    f->path = memory_strdup(path);
    Buffer text;
    buffer_init(&text, HEADER_MAX_BYTES);
    if (h->bytes < HEADERS_MAX_BYTES && !file_read(path, HEADER_MAX_BYTES, &text, NULL)) {
        h->bytes += text.len;
        f->text = buffer_detach(&text);
    }
    buffer_release(&text);
    h->files = memory_grow(h->files, (size_t)h->n_files + 1, sizeof *h->files);
    h->files[h->n_files++] = f;
    tsearch(f, &h->tree, compare_paths);
    return f;
}

/* Fold "a/../b" to "b"; 0, or -1 when it leads out of its root or is no plain relative name. */
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

static File *resolve_at(Headers *h, const char *root, const char *relative)
{
    char clean[1024], path[6000];
    if (normalise(relative, clean, sizeof clean)) return NULL;
    snprintf(path, sizeof path, "%s%s/%s", h->include_dir, root, clean);
    File *f = file_at(h, path);
    return f && f->text ? f : NULL;
}

/* Beside the includer when quoted, then in the toolkit's two roots. */
static File *resolve(Headers *h, const File *includer, const char *name, int quoted)
{
    static const char *const roots[] = {"", "/cccl"};
    char relative[2048];
    size_t base = strlen(h->include_dir);
    if (!base) return NULL;
    const char *slash = includer ? strrchr(includer->path, '/') : NULL;
    if (quoted && slash && (size_t)(slash - includer->path) > base) {
        const char *inside = includer->path + base + 1;
        snprintf(relative, sizeof relative, "%.*s/%s", (int)(slash - inside), inside, name);
        File *f = resolve_at(h, "", relative);
        if (f) return f;
    }
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
        File *f = resolve_at(h, roots[i], name);
        if (f) return f;
    }
    return NULL;
}

/* The name in an #include line; 0 when the line is none. */
static int include_name(const char *line, size_t len, char *name, size_t size, int *quoted)
{
    const char *p = line, *end = line + len;
    while (p < end && isblank((unsigned char)*p)) p++;
    if (p == end || *p++ != '#') return 0;
    while (p < end && isblank((unsigned char)*p)) p++;
    if (end - p < 9 || memcmp(p, "include", 7)) return 0;
    p += 7;
    while (p < end && isblank((unsigned char)*p)) p++;
    if (p == end || (*p != '<' && *p != '"')) return 0;
    *quoted = *p == '"';
    const char *stop = memchr(p + 1, *quoted ? '"' : '>', (size_t)(end - p - 1));
    size_t n = stop ? (size_t)(stop - p - 1) : 0;
    if (!n || n >= size) return 0;
    memcpy(name, p + 1, n);
    name[n] = 0;
    return 1;
}

typedef void OnInclude(Headers *h, File *includer, const char *name, File *file);

static void scan(Headers *h, File *includer, const char *text, size_t len, OnInclude *on)
{
    char name[NAME_MAX_BYTES];
    const char *p = text, *end = text + len;
    while (p < end) {
        const char *eol = memchr(p, '\n', (size_t)(end - p));
        size_t n = (size_t)((eol ? eol : end) - p);
        int quoted;
        if (include_name(p, n, name, sizeof name, &quoted) && !is_prelude(name)) {
            File *f = resolve(h, includer, name, quoted);
            if (f) on(h, includer, name, f);
        }
        p += n + 1;
    }
}

static void remember_include(Headers *h, File *includer, const char *name, File *file)
{
    (void)h;
    includer->includes = memory_grow(includer->includes, (size_t)includer->n_includes + 1, sizeof *includer->includes);
    includer->includes[includer->n_includes++] = (Include){memory_strdup(name), file};
}

static void give(Headers *h, const char *name, const char *text)
{
    if (h->n == h->capacity) {
        h->capacity = h->capacity ? 2 * h->capacity : 64;
        h->names = memory_grow(h->names, (size_t)h->capacity, sizeof *h->names);
        h->texts = memory_grow(h->texts, (size_t)h->capacity, sizeof *h->texts);
    }
    h->names[h->n] = name;
    h->texts[h->n++] = text;
}

/* One file under one name, and what it includes. The depth is that of the toolkit's own nesting,
 * since every file is entered once per name and a candidate's text is never entered. */
static void add(Headers *h, File *includer, const char *name, File *f)
{
    (void)includer;
    int fresh = f->generation != h->generation;
    if (fresh) f->generation = h->generation, f->n_aliases = 0;
    for (int i = 0; i < f->n_aliases; i++)
        if (!strcmp(f->aliases[i], name)) return;
    if (f->n_aliases == (int)(sizeof f->aliases / sizeof *f->aliases)) return;
    size_t n = strlen(f->path), k = strlen(name);
    /* A name that outlives the call: the end of the path when it is that, else the includer's copy. */
    const char *kept = k <= n && !strcmp(f->path + n - k, name) ? f->path + n - k : name;
    f->aliases[f->n_aliases++] = kept;
    give(h, kept, f->text);
    if (!fresh) return;
    if (!f->scanned) {
        f->scanned = 1;
        scan(h, f, f->text, strlen(f->text), remember_include);
    }
    for (int i = 0; i < f->n_includes; i++) add(h, f, f->includes[i].spelled, f->includes[i].file);
}

static void add_from_source(Headers *h, File *includer, const char *name, File *f)
{
    size_t n = strlen(f->path), k = strlen(name);
    /* "./x.h" and "a/../x.h" are not ends of a path; nobody needs them from a candidate. */
    if (k <= n && !strcmp(f->path + n - k, name)) add(h, includer, name, f);
}

int headers_collect(Headers *h, const char *source, size_t len, const char *const **names, const char *const **texts)
{
    h->n = 0;
    h->generation++;
    for (size_t i = 0; i < sizeof prelude_names / sizeof *prelude_names; i++) give(h, prelude_names[i], prelude);
    scan(h, NULL, source, len, add_from_source);
    *names = h->names;
    *texts = h->texts;
    return h->n;
}
