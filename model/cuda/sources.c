/* Embed the device code, and compile it with NVRTC in several threads. */
#include "model/cuda/sources.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cache.h"
#include "base/embed.h"

#define X(folder, name) EMBED(cuda_header_##name, "model/cuda/" #folder "/" #name ".cuh")
CUDA_HEADERS(X)
#undef X
#define X(folder, name) EMBED(cuda_source_##name, "model/cuda/" #folder "/" #name ".cu")
CUDA_SOURCES(X)
#undef X

static const char *const headers[][2] = {
#define X(folder, name) {#name ".cuh", cuda_header_##name},
    CUDA_HEADERS(X)
#undef X
        {NULL, NULL}};
static const char *const sources[][2] = {
#define X(folder, name) {#name ".cu", cuda_source_##name},
    CUDA_SOURCES(X)
#undef X
        {NULL, NULL}};
enum { N_HEADERS = sizeof headers / sizeof *headers - 1, WORKERS_MAX = 32 };

static const char *const flags[] = {"-std=c++17", "-lineinfo"};
enum { N_FLAGS = sizeof flags / sizeof *flags };
static const size_t cache_bytes = (size_t)1 << 30;

const char *cuda_source_name(CudaSource s)
{
    return sources[s][0];
}
const char *cuda_source_text(CudaSource s)
{
    return sources[s][1];
}

/* Shared by the compiling threads. Each takes one source at a time. */
typedef struct {
    Nvrtc *nvrtc;
    const char *arch;
    CudaBinary *out;
    pthread_mutex_t lock;
    int next, failed;
    Error err;
} Compilation;

void cuda_source_key(const Nvrtc *nvrtc, const char *arch, CudaSource s, char hex[DIGEST_HEX])
{
    char option[64];
    Digester d;
    Digest digest;
    nvrtc_arch_option(arch, option, sizeof option);
    digester_init(&d);
    digester_add_field(&d, "engine", 6);
    digester_add_field(&d, nvrtc_version(nvrtc), strlen(nvrtc_version(nvrtc)));
    digester_add_field(&d, option, strlen(option));
    for (int i = 0; i < N_FLAGS; i++) digester_add_field(&d, flags[i], strlen(flags[i]));
    for (int i = 0; i < N_HEADERS; i++)
        digester_add_field(&d, headers[i][1], strlen(headers[i][1]));
    digester_add_field(&d, sources[s][1], strlen(sources[s][1]));
    digester_finish(&d, &digest);
    digest_hex(&digest, hex);
}

NvrtcOutcome cuda_compile_source(const Nvrtc *nvrtc, const char *arch, CudaSource s,
                                 NvrtcOutput *out)
{
    const char *names[N_HEADERS + 1], *texts[N_HEADERS + 1], *options[N_FLAGS + 1];
    char include[4200];
    for (int i = 0; i < N_HEADERS; i++) {
        names[i] = headers[i][0];
        texts[i] = headers[i][1];
    }
    snprintf(include, sizeof include, "-I%s", nvrtc_include_dir(nvrtc));
    memcpy(options, flags, sizeof flags);
    options[N_FLAGS] = include;
    NvrtcJob job = {.arch = arch,
                    .name = sources[s][0],
                    .source = sources[s][1],
                    .n_headers = N_HEADERS,
                    .header_names = names,
                    .header_texts = texts,
                    .n_options = N_FLAGS + (*nvrtc_include_dir(nvrtc) != 0),
                    .options = options};
    return nvrtc_compile(nvrtc, &job, out);
}

static void compile_one(Compilation *c, CudaSource s)
{
    NvrtcOutput o;
    if (cuda_compile_source(c->nvrtc, c->arch, s, &o) == NVRTC_DONE) {
        c->out[s] = (CudaBinary){o.cubin, o.cubin_len};
        o.cubin = NULL;
    } else {
        pthread_mutex_lock(&c->lock);
        if (!c->failed++)
            error_set(&c->err, ERROR_COMPILER, "%s does not compile for %s: %s", sources[s][0],
                      c->arch, o.log);
        pthread_mutex_unlock(&c->lock);
    }
    nvrtc_output_release(&o);
}

static void *compile_some(void *arg)
{
    Compilation *c = arg;
    for (;;) {
        pthread_mutex_lock(&c->lock);
        while (c->next < SOURCE_COUNT && c->out[c->next].data) c->next++;
        int s = c->failed ? SOURCE_COUNT : c->next++;
        pthread_mutex_unlock(&c->lock);
        if (s >= SOURCE_COUNT) return NULL;
        compile_one(c, (CudaSource)s);
    }
}

static void compile_missing(Compilation *c, int missing)
{
    pthread_t workers[WORKERS_MAX];
    int n = 0, threads = (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (threads > missing) threads = missing;
    if (threads > WORKERS_MAX) threads = WORKERS_MAX;
    while (n < threads - 1 && !pthread_create(&workers[n], NULL, compile_some, c)) n++;
    compile_some(c);
    while (n) pthread_join(workers[--n], NULL);
}

static int read_cache(Cache *cache, const char *key, CudaBinary *out)
{
    Buffer b;
    buffer_init(&b, NVRTC_MAX_CUBIN);
    int found = cache_get(cache, key, NVRTC_MAX_CUBIN, &b) && b.len;
    if (found) {
        out->len = b.len;
        out->data = buffer_detach(&b);
    }
    buffer_release(&b);
    return found;
}

int cuda_compile(const char *arch, const char *cache_dir, CudaBinary out[SOURCE_COUNT + 1],
                 Error *err)
{
    Compilation c = {.arch = arch, .out = out};
    char keys[SOURCE_COUNT + 1][DIGEST_HEX];
    int missing = 0, had[SOURCE_COUNT + 1] = {0};
    memset(out, 0, (SOURCE_COUNT + 1) * sizeof *out);
    if (nvrtc_open(&c.nvrtc, err)) return -1;
    Cache *cache = cache_dir ? cache_open(cache_dir, cache_bytes) : NULL;
    for (int s = 0; s < SOURCE_COUNT; s++) {
        cuda_source_key(c.nvrtc, arch, (CudaSource)s, keys[s]);
        had[s] = cache && read_cache(cache, keys[s], &out[s]);
        missing += !had[s];
    }
    pthread_mutex_init(&c.lock, NULL);
    if (missing) compile_missing(&c, missing);
    pthread_mutex_destroy(&c.lock);
    for (int s = 0; s < SOURCE_COUNT && cache; s++)
        if (!had[s] && out[s].data) cache_put(cache, keys[s], out[s].data, out[s].len);
    if (cache) cache_close(cache);
    nvrtc_close(c.nvrtc);
    return c.failed ? error_set(err, c.err.code, "%s", c.err.text) : 0;
}

void cuda_compile_release(CudaBinary cubins[SOURCE_COUNT + 1])
{
    for (int s = 0; s < SOURCE_COUNT; s++) free(cubins[s].data);
    memset(cubins, 0, (SOURCE_COUNT + 1) * sizeof *cubins);
}
