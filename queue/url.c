/* Parser of queue URLs. No message repeats the part before the '@'. */
#include "queue/url.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"

enum { URL_MAX = 1024, UNIX_PATH_MAX_BYTES = 107 };

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    int l = tolower((unsigned char)c);
    return l >= 'a' && l <= 'f' ? l - 'a' + 10 : -1;
}

/* Decode %XX. Returns NULL for a broken escape or an escaped NUL. */
static char *percent_decode(const char *s, size_t n)
{
    char *out = memory_alloc(n + 1);
    size_t w = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] != '%') {
            out[w++] = s[i];
            continue;
        }
        int hi = i + 2 < n ? hex_digit(s[i + 1]) : -1;
        int lo = hi >= 0 ? hex_digit(s[i + 2]) : -1;
        if (lo < 0 || (hi == 0 && lo == 0)) {
            free(out);
            return NULL;
        }
        out[w++] = (char)(hi * 16 + lo);
        i += 2;
    }
    return out;
}

/* Parse the decimal number [s, end). Returns -1 unless it is in 0..max. */
static long number(const char *s, const char *end, long max)
{
    long v = 0;
    if (s == end) return -1;
    for (; s < end; s++) {
        if (!isdigit((unsigned char)*s)) return -1;
        v = v * 10 + (*s - '0');
        if (v > max) return -1;
    }
    return v;
}

static int parse_credentials(const char *s, const char *at, QueueUrl *u, Error *err)
{
    const char *colon = memchr(s, ':', (size_t)(at - s));
    const char *user_end = colon ? colon : at;
    if (user_end > s) u->user = percent_decode(s, (size_t)(user_end - s));
    if (colon) u->password = percent_decode(colon + 1, (size_t)(at - colon - 1));
    if ((user_end > s && !u->user) || (colon && !u->password))
        return error_set(err, ERROR_USAGE,
                         "the queue's URL has a broken %%XX escape before the '@'");
    if (u->user && !u->password)
        return error_set(err, ERROR_USAGE, "the queue's URL names a user without a password");
    return 0;
}

static int parse_host(const char *s, QueueUrl *u, Error *err)
{
    const char *slash = strchr(s, '/'), *end = slash ? slash : s + strlen(s);
    const char *host_end;
    if (*s == '[') { /* an IPv6 address */
        host_end = memchr(s, ']', (size_t)(end - s));
        if (!host_end)
            return error_set(err, ERROR_USAGE, "the queue's URL has a '[' without its ']'");
        u->host = memory_strndup(s + 1, (size_t)(host_end - s - 1));
        host_end++;
    } else {
        host_end = memchr(s, ':', (size_t)(end - s));
        if (!host_end) host_end = end;
        u->host = memory_strndup(s, (size_t)(host_end - s));
    }
    if (!*u->host)
        return error_set(
            err, ERROR_USAGE,
            "the queue's URL names no host; expected redis://user:password@host:port/db");
    long port = 6379, db = 0;
    if (host_end < end) port = *host_end == ':' ? number(host_end + 1, end, 65535) : -1;
    if (port <= 0)
        return error_set(err, ERROR_USAGE, "the queue's URL has no port of 1..65535 after its ':'");
    if (slash && slash[1]) db = number(slash + 1, slash + strlen(slash), 9999);
    if (db < 0)
        return error_set(err, ERROR_USAGE,
                         "the queue's URL ends in '%s', where the number of a database is expected",
                         slash);
    u->port = (int)port;
    u->db = (int)db;
    u->shown = strchr(u->host, ':') ? memory_printf("redis://[%s]:%d/%d", u->host, u->port, u->db)
                                    : memory_printf("redis://%s:%d/%d", u->host, u->port, u->db);
    return 0;
}

static int parse(const char *text, QueueUrl *u, Error *err)
{
    if (strlen(text) > URL_MAX)
        return error_set(err, ERROR_USAGE, "the queue's URL is longer than %d bytes", URL_MAX);
    if (!strncasecmp(text, "unix:", 5)) {
        const char *path = text + 5;
        if (!strncmp(path, "//", 2)) path += 2;
        if (!*path || strlen(path) > UNIX_PATH_MAX_BYTES)
            return error_set(err, ERROR_USAGE,
                             "unix: expects the path of a socket of 1 to %d bytes, found %zu",
                             UNIX_PATH_MAX_BYTES, strlen(path));
        u->unix_path = memory_strdup(path);
        u->shown = memory_printf("unix:%s", path);
        return 0;
    }
    if (!strncasecmp(text, "rediss:", 7))
        return error_set(err, ERROR_USAGE,
                         "rediss: (TLS) is not spoken; put a tunnel in front, or use redis://");
    if (strncasecmp(text, "redis://", 8))
        return error_set(
            err, ERROR_USAGE,
            "expected the queue's URL as redis://user:password@host:port/db or unix:PATH");
    const char *rest = text + 8, *at = strrchr(rest, '@');
    if (at && parse_credentials(rest, at, u, err)) return -1;
    return parse_host(at ? at + 1 : rest, u, err);
}

int queue_url_parse(const char *text, QueueUrl *out, Error *err)
{
    *out = (QueueUrl){0};
    if (!parse(text, out, err)) return 0;
    queue_url_release(out);
    return -1;
}

void queue_url_release(QueueUrl *u)
{
    if (u->password) explicit_bzero(u->password, strlen(u->password));
    free(u->unix_path);
    free(u->host);
    free(u->user);
    free(u->password);
    free(u->shown);
    *u = (QueueUrl){0};
}

void queue_url_check_flag(const FlagSpec *spec, const char *redis)
{
    if (redis && strchr(redis, '@'))
        flags_usage_error(spec, "--redis takes no password: others can read a command line; set "
                                "QUERN_REDIS instead");
}
