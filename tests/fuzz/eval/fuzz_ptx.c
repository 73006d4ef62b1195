/* PTX text: parse, decode, and where that works launch each kernel on a few threads under a small
 * limit, so that whatever the decoder accepts is also safe to run. */
#include <stdlib.h>
#include <string.h>

#include "eval/sim/decode/decode.h"
#include "eval/sim/sim.h"

static Device *device(void)
{
    static Device *d;
    Error err;
    if (!d && sim_device_ops.open("h100", &d, &err)) abort();
    sim_set_limit(d, 200000);
    return d;
}

static void launch_all(Device *d, DeviceModule *m, const PtxModule *names)
{
    static unsigned char data[4096];
    Fault fault;
    Error err;
    DevicePtr p;
    if (sim_device_ops.alloc(d, sizeof data, "buffer", &p, &err)) abort();
    sim_device_ops.write(d, p, data, sizeof data, &err);
    for (int i = 0; i < names->n_functions && i < 8; i++) {
        DeviceLaunch l = {.module = m,
                          .kernel = names->functions[i].name,
                          .grid = {2, 1, 1},
                          .block = {40, 1, 1},
                          .shared_bytes = 256};
        for (int k = 0; k < 8; k++) memcpy(l.params + 8 * k, &p, 8);
        if (names->functions[i].is_entry) sim_device_ops.run(d, &l, 1, &fault);
    }
    sim_device_ops.free(d, p);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    Device *d = device();
    DeviceModule *m;
    Fault fault;
    Error err;
    PtxModule names;
    if (size > 1 << 16) return 0;
    char *text = calloc(1, size + 1);
    if (!text) abort();
    memcpy(text, input, size);
    if (!ptx_parse(text, size, &names, &err)) {
        DeviceCode code = {.ptx = text, .ptx_len = size};
        if (!sim_device_ops.load(d, &code, 0, &m, &fault)) {
            launch_all(d, m, &names);
            sim_device_ops.unload(d, m);
        }
        ptx_release(&names);
    }
    free(text);
    return 0;
}
