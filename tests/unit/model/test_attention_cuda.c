/* On a GPU: the attention of decoding equals the full pass bit for bit. */
#include "tests/unit/model/ops_on_gpu.h"

static inline void *same_new(const char *label, const void *data, size_t bytes)
{
    void *p = gpu->alloc(bytes);
    (void)label;
    if (data) gpu->upload(p, data, bytes);
    return p;
}
static inline void same_free(void *p)
{
    gpu->release(p);
}
#define same_fail(...) fail(__VA_ARGS__)
#include "tests/unit/model/attention_checks.h"

/* Idle rows besides the rows with sequences. With more of them the slices of a head's columns are
 * wider. */
static const int idle[] = {0, 30, 200};

static void all(void)
{
    static const int dims[] = {8, 16, 24, 40, 64, 80, 96, 120, 128, 136, 192, 256};
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        begin("attention of decoding, dim %d", dims[i]);
        for (int j = 0; j < 3; j++)
            same_spreads((AttentionCase){
                dims[i], 14, 2, idle[j], 0, 0, 0, {1, 15, 64, 17, 65, 300, 130, 576}});
        same_spreads((AttentionCase){dims[i], 5, 5, 0, 77, 0, 0, {129, 700, 31}});
        same_spreads((AttentionCase){dims[i], 16, 1, 0, 0, 0, 0, {2049, 33}});
        end();
    }
    begin("attention of decoding, more tiles than blocks");
    same_spreads((AttentionCase){128, 28, 4, 250, 0, 0, 0, {1500, 576, 2047}});
    same_spreads((AttentionCase){64, 14, 2, 500, 0, 0, 0, {8191, 576}});
    end();
}

int main(void)
{
    return on_gpu(all);
}
