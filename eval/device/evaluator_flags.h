/* The flags that the programs with an evaluator of their own share. */
#ifndef EVAL_DEVICE_EVALUATOR_FLAGS_H
#define EVAL_DEVICE_EVALUATOR_FLAGS_H

#include "base/flags.h"

/* Folders: of the tasks, and of the compile cache. */
#define EVALUATOR_FOLDER_FLAGS(tasks_root, cache)                           \
    {.name = "task-root",                                                   \
     .kind = FLAG_TEXT,                                                     \
     .target = &(tasks_root),                                               \
     .help = "folder of the tasks; else $QUERN_TASKS, else Quern's own"},   \
    {                                                                       \
        .name = "cache", .kind = FLAG_TEXT, .target = &(cache),             \
        .help = "folder of the compile cache; else $QUERN_CACHE, else none" \
    }

#define EVALUATOR_FLAGS(device_name, input_seed, tasks_root, cache)             \
    {.name = "device",                                                          \
     .kind = FLAG_TEXT,                                                         \
     .target = &(device_name),                                                  \
     .help = "where it runs: sim:a100, h100, h200, l40, rtx3090, h20; cuda:0"}, \
        {.name = "seed",                                                        \
         .kind = FLAG_INT,                                                      \
         .target = &(input_seed),                                               \
         .help = "of the drawn inputs",                                         \
         .min = 0,                                                              \
         .max = 9e15},                                                          \
        EVALUATOR_FOLDER_FLAGS(tasks_root, cache)

#endif
