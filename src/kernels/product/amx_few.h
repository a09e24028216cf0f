/* Products on tiles with at most 16 rows, and with b as weights lie; or with at most 16 columns, and rows of a that
 * are dense. For amx_core.c. */
#ifndef AN_KERNELS_PRODUCT_AMX_FEW_H
#define AN_KERNELS_PRODUCT_AMX_FEW_H

#include "kernels/product/amx.h"

#define an_amx_few_applies AN_LEVELED(an_amx_few_applies)
#define an_amx_few_run AN_LEVELED(an_amx_few_run)
#define an_amx_few_more AN_LEVELED(an_amx_few_more)
#define an_amx_few_more_applies AN_LEVELED(an_amx_few_more_applies)

bool an_amx_few_applies(const an_amx_job *job);
void an_amx_few_run(const an_amx_job *job);

/* The products of a job after its first, whose b is bf16 as weights lie: 64 columns from `column` on are added to
 * the sums in tiles 0 to 3. `a` is where their steps of a begin. */
bool an_amx_few_more_applies(const an_amx_job *job);
void an_amx_few_more(const an_amx_job *job, int64_t column, const char *a);

#endif
