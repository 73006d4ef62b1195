/* Launchers of logprob.cu. */
#include "model/cuda/launch_shape.h"
#include "model/cuda/table.h"

/* Threads of a row: four vectors of four logits per thread. */
static Dim3 row_threads(int vocab)
{
    unsigned threads = whole_warps(ceil_div((size_t)vocab, 16));
    return (Dim3){threads < 512 ? threads : 512, 1, 1};
}

void cuda_cross_entropy(float *logp, float *lse, const float *logits, const int32_t *target,
                        int rows, int vocab)
{
    int aligned = vocab % 4 == 0 && aligned16(logits);
    LAUNCH(KERNEL_cross_entropy, ((Dim3){(unsigned)rows, 1, 1}), row_threads(vocab), 0, &logp, &lse,
           &logits, &target, &vocab, &aligned);
}

void cuda_cross_entropy_grad(Num *dlogits, const float *logits, const float *lse,
                             const int32_t *target, const float *weight, int rows, int vocab)
{
    int aligned = vocab % 4 == 0 && aligned16(logits);
    LAUNCH(KERNEL_cross_entropy_grad, ((Dim3){(unsigned)rows, 1, 1}), row_threads(vocab), 0,
           &dlogits, &logits, &lse, &target, &weight, &vocab, &aligned);
}
