/* Overlap of consecutive kernels: a kernel may start while the previous one ends. What the previous
 * kernel wrote is visible after previous_done. */
#ifndef OVERLAP_CUH
#define OVERLAP_CUH

__device__ __forceinline__ void previous_done()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

__device__ __forceinline__ void next_may_start()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

#endif
