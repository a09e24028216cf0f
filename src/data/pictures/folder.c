#include "data/pictures/folder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/files/file.h"
#include "data/pictures/picture.h"

/* ---- the entries of a folder ---- */

typedef struct {
    const char **names; /* in the list's arena */
    size_t count, capacity;
} name_list;

typedef enum { IS_OTHER, IS_FILE, IS_FOLDER } entry_kind;

static entry_kind kind_of(const char *path) {
    struct stat about;
    if (stat(path, &about) != 0) return IS_OTHER; /* a link that leads nowhere, for one */
    return S_ISDIR(about.st_mode) ? IS_FOLDER : S_ISREG(about.st_mode) ? IS_FILE : IS_OTHER;
}

/* Most pictures have one of these endings. To open all files of a large folder only to see what they are would take
 * minutes where files lie on another machine; what such a file really is, reading it shows. */
static bool has_usual_ending(const char *name) {
    static const char *const endings[] = {".png", ".jpg", ".jpeg"};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++)
        if (strcasecmp(dot, endings[i]) == 0) return true;
    return false;
}

static bool is_wanted(const char *path, const char *name, entry_kind wanted) {
    return name[0] != '.' && kind_of(path) == wanted &&
           (wanted == IS_FOLDER || has_usual_ending(name) || an_picture_is(path));
}

static an_status skip(an_picture_list *l, const char *path) {
    if (l->skipped++ > 0) return AN_OK;
    return an_arena_string(&l->arena, &l->first_skipped, path, strlen(path));
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b); /* compares unsigned bytes */
}

static an_status add_name(an_picture_list *l, name_list *names, const char *folder, const char *name,
                          entry_kind wanted) {
    an_context *ctx = l->ctx;
    char path[AN_FILE_PATH];
    if (!strcmp(name, ".") || !strcmp(name, "..")) return AN_OK;
    if (!an_path_join(path, folder, name))
        return AN_ERROR(ctx, AN_ERR_FILE, "%s: the path of '%s' in it has more than %d bytes", folder, name,
                        (int)AN_FILE_PATH - 1);
    if (!is_wanted(path, name, wanted)) return skip(l, path);
    AN_TRY_RETURN(an_grow(ctx, (void **)&names->names, &names->capacity, names->count + 1, sizeof *names->names));
    return an_arena_string(&l->arena, &names->names[names->count++], name, strlen(name));
}

static an_status list_names(an_picture_list *l, name_list *names, const char *folder, entry_kind wanted) {
    an_status status;
    an_context *ctx = l->ctx;
    const struct dirent *entry;
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    names->count = 0;
    DIR *stream = opendir(folder);
    if (!stream) AN_TRY(an_note_raise(ctx, an_file_failed(folder, "the folder cannot be opened", note), note));
    for (;;) {
        AN_TRY(an_note_raise(ctx, an_folder_next(stream, folder, &entry, note), note));
        if (!entry) break;
        AN_TRY(add_name(l, names, folder, entry->d_name, wanted));
    }
    if (names->count > 1) qsort(names->names, names->count, sizeof *names->names, compare_names);
    status = AN_OK;
fail:
    if (stream) closedir(stream);
    return status;
}

static void release_names(an_context *ctx, name_list *names) {
    an_release(ctx, (void **)&names->names, names->capacity, sizeof *names->names);
}

/* ---- the list ---- */

static an_status begin_list(an_picture_list *l, an_context *ctx, const char *root) {
    *l = (an_picture_list){.ctx = ctx};
    an_arena_init(&l->arena, ctx);
    if (!root || !*root) return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the folder of the pictures has no name");
    return an_arena_string(&l->arena, &l->root, root, strlen(root));
}

static an_status add_part(an_picture_list *l, const name_list *names, const char *folder, int64_t class, double begin,
                          double end) {
    an_context *ctx = l->ctx;
    int64_t first, last;
    AN_TRY_RETURN(an_data_part(ctx, begin, end, (int64_t)names->count, &first, &last));
    const size_t count = l->count + (size_t)(last - first);
    AN_TRY_RETURN(an_grow(ctx, (void **)&l->entries, &l->capacity, count, sizeof *l->entries));
    for (int64_t i = first; names->names && i < last; i++)
        l->entries[l->count++] = (an_picture_entry){.folder = folder, .name = names->names[i], .class = class};
    return AN_OK;
}

