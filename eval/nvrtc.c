#include "eval/nvrtc.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/process.h"
#include "eval/wire.h"

typedef void *Program;

struct Nvrtc {
    char version[32], include_dir[4096];
    int (*Version)(int *, int *);
    int (*CreateProgram)(Program *, const char *, const char *, int, const char *const *, const char *const *);
    int (*DestroyProgram)(Program *);
    int (*CompileProgram)(Program, int, const char *const *);
    int (*AddNameExpression)(Program, const char *);
    int (*GetLoweredName)(Program, const char *, const char **);
    int (*GetPTXSize)(Program, size_t *);
    int (*GetPTX)(Program, char *);
    int (*GetCUBINSize)(Program, size_t *);
    int (*GetCUBIN)(Program, char *);
    int (*GetProgramLogSize)(Program, size_t *);
    int (*GetProgramLog)(Program, char *);
    const char *(*GetErrorString)(int);
};

enum { NVRTC_COMPILATION = 6, NVRTC_NAME_NOT_VALID = 10 };

/* 177 and 550: variables declared or set and never used; they are no help to a reader of errors. */
static const char *const fixed_flags[] = {"-std=c++17", "-lineinfo", "-include", "quern_prelude.h", "-diag-suppress", "177,550"};
enum { N_FIXED = sizeof fixed_flags / sizeof *fixed_flags };

static int find_symbols(Nvrtc *n, void *lib, const char *path, Error *err)
{
    const struct {
        const char *name;
        void *slot;
    } symbols[] = {
        {"nvrtcVersion", &n->Version},
        {"nvrtcCreateProgram", &n->CreateProgram},
        {"nvrtcDestroyProgram", &n->DestroyProgram},
        {"nvrtcCompileProgram", &n->CompileProgram},
        {"nvrtcAddNameExpression", &n->AddNameExpression},
        {"nvrtcGetLoweredName", &n->GetLoweredName},
        {"nvrtcGetPTXSize", &n->GetPTXSize},
        {"nvrtcGetPTX", &n->GetPTX},
        {"nvrtcGetCUBINSize", &n->GetCUBINSize},
        {"nvrtcGetCUBIN", &n->GetCUBIN},
        {"nvrtcGetProgramLogSize", &n->GetProgramLogSize},
        {"nvrtcGetProgramLog", &n->GetProgramLog},
        {"nvrtcGetErrorString", &n->GetErrorString},
    };
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *f = dlsym(lib, symbols[i].name);
        if (!f) return error_set(err, "%s has no %s: expected NVRTC of CUDA 11.8 or later", path, symbols[i].name);
        memcpy(symbols[i].slot, &f, sizeof f);
    }
    return 0;
}

/* The library of device functions lies beside NVRTC, which looks for it by its bare name. */
static void open_builtins(const char *dir)
{
    char pattern[4200];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/libnvrtc-builtins.so.*", dir);
    if (glob(pattern, 0, NULL, &found)) return;
    for (size_t i = 0; i < found.gl_pathc; i++) dlopen(found.gl_pathv[i], RTLD_NOW | RTLD_GLOBAL);
    globfree(&found);
}

static void *open_library(const char *dir, char *path, size_t size)
{
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, size, "%s%s%s", dir, *dir ? "/" : "", names[i]);
        if (*dir && !file_exists(path)) continue;
        if (*dir) open_builtins(dir);
        void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (lib) return lib;
    }
    return NULL;
}

int nvrtc_open(Nvrtc **out, Error *err)
{
    char self[3000], roots[4][4096] = {"", "/usr/local/cuda", "", ""}, dir[4200], path[4300];
    const char *home = getenv("CUDA_HOME");
    if (home && *home) snprintf(roots[0], sizeof roots[0], "%s", home);
    if (!process_self_dir(self, sizeof self, NULL)) snprintf(roots[2], sizeof roots[2], "%s/../cuda", self);
    static const char *const subdirs[] = {"lib64", "lib"};
    Nvrtc *n = memory_alloc(sizeof *n);
    void *lib = NULL;
    for (int r = 0; r < 3 && !lib; r++) {
        for (int s = 0; s < 2 && *roots[r] && !lib; s++) {
            snprintf(dir, sizeof dir, "%.3900s/%s", roots[r], subdirs[s]);
            lib = open_library(dir, path, sizeof path);
        }
        if (lib) snprintf(n->include_dir, sizeof n->include_dir, "%.3900s/include", roots[r]);
    }
    if (!lib) lib = open_library("", path, sizeof path);
    if (!lib) {
        free(n);
        return error_set(err, "no NVRTC found in $CUDA_HOME, /usr/local/cuda, %s or the system's library path; "
                              "install the CUDA toolkit or run: make deps", roots[2]);
    }
    int major = 0, minor = 0;
    if (find_symbols(n, lib, path, err)) {
        free(n);
        return -1;
    }
    n->Version(&major, &minor);
    snprintf(n->version, sizeof n->version, "NVRTC %d.%d", major, minor);
    *out = n;
    return 0;
}

