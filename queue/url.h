/* The URL of a Redis server: redis://[user[:password]@]host[:port][/db] or unix:PATH. */
#ifndef QUEUE_URL_H
#define QUEUE_URL_H

#include "base/error.h"
#include "base/flags.h"

typedef struct {
    char *unix_path; /* or NULL */
    char *host;      /* NULL with unix_path */
    int port, db;
    char *user, *password; /* NULL: none; percent-decoded */
    char *shown;           /* the URL without its password: for messages */
} QueueUrl;

int queue_url_parse(const char *text, QueueUrl *out, Error *err);
void queue_url_release(QueueUrl *u); /* wipes the password */

/* End with a usage error when the flag --redis (or NULL) has a password. */
void queue_url_check_flag(const FlagSpec *spec, const char *redis);

#endif
