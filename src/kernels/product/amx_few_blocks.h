/* Products on tiles with at most 16 rows, and with b as weights lie, in blocks of q8_0. For amx_core.c. */
#ifndef AN_KERNELS_PRODUCT_AMX_FEW_BLOCKS_H
#define AN_KERNELS_PRODUCT_AMX_FEW_BLOCKS_H

#include "kernels/product/amx.h"

#define an_amx_few_blocks_applies AN_LEVELED(an_amx_few_blocks_applies)
#define an_amx_few_blocks_run AN_LEVELED(an_amx_few_blocks_run)

bool an_amx_few_blocks_applies(const an_amx_job *job);
void an_amx_few_blocks_run(const an_amx_job *job);

#endif
