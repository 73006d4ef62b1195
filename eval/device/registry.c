/* The registered device backends, ordered by prefix, whatever the order of the constructors. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/words.h"
#include "eval/device/device.h"

enum { MAX_BACKENDS = 8 };

static const DeviceOps *backends[MAX_BACKENDS];
static int n_backends;

/* The object that holds the backends defines this symbol (Makefile), so that a program that links
 * this file links the backends too. */
extern const char device_backends;
__attribute__((used)) static const char *const needed = &device_backends;

void device_register(const DeviceOps *ops)
{
    int i = n_backends++;
    assert(i < MAX_BACKENDS);
    for (; i && strcmp(backends[i - 1]->prefix, ops->prefix) > 0; i--)
        backends[i] = backends[i - 1];
    backends[i] = ops;
}

/* "cuda:N, a GPU, or sim:PROFILE, where PROFILE is ..."; with examples "cuda:N, such as cuda:0". */
static void list_backends(int examples, char *out, size_t size)
{
    size_t used = 0;
    snprintf(out, size, "no device: this program has no backend");
    for (int i = 0; i < n_backends && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s, %s%s", i ? ", or " : "",
                                 backends[i]->form, examples ? "such as " : "",
                                 examples ? backends[i]->example : backends[i]->meaning);
}

const DeviceOps *device_find(const char *name, const char **arg, Error *err)
{
    const char *colon = strchr(name, ':');
    size_t n = colon ? (size_t)(colon - name) : strlen(name);
    const DeviceOps *found = NULL;
    char expected[400];
    for (int i = 0; i < n_backends; i++)
        if (word_is(name, n, backends[i]->prefix)) found = backends[i];
    if (found && colon && colon[1]) {
        *arg = colon + 1;
        return found;
    }
    list_backends(found != NULL, expected, sizeof expected);
    error_set(err, ERROR_UNKNOWN_NAME, "device \"%s\": expected %s", name, expected);
    return NULL;
}
