/* The includes of a candidate, which are followed outside the cage: nothing outside the folders is
 * read, and what a source gets is the same whatever came before it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "eval/compile/headers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[] = "/tmp/quern-fuzz-XXXXXX", cuda[4200], folders[8400];
static Error err;

static void need(int ok)
{
    if (!ok) abort();
}

static void put(const char *name, const char *text)
{
    char path[4300];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    *strrchr(path, '/') = 0;
    need(!file_mkdirs(path, &err));
    path[strlen(path)] = '/';
    need(!file_write_atomic(path, text, strlen(text), &err));
}

static void remove_tree(void)
{
    file_remove_tree(dir, &err);
}

static void make_tree(void)
{
    char path[4300];
    need(mkdtemp(dir) != NULL);
    atexit(remove_tree);
    snprintf(cuda, sizeof cuda, "%s/cuda", dir);
    snprintf(folders, sizeof folders, "%s/one:%s/two", dir, dir);
    put("cuda/cuda_fp16.h", "#define WHERE one\n#include \"vector.h\"\n");
    put("cuda/vector.h", "#pragma once\n#include <cccl_only.h>\n#include <math.h>\n");
    put("cuda/cccl/cccl_only.h", "#include CONFIG\n#define CONFIG <vector.h>\n");
    put("cuda/cub/cub.cuh",
        "#include \"device/d.cuh\"\n#include <cub/device/d.cuh>\n#include <cub/block.cuh>\n");
    put("cuda/cub/block.cuh", "#define CUB\n");
    put("one/a.h", "#include \"lib/common.h\"\n#include \"vector.h\"\n#include <b.h>\n");
    put("one/vector.h", "#define BESIDE\n#include \"a.h\"\n");
    put("one/lib/common.h",
        "#include \"../common.h\"\n#include <lib/common.h>\n#include MACRO\n#define MACRO <b.h>\n");
    put("one/common.h", "#define LAST \"lib/common.h\"\n#include LAST\n");
    put("two/b.h", "#include \"../one/a.h\"\n#include \"../secret.h\"\n#include <link.h>\n");
    put("two/lib/common.h", "#define MACRO <WHERE/x.h>\n");
    put("secret.h", "SECRET\n");
    snprintf(path, sizeof path, "%s/two/link.h", dir);
    need(!symlink("../secret.h", path));
    snprintf(path, sizeof path, "%s/one/loop", dir);
    need(!symlink(".", path));
}

static int collect(Headers *h, const uint8_t *data, size_t size, const char *const **names,
                   const char *const **texts)
{
    int n = headers_collect(h, (const char *)data, size, names, texts);
    for (int i = 0; i < n; i++)
        need(*(*names)[i] && *(*names)[i] != '/' && !strstr((*texts)[i], "SECRET"));
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static Headers *old;
    Headers *fresh;
    const char *const *names, *const *texts, *const *old_names, *const *old_texts;
    if (!old) {
        make_tree();
        need(!headers_open(cuda, folders, "", &old, &err));
    }
    need(!headers_open(cuda, folders, "", &fresh, &err));
    int n = collect(fresh, data, size, &names, &texts);
    need(collect(old, data, size, &old_names, &old_texts) == n);
    for (int i = 0; i < n; i++)
        need(!strcmp(names[i], old_names[i]) && !strcmp(texts[i], old_texts[i]));
    need(!strcmp(headers_taken(fresh), headers_taken(old)) &&
         headers_none(fresh) == headers_none(old));
    headers_close(fresh);
    return 0;
}
