/* One flag list for all candidates: equal sources compile to equal code. */
#include "eval/compile/nvrtc_reply.h"

#include <string.h>

#include "eval/compile/wire.h"

/* 177 and 550 are warnings about variables that are never used. */
static const char *const fixed_flags[] = {"-std=c++17",      "-lineinfo",      "-include",
                                          "quern_prelude.h", "-diag-suppress", "177,550",
                                          "-minimal"};
/* The last flag leaves out textures and the runtime's types and calls, and saves an eighth to a
 * fifth of the time. It is used where no header can need them. */
enum { N_ALONE = sizeof fixed_flags / sizeof *fixed_flags, N_FIXED = N_ALONE - 1 };

void nvrtc_flags(Buffer *out)
{
    buffer_clear(out);
    for (int i = 0; i < N_FIXED; i++) buffer_printf(out, "%s%s", i ? " " : "", fixed_flags[i]);
    buffer_printf(out, "; without headers %s", fixed_flags[N_FIXED]);
}

void nvrtc_reply(const Nvrtc *n, const NvrtcJob *job, int alone, Buffer *out)
{
    static const char *const words[] = {[NVRTC_DONE] = "ok",
                                        [NVRTC_REFUSED] = "refused",
                                        [NVRTC_LIMIT] = "limit",
                                        [NVRTC_BROKEN] = "failed"};
    NvrtcOutput o;
    NvrtcJob with_flags = *job;
    with_flags.name = "candidate.cu";
    with_flags.options = fixed_flags;
    with_flags.n_options = alone ? N_ALONE : N_FIXED;
    NvrtcOutcome outcome = nvrtc_compile(n, &with_flags, &o);
    buffer_clear(out);
    wire_puts(out, words[outcome]);
    wire_puts(out, o.log);
    if (outcome == NVRTC_DONE) {
        wire_put(out, o.ptx, o.ptx_len);
        wire_put(out, o.cubin, o.cubin_len);
        for (int i = 0; i < o.n_lowered; i++) wire_puts(out, o.lowered[i]);
    }
    nvrtc_output_release(&o);
}
