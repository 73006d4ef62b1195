/* Any bytes as a tokenizer.json, and as a text: a refused file says why; a text always encodes, and
 * decodes to what encodes to the same ids where no repair or normalising came between. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "model/tokenizer/tokenizer.h"
#include "tests/fixture_path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void encode(const Tokenizer *t, const uint8_t *data, size_t size)
{
    Error err = {0};
    TokenIds v = {0};
    if (tokenizer_encode(t, (const char *)data, size, &v, &err)) abort();
    Buffer out;
    buffer_init(&out, (size_t)1 << 26);
    if (tokenizer_decode(t, v.ids, v.n, &out, &err)) abort();
    int ascii = 1;
    for (size_t i = 0; i < size; i++) ascii &= data[i] < 0x80;
    if (ascii && (out.len != size || memcmp(out.data, data, size))) abort();
    buffer_release(&out);
    free(v.ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static Tokenizer *known;
    Error err = {0};
    Tokenizer *t;
    if (!known && tokenizer_load(fixture_path("tests/fixtures/tokenizer/qwen2.json"), &known, &err))
        abort();
    encode(known, data, size);
    int fd = memfd_create("tokenizer", MFD_CLOEXEC);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) abort();
    if (tokenizer_load(path, &t, &err)) {
        if (t || !err.text[0]) abort();
    } else
        encode(t, data, size);
    tokenizer_free(t);
    close(fd);
    return 0;
}
