#include "base/files/foreign.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/files/regular.h"

enum { EXCEL, OLD_EXCEL, OPEN_DOCUMENT, PARQUET, FEATHER, ORC, HDF5, TORCH, PICKLE, SQLITE, KINDS };

#define PANDAS(read) "python3 -c \"import pandas; pandas." read ".to_csv('data.csv', index=False)\""
#define LIBREOFFICE "libreoffice --headless --convert-to csv FILE, or "

static const an_foreign kinds[KINDS] = {
    [EXCEL] = {.kind = "a workbook of Excel", .advice = LIBREOFFICE PANDAS("read_excel('FILE')")},
    [OLD_EXCEL] = {.kind = "a workbook of Excel before 2007", .advice = LIBREOFFICE PANDAS("read_excel('FILE')")},
    [OPEN_DOCUMENT] = {.kind = "a spreadsheet of LibreOffice", .advice = LIBREOFFICE PANDAS("read_excel('FILE')")},
    [PARQUET] = {.kind = "a Parquet file", .advice = PANDAS("read_parquet('FILE')")},
    [FEATHER] = {.kind = "a Feather (Arrow) file", .advice = PANDAS("read_feather('FILE')")},
    [ORC] = {.kind = "an ORC file", .advice = PANDAS("read_orc('FILE')")},
    [HDF5] = {.kind = "an HDF5 file", .advice = "data: {train: {type: hdf5, path: FILE}}", .is_read = true},
    [TORCH] = {.kind = "a file of PyTorch",
               .advice = "python3 -c \"import torch, numpy; d = torch.load('FILE'); numpy.savez('data.npz', "
                         "**{k: v.numpy() for k, v in d.items()})\""},
    [PICKLE] = {.kind = "a pickle of Python", .advice = PANDAS("read_pickle('FILE')")},
    [SQLITE] = {.kind = "a database of SQLite",
                .advice = "sqlite3 -csv -header FILE \"SELECT * FROM TABLE\" > data.csv"},
};

/* Control characters, which no text has. */
static bool is_binary(const char *bytes, size_t length) {
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)bytes[i] < ' ' && (bytes[i] == 0 || !strchr("\t\n\v\f\r\33", bytes[i]))) return true;
    return false;
}

static bool has(const char *bytes, size_t length, const char *word) {
    const size_t wanted = strlen(word);
    for (size_t at = 0; at + wanted <= length; at++)
        if (!memcmp(bytes + at, word, wanted)) return true;
    return false;
}

/* A zip archive, by the names of its first files. */
static const an_foreign *find_in_archive(const char *bytes, size_t length) {
    static const struct {
        const char *word;
        int kind;
    } words[] = {{"opendocument.spreadsheet", OPEN_DOCUMENT},
                 {"[Content_Types].xml", EXCEL},
                 {"xl/", EXCEL},
                 {"data.pkl", TORCH}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (has(bytes, length, words[i].word)) return &kinds[words[i].kind];
    return NULL;
}

static const an_foreign *find_by_content(const char *bytes, size_t length) {
    static const struct {
        const char *begin;
        size_t length;
        int kind;
    } begins[] = {{"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", 8, OLD_EXCEL},
                  {"PAR1", 4, PARQUET},
                  {"ARROW1", 6, FEATHER},
                  {"FEA1", 4, FEATHER},
                  {"ORC", 3, ORC},
                  {"\x89HDF\r\n\x1a\n", 8, HDF5},
                  {"SQLite format 3", 16, SQLITE},
                  {"\x80\2", 2, PICKLE},
                  {"\x80\3", 2, PICKLE},
                  {"\x80\4", 2, PICKLE},
                  {"\x80\5", 2, PICKLE}};
    if (length >= 4 && !memcmp(bytes, "PK\3\4", 4)) return find_in_archive(bytes, length);
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (length >= begins[i].length && !memcmp(bytes, begins[i].begin, begins[i].length))
            return &kinds[begins[i].kind];
    return NULL;
}

static const an_foreign *find_by_name(const char *path) {
    static const struct {
        const char *end;
        int kind;
    } ends[] = {{".xlsx", EXCEL},      {".xlsm", EXCEL},      {".xls", OLD_EXCEL}, {".ods", OPEN_DOCUMENT},
                {".parquet", PARQUET}, {".feather", FEATHER}, {".arrow", FEATHER}, {".orc", ORC},
                {".h5", HDF5},         {".hdf5", HDF5},       {".pt", TORCH},      {".pth", TORCH},
                {".pkl", PICKLE},      {".pickle", PICKLE},   {".sqlite", SQLITE}};
    const size_t length = strlen(path);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const size_t end = strlen(ends[i].end);
        if (length > end && !strcasecmp(path + length - end, ends[i].end)) return &kinds[ends[i].kind];
    }
    return NULL;
}

const an_foreign *an_foreign_find(const char *path) {
    enum { LOOKED_AT = 4096 };
    char bytes[LOOKED_AT];
    FILE *file = an_regular_read(path);
    if (!file) return NULL;
    const size_t length = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    if (!is_binary(bytes, length)) return NULL; /* a text, whatever it is called */
    const an_foreign *found = find_by_content(bytes, length);
    return found ? found : find_by_name(path);
}

/* A path that a shell and Python read as it is, or else FILE. */
static const char *plain_path(const char *path) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-";
    enum { LONGEST = 100 };
    const size_t length = strlen(path);
    return strspn(path, letters) == length && length <= LONGEST && *path != '-' ? path : "FILE";
}

an_foreign_text an_foreign_describe(const an_foreign *foreign, const char *path) {
    static const char word[] = "FILE";
    an_foreign_text made;
    const char *name = plain_path(path), *at = foreign->advice, *mark;
    size_t used = (size_t)snprintf(made.text, sizeof made.text, "this is %s, which %s: ", foreign->kind,
                                   foreign->is_read ? "a config reads" : "anneal does not read; convert it");
    for (; (mark = strstr(at, word)) && used < sizeof made.text; at = mark + sizeof word - 1)
        used += (size_t)snprintf(made.text + used, sizeof made.text - used, "%.*s%s", (int)(mark - at), at, name);
    if (used < sizeof made.text) snprintf(made.text + used, sizeof made.text - used, "%s", at);
    return made;
}
