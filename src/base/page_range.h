/* Pages of the grid that parameters, gradients and moments lie on (AN_PAGE elements each, anneal/plan.h). */
#ifndef AN_BASE_PAGE_RANGE_H
#define AN_BASE_PAGE_RANGE_H

#include <stdint.h>

/* Pages begin … end - 1. */
typedef struct an_page_range {
    int64_t begin, end;
} an_page_range;

#endif
