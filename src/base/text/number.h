/* Numbers as text: strict, and the same in every locale. Needs no context. */
#ifndef AN_BASE_NUMBER_H
#define AN_BASE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>

/* A double in the shortest form that reads back to the same bits; inf, -inf, nan. Needs 32 bytes;
 * independent of the locale. */
void an_text_number(char *buffer, size_t capacity, double number);
/* The same with so many digits, at most 17. */
void an_text_rounded(char *buffer, size_t capacity, double number, int digits);

/* The decimal number that these characters are, with a point whatever the host's locale is; at most AN_LONGEST_NUMBER
 * of them. That they are a number, the caller has seen. */
enum { AN_LONGEST_NUMBER = 400 };
double an_text_double(const char *text, size_t length);

typedef enum an_number_result {
    AN_NUMBER_OK,
    AN_NUMBER_TEXT, /* it is no number */
    AN_NUMBER_RANGE /* it is one that is too large for a double, or has too many characters */
} an_number_result;

/* [+-] digits [. digits] [e [+-] digits], with a digit before or after the point; rounded to the nearest double. Needs
 * the library's floating-point environment. */
an_number_result an_number_read(const char *text, size_t length, double *number);

#endif