const char *nvrtc_version(const Nvrtc *n)
{
    return n->version;
}

const char *nvrtc_include_dir(const Nvrtc *n)
{
    return n->include_dir;
}

/* One sized output of the program as a field; -1 when it is larger than max. */
static int put_output(Program p, int (*size_of)(Program, size_t *), int (*get)(Program, char *), size_t max, int text,
                      Buffer *out)
{
    size_t n = 0;
    if (size_of(p, &n) || n > max) return -1;
    char *data = memory_alloc(n + 1);
    int rc = n && get(p, data) ? -1 : 0;
    if (text && n && !data[n - 1]) n--; /* counted with its NUL */
    if (!rc) rc = wire_put(out, data, n);
    free(data);
    return rc;
}

void nvrtc_flags(Buffer *out)
{
    buffer_clear(out);
    for (int i = 0; i < N_FIXED; i++) buffer_printf(out, "%s%s", i ? " " : "", fixed_flags[i]);
}

static void put_log(Nvrtc *n, Program p, Buffer *out)
{
    size_t size = 0;
    n->GetProgramLogSize(p, &size);
    char *log = memory_alloc(size + 1);
    if (size) n->GetProgramLog(p, log);
    size_t len = strlen(log);
    wire_put(out, log, len < NVRTC_MAX_LOG ? len : NVRTC_MAX_LOG);
    free(log);
}

static void put_sentence(Buffer *out, const char *status, const char *sentence)
{
    buffer_clear(out);
    wire_puts(out, status);
    wire_puts(out, sentence);
}

static void put_success(Nvrtc *n, Program p, const NvrtcJob *job, Buffer *out)
{
    buffer_clear(out);
    wire_puts(out, "ok");
    put_log(n, p, out);
    if (put_output(p, n->GetPTXSize, n->GetPTX, NVRTC_MAX_PTX, 1, out)) {
        put_sentence(out, "limit", "the PTX of this source is larger than 8 MiB");
        return;
    }
    if (put_output(p, n->GetCUBINSize, n->GetCUBIN, NVRTC_MAX_CUBIN, 0, out)) {
        put_sentence(out, "limit", "the binary of this source is larger than 32 MiB");
        return;
    }
    for (int i = 0; i < job->n_names; i++) {
        const char *lowered = NULL;
        if (n->GetLoweredName(p, job->names[i], &lowered)) lowered = "";
        wire_puts(out, lowered);
    }
}

/* From Hopper on an architecture has instructions that no later one keeps (wgmma, setmaxnreg): kernels for it may use them. */
static int own_instructions(const char *arch)
{
    char *end;
    return !strncmp(arch, "sm_", 3) && strtol(arch + 3, &end, 10) >= 90 && !*end;
}

void nvrtc_compile(Nvrtc *n, const NvrtcJob *job, Buffer *out)
{
    char arch[64];
    snprintf(arch, sizeof arch, "-arch=%s%s", job->arch, own_instructions(job->arch) ? "a" : "");
    const char *options[N_FIXED + 1] = {arch};
    memcpy(options + 1, fixed_flags, sizeof fixed_flags);
    Program p = NULL;
    int rc = n->CreateProgram(&p, job->source, "candidate.cu", job->n_headers, job->header_texts, job->header_names);
    for (int i = 0; i < job->n_names && !rc; i++) rc = n->AddNameExpression(p, job->names[i]);
    if (!rc) rc = n->CompileProgram(p, N_FIXED + 1, options);
    if (!rc) {
        put_success(n, p, job, out);
    } else if (rc == NVRTC_COMPILATION || rc == NVRTC_NAME_NOT_VALID) {
        buffer_clear(out);
        wire_puts(out, "refused");
        put_log(n, p, out);
    } else {
        char text[200];
        snprintf(text, sizeof text, "the compiler stopped with %s", n->GetErrorString(rc));
        put_sentence(out, rc == 1 ? "limit" : "failed", text);
    }
    if (p) n->DestroyProgram(&p);
}
