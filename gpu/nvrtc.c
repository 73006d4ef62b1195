/* NVRTC: the search for the library, and one compilation per call. */
#include "gpu/nvrtc.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/process.h"
#include "gpu/open.h"

typedef void *Program;

/* clang-format off */
#define NVRTC_FUNCTIONS(X, TEXT)                                                              \
    X(nvrtcVersion, Version, (int *, int *))                                                  \
    X(nvrtcCreateProgram, CreateProgram,                                                      \
      (Program *, const char *, const char *, int, const char *const *, const char *const *)) \
    X(nvrtcDestroyProgram, DestroyProgram, (Program *))                                       \
    X(nvrtcCompileProgram, CompileProgram, (Program, int, const char *const *))               \
    X(nvrtcAddNameExpression, AddNameExpression, (Program, const char *))                     \
    X(nvrtcGetLoweredName, GetLoweredName, (Program, const char *, const char **))            \
    X(nvrtcGetPTXSize, GetPTXSize, (Program, size_t *))                                       \
    X(nvrtcGetPTX, GetPTX, (Program, char *))                                                 \
    X(nvrtcGetCUBINSize, GetCUBINSize, (Program, size_t *))                                   \
    X(nvrtcGetCUBIN, GetCUBIN, (Program, char *))                                             \
    X(nvrtcGetProgramLogSize, GetProgramLogSize, (Program, size_t *))                         \
    X(nvrtcGetProgramLog, GetProgramLog, (Program, char *))                                   \
    TEXT(nvrtcGetErrorString, GetErrorString, (int))
/* clang-format on */

struct Nvrtc {
    NVRTC_FUNCTIONS(OPEN_INT, OPEN_TEXT)
    char version[32], include_dir[4096];
};

enum { OUT_OF_MEMORY = 1, INVALID_OPTION = 5, COMPILATION = 6, NAME_NOT_VALID = 10 };

static int find_symbols(Nvrtc *n, void *library, const char *path, Error *err)
{
    static const char *const names[] = {NVRTC_FUNCTIONS(OPEN_NAME, OPEN_NAME)};
    return open_functions(library, path, "NVRTC of CUDA 11.8 or later", OPEN_FUNCTIONS(names, n),
                          err);
}

/* Load the library of device functions, which lies beside NVRTC. NVRTC opens it by its bare
 * name. */
static void open_builtins(const char *dir)
{
    char pattern[4200];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/libnvrtc-builtins.so.*", dir);
    if (glob(pattern, 0, NULL, &found)) return;
    for (size_t i = 0; i < found.gl_pathc; i++) dlopen(found.gl_pathv[i], RTLD_NOW | RTLD_GLOBAL);
    globfree(&found);
}

static void *open_in(const char *dir, char *path, size_t size)
{
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, size, "%s%s%s", dir, *dir ? "/" : "", names[i]);
        if (*dir && !file_exists(path)) continue;
        if (*dir) open_builtins(dir);
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (library) return library;
    }
    return NULL;
}

int nvrtc_open(Nvrtc **out, Error *err)
{
    enum { ROOTS = 5, OWN = ROOTS - 1 };
    char self[3000], roots[ROOTS][4096] = {"", "/usr/local/cuda", "/opt/cuda", "/usr/lib/cuda", ""},
                     dir[4200], path[4300];
    const char *home = getenv("CUDA_HOME");
    if (home && *home) snprintf(roots[0], sizeof roots[0], "%s", home);
    if (!process_self_dir(self, sizeof self, NULL))
        snprintf(roots[OWN], sizeof roots[OWN], "%s/../cuda", self);
    static const char *const subdirs[] = {"lib64", "lib"};
    Nvrtc *n = memory_alloc(sizeof *n);
    void *library = NULL;
    for (int r = 0; r < ROOTS && !library; r++) {
        for (int s = 0; s < 2 && *roots[r] && !library; s++) {
            snprintf(dir, sizeof dir, "%.3900s/%s", roots[r], subdirs[s]);
            library = open_in(dir, path, sizeof path);
        }
        if (library) snprintf(n->include_dir, sizeof n->include_dir, "%.3900s/include", roots[r]);
    }
    if (!library) library = open_in("", path, sizeof path);
    if (!library) {
        free(n);
        return error_set(
            err, ERROR_COMPILER,
            "no NVRTC found in $CUDA_HOME, %s, %s, %s, %s or the system's library path; "
            "install the CUDA toolkit or run: make deps",
            roots[1], roots[2], roots[3], roots[OWN]);
    }
    int major = 0, minor = 0;
    if (find_symbols(n, library, path, err)) {
        free(n);
        return -1;
    }
    n->Version(&major, &minor);
    snprintf(n->version, sizeof n->version, "NVRTC %d.%d", major, minor);
    *out = n;
    return 0;
}

void nvrtc_close(Nvrtc *n)
{
    free(n);
}

