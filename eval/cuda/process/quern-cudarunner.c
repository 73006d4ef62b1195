/* quern-cudarunner DEVICE PARENT [trusted|library]: the process in which candidates run on a GPU, or
 * baselines with a third argument. The device "cuda:N" starts it, with a socket as descriptor 3
 * (eval/cuda/process/runner_process.c). It ends with its parent. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/flags.h"
#include "base/process.h"
#include "eval/cuda/context/protocol.h"
#include "eval/cuda/process/runner_server.h"

static int is_socket(int fd)
{
    int type;
    socklen_t n = sizeof type;
    return !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) && type == SOCK_SEQPACKET;
}

int main(int argc, char **argv)
{
    Flag flags[] = {{.name = NULL}};
    FlagSpec spec = {.program = "quern-cudarunner",
                     .synopsis = "DEVICE PARENT [trusted|library]",
                     .about = "Started by Quern's evaluators, for the kernels that they judge, "
                              "with a socket as descriptor 3; not by hand.",
                     .flags = flags,
                     .min_words = 2,
                     .max_words = 3};
    const char *words[3];
    Error err = {0};
    /* Before the driver opens files of its own at that number. */
    int hold = fcntl(PROTOCOL_HOLD, F_GETFD) < 0 ? -1 : PROTOCOL_HOLD;
    int libraries = flags_parse(&spec, argc, argv, words) == 3;
    int known = !libraries || !strcmp(words[2], "trusted") || !strcmp(words[2], "library");
    if (!known || !is_socket(PROTOCOL_FD)) flags_usage_error(&spec, "it is not started by hand");
    process_die_with_parent();
    if (getppid() != atoi(words[1])) return 1;
    /* The parent handles the signals that ask to stop. */
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) signal(ignored[i], SIG_IGN);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    /* A module is loaded completely, so that nothing is loaded between two events. Libraries are
     * too large for that, and what calls them has run before it is timed. The driver compiles nothing,
     * so its cache is off. */
    setenv("CUDA_MODULE_LOADING", libraries ? "LAZY" : "EAGER", 1);
    setenv("CUDA_CACHE_DISABLE", "1", 1);
    const RunnerServer s = {PROTOCOL_FD, atoi(words[0]), libraries, hold};
    int rc = runner_server_run(&s, &err);
    _exit(rc ? 1 : 0);
}
