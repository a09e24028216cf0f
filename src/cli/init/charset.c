/* Texts that are not UTF-8 are refused, with what they look like and how to convert them. */
#include <glob.h>
#include <string.h>

#include "base/files/regular.h"
#include "base/text/charset.h"
#include "cli/init/init.h"

/* A file that is compressed is not looked into; names in it that are not UTF-8 are refused when it is read. */
static an_charset find_charset(const char *path) {
    static const char gzip[] = {0x1f, (char)0x8b};
    enum { READ = 1 << 16 };
    static char bytes[READ];
    an_charset charset = {0};
    FILE *file = an_regular_read(path);
    for (size_t length; file && !charset.name && (length = fread(bytes, 1, sizeof bytes, file)) > 0;) {
        if (charset.bytes == 0 && length >= sizeof gzip && !memcmp(bytes, gzip, sizeof gzip)) break;
        an_charset_see(&charset, bytes, length);
    }
    an_charset_finish(&charset);
    if (file) fclose(file);
    return charset;
}

static int check_file(const init_found *f, const char *path) {
    const an_charset c = find_charset(path);
    if (!c.name) return CLI_DONE;
    char place[64] = "";
    if (strncmp(c.name, "UTF", 3) != 0)
        snprintf(place, sizeof place, "line %lld: the byte 0x%02x is not UTF-8; ", (long long)c.line, c.byte);
    return cli_misuse(f->call, "%s: %sthis looks like %s; convert it to UTF-8: iconv -f %s -t UTF-8 \"%s\" > utf8.txt",
                      path, place, c.name, c.name, path);
}

int init_check_charset(const init_found *f) {
    glob_t found;
    int code = CLI_DONE;
    if (!strpbrk(f->data, "*?[")) return check_file(f, f->data);
    if (glob(f->data, 0, NULL, &found) != 0) return CLI_DONE; /* which reading it will say */
    for (size_t i = 0; i < found.gl_pathc && code == CLI_DONE; i++) code = check_file(f, found.gl_pathv[i]);
    globfree(&found);
    return code;
}
