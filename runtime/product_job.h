/* Products from operands to committed results: what dot, matmul and gradients have in common. */
#ifndef JK_RUNTIME_PRODUCT_JOB_H
#define JK_RUNTIME_PRODUCT_JOB_H

#include "runtime/budget.h"
#include "runtime/operand.h"
#include "runtime/pipeline.h"
#include "runtime/product_types.h"
#include "runtime/resume.h"

/* A product. Its operation fills the first part, jk_job_plan the second, jk_jobs_run the rest. */
typedef struct jk_job {
    jask_context *ctx;                             /* borrowed */
    const jask_array *input_a, *input_b, *input_c; /* those that are read; else NULL */
    jk_matrix a, b, c;                             /* c.file NULL unless it is read */
    jk_batches batches;                            /* with the steps of all arrays */
    jk_batches summed;            /* over which a gradient is a sum: a and b are of parts then, */
    jk_parts parts[2];            /* these */
    const struct jk_job *adds_to; /* an earlier product of the operation is C; NULL: none is */
    bool backward;                /* one of the products of a gradient */
    int64_t m, n, k;
    jk_product_types types;
    double alpha, beta;
    int ndim; /* of the result */
    int64_t shape[JASK_MAX_DIMS];
    const char *output; /* NULL: a nameless array in scratch */
    bool resumes;

    jk_budget budget;
    size_t block_bytes;
    jk_machine machine; /* that the plan was made for */
    jk_plan plan;
    const jk_joint
        *joint; /* instead: this job and the next, the gradients for A and B, in one; NULL */

    jask_array *result;
    jask_array *partial; /* of a joint plan: unfinished sums, where the result is of another type */
    jk_resume *resume;   /* NULL unless asked for */
    jk_trace *trace;     /* the operation's, or NULL */
    jk_run_stats stats;
} jk_job;

jask_status jk_job_plan(jk_job *job, jask_error *err);
/* The plan for the API, with what a larger budget would do. */
jask_status jk_job_show_plan(jk_job *job, jask_plan **out, jask_error *err);

/* Make both gradients of a product, whose jobs are planned, by one joint plan where that is better:
 * then it is in *out, for as long as the jobs run. The problem's elements, and what is added to, are
 * set here. */
void jk_jobs_join(jk_job jobs[2], const jk_joint_problem *problem, jk_joint *out);

/* What the products of one operation are to be reported as. */
typedef struct jk_job_report {
    const char *op;
    jask_report *report; /* NULL: to nobody */
    const char *trace;   /* path of a timeline to write; NULL: none */
} jk_job_report;

/* Make the planned products, one after the other, and give their results their names, all or none.
 * Results with a place in out_arrays (NULL, or an entry NULL, for those that nobody takes) go there.
 */
jask_status jk_jobs_run(jk_job *jobs, int count, const jk_job_report *how, jask_array ***out_arrays,
                        jask_error *err);

/* product_report.c */

/* The plans of one operation as one, for the API. */
void jk_jobs_describe(const jk_job *jobs, int count, jask_plan_info *out);
void jk_jobs_log_plan(const jk_job *job);
void jk_jobs_log_end(const jk_job *jobs, int count, jask_status st, const jask_error *err);
jask_status jk_jobs_tell(const jk_job *jobs, int count, double fraction, double seconds,
                         jask_error *err);

typedef struct jk_job_times {
    double seconds, commit_seconds;
} jk_job_times;

void jk_jobs_report(const jk_job *jobs, int count, const char *op, const jk_job_times *times,
                    jask_report *out);

bool jk_job_tf32(const jk_job *job);

#endif
