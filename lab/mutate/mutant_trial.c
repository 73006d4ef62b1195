/* A source is compiled once: its reply is offered to the judgement that follows. */
#include "lab/mutate/mutant_trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eval/candidate/candidate.h"
#include "eval/compile/compile_client.h"
#include "eval/judge/judgement.h"
#include "eval/judge/loaded.h"

/* Lines that say where code comes from. */
static int is_debug(const char *line)
{
    line += strspn(line, " \t");
    return !strncmp(line, ".loc", 4) || !strncmp(line, ".file", 5) || !strncmp(line, "//", 2);
}

static void digest_code(const char *ptx, char digest[DIGEST_HEX])
{
    Digester d;
    Digest sum;
    digester_init(&d);
    while (*ptx && strncmp(ptx, "\t.section", 9)) {
        size_t n = strcspn(ptx, "\n");
        if (!is_debug(ptx)) digester_add(&d, ptx, n);
        ptx += n + (ptx[n] == '\n');
    }
    digester_finish(&d, &sum);
    digest_hex(&sum, digest);
}

static int compile(Evaluator *e, const Candidate *c, char digest[DIGEST_HEX], Error *err)
{
    const char **names = plan_kernel_names(&c->plan), *key;
    CompileResult code = {0};
    CompileRequest request = {evaluator_device(e)->arch, c->source, c->len,
                              c->plan.n_kernels,         names,     c->plan.n_ops > 0};
    int rc = compiler_run(e->machine.compiler, &request, &code, err);
    if (!rc && code.ok) {
        const Buffer *reply = compiler_reply(e->machine.compiler, &key);
        digest_code(code.ptx, digest);
        evaluator_offer(e, key, reply->data, reply->len);
    }
    if (!rc) rc = !code.ok;
    compile_result_release(&code);
    free(names);
    return rc;
}

int trial_code(Evaluator *e, const char *source, char digest[DIGEST_HEX], Error *err)
{
    Candidate c;
    Fault f;
    int rc = candidate_parse(source, strlen(source), 0, &c, &f);
    digest[0] = '\0';
    if (!rc && c.plan.n_kernels) rc = compile(e, &c, digest, err);
    candidate_release(&c);
    return rc;
}

int trial_judge(Evaluator *e, const char *task, const char *source, MutantResult *out, Error *err)
{
    Verdict v;
    evaluator_run(e, task, source, strlen(source), &v);
    Outcome o = v.outcome;
    snprintf(out->outcome, sizeof out->outcome, "%s", outcome_name(o));
    snprintf(out->message, sizeof out->message, "%.*s", (int)strcspn(v.message, "\n\t"), v.message);
    out->score = v.score;
    out->fate = o == OUTCOME_OK                                         ? MUTANT_OK
                : o == OUTCOME_COMPILE_ERROR || o == OUTCOME_PLAN_ERROR ? MUTANT_INVALID
                                                                        : MUTANT_KILLED;
    int rc = o == OUTCOME_EVALUATOR_ERROR ? error_set(err, v.error, "%s", v.message) : 0;
    verdict_release(&v);
    return rc;
}
