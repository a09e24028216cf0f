/* The loss scaler of f16, as PyTorch's GradScaler. The scale is a number of the program, so it is one of f32. */
#include "anneal/train.h"

#include "base/guard.h"
#include "base/status.h"

static const double default_growth = 2, default_backoff = 0.5;
enum { DEFAULT_INTERVAL = 2000 };

static bool update(an_scaler *scaler, bool finite) {
    const int64_t interval = scaler->interval > 0 ? scaler->interval : DEFAULT_INTERVAL;
    if (scaler->scale == 0) scaler->scale = AN_FIRST_SCALE;
    if (!finite) {
        const float lower = (float)(scaler->scale * (scaler->backoff > 0 ? scaler->backoff : default_backoff));
        if (lower > 0) scaler->scale = (double)lower; /* from 0 it could never rise */
        scaler->good_steps = 0;
        return true;
    }
    if (++scaler->good_steps < interval) return false;
    const float higher = (float)(scaler->scale * (scaler->growth > 0 ? scaler->growth : default_growth));
    if (__builtin_isfinite(higher)) scaler->scale = (double)higher;
    scaler->good_steps = 0;
    return false;
}

bool an_scaler_update(an_scaler *scaler, bool finite) {
    AN_GUARD;
    AN_NEED_OR(false, scaler);
    return update(scaler, finite);
}
