/* The properties of GPUs, and CUDA_VISIBLE_DEVICES, which limits the driver to one of them. */
#include "gpu/gpus.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

static void uuid_text(const CuUuid *u, char out[48])
{
    int n = snprintf(out, 48, "GPU-");
    for (int i = 0; i < 16; i++) {
        int dash = i == 4 || i == 6 || i == 8 || i == 10;
        n += snprintf(out + n, (size_t)(48 - n), "%s%02x", dash ? "-" : "",
                      (unsigned)(unsigned char)u->bytes[i]);
    }
}

int gpus_get(const CudaDriver *cu, int ordinal, Gpu *out, Error *err)
{
    int count = 0, major = 0, minor = 0;
    CuUuid uuid;
    *out = (Gpu){.ordinal = ordinal};
    if (cuda_check(cu->device_count(&count), "the CUDA driver does not count its devices", err))
        return -1;
    if (ordinal < 0 || ordinal >= count)
        return error_set(err, ERROR_UNKNOWN_NAME,
                         "cuda:%d: there is no such GPU; the CUDA driver has %d, from cuda:0 on",
                         ordinal, count);
    if (cuda_check(cu->device_get(&out->device, ordinal),
                   "the CUDA driver does not open its device", err) ||
        cuda_check(cu->device_name(out->name, (int)sizeof out->name, out->device),
                   "a GPU does not say its name", err) ||
        cuda_check(cu->device_uuid(&uuid, out->device), "a GPU does not say its uuid", err) ||
        cuda_check(cu->device_pci(out->pci, (int)sizeof out->pci, out->device),
                   "a GPU does not say its PCI bus id", err) ||
        cuda_check(cu->device_attribute(&major, CU_ATTRIBUTE_MAJOR, out->device),
                   "a GPU does not say its architecture", err) ||
        cuda_check(cu->device_attribute(&minor, CU_ATTRIBUTE_MINOR, out->device),
                   "a GPU does not say its architecture", err))
        return -1;
    out->name[sizeof out->name - 1] = out->pci[sizeof out->pci - 1] = 0;
    uuid_text(&uuid, out->uuid);
    snprintf(out->arch, sizeof out->arch, "sm_%d%d", major, minor);
    return 0;
}

int gpus_list(Gpu *out, int max, Error *err)
{
    int count = 0;
    if (access("/dev/nvidiactl", F_OK) && access("/dev/dxg", F_OK)) return 0;
    const CudaDriver *cu = cuda_driver(err);
    if (!cu ||
        cuda_check(cu->device_count(&count), "the CUDA driver does not count its devices", err))
        return -1;
    if (count > max) count = max;
    for (int i = 0; i < count; i++)
        if (gpus_get(cu, i, &out[i], err)) return -1;
    return count;
}

static int only_ordinal = -1; /* the argument of gpus_use_only; -1: all GPUs are visible */

/* Copy word `number` of a list separated by commas. Returns 0 when there is none, or when it is the
 * only word. */
static int word_of(const char *list, int number, char *out, size_t size)
{
    for (int i = 0; i < number; i++) {
        list = strchr(list, ',');
        if (!list++) return 0;
    }
    size_t n = strcspn(list, ",");
    if (!n || n >= size || (!number && !list[n])) return 0;
    memcpy(out, list, n);
    out[n] = 0;
    return 1;
}

static int device_files(void)
{
    char path[32];
    int n = 0;
    for (int i = 0; i < GPUS_MAX; i++) {
        snprintf(path, sizeof path, "/dev/nvidia%d", i);
        n += !access(path, F_OK);
    }
    return n;
}

void gpus_use_only(int ordinal)
{
    static const char name[] = "CUDA_VISIBLE_DEVICES";
    const char *list = getenv(name);
    char one[128];
    if (only_ordinal >= 0 || ordinal < 0) return;
    snprintf(one, sizeof one, "%d", ordinal);
    if (list ? !word_of(list, ordinal, one, sizeof one)
             : device_files() < 2 || ordinal >= device_files())
        return;
    if (!setenv(name, one, 1)) only_ordinal = ordinal;
}

int gpus_driver_ordinal(int ordinal)
{
    return only_ordinal < 0 ? ordinal : ordinal == only_ordinal ? 0 : -1;
}

/* The first word of the kernel module's banner that is a version: "NVRM version: ... 580.159.03
 * ..." */
static int module_version(char *out, size_t size)
{
    Buffer text;
    int found = 0;
    buffer_init(&text, 4096);
    if (!file_read("/proc/driver/nvidia/version", 4096, &text, NULL))
        for (char *save = NULL, *w = strtok_r(text.data, " \t\n", &save); w && !found;
             w = strtok_r(NULL, " \t\n", &save)) {
            size_t digits = strspn(w, "0123456789");
            found = digits && w[digits] == '.' && isdigit((unsigned char)w[digits + 1]) &&
                    strspn(w, "0123456789.") == strlen(w);
            if (found) snprintf(out, size, "%s", w);
        }
    buffer_release(&text);
    return found;
}

void gpus_driver(const CudaDriver *cu, char *out, size_t size)
{
    int version = 0;
    *out = 0;
    if (module_version(out, size)) return;
    if (cu->driver_version(&version) == CU_OK)
        snprintf(out, size, "CUDA %d.%d", version / 1000, version % 1000 / 10);
}
