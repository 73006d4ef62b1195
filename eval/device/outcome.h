/* The outcomes of a verdict: a closed list, each with a name and one meaning. */
#ifndef EVAL_DEVICE_OUTCOME_H
#define EVAL_DEVICE_OUTCOME_H

/* clang-format off */
#define OUTCOMES(X)                                                                                          \
    X(OK,               "ok",               "correct and timed")                                             \
    X(COMPILE_ERROR,    "compile_error",    "NVRTC refused the source, or a limit was reached")              \
    X(PLAN_ERROR,       "plan_error",       "the launch plan is missing, wrong or does not fit the kernel")  \
    X(LAUNCH_ERROR,     "launch_error",     "the device refused a launch, or the kernel trapped")            \
    X(OUT_OF_BOUNDS,    "out_of_bounds",    "an access outside a buffer, misaligned or of unwritten memory") \
    X(UNINITIALISED,    "uninitialised",    "a result, branch or address depends "                           \
                                            "on a variable without a value")                                 \
    X(RACE,             "race",             "two threads touch one location without a barrier, "             \
                                            "or a barrier not reached by all")                               \
    X(TIMEOUT,          "timeout",          "more instructions or time than allowed")                        \
    X(WRONG_RESULT,     "wrong_result",     "an output differs from the reference")                          \
    X(NONDETERMINISTIC, "nondeterministic", "two runs on equal inputs differ")                               \
    X(CHEAT,            "cheat",            "a result that was not honestly computed; the name says how")    \
    X(UNSUPPORTED,      "unsupported",      "an instruction that the simulator does not know")               \
    X(EVALUATOR_ERROR,  "evaluator_error",  "the evaluator failed; says nothing of the candidate")
/* clang-format on */

typedef enum {
#define X(id, name, text) OUTCOME_##id,
    OUTCOMES(X)
#undef X
        OUTCOME_COUNT
} Outcome;

/* Bounds of a verdict's lists of checks that were passed and of warnings. */
enum { VERDICT_MAX_CHECKS = 64, VERDICT_MAX_WARNINGS = 8, VERDICT_CHECK_TEXT = 160 };

const char *outcome_name(Outcome o);
const char *outcome_meaning(Outcome o);
int outcome_from_name(const char *name, Outcome *out); /* -1: no outcome has that name */

#endif
