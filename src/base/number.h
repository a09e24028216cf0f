/* Numbers in text files: strict, and the same in every locale. */
#ifndef AN_BASE_NUMBER_H
#define AN_BASE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>

typedef enum an_number_result {
    AN_NUMBER_OK,
    AN_NUMBER_TEXT, /* it is no number */
    AN_NUMBER_RANGE /* it is one that is too large for a double, or has too many characters */
} an_number_result;

/* [+-] digits [. digits] [e [+-] digits], with a digit before or after the point; rounded to the nearest double. Needs the library's
 * floating-point environment. */
an_number_result an_number_read(const char *text, size_t length, double *number);

#endif
