/* quern-generate: composes tasks from the operator library. */
#include <stddef.h>

#include "base/flags.h"
#include "base/log.h"
#include "tasks/generate/generate.h"

int main(int argc, char **argv)
{
    const char *folder = NULL, *beside = NULL, *words[1];
    int64_t train = 60, composition = 16, family = 4, seed = 1;
    const Flag flags[] = {
        {"train", FLAG_INT, &train, "tasks to learn from", 0, GENERATE_MAX},
        {"composition", FLAG_INT, &composition,
         "tasks held out: each primitive is in a task to learn from, the combination is not", 0,
         GENERATE_MAX},
        {"family", FLAG_INT, &family, "tasks held out, of families that no task to learn from has",
         0, GENERATE_MAX},
        {"seed", FLAG_INT, &seed, "of the compositions", 0, 1e15},
        {"beside", FLAG_TEXT, &beside, "folder of a set that has none of these compositions"},
        {"output", FLAG_TEXT, &folder, "folder of the set; a folder for each task is made in it",
         .required = 1},
        {0}};
    const FlagSpec spec = {
        .program = "quern-generate",
        .synopsis = "-o DIR [--train N] [--composition N] [--family N] [--seed N] [--beside DIR]",
        .about =
            "Composes tasks from the operator library: pointwise chains, folds over rows, softmax, "
            "norms, products, scans, convolutions, pools and losses.",
        .flags = flags};
    flags_parse(&spec, argc, argv, words);
    log_open("quern-generate");
    const GenerateSpec s = {(int)train, (int)composition, (int)family, (uint64_t)seed, beside};
    Error err;
    if (generate_tasks(&s, folder, &err)) log_die(&err);
    return log_close(0);
}
