/* quern-opbench: the rates of memory-bound operations, one a line:
 *   quern-opbench --engine cuda:0 --model 7b */
#include <stdio.h>
#include <string.h>

#include "base/flags.h"
#include "base/log.h"
#include "model/model_device.h"
#include "tests/bench/model/bench_attention.h"
#include "tests/bench/model/bench_kernels.h"

static const struct {
    const char *name;
    KernelShape shape;
} models[] = {
    {"0.5b", {896, 4864, 151936, 16384, 2048, {14, 2, 64}}},
    {"7b", {3584, 18944, 152064, 8192, 2048, {28, 4, 128}}},
    {"tiny", {128, 344, 1000, 256, 64, {4, 2, 32}}},
};

int main(int argc, char **argv)
{
    const char *engine = "auto", *model = "7b";
    int attention = 0;
    const Flag flags[] = {
        {"engine", FLAG_TEXT, &engine, "cpu, cuda:N or auto"},
        {"model", FLAG_TEXT, &model, "the shapes of Qwen2.5 of that size",
         .choices = "0.5b|7b|tiny"},
        {"attention", FLAG_BOOL, &attention, "attention too, at three models' shapes: for a GPU"},
        {0},
    };
    const FlagSpec spec = {"quern-opbench", "[--engine ENGINE] [--model SIZE]",
                           "Time each operation of training that is bound by memory, and print the "
                           "rate at which it reads and "
                           "writes.",
                           flags};
    const Ops *op;
    Error err;
    KernelTime times[KERNEL_TIMES_MAX];
    flags_parse(&spec, argc, argv, NULL);
    if (model_device(engine, &op, &err)) log_die(&err);
    size_t k = 0;
    while (strcmp(models[k].name, model)) k++;
    int n = bench_kernels(op, &models[k].shape, times, &err);
    if (n < 0) log_die(&err);
    printf("%s, shapes of %s, %d rows, %d of the loss\n", op->name, model, models[k].shape.rows,
           models[k].shape.loss_rows);
    for (int i = 0; i < n; i++)
        printf("%-26s %9.1f MB %9.1f us %7.0f GB/s\n", times[i].name, times[i].bytes / 1e6,
               times[i].seconds * 1e6, times[i].bytes / times[i].seconds / 1e9);
    if (attention && bench_attention(op, &err)) log_die(&err);
    return 0;
}
