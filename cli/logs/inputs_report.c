/* tamis info --inputs: every input of a catalog in its present state, and everything that is
   skipped. */
#include <stdlib.h>
#include <string.h>

#include "inputs.h"
#include "ui/out.h"

/* One line of it. */
struct report_line {
    const char *state, *path, *why, *was;
    const struct entry *entry;
    uint64_t bytes;
    bool searched;
};

static void print_json(const struct report_line *l, const char *path)
{
    json_open(NULL, '{');
    json_text("file", path);
    json_text("state", l->state);
    json_flag("searched", l->searched);
    if (l->why)
        json_text("why", l->why);
    if (l->was)
        json_text("was", l->was);
    if (l->entry) {
        json_text("format", read_format_name(l->entry->format));
        json_count("records", l->entry->count.records);
        json_count("unfit_lines", l->entry->count.unfit);
        json_count("bad_records", l->entry->count.bad);
        json_flag("damaged", l->entry->damaged);
    }
    json_count("bytes", l->bytes);
    json_close();
}

static void print_text(const struct report_line *l, const char *path)
{
    put_format("%-13s", l->state);
    if (l->entry)
        put_format("%-8s %12llu %9llu %9llu  ", read_format_name(l->entry->format),
                   (unsigned long long)l->entry->count.records,
                   (unsigned long long)l->entry->count.unfit,
                   (unsigned long long)l->entry->count.bad);
    else
        put_format("%-8s %12s %9s %9s  ", "-", "-", "-", "-");
    put_name(path);
    if (l->why)
        put_format(": %s", l->why);
    if (l->was) {
        put_text(", was ");
        put_name(l->was);
    }
    put_text("\n");
}

static void print(const struct report_line *l, const char *base, bool json)
{
    char *path = base_join(base, l->path);
    (json ? print_json : print_text)(l, path ? path : l->path);
    free(path);
}

static struct report_line line_of(const struct seen *s, const struct inputs *in)
{
    const struct entry *e = s->entry == NOWHERE ? NULL : &in->entry[s->entry];
    bool weak = s->look == LOOK_PASSED && s->unknown && !in->skip_unknown;
    struct report_line l = {.state = weak ? "not read" : look_name(s->look),
                            .path = s->path,
                            .why = s->why,
                            .entry = e && !e->passed && !e->unread ? e : NULL,
                            .bytes = s->file.size};
    l.searched = s->look == LOOK_NEW || s->look == LOOK_CHANGED || s->look == LOOK_SAME ||
                 s->look == LOOK_GROWN;
    if (l.entry && l.searched && strcmp(e->path, s->path) != 0)
        l.was = e->path;
    if (l.entry && e->damaged && s->look == LOOK_SAME) {
        l.why = "damaged part way through";
        l.searched = false;
    }
    return l;
}

void inputs_report(const struct inputs *in, const struct sight *s, const char *base, bool json)
{
    if (!json)
        put_format("%-13s%-8s %12s %9s %9s  %s\n", "state", "format", "records", "unfit", "bad",
                   "file");
    for (size_t i = 0; i < s->names.shut.n; i++) {
        const struct name *n = &s->names.shut.name[i];
        print(&(struct report_line){.state = "shut", .path = n->path, .why = n->why}, base, json);
    }
    for (size_t i = 0; i < s->n; i++) {
        struct report_line l = line_of(&s->seen[i], in);
        print(&l, base, json);
    }
    for (size_t i = 0; i < in->n; i++)
        if (s->where[i] == NOWHERE && !in->entry[i].passed)
            print(&(struct report_line){.state = "gone",
                                        .path = in->entry[i].path,
                                        .entry = &in->entry[i],
                                        .bytes = in->entry[i].file.size},
                  base, json);
    for (size_t i = 0; i < s->names.out.n; i++) {
        const struct name *n = &s->names.out.name[i];
        print(&(struct report_line){.state = "out of scope", .path = n->path, .why = n->why}, base,
              json);
    }
}
