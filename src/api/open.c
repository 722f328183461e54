/*
 * Opens files by their kind: filters, records and catalogs are mapped, ready for queries at any
 * size, or read into memory, with every byte checked, so that they can be changed. Also checks
 * whole files.
 */
#include "api.h"
#include "base/err.h"
#include "catalog/catalog_bytes.h"
#include "delta/patch.h"
#include "os/file.h"
#include "replica/replica.h"
#include "tamis/catalog.h"

#define RANDOM_FROM \
    ((size_t)64 << 20) /* larger mapped files are checked only where they are queried */

/* The header is the part of a mapped file that must not change after it was checked. */
static size_t header_of(const uint8_t *data, size_t len)
{
    uint64_t total, header;
    return prefix_lengths(data, len, &total, &header) && header <= len ? (size_t)header : 0;
}

/* A structure keeps the mapping, or could not be made of it. */
static tamis_error mapped(struct mapping *mapping, tamis_error e, const char *path,
                          tamis_reason *reason)
{
    if (e != TAMIS_OK)
        mapping_free(mapping);
    else if (mapping->len - mapping->kept >= RANDOM_FROM)
        mapping_expect(mapping, true);
    return file_named(reason, e, path);
}

#define READ_PIECE ((uint64_t)1 << 20)

/* The bytes checked are the bytes read, once, without a second copy. */
static tamis_error read_pieces(struct pieces_in *in, const struct spill *file, tamis_reason *reason)
{
    const size_t room = (size_t)min_u64(READ_PIECE, file->end); /* all of it is wiped */
    uint8_t *buffer = mem_new(&mem_system, 1, room);
    tamis_error e = buffer ? TAMIS_OK : fail(reason, TAMIS_ENOMEM, "no memory for it");
    for (uint64_t at = 0, n; e == TAMIS_OK && at < file->end; at += n) {
        n = min_u64(room, file->end - at);
        int error = spill_read(file, buffer, (size_t)n, at); /* EIO: the file became shorter */
        e = error ? fail(reason, TAMIS_EIO, "it could not be read to its end")
                  : pieces_in_add(in, buffer, (size_t)n, reason);
    }
    mem_free_secret(&mem_system, buffer, 1, room);
    return e;
}

tamis_error set_file_load(struct set **out, tamis_kind kind, const char *path,
                          const tamis_open_options *options, tamis_reason *reason)
{
    struct spill file;
    tamis_error e = file_read_open(&file, path, reason);
    if (e == TAMIS_OK) {
        struct pieces_in *in = pieces_in_begin(file.end, UINT64_MAX, options);
        if (in && kind != TAMIS_KIND_NONE)
            pieces_in_want(in, (enum kind)kind);
        e = in ? read_pieces(in, &file, reason) : fail(reason, TAMIS_ENOMEM, "no memory for it");
        if (e == TAMIS_OK)
            e = pieces_in_end(in, out, reason);
        pieces_in_free(in);
        file_named(reason, e, path);
    }
    spill_close(&file);
    return e;
}

tamis_error set_file_open(struct set **out, tamis_kind kind, const char *path,
                          const tamis_open_options *options, tamis_reason *reason)
{
    struct mapping mapping;
    tamis_error e = file_map(&mapping, path, header_of, options && options->read, reason);
    if (e != TAMIS_OK)
        return e;
    if (kind == TAMIS_KIND_NONE)
        kind = tamis_kind_of(mapping.data, mapping.len);
    e = set_from_mapping(out, kind == TAMIS_KIND_RECORDS ? KIND_RECORDS : KIND_FILTER, mapping,
                         options, reason);
    return mapped(&mapping, e, path, reason);
}

tamis_error tamis_filter_open(tamis_filter **out, const char *path,
                              const tamis_open_options *options, tamis_reason *reason)
{
    struct set *s;
    return give_filter(set_file_open(&s, TAMIS_KIND_FILTER, path, options, reason), &s, out);
}

tamis_error tamis_records_open(tamis_records **out, const char *path,
                               const tamis_open_options *options, tamis_reason *reason)
{
    struct set *s;
    return give_records(set_file_open(&s, TAMIS_KIND_RECORDS, path, options, reason), &s, out);
}

tamis_error tamis_filter_load(tamis_filter **out, const char *path,
                              const tamis_open_options *options, tamis_reason *reason)
{
    struct set *s;
    return give_filter(set_file_load(&s, TAMIS_KIND_FILTER, path, options, reason), &s, out);
}

tamis_error tamis_records_load(tamis_records **out, const char *path,
                               const tamis_open_options *options, tamis_reason *reason)
{
    struct set *s;
    return give_records(set_file_load(&s, TAMIS_KIND_RECORDS, path, options, reason), &s, out);
}

tamis_error tamis_catalog_open(tamis_catalog **out, const char *path,
                               const tamis_open_options *options, tamis_reason *reason)
{
    struct mapping mapping;
    tamis_error e = file_map(&mapping, path, header_of, options && options->read, reason);
    return e == TAMIS_OK
               ? mapped(&mapping, catalog_from_mapping(out, mapping, options, reason), path, reason)
               : e;
}

tamis_error tamis_file_kind(const char *path, tamis_kind *kind, tamis_reason *reason)
{
    struct mapping mapping;
    tamis_error e = file_map(&mapping, path, header_of, false, reason);
    if (e != TAMIS_OK)
        return e;
    *kind = tamis_kind_of(mapping.data, mapping.len);
    mapping_free(&mapping);
    return TAMIS_OK;
}

/* Patches and messages are read into memory, since their checks go back and forth; of other kinds a
   copy of the header is enough. */
tamis_error tamis_file_verify(const char *path, tamis_reason *reason)
{
    struct mapping mapping;
    tamis_kind kind;
    tamis_error e = tamis_file_kind(path, &kind, reason);
    if (e == TAMIS_OK)
        e = file_map(&mapping, path, header_of,
                     kind == TAMIS_KIND_PATCH || kind == TAMIS_KIND_MESSAGE, reason);
    if (e != TAMIS_OK)
        return e;
    if (mapping.kept < mapping.len)
        mapping_expect(&mapping, false);
    e = kind == TAMIS_KIND_PATCH     ? patch_verify(mapping.data, mapping.len, reason)
        : kind == TAMIS_KIND_RECORDS ? set_verify(KIND_RECORDS, mapping.data, mapping.len, reason)
        : kind == TAMIS_KIND_CATALOG ? catalog_verify(mapping, reason)
        : kind == TAMIS_KIND_MESSAGE ? message_verify(mapping.data, mapping.len, reason)
                                     : set_verify(KIND_FILTER, mapping.data, mapping.len, reason);
    mapping_free(&mapping);
    return file_named(reason, e, path);
}
