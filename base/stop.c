/* Signal handlers that set a flag and write to a pipe. */
#include "base/stop.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/exit_status.h"

static volatile sig_atomic_t requested;
static int pipe_fd[2] = {-1, -1};

static void on_signal(int sig)
{
    if (requested) _exit(EXIT_STATUS_SIGNAL + sig);
    requested = sig;
    if (pipe_fd[1] >= 0 && write(pipe_fd[1], "x", 1) < 0) return;
}

/* Asks for a stop at $QUERN_DEADLINE, in seconds since 1970. */
static void install_deadline(const struct sigaction *sa)
{
    const char *text = getenv("QUERN_DEADLINE");
    char *end = NULL;
    long long at = text ? strtoll(text, &end, 10) : 0, left = at - (long long)time(NULL);
    if (!text || !*text || *end) return;
    sigaction(SIGALRM, sa, NULL);
    alarm(left < 1 ? 1 : left > INT_MAX ? INT_MAX : (unsigned)left);
}

void stop_install(void)
{
    if (pipe_fd[0] < 0 && pipe2(pipe_fd, O_CLOEXEC | O_NONBLOCK)) pipe_fd[0] = pipe_fd[1] = -1;
    struct sigaction sa = {.sa_handler = on_signal};
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
    install_deadline(&sa);
    struct sigaction was;
    if (sigaction(SIGHUP, NULL, &was) || was.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &sa, NULL); /* nohup has set it to be ignored */
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignore, NULL);
    sigaction(SIGXFSZ, &ignore, NULL); /* so that a file size limit is a failed write */
}

int stop_requested(void)
{
    return requested;
}

int stop_fd(void)
{
    return pipe_fd[0];
}
