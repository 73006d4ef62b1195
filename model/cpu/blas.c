/* Load OpenBLAS with dlopen once per process, and reload it with OPENBLAS_CORETYPE where its own
 * choice is poor. */
#include "model/cpu/blas.h"

#include <cblas.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"
#include "gpu/open.h"

typedef struct { /* as their names in load */
    void (*sgemm)(enum CBLAS_ORDER, enum CBLAS_TRANSPOSE, enum CBLAS_TRANSPOSE, blasint, blasint,
                  blasint, float, const float *, blasint, const float *, blasint, float, float *,
                  blasint);
    void (*set_num_threads)(int);
    char *(*get_corename)(void);
} Blas;

static Blas blas;
static Error failure; /* empty text: OpenBLAS is open */
static pthread_once_t once = PTHREAD_ONCE_INIT;

const char *blas_better_core(const char *core, int wide)
{
    static const char *const without_avx[] = {"Prescott",  "Core2",  "Penryn",  "Dunnington",
                                              "Nehalem",   "Athlon", "Opteron", "Opteron_SSE3",
                                              "Barcelona", "Bobcat", "Atom",    "Nano"};
    for (size_t i = 0; wide && i < sizeof without_avx / sizeof *without_avx; i++)
        if (!strcasecmp(core, without_avx[i])) return wide > 1 ? "SkylakeX" : "Haswell";
    return NULL;
}

static int width(void)
{
#ifdef __x86_64__
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return 0;
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")
               ? 2
               : 1;
#else
    return 0;
#endif
}

static void *load(Error *err)
{
    static const char *const names[] = {"libopenblas.so.0", "libopenblas.so"};
    void *library = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    static const char *const functions[] = {"cblas_sgemm", "openblas_set_num_threads",
                                            "openblas_get_corename"};
    if (!library) {
        error_set(err, ERROR_IO, "no OpenBLAS found: %s", dlerror());
        return NULL;
    }
    return open_functions(library, names[0], "", OPEN_FUNCTIONS(functions, &blas), err) ? NULL
                                                                                        : library;
}

static void open_once(void)
{
    void *library = load(&failure);
    const char *better = library && !getenv("OPENBLAS_CORETYPE")
                             ? blas_better_core(blas.get_corename(), width())
                             : NULL;
    if (better) {
        log_debug("OpenBLAS does not know this processor; told to take %s for %s", better,
                  blas.get_corename());
        setenv("OPENBLAS_CORETYPE", better, 1);
        dlclose(library);
        library = load(&failure);
    }
    if (library) blas.set_num_threads(1);
}

int blas_open(Error *err)
{
    pthread_once(&once, open_once);
    return failure.text[0] ? error_set(err, failure.code, "%s", failure.text) : 0;
}

const char *blas_core(void)
{
    return blas.get_corename();
}

void blas_sgemm(float alpha, Matrix a, Matrix b, float beta, float *c, int ldc)
{
    Error err;
    if (blas_open(&err)) {
        log_warn("%s", err.text);
        exit(error_exit_status(err.code));
    }
    blas.sgemm(CblasRowMajor, a.turned ? CblasTrans : CblasNoTrans,
               b.turned ? CblasTrans : CblasNoTrans, a.rows, b.columns, a.columns, alpha, a.at,
               a.ld, b.at, b.ld, beta, c, ldc);
}
