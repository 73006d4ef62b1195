/* A package: a candidate with its verdict and its compiled code, ready to be written in a form that
 * runs outside of Quern. Only a candidate whose verdict is `ok` becomes one. */
#ifndef EXPORT_PACKAGE_H
#define EXPORT_PACKAGE_H

#include "base/buffer.h"
#include "eval/judge/judgement.h"
#include "eval/judge/rivals.h"

enum { PACKAGE_MAX_ARCHS = 16, PACKAGE_MAX_NAME = 64 };

typedef struct {
    const char *name;   /* a C identifier: of the functions and the operator; NULL: the task's */
    const char *path;   /* the candidate's file; "-" is standard input */
    const char *task;   /* its name or folder */
    const char *device; /* where the verdict is made: "sim:h100", "cuda:0" */
    const char *archs;  /* "sm_80,sm_90"; NULL: the device's */
    const char *tasks_root; /* NULL: the default of taskset_load */
    const char *cache_dir;  /* compile cache; NULL: $QUERN_CACHE, else none */
    uint64_t seed;          /* of the judged inputs */
} PackageOptions;

/* The binary for one architecture. It runs on GPUs of the same major version and the same minor
 * version or a later one. */
typedef struct {
    char arch[16]; /* "sm_90" */
    int major, minor;
    void *cubin;
    size_t len;
} PackageCode;

typedef struct {
    char name[PACKAGE_MAX_NAME], date[16]; /* of the verdict, "2026-11-24" */
    Buffer source;
    Evaluator *evaluator; /* owns the task */
    const Task *task;
    Judgement judged; /* candidate, verdict, loaded code */
    PackageCode code[PACKAGE_MAX_ARCHS];
    int n_code;
} Package;

/* Judges and compiles the candidate. Returns 0; 1 when its verdict is not ok, with the verdict in
 * *out; -1. Release in every case. */
int package_make(const PackageOptions *opt, Package *out, Error *err);
void package_release(Package *p);

/* The smallest and the largest size of an axis in the task's workloads: the sizes for which the
 * candidate was checked or timed lie between. */
void package_axis_bounds(const Package *p, int axis, int64_t *low, int64_t *high);
/* The largest number of elements that a tensor has in a workload. */
size_t package_max_elements(const Package *p, const TaskTensor *x);

/* One argument of a launch. */
typedef enum { ARGUMENT_POINTER, ARGUMENT_INTEGER, ARGUMENT_FLOAT, ARGUMENT_MAP } ArgumentKind;
typedef struct {
    ArgumentKind kind;
    unsigned bytes; /* of the kernel's parameter: 1, 2, 4, 8, or those of a map */
    PlanText name;  /* ARGUMENT_POINTER: the tensor or buffer */
    PlanText text; /* an expression: the element where the pointer starts (0: none), or the value */
    size_t element;     /* bytes of an element of the tensor or buffer */
    double value;       /* ARGUMENT_FLOAT, when text.len is 0 */
    const PlanMap *map; /* ARGUMENT_MAP; name, text and element are those of what it maps */
    TensorMapType map_type;
    const char *const
        *shape;     /* of the tensor, where the map has no sizes of its own; NULL: a buffer */
    PlanText count; /* of the buffer's elements, then */
} PackageArgument;

/* An error that names the candidate's first `//@ op`, when it has one: this form cannot run it. */
int package_refuse_ops(const Package *p, const char *form, Error *err);

/* Argument i of a step that launches a kernel. */
void package_argument(const Package *p, const PlanStep *s, int i, PackageArgument *out);

/* Each writes its files below dir, which is made. dir must not exist or be empty. */
int package_write_torch(const Package *p, const char *dir, Error *err);
int package_write_c(const Package *p, const char *dir, Error *err);
int package_write_flashinfer(const Package *p, const char *dir, Error *err);

/* Files of a package, for the writers. */
int package_file(const char *dir, const char *name, const void *data, size_t len, Error *err);
enum { PACKAGE_VERDICT_TEXT = 256 + RIVALS_TEXT };
/* "2.9x eager measured on NVIDIA H200, 95% from 2.87 to 2.93; 1.2x torch.compile (1.18 to 1.22)" and the
 * like, without the date. */
void package_verdict_text(const Package *p, char out[PACKAGE_VERDICT_TEXT]);
/* Appends what sizes it takes: "rows from 1 to 64 and cols from 2 to 24, where cols % 8 == 0, with ...". */
void package_accepts(const Package *p, Buffer *out);

#endif
