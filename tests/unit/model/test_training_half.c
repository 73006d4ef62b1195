/* Training where numbers are bf16 and masters fp32, as on a GPU: the CPU's operations behind a
 * table that rounds what they give. What of it: training_on.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/model/half_table.h"
#include "tests/unit/model/training_on.h"

int main(void)
{
    setenv("QUERN_THREADS", "1", 0); /* products so small that threads only wait for each other */
    gpu = half_table();
    return run_training_tests();
}
