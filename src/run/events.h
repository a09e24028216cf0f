/* A TensorBoard event file: records of scalars, appended. The format is TFRecord framing around protobuf Events. */
#ifndef AN_RUN_EVENTS_H
#define AN_RUN_EVENTS_H

#include "base/memory.h"

typedef struct an_events an_events;

/* Begins `folder`/events.out.tfevents.<seconds>.<host>; `seconds` is the wall clock. */
an_status an_events_create(an_events **events, an_context *ctx, const char *folder, double seconds);
/* What was written so far is in the file after each call. */
an_status an_events_scalar(an_events *events, double seconds, int64_t step, const char *tag, double value);
void an_events_destroy(an_events **events);

/* One record, framed, into `out` (AN_EVENT_BYTES of it); its length. A NULL tag makes the record that begins a file. */
enum { AN_EVENT_BYTES = 256, AN_EVENT_TAG = 128 };
size_t an_event_encode(double seconds, int64_t step, const char *tag, double value, unsigned char *out);

#endif
