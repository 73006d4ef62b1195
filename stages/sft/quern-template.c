/* Prints one kernel of the template teacher, for people to look at. */
#include <stdio.h>

#include "base/flags.h"
#include "stages/sft/template.h"

int main(int argc, char **argv)
{
    const char *task = NULL;
    int64_t seed = 1;
    double mistakes = 0;
    int texts = 0;
    const Flag flags[] = {
        {.name = "task", .kind = FLAG_TEXT, .target = &task, .help = "task or operation type", .required = 1},
        {.name = "seed", .kind = FLAG_INT, .target = &seed, .help = "which kernel", .max = 1e15},
        {.name = "mistakes", .kind = FLAG_FLOAT, .target = &mistakes, .help = "share of kernels with a mistake", .max = 1},
        {.name = "texts", .kind = FLAG_BOOL, .target = &texts, .help = "choices, analysis and design on stderr"},
        {0},
    };
    const FlagSpec spec = {.program = "quern-template",
                           .synopsis = "--task NAME [--seed N] [--mistakes RATE]",
                           .about = "Prints one candidate of the built-in template teacher.",
                           .flags = flags};
    const char *words[1];
    flags_parse(&spec, argc, argv, words);
    TemplateKernel kernel;
    Error err;
    if (template_generate(task, NULL, (uint64_t)seed, mistakes, &kernel, &err)) {
        fprintf(stderr, "quern-template: %s\n", err.text);
        return 1;
    }
    if (texts) {
        for (int i = 0; i < kernel.n_choices; i++)
            fprintf(stderr, "%s%s=%s", i ? " " : "", kernel.choices[i].name, kernel.choices[i].value);
        fprintf(stderr, "%s%s\n%s\n%s\n", kernel.mistake ? " mistake=" : "", kernel.mistake_name, kernel.analysis, kernel.design);
    }
    fputs(kernel.source, stdout);
    template_release(&kernel);
    return fflush(stdout) || ferror(stdout);
}
