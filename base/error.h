/* Errors travel up as values. A function that can fail returns 0 or -1 (or NULL) and fills the
 * caller's Error: a code for the program, and one sentence for people that says what was expected,
 * what was found, and where. Code decides by the code and never by the sentence. Only main prints.
 * An Error needs no release. A NULL Error drops both. */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include "base/exit_status.h"

/* X(code, exit status of a program that ends with it, meaning) */
/* clang-format off */
#define ERROR_CODES(X)                                                                                    \
    X(NONE,         EXIT_STATUS_FAILED, "no error was set")                                               \
    X(INVALID,      EXIT_STATUS_FAILED, "inputs that do not fit together, or a step that cannot be done") \
    X(USAGE,        EXIT_STATUS_USAGE,  "a wrong flag, setting or combination of them")                   \
    X(UNKNOWN_NAME, EXIT_STATUS_USAGE,  "a name that nothing has: of a task, device, variable or flag")   \
    X(NOT_FOUND,    EXIT_STATUS_USAGE,  "a file or folder that does not exist, or is of the other kind")  \
    X(CORRUPT,      EXIT_STATUS_FAILED, "content that is damaged or not of its format")                   \
    X(LIMIT,        EXIT_STATUS_FAILED, "a size beyond its bound")                                        \
    X(UNSUPPORTED,  EXIT_STATUS_FAILED, "valid, but not something that Quern does")                       \
    X(IO,           EXIT_STATUS_SYSTEM, "the system refused to read, write or start something")           \
    X(MEMORY,       EXIT_STATUS_SYSTEM, "memory of the host or of a device is not enough")                \
    X(COMPILER,     EXIT_STATUS_SYSTEM, "NVRTC or the process around it failed")                          \
    X(DEVICE,       EXIT_STATUS_SYSTEM, "a device or its driver failed")                                  \
    X(DEVICE_SICK,  EXIT_STATUS_SICK,   "a device must leave service")                                    \
    X(SERVER,       EXIT_STATUS_SYSTEM, "Redis or an endpoint cannot be reached or refuses")              \
    X(CHILD,        EXIT_STATUS_FAILED, "a process that was started failed")                              \
    X(STOPPED,      EXIT_STATUS_FAILED, "a signal asked to stop")
/* clang-format on */

typedef enum {
#define X(code, status, meaning) ERROR_##code,
    ERROR_CODES(X)
#undef X
        ERROR_CODE_COUNT
} ErrorCode;

typedef struct {
    ErrorCode code;
    char text[1024];
} Error;

/* Write code and message; always returns -1, so `return error_set(err, ...)`. Control characters
 * are replaced by '?', since the text goes to terminals and to models. */
int error_set(Error *err, ErrorCode code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The message with ": strerror(errno)" at its end. The code follows from errno: NOT_FOUND, MEMORY,
 * or else IO. */
int error_errno(Error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Put "context: " in front of the message; the code stays. Returns -1. */
int error_prefix(Error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* What a program that ends with this error returns to its caller. */
int error_exit_status(ErrorCode code);

#endif
