/* A server that greets correctly and then gives the same wrong reply to every command. Each call
 * must end soon, with an error or with nothing found, and never with a job or a crash. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "queue/queue.h"

static char dir[] = "/tmp/quern-test-XXXXXX";
static char path[64], url[80];

static const char *const answers[] = {":7\r\n",
                                      "$-1\r\n",
                                      "*-1\r\n",
                                      "*0\r\n",
                                      "+OK\r\n",
                                      "*1\r\n*1\r\n*1\r\n:1\r\n",
                                      "*5\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n",
                                      "*5\r\n:0\r\n:1\r\n:2\r\n:3\r\n:4\r\n",
                                      "*5\r\n:0\r\n$1\r\na\r\n$1\r\nb\r\n*0\r\n:4\r\n",
                                      "*2\r\n$-1\r\n$-1\r\n",
                                      "*2\r\n:1\r\n:2\r\n",
                                      "*2\r\n$4\r\ndone\r\n:1\r\n",
                                      "*1\r\n$1\r\nx\r\n",
                                      "*1\r\n*2\r\n$1\r\nx\r\n*0\r\n",
                                      "*1\r\n*2\r\n$1\r\nx\r\n*1\r\n*2\r\n$1\r\n1\r\n*0\r\n",
                                      "*1\r\n*2\r\n$-1\r\n*-1\r\n",
                                      "*1\r\n*6\r\n$-1\r\n$-1\r\n:1\r\n:1\r\n:1\r\n$-1\r\n",
                                      "-OOM command not allowed\r\n",
                                      "-NOAUTH x\r\n",
                                      "-\r\n",
                                      "-BUSY x\r\n",
                                      "$-7\r\n",
                                      "HTTP/1.1 400 Bad Request\r\n\r\n"};

/* Answer the first `greetings` commands of a connection with OK, then with `wrong`. No argument
 * sent here has a line that begins with '*', so each such line is a command. */
static void serve(int fd, int greetings, const char *wrong)
{
    char chunk[65536];
    ssize_t n;
    for (char last = '\n'; (n = read(fd, chunk, sizeof chunk)) > 0; last = chunk[n - 1])
        for (ssize_t i = 0; i < n; i++) {
            if (chunk[i] != '*' || (i ? chunk[i - 1] : last) != '\n') continue;
            const char *reply = greetings-- > 0 ? "+OK\r\n" : wrong;
            if (write(fd, reply, strlen(reply)) < 0) return;
        }
}

static pid_t start(int greetings, const char *wrong)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    unlink(path);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(fd, 8), 0);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that crashes leaves no server */
        for (signal(SIGPIPE, SIG_IGN);;) {
            int c = accept(fd, NULL, NULL);
            serve(c, greetings, wrong);
            close(c);
        }
    }
    close(fd);
    return pid;
}

static int no_dead(void *ctx, const QueueJob *job, Buffer *result)
{
    (void)ctx, (void)job, (void)result;
    return -1;
}

static void ask_everything(Queue *q)
{
    static const char *const classes[] = {"sim:a"}, *key = "k";
    static QueueStatus status[4];
    static QueueSick sick[4];
    Error err;
    QueueState state;
    QueueResult result;
    QueueJob job = {0};
    QueueService service;
    const QueueNew new = {"sim:a", "k", "x", 1, 0};
    const QueueConsumer consumer = {"w", classes, 1, no_dead, NULL};
    int gone;
    queue_enqueue(q, &new, 1, &state, &err);
    queue_refuse(q, &new, "r", 1, &err);
    queue_poll(q, &key, 1, &result, &err);
    assert_null(result.data);
    queue_wait(q, 0.01, &err);
    assert_int_not_equal(queue_take(q, &consumer, 0.01, &job, &err), 1);
    queue_service(q, "sim:a", "u", &service, &err);
    queue_withdraw(q, "k", &gone, &err);
    queue_status(q, status, 4, &err);
    queue_quarantined(q, sick, 4, &err);
    queue_serves(q, "here", 1, &err);
    queue_purge(q, &err);
}

static void test_wrong_answers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        /* SETNAME, ID, PING, FUNCTION LOAD, and the search for the last finished key. */
        for (int greetings = 4; greetings <= 5; greetings++) {
            pid_t pid = start(greetings, answers[i]);
            Error err = {0};
            Queue *q = NULL;
            double began = clock_seconds();
            if (!queue_open(url, "q", "1", &q, &err))
                ask_everything(q);
            else
                assert_true(err.text[0]);
            queue_close(q);
            kill(pid, SIGKILL);
            waitpid(pid, NULL, 0);
            if (clock_seconds() - began > 200)
                fail_msg("answer %zu: %.1f s", i, clock_seconds() - began);
        }
    }
}

int main(void)
{
    if (!mkdtemp(dir)) return 1;
    snprintf(path, sizeof path, "%s/s", dir);
    snprintf(url, sizeof url, "unix:%s", path);
    setenv("QUERN_QUEUE", "retry=0.01", 1);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_wrong_answers)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    rmdir(dir);
    return failed;
}
