/* The time of a compilation follows the bytes of its text: 20 us each on a fast core, 60 us for the
 * longest products; and 9 to 17 bytes of PTX. A part takes 1 to 4 s of 10, and 1 MiB of PTX of 2. */
#include "eval/candidate/op_parts.h"

#include <string.h>

#include "base/environment.h"

enum { KERNELS = 256, BYTES = 64 << 10 };

OpPartSize op_part_size(void)
{
    int kernels = (int)environment_test("parts");
    return (OpPartSize){kernels > 0 ? kernels : KERNELS, BYTES};
}

OpPartSize op_part_total(const PlanKernelText *const *texts, int n)
{
    OpPartSize sum = {0};
    for (int i = 0; i < n; i++) {
        sum.kernels += texts[i]->n_kernels;
        sum.bytes += strlen(texts[i]->text);
    }
    return sum;
}

/* One text in eight. Its name is "op_" and a digest. */
static int may_end(const PlanKernelText *t)
{
    return t->name[3] == '0' || t->name[3] == '1';
}

int op_part_end(const PlanKernelText *const *texts, int n, int from, OpPartSize size)
{
    OpPartSize sum = op_part_total(texts, n);
    int to = from + 1;
    if (sum.kernels <= size.kernels && sum.bytes <= size.bytes) return n;
    sum = op_part_total(texts + from, 1);
    for (; to < n; to++) {
        OpPartSize next = op_part_total(texts + to, 1);
        if (sum.bytes >= size.bytes / 2 && may_end(texts[to - 1])) break;
        sum.kernels += next.kernels;
        sum.bytes += next.bytes;
        if (sum.kernels > size.kernels || sum.bytes > size.bytes) break;
    }
    return to;
}
