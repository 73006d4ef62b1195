/* Training on a GPU, by the checks of training_checks.h. Without a GPU it is skipped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/cpu/ops_cpu.h"
#include "model/model_device.h"
#include "tests/unit/model/training_checks.h"

int main(void)
{
    Error err;
    setenv("QUERN_CPU", "threads=1", 0); /* the CPU's products are small here */
    if (model_device("auto", &gpu, &err)) {
        printf("1..1\nnot ok 1 - the GPU cannot be used: %s\n", err.text);
        return 1;
    }
    if (gpu != ops_cpu()) return run_training_tests();
    printf("1..0 # SKIP no GPU\n");
    return 0;
}