const char *nvrtc_version(const Nvrtc *n)
{
    return n->version;
}

const char *nvrtc_include_dir(const Nvrtc *n)
{
    return n->include_dir;
}

/* From sm_90 on an architecture has instructions that later ones do not have (wgmma,
 * setmaxnreg). */
static int own_instructions(const char *arch)
{
    char *end;
    return !strncmp(arch, "sm_", 3) && strtol(arch + 3, &end, 10) >= 90 && !*end;
}

void nvrtc_arch_option(const char *arch, char *out, size_t size)
{
    snprintf(out, size, "-arch=%s%s", arch, own_instructions(arch) ? "a" : "");
}

/* ---- outputs ---- */

static void set_log(NvrtcOutput *out, NvrtcOutcome outcome, char *log)
{
    free(out->log);
    out->outcome = outcome;
    out->log = log;
}

static char *read_log(const Nvrtc *n, Program p)
{
    size_t size = 0;
    n->GetProgramLogSize(p, &size);
    char *log = memory_alloc(size + 1);
    if (size) n->GetProgramLog(p, log);
    if (size > NVRTC_MAX_LOG) log[NVRTC_MAX_LOG] = 0;
    return log;
}

/* One output of the program, with a NUL after it; NULL when it is larger than max. */
static char *read_output(Program p, int (*size_of)(Program, size_t *), int (*get)(Program, char *),
                         size_t max, size_t *len)
{
    *len = 0;
    if (size_of(p, len) || *len > max) return NULL;
    char *data = memory_alloc(*len + 1);
    if (!*len || !get(p, data)) return data;
    free(data);
    return NULL;
}

static void read_success(const Nvrtc *n, Program p, const NvrtcJob *job, NvrtcOutput *out)
{
    set_log(out, NVRTC_DONE, read_log(n, p));
    out->ptx = read_output(p, n->GetPTXSize, n->GetPTX, NVRTC_MAX_PTX, &out->ptx_len);
    if (out->ptx_len && out->ptx && !out->ptx[out->ptx_len - 1])
        out->ptx_len--; /* NVRTC counts the NUL */
    if (!out->ptx) {
        set_log(out, NVRTC_LIMIT, memory_strdup("the PTX of this source is larger than 4 MiB"));
        return;
    }
    out->cubin = read_output(p, n->GetCUBINSize, n->GetCUBIN, NVRTC_MAX_CUBIN, &out->cubin_len);
    if (!out->cubin) {
        set_log(out, NVRTC_LIMIT, memory_strdup("the binary of this source is larger than 32 MiB"));
        return;
    }
    out->lowered = memory_array((size_t)job->n_names + 1, sizeof *out->lowered);
    for (; out->n_lowered < job->n_names; out->n_lowered++) {
        const char *lowered = NULL;
        if (n->GetLoweredName(p, job->names[out->n_lowered], &lowered)) lowered = "";
        out->lowered[out->n_lowered] = memory_strdup(lowered);
    }
}

NvrtcOutcome nvrtc_compile(const Nvrtc *n, const NvrtcJob *job, NvrtcOutput *out)
{
    char arch[64];
    const char *options[NVRTC_MAX_OPTIONS + 1] = {arch};
    int n_options = 1;
    Program p = NULL;
    memset(out, 0, sizeof *out);
    nvrtc_arch_option(job->arch, arch, sizeof arch);
    for (int i = 0; i < job->n_options && n_options <= NVRTC_MAX_OPTIONS; i++)
        options[n_options++] = job->options[i];
    int rc = n->CreateProgram(&p, job->source, job->name, job->n_headers, job->header_texts,
                              job->header_names);
    for (int i = 0; i < job->n_names && !rc; i++) rc = n->AddNameExpression(p, job->names[i]);
    if (!rc) rc = n->CompileProgram(p, n_options, options);
    if (!rc)
        read_success(n, p, job, out);
    else if (rc == COMPILATION || rc == NAME_NOT_VALID)
        set_log(out, NVRTC_REFUSED, read_log(n, p));
    else if (rc == INVALID_OPTION) /* only the arch can be invalid */
        set_log(
            out, NVRTC_BROKEN,
            memory_printf("%s does not know %s: a newer CUDA toolkit may", n->version, job->arch));
    else
        set_log(out, rc == OUT_OF_MEMORY ? NVRTC_LIMIT : NVRTC_BROKEN,
                memory_printf("the compiler stopped with %s", n->GetErrorString(rc)));
    if (p) n->DestroyProgram(&p);
    return out->outcome;
}

void nvrtc_output_release(NvrtcOutput *out)
{
    free(out->log);
    free(out->ptx);
    free(out->cubin);
    for (int i = 0; i < out->n_lowered; i++) free(out->lowered[i]);
    free(out->lowered);
    memset(out, 0, sizeof *out);
}
