/* Square roots by type, for templates; correctly rounded at every level of instructions. */
#ifndef AN_STEP_OPTIMIZERS_ROOT_H
#define AN_STEP_OPTIMIZERS_ROOT_H

static inline float an_square_root_f32(float x) {
    return __builtin_sqrtf(x);
}
static inline double an_square_root_f64(double x) {
    return __builtin_sqrt(x);
}

#endif
