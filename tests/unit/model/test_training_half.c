/* Training with bf16 numbers and fp32 masters, as on a GPU, by the checks of training_checks.h: the
 * table rounds the results of the CPU's operations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/model/half_table.h"
#include "tests/unit/model/training_checks.h"

int main(void)
{
    setenv("QUERN_CPU", "threads=1",
           0); /* small products: threads would only wait for each other */
    gpu = half_table();
    return run_training_tests();
}
