/* The figures of a catalog, for tamis info. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/args.h"
#include "find_target.h"
#include "read/attrs.h"
#include "ui/out.h"
#include "ui/report.h"
#include "sets/set_file.h"

static void report_relation(const tamis_schema *schema, const tamis_relation_facts *r)
{
    char name[200], front[160] = "";
    bool combo = r->mask & (r->mask - 1);
    uint32_t first = (uint32_t)__builtin_ctzll(r->mask);
    const char *type = combo ? "combination" : tamis_type_name(tamis_schema_type(schema, first));
    schema_names(schema, r->mask, name, sizeof name);
    if (r->front_keys)
        snprintf(front, sizeof front,
                 "; in front %llu keys, %llu bytes, fpp %.1g, %.0f %% forgotten",
                 (unsigned long long)r->front_keys, (unsigned long long)r->front_bytes,
                 r->front_fpp, 100 * r->front_forgotten);
    if (!report_item(combo ? type : name,
                     "%s: %llu values in all segments, %llu in one; %llu bytes; fpp now %.3g%s",
                     combo ? name : type, (unsigned long long)r->distinct,
                     (unsigned long long)r->distinct_most, (unsigned long long)r->bytes, r->fpp_now,
                     front))
        return;
    json_text("name", name);
    json_text("type", type);
    json_count("bytes", r->bytes);
    json_count("columns", r->columns);
    json_count("shapes", r->shapes);
    json_count("distinct", r->distinct);
    json_count("distinct_most", r->distinct_most);
    json_count("rows", r->rows);
    json_count("hashes", r->hashes);
    json_real("fpp", r->fpp);
    json_real("fpp_now", r->fpp_now);
    if (!combo) {
        json_count("front_bytes", r->front_bytes);
        json_count("front_keys", r->front_keys);
        json_real("front_fpp", r->front_fpp);
        json_real("front_forgotten", r->front_forgotten);
    }
    json_close();
}

static void report_relations(const tamis_catalog *catalog)
{
    tamis_relation_facts r;
    report_list("relations", "attributes and combinations");
    for (uint32_t i = 0; tamis_catalog_relation(catalog, i, &r); i++)
        report_relation(tamis_catalog_schema(catalog), &r);
    report_end();
}

/* For catalogs made by tamis index. */
static void report_inputs(const tamis_catalog *catalog)
{
    struct inputs inputs;
    size_t len;
    const void *note = tamis_catalog_note(catalog, &len);
    uint64_t bytes = 0, text = 0, bad = 0, unfit = 0;
    if (inputs_decode(&inputs, note, len, NULL) != TAMIS_OK)
        return;
    for (size_t i = 0; i < inputs.n; i++) {
        bytes += inputs.entry[i].passed ? 0 : inputs.entry[i].file.size;
        text += inputs.entry[i].text;
        unfit += inputs.entry[i].count.unfit;
        bad += inputs.entry[i].count.bad;
    }
    report_count("inputs", "inputs", inputs_count(&inputs));
    report_size("input_bytes", "bytes of inputs", bytes);
    report_size("input_text", "bytes of their text", text);
    report_count("unfit_lines", "lines that do not fit their format", unfit);
    report_count("bad_records", "bad records", bad);
    inputs_free(&inputs);
}

int catalog_inputs(const char *operand, const struct store_options *options, bool json)
{
    struct target t = {0};
    bool good =
        target_open(&t, operand, options) && sight_take(&t.sight, &t.inputs, t.base, processors());
    if (good)
        inputs_report(&t.inputs, &t.sight, t.base, json);
    target_free(&t);
    return good ? FOUND : TROUBLE;
}

int catalog_report(const char *operand, const struct store_options *options, bool json)
{
    tamis_catalog_facts f;
    char *path;
    tamis_catalog *catalog = catalog_open(operand, options, &path);
    if (!catalog) {
        free(path);
        return TROUBLE;
    }
    tamis_catalog_info(catalog, &f);
    report_open(json);
    report_text("kind", "kind", "catalog");
    report_text("hash", "hash", hash_names[f.hash]);
    report_text("verifier", "verifier", verifier_names[f.verifier]);
    report_flag("has_key", "key stored", f.has_key);
    report_size("bytes", "bytes", f.bytes);
    report_count("segments", "segments", f.segments);
    report_count("records", "records", f.records);
    report_rate("fpp", "fpp (stated)", f.fpp);
    report_inputs(catalog);
    report_relations(catalog);
    report_end();
    tamis_catalog_close(catalog);
    free(path); /* until now the name of the mapped file */
    return FOUND;
}
