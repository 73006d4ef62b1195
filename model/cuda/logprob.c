/* Launchers of logprob.cu. */
#include "model/cuda/launch_shape.h"
#include "model/cuda/table.h"

/* Threads of a row: four vectors of four logits per thread. */
static Dim3 row_threads(int vocab)
{
    unsigned threads = whole_warps(ceil_div((size_t)vocab, 16));
    return (Dim3){threads < 512 ? threads : 512, 1, 1};
}

void cuda_cross_entropy(float *logp, float *lse, const Logits *logits)
{
    Logits l = *logits;
    int aligned = l.vocab % 4 == 0 && aligned16(l.z);
    LAUNCH(KERNEL_cross_entropy, ((Dim3){(unsigned)l.rows, 1, 1}), row_threads(l.vocab), 0, &logp,
           &lse, &l.z, &l.target, &l.vocab, &aligned);
}

void cuda_cross_entropy_grad(Num *dlogits, const float *lse, const float *weight,
                             const Logits *logits)
{
    Logits l = *logits;
    int aligned = l.vocab % 4 == 0 && aligned16(l.z);
    LAUNCH(KERNEL_cross_entropy_grad, ((Dim3){(unsigned)l.rows, 1, 1}), row_threads(l.vocab), 0,
           &dlogits, &l.z, &lse, &l.target, &weight, &l.vocab, &aligned);
}
