/* The pictures of a folder, in the order of their names. Names are compared byte by byte, so the order is
 * the same in every locale. */
#ifndef AN_DATA_PICTURES_FOLDER_H
#define AN_DATA_PICTURES_FOLDER_H

#include "data/dataset.h"

typedef struct an_picture_entry {
    const char *folder, *name; /* folder "": the file lies in the root */
    int64_t class;
} an_picture_entry;

typedef struct an_picture_list {
    an_context *ctx;
    an_arena arena; /* of everything but the entries */
    const char *root;
    an_picture_entry *entries;
    size_t count, capacity;
    const char **classes; /* names of the folders, sorted; NULL: there are none */
    int64_t class_count;
    int64_t skipped;           /* what is no picture, or hidden */
    const char *first_skipped; /* its path */
} an_picture_list;

/* One folder for every class; of each class the part from `begin` to `end`. `like`, if not NULL, numbers them. */
an_status an_picture_list_classes(an_picture_list *list, an_context *ctx, const char *root, double begin, double end,
                                  const an_dataset *like);
/* A picture, or the pictures that lie in a folder. */
an_status an_picture_list_plain(an_picture_list *list, an_context *ctx, const char *root, double begin, double end);
void an_picture_list_destroy(an_picture_list *list);

/* "ROOT/FOLDER/NAME", cut off if it is too long. */
void an_picture_list_path(const an_picture_list *list, int64_t index, an_note path);

#endif
