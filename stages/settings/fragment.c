/* Lines are joined and unescaped as GNU Make does it, so that a file means the same to both. */
#include "stages/settings/fragment.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"

enum { MAX_BYTES = 1 << 20, MAX_DEPTH = 8, MAX_FILES = 100, SHOWN = 60 };

typedef struct {
    const char *path, *share;
    FragmentSet *set;
    void *ctx;
    int line, depth, *files; /* files: how many were read, of all depths */
} Reader;

static int read_file(const char *path, const Reader *from, Error *err);

static int refuse(const Reader *r, Error *err, const char *expected, const char *found)
{
    return error_set(err, ERROR_USAGE, "%s:%d: expected %s, found '%.*s'", r->path, r->line,
                     expected, SHOWN, found);
}

char *fragment_find(const char *path, const char *beside, const char *share)
{
    const char *slash = beside ? strrchr(beside, '/') : NULL;
    if (file_exists(path)) return memory_strdup(path);
    char *places[2] = {slash ? memory_printf("%.*s/%s", (int)(slash - beside), beside, path) : NULL,
                       share ? memory_printf("%s/%s", share, path) : NULL};
    char *found = NULL;
    for (int i = 0; i < 2; i++) {
        if (!found && places[i] && *path != '/' && file_exists(places[i]))
            found = places[i];
        else
            free(places[i]);
    }
    return found;
}

/* Cut blanks at both ends, in place. */
static char *trim(char *text)
{
    while (isspace((unsigned char)*text)) text++;
    for (size_t n = strlen(text); n && isspace((unsigned char)text[n - 1]); n--) text[n - 1] = 0;
    return text;
}

/* End the line at its comment, and make "\#" a "#": of the backslashes before a number sign each
 * pair is one, and an odd one takes the sign's meaning away. In place. */
static void cut_comment(char *text)
{
    char *out = text;
    for (char *p = text; *p;) {
        size_t slashes = strspn(p, "\\");
        if (p[slashes] != '#') {
            size_t n = slashes ? slashes : 1;
            memmove(out, p, n);
            out += n, p += n;
            continue;
        }
        memset(out, '\\', slashes / 2);
        out += slashes / 2, p += slashes;
        if (slashes % 2 == 0) break;
        *out++ = *p++;
    }
    *out = 0;
}

/* "$$" becomes "$", in place; -1 at any other dollar. */
static int unescape_dollars(char *text)
{
    char *out = text;
    for (char *p = text; *p; p++) {
        if (*p == '$' && *++p != '$') return -1;
        *out++ = *p;
    }
    *out = 0;
    return 0;
}

/* The next line without its comment, lines that a backslash joins as one; NULL at the end. r->line
 * becomes the number of its first line, *next the number of the line behind it. */
static char *next_line(Reader *r, char **text, int *next)
{
    if (!**text) return NULL;
    char *line = *text, *out = line;
    r->line = *next;
    for (;;) {
        size_t n = strcspn(*text, "\n"), slashes = 0;
        memmove(out, *text, n);
        out += n;
        *text += n;
        ++*next;
        while (out - slashes > line && out[-1 - (long)slashes] == '\\') slashes++;
        if (**text) ++*text;
        if (slashes % 2 == 0 || !**text) break;
        for (out--; out > line && isblank((unsigned char)out[-1]);) out--;
        *out++ = ' ';
        *text += strspn(*text, " \t");
    }
    char *copy = memory_strndup(line, (size_t)(out - line));
    cut_comment(copy);
    return copy;
}

static int include_file(const Reader *r, const char *name, Error *err)
{
    char *path = fragment_find(name, r->path, r->share);
    if (!path)
        return error_set(err, ERROR_NOT_FOUND, "%s:%d: include %s: there is no such file", r->path,
                         r->line, name);
    int rc = read_file(path, r, err);
    free(path);
    return rc;
}

static int include(const Reader *r, char *names, Error *err)
{
    char *save = NULL, *p = strtok_r(names, " \t", &save);
    if (!p) return refuse(r, err, "include FILE", "include");
    if (r->depth == MAX_DEPTH)
        return refuse(r, err, "files that include each other in a chain of at most 8", p);
    for (; p; p = strtok_r(NULL, " \t", &save))
        if (include_file(r, p, err)) return -1;
    return 0;
}

/* Length of the assignment's operator at p, or 0. */
static size_t operator_at(const char *p)
{
    static const char *const operators[] = {"=", ":=", "::=", "?="};
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (!strncmp(p, operators[i], strlen(operators[i]))) return strlen(operators[i]);
    return 0;
}

static int assign(const Reader *r, char *line, Error *err)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
    size_t n = strspn(line, letters);
    char *sign = line + n + strspn(line + n, " \t"), *where;
    size_t length = operator_at(sign);
    if (!strncmp(sign, "+=", 2))
        return refuse(r, err, "the whole value after NAME =, since += is not read here", line);
    if (!n || !length) return refuse(r, err, "NAME = VALUE, NAME ?= VALUE or include FILE", line);
    int weak = *sign == '?';
    line[n] = 0;
    char *value = trim(sign + length);
    if (unescape_dollars(value))
        return error_set(err, ERROR_USAGE,
                         "%s:%d: %s: expected a plain value, in which $$ is a dollar: references "
                         "to variables are not read here",
                         r->path, r->line, line);
    where = memory_printf("%s:%d", r->path, r->line);
    const FragmentLine found = {line, value, weak, where};
    int rc = r->set(r->ctx, &found, err);
    free(where);
    return rc;
}

static int take_line(const Reader *r, char *line, Error *err)
{
    char *text = trim(line);
    if (!*text) return 0;
    if (*line == '\t') return refuse(r, err, "settings alone, and no command of a rule", text);
    if (!strncmp(text, "include", 7) && isblank((unsigned char)text[7]))
        return include(r, text + 8, err);
    return assign(r, text, err);
}

static int read_file(const char *path, const Reader *from, Error *err)
{
    Reader r = *from;
    Buffer b;
    if (++*r.files > MAX_FILES) return refuse(from, err, "at most 100 files in all", path);
    r.path = path, r.line = 0, r.depth++;
    buffer_init(&b, MAX_BYTES);
    int rc = file_read(path, MAX_BYTES, &b, err), next = 1;
    if (!rc && memchr(b.data, 0, b.len))
        rc = error_set(err, ERROR_USAGE, "%s: expected text, found a NUL byte", path);
    char *text = b.data, *line;
    while (!rc && (line = next_line(&r, &text, &next))) {
        rc = take_line(&r, line, err);
        free(line);
    }
    buffer_release(&b);
    return rc;
}

int fragment_read(const char *path, const char *share, FragmentSet *set, void *ctx, Error *err)
{
    int files = 0;
    const Reader r = {.share = share, .set = set, .ctx = ctx, .files = &files};
    return read_file(path, &r, err);
}
