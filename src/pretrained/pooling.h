/* How a folder of sentence-transformers makes one row of the hidden states of a sentence's tokens. */
#ifndef AN_PRETRAINED_POOLING_H
#define AN_PRETRAINED_POOLING_H

#include "pretrained/description.h"

/* States AN_FACT_POOLING if the folder has modules.json or 1_Pooling/config.json. Modules and kinds of pooling that
 * no model here has are noted as problems. */
an_status an_pooling_read(an_description *d, const char *folder);

#endif
