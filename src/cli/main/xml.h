/* Writes untrusted text to an XML file. */
#ifndef AN_CLI_MAIN_XML_H
#define AN_CLI_MAIN_XML_H

#include <stdio.h>

void xml_write(FILE *file, const char *text);

#endif
