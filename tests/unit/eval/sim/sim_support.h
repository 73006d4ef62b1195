/* For the tests of the simulator: a device with one module, buffers, launches, and PTX by NVRTC. A
 * failure of the harness itself fails the test. */
#ifndef TESTS_SIM_SUPPORT_H
#define TESTS_SIM_SUPPORT_H

#include <dlfcn.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/part.h"
#include "eval/sim/sim.h"
#include "tests/fixture_path.h"

typedef struct {
    Device *d;
    DeviceModule *m;
    Fault fault;
    Error err;
} Sim;

typedef struct {
    const char *kernel;
    uint32_t grid[3], block[3], shared;
} Shape;

static const DeviceOps *const ops = &sim_device_ops;

/* A kernel of the parts of a file of tests/fixtures (base/part.h): of `entry`, if it is not NULL, of the
 * named one, and then of "end". It lives until eight further calls. */
static inline const char *sim_text(const char *file, const char *entry, const char *part)
{
    static Buffer texts[8];
    static int next;
    Buffer *b = &texts[next++ % 8];
    if (!b->data) buffer_init(b, 1 << 16);
    buffer_clear(b);
    if (entry) part_put(b, fixture_text(file), entry);
    part_put(b, fixture_text(file), part);
    if (entry) part_put(b, fixture_text(file), "end");
    return b->data;
}

static inline void sim_start(Sim *s, const char *ptx)
{
    memset(s, 0, sizeof *s);
    if (ops->open("h100", &s->d, &s->err)) fail_msg("%s", s->err.text);
    DeviceCode code = {.ptx = ptx, .ptx_len = strlen(ptx)};
    int r = ops->load(s->d, &code, 0, &s->m, &s->fault);
    if (r) fail_msg("%s", r > 0 ? s->fault.message : s->fault.error.text);
}

static inline void sim_stop(Sim *s)
{
    ops->close(s->d);
}

/* A buffer of `bytes`. data NULL: its bytes are unwritten. */
static inline DevicePtr sim_buffer(Sim *s, const char *label, const void *data, size_t bytes)
{
    DevicePtr p;
    if (ops->alloc(s->d, bytes, label, &p, &s->err) ||
        (data && ops->write(s->d, p, data, bytes, &s->err)))
        fail_msg("%s", s->err.text);
    return p;
}

static inline void sim_read(Sim *s, DevicePtr p, void *data, size_t bytes)
{
    if (ops->read(s->d, p, data, bytes, &s->err)) fail_msg("%s", s->err.text);
}

/* Launches a kernel with n arguments, each a 64-bit value that is stored with the size of its
 * parameter. Zeros in the shape mean 1. Returns 1 with a fault in s->fault. */
static inline int sim_try(Sim *s, Shape sh, int n, ...)
{
    DeviceLaunch l = {.module = s->m, .kernel = sh.kernel, .shared_bytes = sh.shared};
    KernelInfo info;
    va_list ap;
    if (ops->kernel(s->d, s->m, sh.kernel, &info, &s->err)) fail_msg("%s", s->err.text);
    assert_int_equal(info.n_params, n);
    for (int i = 0; i < 3; i++) {
        l.grid[i] = sh.grid[i] ? sh.grid[i] : 1;
        l.block[i] = sh.block[i] ? sh.block[i] : 1;
    }
    va_start(ap, n);
    for (int i = 0; i < n; i++) {
        uint64_t v = va_arg(ap, uint64_t);
        memcpy(l.params + info.params[i].offset, &v, info.params[i].size);
    }
    va_end(ap);
    int r = ops->run(s->d, &l, 1, &s->fault);
    if (r < 0) fail_msg("%s", s->fault.error.text);
    return r;
}

#define sim_run(s, shape, n, ...)                                                  \
    do {                                                                           \
        if (sim_try(s, shape, n, __VA_ARGS__)) fail_msg("%s", (s)->fault.message); \
    } while (0)

#define A(x) ((uint64_t)(x))

/* ---- NVRTC ---- */

/* Compiles a CUDA source to PTX for an architecture such as "sm_90", without the machine code, which
 * takes as long again. folders: two folders of headers, or NULL. The caller frees the result.
 * Returns NULL with a reason when there is no toolkit. */
