/* Golden files, tests/golden: what was written once is read for ever. */
#ifndef TAMIS_TESTS_GOLDEN_H
#define TAMIS_TESTS_GOLDEN_H

#include "subjects.h"

#define GOLDEN_PATH 1424

/* Calls run with "FOLDER/NAME" for every NAME.tamis in the folder; how many there were. */
unsigned golden_each(const char *folder, void (*run)(const char *stem));

/* Does it have what is asked? It may spoil the question. */
typedef bool (*golden_has)(struct set *set, char *asked);

/* NAME.tamis, with the key of NAME.key if there is one: as bytes and as a file it answers as NAME.txt
   says, which has `least` lines, "maybe QUESTION" or "no QUESTION"; and it is written the same again. */
void golden_is_read(const char *stem, enum kind kind, golden_has has, unsigned least);
/* NAME.ERROR.tamis: this error, as bytes and as a file. */
void golden_is_refused(const char *stem, enum kind kind);

/* Where new files are to be written, or NULL. */
const char *golden_folder(void);
/* Writes FOLDER/NAME ENDING, unless it is there: golden files never change. */
void golden_write(const char *name, const char *ending, const void *data, size_t len);
/* One byte more by `by`, checksums made right again or not. */
void golden_write_bad(const struct bytes *good, const char *folder, const char *name, uint64_t at,
                      uint8_t by, bool fix);
/* Where the first section of a type begins, 0 if there is none. */
uint64_t golden_section(const struct bytes *bytes, uint32_t type);

#endif
