#define _GNU_SOURCE /* RTLD_DEFAULT; NOLINT(bugprone-reserved-identifier) */
#include "comm/load.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/context.h"
#include "base/system/plugin.h"
#include "base/system/plugins.h"

enum { LIBRARY_TEXT = 8192, MOST_NAME = 64 }; /* MPI's MPI_MAX_LIBRARY_VERSION_STRING is 8192 at most */

/* The MPI libraries that there are plugins for. */
typedef struct {
    const char *id;   /* as in the plugin's file name */
    const char *name; /* with which its text of versions begins */
    const char *file; /* of the library itself */
} library;
static const library libraries[] = {{"openmpi", "Open MPI", "libmpi.so.40"}, {"mpich", "MPICH", "libmpich.so.12"}};
enum { LIBRARIES = sizeof libraries / sizeof *libraries };

const char *an_mpi_version(void) {
    return AN_MPI_VERSIONS;
}

/* Every process looks, as every process loads. */
static an_status open_plugin(const library *l, const an_comm_plugin **plugin) {
    an_context *const ctx = NULL;
    const void *record = NULL;
    char name[MOST_NAME], text[AN_MESSAGE_BYTES];
    snprintf(name, sizeof name, "mpi-%s", l->id);
    const an_status status =
        an_plugin_open(name, AN_COMM_PLUGIN, (an_plugin_head){sizeof **plugin, AN_COMM_PLUGIN_VERSION}, &record,
                       (an_note){text, sizeof text});
    if (status == AN_ERR_FILE)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED, "the plugin for %s: %s. This anneal was built with plugins for: %s",
                        l->name, text, *an_mpi_version() ? an_mpi_version() : "no MPI");
    if (status != AN_OK) return AN_ERROR(ctx, status, "%s", text);
    *plugin = record;
    return AN_OK;
}

/* ---- which one ---- */

/* The text that the process's MPI says about itself, as far as its first line. A host may have loaded its MPI where
 * other libraries do not see it; then the file tells. */
static bool find_loaded(char text[LIBRARY_TEXT]) {
    int length = 0;
    int (*get)(char *, int *) = NULL;
    void *symbol = dlsym(RTLD_DEFAULT, "MPI_Get_library_version");
    for (int i = 0; !symbol && i < LIBRARIES; i++) {
        void *file = dlopen(libraries[i].file, RTLD_LAZY | RTLD_NOLOAD);
        if (file) symbol = dlsym(file, "MPI_Get_library_version");
    }
    if (!symbol) return false;
    memcpy(&get, &symbol, sizeof get);
    memset(text, 0, LIBRARY_TEXT);
    (void)get(text, &length);
    text[LIBRARY_TEXT - 1] = 0;
    text[strcspn(text, "\r\n\t,")] = 0;
    return true;
}

static an_status plugin_of_process(const an_comm_plugin **plugin) {
    an_context *const ctx = NULL;
    char text[LIBRARY_TEXT];
    if (!find_loaded(text))
        return AN_ERROR(ctx, AN_ERR_STATE,
                        "this program has no MPI library loaded, so it has no communicator that anneal could use");
    for (int i = 0; i < LIBRARIES; i++)
        if (!strncmp(text, libraries[i].name, strlen(libraries[i].name))) return open_plugin(&libraries[i], plugin);
    return AN_ERROR(ctx, AN_ERR_UNSUPPORTED,
                    "this program uses the MPI library '%.*s'; anneal has plugins for Open MPI and MPICH", MOST_NAME,
                    text);
}

static an_status plugin_by_name(const char *id, const an_comm_plugin **plugin) {
    an_context *const ctx = NULL;
    for (int i = 0; i < LIBRARIES; i++)
        if (!strcmp(id, libraries[i].id)) return open_plugin(&libraries[i], plugin);
    return AN_ERROR(ctx, AN_ERR_UNKNOWN, "there is no MPI library '%.*s' for anneal: it is openmpi or mpich", MOST_NAME,
                    id);
}

/* ---- what programs call ---- */

an_status an_comm_create_mpi(an_comm **comm, int handle) {
    an_context *const ctx = NULL;
    const an_comm_plugin *plugin;
    char note[AN_COMM_NOTE] = "";
    *comm = NULL;
    AN_TRY_RETURN(plugin_of_process(&plugin));
    const an_status status = plugin->create(comm, handle, note);
    return status == AN_OK ? AN_OK : AN_ERROR(ctx, status, "%s", note);
}

an_status an_comm_start(an_comm **comm, const char *mpi) {
    AN_NEED_IN(NULL, comm, mpi);
    an_context *const ctx = NULL;
    const an_comm_plugin *plugin;
    char note[AN_COMM_NOTE] = "";
    *comm = NULL;
    AN_TRY_RETURN(plugin_by_name(mpi, &plugin));
    const an_status status = plugin->start(comm, note);
    return status == AN_OK ? AN_OK : AN_ERROR(ctx, status, "%s", note);
}

an_status an_comm_finish(an_comm **comm, const char *mpi) {
    AN_NEED_IN(NULL, comm, mpi);
    an_context *const ctx = NULL;
    const an_comm_plugin *plugin;
    char note[AN_COMM_NOTE] = "";
    if (*comm) (*comm)->destroy(comm);
    AN_TRY_RETURN(plugin_by_name(mpi, &plugin));
    const an_status status = plugin->finish(note);
    return status == AN_OK ? AN_OK : AN_ERROR(ctx, status, "%s", note);
}
