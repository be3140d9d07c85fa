/* Products that survive a kill: the result is made in a file with a name, and a journal beside it
 * says which of its tiles are finished. Tiles are finished in the plan's order, so "the first so
 * many" says it all. */
#ifndef JK_RUNTIME_RESUME_H
#define JK_RUNTIME_RESUME_H

#include "runtime/pipeline.h"

typedef struct jk_resume jk_resume;

/* What a product is, for the journal: lines "name: value\n", of all that decides the bits of the
 * result and of what the inputs are. To be freed. */
jask_status jk_resume_facts(const jk_product *product, char **out, jask_error *err);

/* Open the result `target` of `product` (whose d, resume and first_tile are not looked at), going
 * on from an earlier run's where there is one. ARG when that was of other inputs or another plan,
 * when another run is making the same result, or when the target is one of the inputs; FORMAT for a
 * damaged journal. `product` is not kept. */
jask_status jk_resume_open(jask_context *ctx, const jk_product *product, const char *target,
                           jask_array **out_d, jk_resume **out, jask_error *err);

/* Tiles that were found finished. */
int64_t jk_resume_tiles(const jk_resume *resume);

/* A warning, or "". */
const char *jk_resume_note(const jk_resume *resume);

/* All bytes of `tile` have been written to the file. From one thread, in order. They are recorded
 * later and by another thread, once they are durable: an error may be that of earlier tiles. */
jask_status jk_resume_tile_done(jk_resume *resume, int64_t tile, jask_error *err);

/* End recording, and give its error if it had one: the system tells an error of the disk once, so a
 * sync that comes after it may well succeed. To be called before the result is committed. */
jask_status jk_resume_settle(jk_resume *resume, jask_error *err);

/* The result has its name: nothing is left to resume. */
void jk_resume_finish(jk_resume *resume);

/* Without jk_resume_finish before, keep what is finished, and say so in `err` (NULL: no failure to
 * tell of); where nothing is, leave nothing. To be called before d is closed. NULL allowed. */
void jk_resume_close(jk_resume *resume, jask_error *err);

#endif
