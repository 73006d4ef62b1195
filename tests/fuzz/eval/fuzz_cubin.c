/* Seeds: tests/fixtures/cubin. */
#include "eval/candidate/cubin.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Cubin c;
    Error err;
    if (!cubin_parse(data, size, &c, &err)) {
        cubin_find(&c, "plain");
        cubin_release(&c);
    }
    return 0;
}
