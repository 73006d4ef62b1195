/* For the tests of faults: PTX kernels in pieces, and what a launch of one must give. */
#ifndef TESTS_SIM_CHECKS_H
#define TESTS_SIM_CHECKS_H

#include "tests/unit/eval/sim/sim_support.h"

#define HEAD ".version 9.0\n.target sm_90\n.address_size 64\n"
#define ENTRY(params)                                                                        \
    HEAD ".visible .entry k(" params ")\n{\n.reg .pred %p<8>;\n.reg .b16 %h<8>;\n.reg .b32 " \
         "%r<32>;\n.reg .f32 %f<16>;\n.reg .b64 %rd<32>;\n"
#define P64(n) ".param .u64 p" #n
#define LOC(line) ".loc 1 " #line " 0\n"
/* %r1 = tid.x, %rd1 = p0 + 4 * tid.x, %rd2 = 4 * tid.x */
#define POINTER                                                                                  \
    "ld.param.u64 %rd1, [p0];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd1, " \
    "%rd1, %rd2;\n"
#define TAIL "ret;\n}\n"

/* %r4 = the address of word tid.x of s, which has 1024 bytes */
#define SHARED                                                                                 \
    ".shared .align 4 .b8 s[1024];\nmov.u32 %r1, %tid.x;\nshl.b32 %r2, %r1, 2;\nmov.u32 %r3, " \
    "s;\nadd.u32 %r4, %r2, %r3;\n"

static Sim sim;

/* The launch must have failed with this outcome, at this line, with this part of a message. */
static inline void expect(int fault, Outcome outcome, int line, const char *part)
{
    if (!fault) fail_msg("a fault expected: %s", part);
    if (sim.fault.outcome != outcome || sim.fault.line != line || !strstr(sim.fault.message, part))
        fail_msg("%s, line %d, with \"%s\" expected, found: %s, line %d: %s", outcome_name(outcome),
                 line, part, outcome_name(sim.fault.outcome), sim.fault.line, sim.fault.message);
    sim_stop(&sim);
}

static inline void accept(int fault)
{
    if (fault) fail_msg("%s", sim.fault.message);
    sim_stop(&sim);
}

static inline Shape shape(uint32_t grid, uint32_t block)
{
    return (Shape){.kernel = "k", .grid = {grid}, .block = {block}};
}

#endif
