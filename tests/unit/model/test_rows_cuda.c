/* On a GPU: the kernels between the products of a decoding step equal those of the full pass bit
 * for bit. */
#include "tests/unit/model/ops_on_gpu.h"

static inline void *rows_new(const char *label, const void *data, size_t bytes)
{
    void *p = gpu->alloc(bytes);
    (void)label;
    if (data) gpu->upload(p, data, bytes);
    return p;
}
static inline void rows_free(void *p)
{
    gpu->release(p);
}
#define rows_fail(...) fail(__VA_ARGS__)
#include "tests/unit/model/row_checks.h"

static void all(void)
{
    random_init(&row_numbers, 5, 0);
    begin("rows of the residual stream and their norms");
    same_norms();
    for (int planes = 0; planes < 3; planes++)
        same_norm(896, 300, planes, 1), same_norm(3584, 300, planes, 1);
    end();
    begin("fresh heads");
    same_fresh();
    for (int how = 0; how < 8; how++) {
        same_heads((FreshCase){64, 14, 2, how & 1, how >> 1 & 1, 1 + (how >> 2), 200, 1});
        same_heads((FreshCase){128, 28, 4, how & 1, how >> 1 & 1, 1 + (how >> 2), 200, 1});
    }
    end();
    begin("gates");
    same_gates();
    same_swiglu((GateCase){4864, 896, 0, 64, 1}), same_swiglu((GateCase){4864, 896, 64, 200, 4});
    end();
}

int main(void)
{
    return on_gpu(all);
}
