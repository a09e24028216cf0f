/* Writes the files of a save straight from the state, a chunk at a time, for a run that has no memory for a copy of it.
 * Training waits until the files are written, as the state must not change before. */
#ifndef AN_STORE_STREAM_H
#define AN_STORE_STREAM_H

#include "store/write_inside.h"

/* Memory for a chunk of these files, wherever the memory begins; 0: there are no files. */
size_t an_save_window_bytes(const an_save_layout *layout, an_file_range files, size_t chunk);

/* Writes, hashes and syncs the parts of the job, one after another. A rank whose files cannot be written goes on
 * sending what others need. Collective over the ranks of the route, and on the thread that may call MPI. */
an_status an_save_stream_parts(const an_writing *writing);

#endif
