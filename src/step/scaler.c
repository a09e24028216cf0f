/* The loss scaler of f16, like PyTorch's GradScaler. The scale is an input of the program, so it is an f32 number. */
#include "base/guard.h"
#include "base/status.h"
#include "step/structs.h"

static void update(an_scaler *scaler, bool finite) {
    if (!finite) {
        const float lower = (float)(scaler->scale * scaler->backoff);
        if (lower > 0) scaler->scale = (double)lower; /* from 0 it could never rise */
        scaler->good_steps = 0;
    } else if (++scaler->good_steps >= scaler->interval) {
        const float higher = (float)(scaler->scale * scaler->growth);
        if (__builtin_isfinite(higher)) scaler->scale = (double)higher;
        scaler->good_steps = 0;
    }
}

bool an_scaler_update(an_scaler *scaler, bool finite) {
    AN_GUARD;
    AN_NEED_OR(false, scaler);
    an_scaler own;
    if (an_scaler_read(NULL, &own, scaler) != AN_OK) return false;
    update(&own, finite);
    an_scaler_write(NULL, scaler, &own);
    return !finite;
}
