/* The driver's error numbers, as outcomes and sentences. A number that is not in the tables is
 * never blamed on a candidate. */
#include "eval/cuda/launch_fault.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "gpu/driver.h"

enum { CU_INVALID_HANDLE = 400, CU_COOPERATIVE_TOO_LARGE = 720, CU_CLUSTER = 912 };

typedef struct {
    CuResult result;
    Outcome outcome;
    const char *text; /* after "kernel NAME " */
} Reason;

static const Reason while_running[] = {
    {CU_ILLEGAL_ADDRESS, OUTCOME_OUT_OF_BOUNDS,
     "accessed memory that is no part of any buffer (illegal address): check every index "
     "against the bounds of its tensor"},
    {CU_MISALIGNED, OUTCOME_OUT_OF_BOUNDS,
     "accessed an address that is no multiple of the access's size (misaligned address): a vector "
     "access of 8 or 16 bytes needs an address that is a multiple of as much"},
    {CU_INVALID_SPACE, OUTCOME_OUT_OF_BOUNDS,
     "used an address of another memory space than the instruction works on (invalid address "
     "space): shared and local addresses are not global ones"},
    {CU_INVALID_PC, OUTCOME_OUT_OF_BOUNDS,
     "jumped to an address that holds no code (invalid program counter): a return address or "
     "function pointer was overwritten"},
    {CU_STACK_ERROR, OUTCOME_LAUNCH_ERROR,
     "corrupted its stack or used more than there is (hardware stack error): avoid deep recursion "
     "and large local arrays"},
    {CU_ILLEGAL_INSTRUCTION, OUTCOME_LAUNCH_ERROR,
     "ran an instruction that this GPU does not allow there (illegal instruction)"},
    {CU_LAUNCH_FAILED, OUTCOME_LAUNCH_ERROR,
     "stopped with an exception: a trap, an access outside shared or local memory, or a "
     "barrier or asynchronous copy that was used wrongly"},
    {CU_ASSERT, OUTCOME_LAUNCH_ERROR, "stopped at an assert that does not hold"},
    {CU_LAUNCH_TIMEOUT, OUTCOME_TIMEOUT, "did not end in the time that the device allows"},
    {CU_OUT_OF_MEMORY, OUTCOME_LAUNCH_ERROR,
     "needs more memory for its threads' stacks and local arrays than the device has"},
};

static const Reason at_launch[] = {
    {CU_LAUNCH_RESOURCES, OUTCOME_LAUNCH_ERROR,
     "cannot be launched: a block needs more registers or shared memory than an SM has"},
    {CU_INVALID_VALUE, OUTCOME_LAUNCH_ERROR,
     "cannot be launched: the device refuses this grid, block or amount of shared memory"},
    {CU_COOPERATIVE_TOO_LARGE, OUTCOME_LAUNCH_ERROR,
     "cannot be launched: its blocks do not all fit on the device at once"},
    {CU_CLUSTER, OUTCOME_LAUNCH_ERROR,
     "cannot be launched: the device refuses its clusters of blocks; the grid must be a multiple "
     "of the cluster's size"},
    {CU_OUT_OF_MEMORY, OUTCOME_LAUNCH_ERROR,
     "cannot be launched: it needs more memory for its threads' stacks and local arrays than "
     "the device has"},
    {CU_INVALID_HANDLE, OUTCOME_LAUNCH_ERROR,
     "cannot be launched: the binary does not fit this device"},
};

static const Reason *find(const Reason *table, size_t n, CuResult r)
{
    for (size_t i = 0; i < n; i++)
        if (table[i].result == r) return &table[i];
    return NULL;
}

/* "kernel softmax (launch 2 of 3)", or "one of launches 65 to 128". */
static void name_launch(const DeviceLaunch *launches, int n, int first, int last, char *out,
                        size_t size)
{
    char kernel[128];
    device_kernel_name(launches[last].kernel, kernel, sizeof kernel);
    if (first < last && strcmp(launches[first].kernel, launches[last].kernel))
        snprintf(out, size, "a kernel of launches %d to %d of %d (the last is %s)", first + 1,
                 last + 1, n, kernel);
    else if (first < last)
        snprintf(out, size, "kernel %s (launch %d to %d of %d)", kernel, first + 1, last + 1, n);
    else if (n > 1)
        snprintf(out, size, "kernel %s (launch %d of %d)", kernel, first + 1, n);
    else
        snprintf(out, size, "kernel %s", kernel);
}

static void begin(const DeviceLaunch *launches, int launch, Outcome outcome, Fault *fault)
{
    memset(fault, 0, sizeof *fault);
    fault->outcome = outcome;
    fault->launch = launch;
    snprintf(fault->kernel, sizeof fault->kernel, "%.250s", launches[launch].kernel);
}

static void shape_text(const DeviceLaunch *l, char *out, size_t size)
{
    snprintf(out, size, " (grid %ux%ux%u, block %ux%ux%u, %u bytes of dynamic shared memory)",
             l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2],
             l->shared_bytes);
}

int launch_fault_explain(const LaunchEnd *end, const DeviceLaunch *launches, int n, Fault *fault)
{
    char who[300], shape[160] = "";
    if (n < 1 || end->first < 0 || end->last < end->first || end->last >= n) return 0;
    if (end->step == END_LIBRARY) {
        begin(launches, end->last, OUTCOME_LAUNCH_ERROR, fault);
        snprintf(fault->message, sizeof fault->message, "the library refuses this call: %s",
                 end->text);
        return 1;
    }
    const Reason *reason = end->step == END_LAUNCH
                               ? find(at_launch, sizeof at_launch / sizeof *at_launch, end->result)
                               : NULL;
    if (reason) shape_text(&launches[end->last], shape, sizeof shape);
    if (!reason && end->step != END_HARNESS)
        reason = find(while_running, sizeof while_running / sizeof *while_running, end->result);
    if (!reason) return 0;
    name_launch(launches, n, end->first, end->last, who, sizeof who);
    begin(launches, end->last, reason->outcome, fault);
    snprintf(fault->message, sizeof fault->message, "%s %s%s", who, reason->text, shape);
    return 1;
}

void launch_fault_timeout(const DeviceLaunch *launches, int n, double seconds, Fault *fault)
{
    char who[300];
    begin(launches, n - 1, OUTCOME_TIMEOUT, fault);
    name_launch(launches, n, 0, n - 1, who, sizeof who);
    snprintf(fault->message, sizeof fault->message,
             "%s did not end within %.3g s and was stopped: look for a loop or a wait that never "
             "ends",
             who, seconds);
}

void launch_fault_exit(const DeviceLaunch *launches, int n, int status, Fault *fault)
{
    char who[300];
    begin(launches, n - 1, OUTCOME_LAUNCH_ERROR, fault);
    name_launch(launches, n, 0, n - 1, who, sizeof who);
    if (WIFSIGNALED(status))
        snprintf(fault->message, sizeof fault->message,
                 "%s took down the process that runs it (signal %d)", who, WTERMSIG(status));
    else
        snprintf(fault->message, sizeof fault->message,
                 "%s took down the process that runs it (exit status %d)", who,
                 WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}
