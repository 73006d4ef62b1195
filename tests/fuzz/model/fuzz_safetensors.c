/* Any bytes as a safetensors file: refused with a sentence, or every tensor is wholly inside the
 * file. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "model/files/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void touch(const Safetensors *s, size_t i)
{
    const SafetensorsTensor *t = safetensors_at(s, i);
    volatile unsigned sum = 0;
    for (size_t b = 0; b < t->bytes; b++) sum += ((const unsigned char *)t->data)[b];
    (void)sum;
    if (safetensors_find(s, t->name) != t) abort();
    if (t->elements > (1 << 20)) return;
    Error err = {0};
    float *dst = malloc(t->elements * sizeof *dst + 1);
    if (safetensors_read_f32(s, t->name, t->rank, t->shape, dst, &err) && !err.text[0]) abort();
    free(dst);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd = memfd_create("safetensors", MFD_CLOEXEC);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) abort();
    Error err = {0};
    Safetensors *s;
    if (safetensors_open(path, &s, &err)) {
        if (s || !err.text[0]) abort();
    } else
        for (size_t i = 0; i < safetensors_count(s); i++) touch(s, i);
    safetensors_close(s);
    close(fd);
    return 0;
}