static inline char *cuda_to_ptx_for(const char *source, const char *arch,
                                    const char *const folders[2], const char **reason)
{
    typedef void *Program;
    const char *cuda = getenv("CUDA_HOME"), *build = getenv("QUERN_BUILD");
    char home[3][480], path[512], include[512], own[2][512], target[32];
    void *lib = NULL;
    snprintf(home[0], sizeof home[0], "%s", cuda ? cuda : "/nowhere");
    snprintf(home[1], sizeof home[1], "/usr/local/cuda");
    snprintf(home[2], sizeof home[2], "%s/cuda",
             build ? build : "build"); /* from NVIDIA's wheels */
    for (int i = 0; i < 12 && !lib; i++) {
        snprintf(path, sizeof path, "%s/%s/libnvrtc.so.%d", home[i / 4], i & 2 ? "lib" : "lib64",
                 13 - (i & 1));
        lib = dlopen(path, RTLD_NOW);
        /* NVRTC's builtins by their full path: under AddressSanitizer the loader does not see
         * NVRTC's own search path. */
        strcpy(strrchr(path, '/'), "/libnvrtc-builtins.so.*");
        glob_t found = {0};
        if (lib && !glob(path, 0, NULL, &found))
            dlopen(found.gl_pathv[found.gl_pathc - 1], RTLD_NOW | RTLD_GLOBAL);
        if (lib) globfree(&found);
        snprintf(include, sizeof include, "-I%s/include", home[i / 4]);
    }
    *reason = "no libnvrtc in $CUDA_HOME, /usr/local/cuda or $QUERN_BUILD/cuda";
    if (!lib) return NULL;
    int (*create)(Program *, const char *, const char *, int, const char *const *,
                  const char *const *);
    int (*compile)(Program, int, const char *const *);
    int (*size_of)(Program, size_t *), (*log_size)(Program, size_t *);
    int (*get)(Program, char *), (*get_log)(Program, char *), (*destroy)(Program *);
    *(void **)&create = dlsym(lib, "nvrtcCreateProgram");
    *(void **)&compile = dlsym(lib, "nvrtcCompileProgram");
    *(void **)&size_of = dlsym(lib, "nvrtcGetPTXSize");
    *(void **)&get = dlsym(lib, "nvrtcGetPTX");
    *(void **)&log_size = dlsym(lib, "nvrtcGetProgramLogSize");
    *(void **)&get_log = dlsym(lib, "nvrtcGetProgramLog");
    *(void **)&destroy = dlsym(lib, "nvrtcDestroyProgram");
    snprintf(target, sizeof target, "-arch=compute_%s", arch + strlen("sm_"));
    for (int i = 0; i < 2; i++)
        snprintf(own[i], sizeof own[i], "-I%s", folders ? folders[i] : "/nowhere");
    const char *options[] = {target, "-lineinfo", "-std=c++17", include, own[0], own[1]};
    Program p;
    size_t n = 0;
    assert_int_equal(create(&p, source, "test.cu", 0, NULL, NULL), 0);
    if (compile(p, sizeof options / sizeof *options, options)) {
        log_size(p, &n);
        char *text = calloc(1, n + 1);
        get_log(p, text);
        fail_msg("%s", text);
    }
    assert_int_equal(size_of(p, &n), 0);
    char *ptx = calloc(1, n + 1);
    assert_int_equal(get(p, ptx), 0);
    destroy(&p);
    return ptx;
}

static inline char *cuda_to_ptx(const char *source, const char **reason)
{
    return cuda_to_ptx_for(source, "sm_90", NULL, reason);
}

/* Opens *s with a CUDA source. $SIM_SHOW_PTX shows its PTX. */
static inline void sim_start_cuda(Sim *s, const char *source)
{
    const char *reason;
    char *ptx = cuda_to_ptx(source, &reason);
    if (!ptx) fail_msg("%s", reason);
    if (getenv("SIM_SHOW_PTX")) fputs(ptx, stderr);
    sim_start(s, ptx);
    free(ptx);
}

/* Edge cases first, then pseudo-random numbers of [-4, 4) and [-40, 40). */
static inline float sim_sample(int i)
{
    static const float edge[] = {0,      -0.0f, 1,      -1,          0.5f,   2,     1e-3f,
                                 -7.25f, 88.0f, -87.0f, 3.14159265f, 1e-20f, 65504, -12345.678f};
    unsigned x = (unsigned)i * 2654435761u;
    return i < 14 ? edge[i] : ((float)(x >> 8) / 8388608.0f - 1) * (i % 3 ? 4.0f : 40.0f);
}

#endif
