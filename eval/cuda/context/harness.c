/* The cache entry of the harness's kernels is keyed by the device's number and the source; it holds
 * the architecture and the cubin, since the architecture is not known before the driver has
 * started. */
#include "eval/cuda/context/harness.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cache.h"
#include "base/embed.h"
#include "base/memory.h"
#include "eval/compile/compile_client.h"
#include "eval/compile/wire.h"
#include "eval/cuda/health/health.h"

enum { MAX_CUBIN = 4 << 20, CACHE_BYTES = 1 << 30 };

EMBED(harness_cu, "eval/cuda/context/harness.cu")

const char *const harness_names[HARNESS_KERNELS] = {
    [HARNESS_ZONES] = "harness_zones",
    [HARNESS_COMPARE] = "harness_compare",
    [HARNESS_SAME] = "harness_same",
    [HARNESS_DIGEST] = "harness_digest",
    [HARNESS_NOTHING] = "harness_nothing",
    [HARNESS_FLUSH] = "harness_flush",
    [HARNESS_WAIT] = "harness_wait",
    [HARNESS_DRAW] = "harness_draw",
    [HARNESS_DRAW_BY_INDEX] = "harness_draw_by_index",
};

struct Harness {
    char *source;
    Cache *cache;
    Compiler *compiler;
    char key[DIGEST_HEX], arch[16];
    char *cubin;
    size_t len;
    pthread_t thread;
    int running, failed;
    Error why;
};

char *harness_source(void)
{
    char *health = health_source(), *all = memory_printf("%s\n%s", harness_cu, health);
    free(health);
    return all;
}

static void read_cache(Harness *h)
{
    Buffer b;
    const char *arch, *cubin;
    size_t n_arch, n_cubin;
    buffer_init(&b, MAX_CUBIN + 64);
    if (cache_get(h->cache, h->key, MAX_CUBIN + 64, &b)) {
        WireCursor c = {b.data, b.data + b.len};
        if (!wire_get(&c, &arch, &n_arch) && !wire_get(&c, &cubin, &n_cubin) &&
            n_arch < sizeof h->arch && n_cubin) {
            memcpy(h->arch, arch, n_arch);
            h->cubin = memory_alloc(n_cubin);
            memcpy(h->cubin, cubin, n_cubin);
            h->len = n_cubin;
        }
    }
    buffer_release(&b);
}

static void write_cache(Harness *h)
{
    Buffer b;
    buffer_init(&b, MAX_CUBIN + 64);
    if (!wire_puts(&b, h->arch) && !wire_put(&b, h->cubin, h->len))
        cache_put(h->cache, h->key, b.data, b.len);
    buffer_release(&b);
}

static int start_compiler(Harness *h, Error *err)
{
    CompilerOptions opt = {0};
    return h->compiler ? 0 : compiler_open(&opt, &h->compiler, err);
}

/* A new Harness, with the cubin when the cache has it. */
static Harness *find(const char *arg)
{
    Harness *h = memory_alloc(sizeof *h);
    const char *dir = getenv("QUERN_CACHE");
    Digester d;
    Digest digest;
    digester_init(&d);
    digester_add_field(&d, "harness", 7);
    h->source = harness_source();
    digester_add_field(&d, h->source, strlen(h->source));
    digester_add_field(&d, arg, strlen(arg));
    digester_finish(&d, &digest);
    digest_hex(&digest, h->key);
    if (dir && *dir) {
        h->cache = cache_open(dir, CACHE_BYTES);
        read_cache(h);
    }
    return h;
}

int harness_begin(const char *arg, Harness **out, Error *err)
{
    Harness *h = find(arg);
    *out = h;
    if (h->cubin || !start_compiler(h, err)) return 0;
    harness_end(h);
    *out = NULL;
    return -1;
}

static void *compile(void *of)
{
    Harness *h = of;
    CompileResult r;
    CompileRequest request = {.arch = h->arch, .source = h->source, .len = strlen(h->source)};
    h->failed = compiler_run(h->compiler, &request, &r, &h->why) != 0;
    if (!h->failed && (!r.ok || !r.cubin_len || r.cubin_len > MAX_CUBIN)) {
        error_set(&h->why, ERROR_COMPILER, "the harness's kernels do not compile: %s", r.message);
        h->failed = 1;
    }
    if (!h->failed) {
        h->cubin = r.cubin;
        h->len = r.cubin_len;
        r.cubin = NULL;
    }
    compile_result_release(&r);
    return NULL;
}

void harness_arch(Harness *h, const char *arch)
{
    if (h->cubin && !strcmp(h->arch, arch)) return;
    free(h->cubin);
    h->cubin = NULL;
    snprintf(h->arch, sizeof h->arch, "%s", arch);
    h->failed = start_compiler(h, &h->why) != 0;
    if (h->failed) return;
    h->running = !pthread_create(&h->thread, NULL, compile, h);
    if (!h->running) compile(h);
}

int harness_cubin(Harness *h, const void **cubin, size_t *len, Error *err)
{
    int compiled = h->compiler != NULL;
    if (h->running) pthread_join(h->thread, NULL);
    h->running = 0;
    if (h->compiler) compiler_close(h->compiler);
    h->compiler = NULL;
    if (h->failed) return error_set(err, h->why.code, "%s", h->why.text);
    if (compiled && h->cache) write_cache(h);
    *cubin = h->cubin;
    *len = h->len;
    return 0;
}

void harness_end(Harness *h)
{
    if (!h) return;
    if (h->running) pthread_join(h->thread, NULL);
    if (h->compiler) compiler_close(h->compiler);
    if (h->cache) cache_close(h->cache);
    free(h->cubin);
    free(h->source);
    free(h);
}

HarnessNumbers harness_numbers(const TaskStreams *x)
{
    unsigned long long kind = x->variant == VARIANT_SPECIAL   ? HARNESS_SPECIAL
                              : x->variant != VARIANT_NEEDLES ? HARNESS_EVEN
                              : x->draw == DRAW_POSITIVE      ? HARNESS_POSITIVE_NEEDLES
                                                              : HARNESS_NEEDLES;
    return (HarnessNumbers){x->low,
                            x->wide,
                            x->mean,
                            x->std,
                            x->scale,
                            x->n,
                            x->draw == DRAW_MIXED,
                            kind | (unsigned long long)x->special << 8};
}
