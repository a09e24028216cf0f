/* Includes AN_TEMPLATE twice: with REAL float and with REAL double. Inside, NAME(x) is x_f32 or x_f64, for the
 * template's own functions and for everything that has both forms (an_exp, an_row_load, …). No include
 * guard: used once a kernel. */
#define REAL float
#define NAME(x) x##_f32
#include AN_TEMPLATE
#undef REAL
#undef NAME
#define REAL double
#define NAME(x) x##_f64
#include AN_TEMPLATE
#undef REAL
#undef NAME
#undef AN_TEMPLATE
