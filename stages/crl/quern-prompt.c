/* quern-prompt: makes prompts for tasks, with exemplars from a pool. */
#include "stages/crl/prompt_program.h"

int main(int argc, char **argv)
{
    return prompt_program(argc, argv, NULL);
}
