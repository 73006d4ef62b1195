/* Errors travel up as values: a function that can fail returns 0 or -1 (or NULL) and
 * writes one sentence into the caller's Error: what was expected, what was found, where.
 * Only main prints it. An Error needs no release; passing NULL drops the text. */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

typedef struct {
    char text[1024];
} Error;

/* Write the message; always returns -1, so `return error_set(err, ...)`. Control characters
 * from outside are replaced by '?': the text goes to terminals and to the model. */
int error_set(Error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The same with ": strerror(errno)" at the end. */
int error_errno(Error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Put "context: " in front of what is already there; returns -1. */
int error_prefix(Error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
