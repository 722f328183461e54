/*
 * Which of these files may have a record with ip=10.0.0.7 and user=ann? A catalog says, and reads
 * none of them; and which of these hosts may have this key? A directory.
 */
#include <stdio.h>
#include <string.h>
#include <tamis/catalog.h>
#include <tamis/replica.h>

static tamis_key text(const char *s)
{
    tamis_key key = {s, strlen(s)};
    return key;
}

static int check(tamis_error e, const tamis_reason *reason)
{
    if (e != TAMIS_OK)
        fprintf(stderr, "%s: %s\n", tamis_error_text(e), reason->text);
    return e != TAMIS_OK;
}

/* Three segments: ann and the address are in the first two, together in the second alone. */
static int write_catalog(const char *path)
{
    static const char *const records[3][2][2] = {{{"10.0.0.7", "bob"}, {"10.0.0.8", "ann"}},
                                                 {{"10.0.0.7", "ann"}, {"10.0.0.9", "eve"}},
                                                 {{"10.0.0.8", "bob"}, {"10.0.0.9", "eve"}}};
    tamis_attribute attributes[2];
    tamis_catalog_options options;
    tamis_catalog_writer *writer = NULL;
    tamis_gather *gather = NULL;
    tamis_reason reason;
    memset(attributes, 0, sizeof attributes);
    memset(&options, 0, sizeof options);
    memset(&reason, 0, sizeof reason);
    attributes[0].name = "ip";
    attributes[1].name = "user";
    options.attributes = attributes;
    options.n_attributes = 2; /* the pair is verified unless told otherwise */
    if (check(tamis_catalog_create(&writer, path, &options, &reason), &reason) ||
        check(tamis_gather_new(&gather, tamis_catalog_writer_schema(writer)), &reason))
        return 1;
    for (int file = 0; file < 3; file++) {
        char name[16];
        tamis_key record[2];
        record[0] = text("10.0.0.1"),
        record[1] = text("a record of a file that turned out to be damaged");
        if (check(tamis_gather_add(gather, record), &reason))
            return 1;
        tamis_gather_clear(gather); /* the next one starts anew */
        for (int i = 0; i < 2; i++) {
            record[0] = text(records[file][i][0]);
            record[1] = text(records[file][i][1]);
            if (check(tamis_gather_add(gather, record), &reason))
                return 1;
        }
        int len = snprintf(name, sizeof name, "file%d.log", file);
        if (check(tamis_catalog_put(writer, gather, name, (size_t)len, &reason), &reason))
            return 1;
    }
    tamis_gather_free(gather);
    int failed = check(tamis_catalog_commit(writer, NULL, 0, &reason), &reason);
    tamis_catalog_abandon(writer); /* frees it; the file is written */
    return failed;
}

static int ask_catalog(const char *path)
{
    tamis_catalog *catalog = NULL;
    tamis_reason reason;
    memset(&reason, 0, sizeof reason);
    if (check(tamis_catalog_open(&catalog, path, NULL, &reason), &reason))
        return 1;
    const tamis_schema *schema = tamis_catalog_schema(catalog);
    tamis_condition asked[2];
    memset(asked, 0, sizeof asked); /* what is not set does not count */
    if (check(tamis_schema_attribute(schema, "ip", &asked[0].attribute, &reason), &reason) ||
        check(tamis_schema_attribute(schema, "user", &asked[1].attribute, &reason), &reason))
        return 1;
    tamis_digest ip = tamis_schema_digest(schema, asked[0].attribute, text("10.0.0.7"));
    tamis_digest user = tamis_schema_digest(schema, asked[1].attribute, text("ann"));
    asked[0].keys = &ip, asked[0].n = 1;
    asked[1].keys = &user, asked[1].n = 1;
    uint64_t segments = 0; /* a bit for each, 64 in a word */
    tamis_catalog_answer answer;
    if (check(tamis_catalog_ask(catalog, asked, 2, &segments, &answer, &reason), &reason))
        return 1;
    for (unsigned i = 0; i < tamis_catalog_segments(catalog); i++) {
        size_t len;
        const char *name = (const char *)tamis_catalog_tag(catalog, i, &len);
        if (segments >> i & 1)
            printf("%.*s may have it: it has %u records\n", (int)len, name,
                   (unsigned)tamis_catalog_records(catalog, i));
    }
    printf("%u segments, %u rejected by values, %u by the pair\n", (unsigned)answer.segments,
           (unsigned)answer.by_attributes, (unsigned)answer.by_verifier);
    tamis_catalog_close(catalog);
    return !(segments >> 1 & 1);
}

static int use_directory(void)
{
    tamis_directory *hosts = NULL;
    tamis_reason reason;
    tamis_place places[8];
    int found = 0;
    memset(&reason, 0, sizeof reason);
    if (check(tamis_directory_new(&hosts, NULL, &reason), &reason))
        return 1;
    tamis_digest apple = tamis_directory_digest(hosts, "apple", 5);
    tamis_digest pear = tamis_directory_digest(hosts, "pear", 4);
    tamis_directory_put(hosts, "alpha", &apple, 1, NULL);
    tamis_directory_put(hosts, "beta", &pear, 1, NULL);
    size_t n = tamis_directory_locate(hosts, "pear", 4, places, 8);
    for (size_t i = 0; i < n && i < 8; i++) {
        const char *name = tamis_directory_name(hosts, places[i].owner);
        printf("%s may have the pear\n", name);
        found |= strcmp(name, "beta") == 0;
    }
    tamis_directory_facts facts;
    tamis_directory_info(hosts, &facts);
    printf("%u hosts in %u bytes\n", (unsigned)facts.owners, (unsigned)facts.bytes);
    tamis_directory_free(hosts);
    return !found;
}

int main(void)
{
    const char *path = "example-catalog.tamis";
    int failed = write_catalog(path) || ask_catalog(path) || use_directory();
    remove(path);
    return failed;
}
