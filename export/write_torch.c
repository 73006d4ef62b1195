/* Writes a package as a Python package: the files of share/export/torch as they are, and package.json,
 * from which they launch. Nothing in it is compiled at run time. */
#include <stdio.h>
#include <stdlib.h>

#include "export/description.h"

static const char *const files[] = {"__init__.py", "calls.py", "driver.py",   "graph.py",
                                    "held.py",     "lines.py", "module.py",   "pairs.py",
                                    "plan.py",     "row.py",   "torch_op.py", "test_package.py"};

static int write_binaries(const Package *p, const char *dir, Error *err)
{
    for (int i = 0; i < p->n_code; i++) {
        char name[40];
        snprintf(name, sizeof name, "kernels_%s.cubin", p->code[i].arch);
        if (package_file(dir, name, p->code[i].cubin, p->code[i].len, err)) return -1;
    }
    return 0;
}

int package_write_torch(const Package *p, const char *dir, Error *err)
{
    json_t *description = package_describe(p, err);
    if (!description || package_write_json(dir, "package.json", description, err) ||
        write_binaries(p, dir, err))
        return -1;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char name[64];
        size_t len;
        snprintf(name, sizeof name, "torch/%s", files[i]);
        char *content = package_template(name, &len, err);
        int rc = content ? package_file(dir, files[i], content, len, err) : -1;
        free(content);
        if (rc) return -1;
    }
    return 0;
}
