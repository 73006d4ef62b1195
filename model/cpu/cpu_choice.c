/* The choice between the two variants of the CPU's files (cpu_variant.h): the wide one on a
 * processor with AVX-512, unless QUERN_CPU has narrow=1. It is made once, before main, so that one
 * process never mixes the two. */
#include "base/environment.h"
#include "model/cpu/cpu_kernels.h"
#include "model/cpu/ops_cpu.h"

CpuSetting cpu_setting(void)
{
    CpuSetting s = {0};
    Error unused;
    const EnvironmentNumber table[] = {{"threads", 1, 1024, &s.threads},
                                       {"narrow", 0, 1, &s.narrow}};
    if (environment_numbers("QUERN_CPU", table, 2, &unused)) return (CpuSetting){0};
    return s;
}

#define EACH_VARIANT(X) X(narrow) X(wide)
#define DECLARE(v)                                                                            \
    const Ops *ops_cpu_##v(void);                                                             \
    int cpu_threads_##v(void);                                                                \
    int decoder_create_cpu_##v(Model *m, const DecoderPlan *plan, Decoder **out, Error *err); \
    void decoder_memory_cpu_##v(const Model *m, const DecoderPlan *plan, size_t available,    \
                                DecoderMemory *out);                                          \
    int draw_sorts_##v(const DrawLaw *law);                                                   \
    int32_t draw_token_##v(const DrawLaw *law, const float *logits, double u, float *probs,   \
                           DrawCandidate *order, float *logp);
EACH_VARIANT(DECLARE)

#ifdef CPU_NO_WIDE
#define CHOOSE(call) call(narrow)
int cpu_has_wide(void)
{
    return 0;
}
#else
static int wide;

int cpu_has_wide(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}

__attribute__((constructor)) static void choose(void)
{
    __builtin_cpu_init();
    wide = cpu_has_wide() && cpu_setting().narrow == 0;
}
#define CHOOSE(call) (wide ? call(wide) : call(narrow))
#endif

const Ops *ops_cpu(void)
{
#define CALL(v) ops_cpu_##v()
    return CHOOSE(CALL);
#undef CALL
}

int cpu_threads(void)
{
    return cpu_threads_narrow();
}

int decoder_create_cpu(Model *m, const DecoderPlan *plan, Decoder **out, Error *err)
{
#define CALL(v) decoder_create_cpu_##v(m, plan, out, err)
    return CHOOSE(CALL);
#undef CALL
}

void decoder_memory_cpu(const Model *m, const DecoderPlan *plan, size_t available,
                        DecoderMemory *out)
{
#define CALL(v) decoder_memory_cpu_##v(m, plan, available, out)
    CHOOSE(CALL);
#undef CALL
}

int draw_sorts(const DrawLaw *law)
{
#define CALL(v) draw_sorts_##v(law)
    return CHOOSE(CALL);
#undef CALL
}

int32_t draw_token(const DrawLaw *law, const float *logits, double u, float *probs,
                   DrawCandidate *order, float *logp)
{
#define CALL(v) draw_token_##v(law, logits, u, probs, order, logp)
    return CHOOSE(CALL);
#undef CALL
}
