/* One flag list for all candidates: equal sources compile to equal code. */
#include "eval/compile/nvrtc_reply.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/compile/entries.h"
#include "eval/compile/wire.h"

/* 177 and 550 are warnings about variables that are never used. */
static const char *const fixed_flags[] = {"-std=c++17",      "-lineinfo",      "-include",
                                          "quern_prelude.h", "-diag-suppress", "177,550",
                                          "-minimal"};
/* The last flag leaves out textures and the runtime's types and calls, and saves an eighth to a
 * fifth of the time. It is used where no header can need them. */
enum { N_ALONE = sizeof fixed_flags / sizeof *fixed_flags, N_FIXED = N_ALONE - 1 };
/* nvcc takes functions of the host in constants, such as constexpr ones without __device__. NVRTC takes them
 * as functions of the device with this flag, which is for sources that it refuses without. */
static const char unannotated[] = "without execution space annotations",
                  default_device[] = "-default-device";

void nvrtc_flags(Buffer *out)
{
    buffer_clear(out);
    for (int i = 0; i < N_FIXED; i++) buffer_printf(out, "%s%s", i ? " " : "", fixed_flags[i]);
    buffer_printf(out, "; without headers %s; again with %s", fixed_flags[N_FIXED], default_device);
}

static NvrtcOutcome compile(const Nvrtc *n, const NvrtcJob *job, int alone, NvrtcOutput *out)
{
    const char *options[N_ALONE + 1];
    NvrtcJob with_flags = *job;
    with_flags.name = "candidate.cu";
    with_flags.options = options;
    with_flags.n_options = alone ? N_ALONE : N_FIXED;
    memcpy(options, fixed_flags, sizeof fixed_flags);
    NvrtcOutcome outcome = nvrtc_compile(n, &with_flags, out);
    if (outcome != NVRTC_REFUSED || !strstr(out->log, unannotated)) return outcome;
    nvrtc_output_release(out);
    options[with_flags.n_options++] = default_device;
    return nvrtc_compile(n, &with_flags, out);
}

/* Does the log refuse this name of a kernel, which PTX may have as an entry? */
static int is_refused(const char *log, const char *name)
{
    static const char lead[] = "name expression was: \"";
    if (!entry_is_plain(name)) return 0;
    for (const char *p = log; (p = strstr(p, lead));) {
        p += sizeof lead - 1;
        if (entry_same_name(p, p + strcspn(p, "\""), name)) return 1;
    }
    return 0;
}

/* The lowered names of all of the job: those of `some`, and for the refused ones the entries of its PTX.
 * Returns the first name that has none, which is not followed by others, or NULL. */
static const char *join_names(const NvrtcJob *job, const char *log, NvrtcOutput *some)
{
    char **all = memory_array((size_t)job->n_names + 1, sizeof *all);
    const char *missing = NULL;
    int n = 0, next = 0;
    for (; n < job->n_names && !missing; n++) {
        all[n] = is_refused(log, job->names[n]) ? entry_find(some->ptx, job->names[n])
                                                : memory_strdup(some->lowered[next++]);
        if (!all[n]) missing = job->names[n];
    }
    for (int i = 0; i < some->n_lowered; i++) free(some->lowered[i]);
    free(some->lowered);
    some->lowered = all;
    some->n_lowered = n;
    return missing;
}

/* A kernel whose name CUDA's headers overload is refused as a name. Compiles again without the refused
 * names, for which the entries stand. Where one has no entry, that name alone is refused. */
static NvrtcOutcome compile_by_entries(const Nvrtc *n, const NvrtcJob *job, int alone,
                                       NvrtcOutput *out)
{
    NvrtcJob rest = *job;
    NvrtcOutput again;
    const char **names = memory_array((size_t)job->n_names + 1, sizeof *names), *missing = NULL;
    rest.names = names;
    rest.n_names = 0;
    for (int i = 0; i < job->n_names; i++)
        if (!is_refused(out->log, job->names[i])) names[rest.n_names++] = job->names[i];
    if (compile(n, &rest, alone, &again) == NVRTC_DONE) missing = join_names(job, out->log, &again);
    if (missing) {
        nvrtc_output_release(&again);
        names[0] = missing;
        rest.n_names = 1;
        compile(n, &rest, alone, &again);
    }
    free(names);
    if (again.outcome == NVRTC_DONE && missing) { /* the first log says more */
        nvrtc_output_release(&again);
        return out->outcome;
    }
    nvrtc_output_release(out);
    *out = again;
    return again.outcome;
}

void nvrtc_reply(const Nvrtc *n, const NvrtcJob *job, int alone, Buffer *out)
{
    static const char *const words[] = {[NVRTC_DONE] = "ok",
                                        [NVRTC_REFUSED] = "refused",
                                        [NVRTC_LIMIT] = "limit",
                                        [NVRTC_BROKEN] = "failed"};
    NvrtcOutput o;
    NvrtcOutcome outcome = compile(n, job, alone, &o);
    if (outcome == NVRTC_REFUSED && strstr(o.log, "overloaded function"))
        outcome = compile_by_entries(n, job, alone, &o);
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