/* The number of a class, from its name. */
static an_status number_class(an_picture_list *l, const char *name, const an_dataset *like, int64_t *class) {
    an_context *ctx = l->ctx;
    for (*class = 0; *class < like->class_count; ++*class)
        if (strcmp(like->class_names[*class], name) == 0) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_UNKNOWN,
                    "%s/%s: the training data has no class '%s'; class folders must have the names of its folders",
                    l->root, name, name);
}

static an_status add_class(an_picture_list *l, name_list *files, int64_t number, double begin, double end,
                           const an_dataset *like) {
    an_context *ctx = l->ctx;
    char path[AN_FILE_PATH];
    const char *name = l->classes[number];
    int64_t class = number;
    if (like) AN_TRY_RETURN(number_class(l, name, like, &class));
    if (!an_path_join(path, l->root, name))
        return AN_ERROR(ctx, AN_ERR_FILE, "%s: the path is too long", l->root); /* add_name has seen that it is not */
    AN_TRY_RETURN(list_names(l, files, path, IS_FILE));
    if (files->count == 0)
        return AN_ERROR(ctx, AN_ERR_FILE, "%s: the folder contains no PNG or JPEG files; remove it, or put some there",
                        path);
    return add_part(l, files, name, class, begin, end);
}

static an_status keep_classes(an_picture_list *l, const name_list *folders) {
    an_context *ctx = l->ctx;
    if (folders->count == 0)
        return AN_ERROR(ctx, AN_ERR_FILE,
                        "%s: the folder contains no folders; pictures of each class must lie in a folder of their own, "
                        "whose name is the name of the class",
                        l->root);
    AN_TRY_RETURN(an_arena_alloc(&l->arena, (void **)&l->classes, folders->count, sizeof *l->classes));
    memcpy(l->classes, folders->names, folders->count * sizeof *l->classes);
    l->class_count = (int64_t)folders->count;
    return AN_OK;
}

static an_status check_count(const an_picture_list *l) {
    an_context *ctx = l->ctx;
    if (l->count > 0) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: this part of the folder contains no pictures", l->root);
}

an_status an_picture_list_classes(an_picture_list *l, an_context *ctx, const char *root, double begin, double end,
                                  const an_dataset *like) {
    an_status status;
    name_list names = {.count = 0};
    AN_TRY(begin_list(l, ctx, root));
    AN_TRY(list_names(l, &names, l->root, IS_FOLDER));
    AN_TRY(keep_classes(l, &names));
    for (int64_t i = 0; i < l->class_count; i++) AN_TRY(add_class(l, &names, i, begin, end, like));
    AN_TRY(check_count(l));
    status = AN_OK;
fail:
    release_names(ctx, &names);
    if (status != AN_OK) an_picture_list_destroy(l);
    return status;
}

an_status an_picture_list_plain(an_picture_list *l, an_context *ctx, const char *root, double begin, double end) {
    an_status status;
    name_list names = {.count = 0};
    AN_TRY(begin_list(l, ctx, root));
    if (kind_of(l->root) == IS_FOLDER) {
        AN_TRY(list_names(l, &names, l->root, IS_FILE));
        AN_TRY(add_part(l, &names, "", 0, begin, end));
    } else {
        AN_TRY(an_grow(ctx, (void **)&l->entries, &l->capacity, 1, sizeof *l->entries));
        l->entries[l->count++] = (an_picture_entry){.folder = "", .name = ""};
    }
    AN_TRY(check_count(l));
    status = AN_OK;
fail:
    release_names(ctx, &names);
    if (status != AN_OK) an_picture_list_destroy(l);
    return status;
}

void an_picture_list_destroy(an_picture_list *l) {
    an_release(l->ctx, (void **)&l->entries, l->capacity, sizeof *l->entries);
    an_arena_destroy(&l->arena);
}

void an_picture_list_path(const an_picture_list *l, int64_t index, an_note path) {
    const an_picture_entry *e = &l->entries[index];
    an_note_write(path, "%s%s%s%s%s", l->root, *e->folder ? "/" : "", e->folder, *e->name ? "/" : "", e->name);
}
