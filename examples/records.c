/*
 * Which addresses did ann use? A set of records answers for whole records, for single attributes and for
 * pairs of them; it is kept in a file, and united with that of another program.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tamis/records.h>

enum { IP, USER, STATUS, ATTRIBUTES };

static tamis_key text(const char *s)
{
    tamis_key key;
    key.data = s;
    key.len = strlen(s);
    return key;
}

static int failed(tamis_error e, const tamis_reason *reason)
{
    if (e != TAMIS_OK)
        fprintf(stderr, "%s: %s\n", tamis_error_text(e), reason->text);
    return e != TAMIS_OK;
}

/* Sets of one family have the same key; without one the key is random. */
static tamis_records *new_set(const uint8_t *key)
{
    tamis_attribute attributes[ATTRIBUTES];
    tamis_records_options options;
    tamis_records *set = NULL;
    tamis_reason reason;
    memset(attributes, 0, sizeof attributes);
    memset(&options, 0, sizeof options); /* zero means the default in every field */
    attributes[IP].name = "ip";
    attributes[IP].type = TAMIS_IP; /* ::ffff:10.1.2.3 is 10.1.2.3 */
    attributes[USER].name = "user";
    attributes[STATUS].name = "status";
    attributes[STATUS].type = TAMIS_INT;
    attributes[STATUS].distinct = 60; /* few values need few bits */
    options.attributes = attributes;
    options.n_attributes = ATTRIBUTES; /* up to three: each pair is verified */
    options.set.fpp = 0.001;
    options.set.key = key;
    return failed(tamis_records_new(&set, &options, &reason), &reason) ? NULL : set;
}

static tamis_error add(tamis_records *set, const char *ip, const char *user, const char *status)
{
    tamis_key record[ATTRIBUTES];
    record[IP] = text(ip);
    record[USER] = text(user);
    record[STATUS] = text(status);
    return tamis_records_add(set, record, NULL);
}

/* Did ann use one of these addresses? Any value will do for the status. */
static int ask(const tamis_records *set)
{
    tamis_digest user = tamis_records_digest(set, USER, text("ann"));
    tamis_digest ips[2];
    tamis_choice choices[2];
    tamis_answer answer;
    tamis_reason reason;
    ips[0] = tamis_records_digest(set, IP, text("10.1.2.3"));
    ips[1] = tamis_records_digest(set, IP, text("10.1.2.9"));
    choices[0].attribute = IP, choices[0].values = ips, choices[0].n = 2;
    choices[1].attribute = USER, choices[1].values = &user, choices[1].n = 1;
    if (failed(tamis_records_ask(set, choices, 2, &answer, &reason), &reason))
        return 1;
    printf("ann at one of two addresses: %s%s\n", answer.maybe ? "maybe" : "no",
           answer.verified ? ", as a pair" : "");
    return !answer.maybe;
}

/* Both values are there, but in different records. */
static int ask_in_file(const char *path)
{
    tamis_records *set = NULL;
    tamis_key record[ATTRIBUTES];
    tamis_reason reason;
    memset(record, 0, sizeof record);
    record[IP] = text("10.1.2.4");
    record[USER] = text("ann");
    if (failed(tamis_records_open(&set, path, NULL, &reason), &reason)) /* maps it: any size */
        return 1;
    tamis_answer answer = tamis_records_has(set, record, 1 << IP | 1 << USER);
    printf("ann at 10.1.2.4: %s\n", answer.maybe ? "maybe" : "no");
    tamis_records_free(set);
    return answer.maybe;
}

/* Loads the file, which may then be changed, and adds what another program has seen. */
static int unite_with_file(const tamis_records *seen, const char *path)
{
    tamis_records *all = NULL;
    tamis_records_facts facts;
    tamis_reason reason;
    if (failed(tamis_records_load(&all, path, NULL, &reason), &reason))
        return 1;
    int bad = failed(tamis_records_merge(all, seen, 0, &reason), &reason) ||
              failed(tamis_records_save(all, path, 0, &reason), &reason);
    tamis_records_info(all, &facts);
    printf("%u records in %u layers\n", (unsigned)facts.set.items, (unsigned)facts.layers);
    tamis_records_free(all);
    return bad;
}

struct bytes {
    unsigned char *data;
    size_t len;
};

/* A tamis_write: what it takes may go into a message or a database. There is room for all of it. */
static int append(void *context, const void *data, size_t len)
{
    struct bytes *bytes = (struct bytes *)context;
    memcpy(bytes->data + bytes->len, data, len);
    bytes->len += len;
    return 0;
}

/* The same bytes as those of the file, kept elsewhere. */
static int keep_elsewhere(const tamis_records *set)
{
    tamis_records *again = NULL;
    struct bytes bytes;
    tamis_reason reason;
    bytes.data = (unsigned char *)malloc(tamis_records_encoded_size(set, 0));
    bytes.len = 0;
    int bad = !bytes.data || tamis_records_encode(set, 0, append, &bytes) != TAMIS_OK ||
              failed(tamis_records_decode(&again, bytes.data, bytes.len, NULL, &reason), &reason) ||
              !tamis_records_equal(again, set);
    tamis_records_free(again);
    free(bytes.data);
    return bad;
}

/* Many records are hashed, added and looked up together, here in a copy that may take up to 1 MiB. */
static int add_many(const tamis_records *set)
{
    enum { RECORDS = 3 };
    static const char *const users[RECORDS] = {"dan", "eve", "fay"};
    tamis_key records[RECORDS * ATTRIBUTES];
    tamis_digest digests[RECORDS * ATTRIBUTES];
    uint8_t found[RECORDS];
    tamis_records *copy = NULL;
    for (int i = 0; i < RECORDS; i++) {
        records[i * ATTRIBUTES + IP] = text("10.1.2.7");
        records[i * ATTRIBUTES + USER] = text(users[i]);
        records[i * ATTRIBUTES + STATUS] = text("200");
    }
    if (tamis_records_clone(&copy, set) != TAMIS_OK)
        return 1;
    tamis_records_digest_many(copy, records, RECORDS, digests);
    int bad = tamis_records_limit(copy, 1 << 20) != TAMIS_OK ||
              tamis_records_add_many(copy, digests, RECORDS, NULL, NULL) != TAMIS_OK;
    tamis_records_has_many(copy, 1 << IP | 1 << USER, digests, RECORDS, found);
    for (int i = 0; i < RECORDS; i++)
        bad |= !found[i];
    bad =
        bad || tamis_records_clear(copy) != TAMIS_OK; /* empty, with the same key and attributes */
    tamis_records_free(copy);
    return bad;
}

int main(void)
{
    const char *path = "example-records.tamis";
    uint8_t key[TAMIS_KEY_LEN];
    tamis_reason reason;
    tamis_records *here = new_set(NULL);
    if (!here)
        return 1;
    tamis_records_key(here, key);
    tamis_records *there = new_set(key);
    int bad = !there || add(here, "10.1.2.3", "ann", "200") != TAMIS_OK ||
              add(here, "10.1.2.4", "bob", "404") != TAMIS_OK ||
              add(there, "10.1.2.5", "cho", "200") != TAMIS_OK || ask(here) ||
              failed(tamis_records_save(here, path, 0, &reason), &reason) || ask_in_file(path) ||
              unite_with_file(there, path) || keep_elsewhere(here) || add_many(here);
    remove(path);
    tamis_records_free(there);
    tamis_records_free(here);
    return bad;
}
