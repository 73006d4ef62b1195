/* The flags that the programs with an evaluator of their own share. */
#ifndef EVAL_DEVICE_EVALUATOR_FLAGS_H
#define EVAL_DEVICE_EVALUATOR_FLAGS_H

#include "base/flags.h"

/* Folders: of the tasks, and of the compile cache. */
#define EVALUATOR_FOLDER_FLAGS(tasks_root, cache)                                                 \
    {"task-root", FLAG_TEXT, &(tasks_root),                                                       \
     "folder of the tasks; else $QUERN_TASKS, else Quern's own"},                                 \
    {                                                                                             \
        "cache", FLAG_TEXT, &(cache), "folder of the compile cache; else $QUERN_CACHE, else none" \
    }

#define EVALUATOR_FLAGS(device_name, input_seed, tasks_root, cache)        \
    {"device", FLAG_TEXT, &(device_name),                                  \
     "where it runs: sim:a100, h100, h200, l40, rtx3090, h20; cuda:0"},    \
        {"seed", FLAG_INT, &(input_seed), "of the drawn inputs", 0, 9e15}, \
        EVALUATOR_FOLDER_FLAGS(tasks_root, cache)

#endif
