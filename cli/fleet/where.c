/* tamis where: the hosts and days that may have a record. */
#include <string.h>

#include "fleet.h"
#include "ui/args.h"
#include "ui/out.h"

struct where {
    const char *folder, *seal;
    bool json, verbose;
    struct fleet_question question;
    struct copies copies;
    struct answer answer;
};

static void print_text(const struct where *w)
{
    char day[16];
    for (size_t i = 0; i < w->answer.n; i++) {
        day_write(w->answer.candidate[i].day, day);
        put_format("%s\t%s\n", w->answer.candidate[i].host->name, day);
    }
    for (size_t i = 0; i < w->copies.n; i++)
        if (w->copies.host[i].doubt && !w->copies.host[i].hit)
            put_format("?%s\n", w->copies.host[i].name);
}

static void print_json(const struct where *w)
{
    char text[24];
    size_t at = 0;
    for (size_t i = 0; i < w->copies.n; i++) {
        const struct known_host *h = &w->copies.host[i];
        if (!h->hit && !h->doubt)
            continue;
        json_open(NULL, '{');
        json_text("host", h->name);
        json_open("days", '[');
        for (; at < w->answer.n && w->answer.candidate[at].host == h; at++) {
            day_write(w->answer.candidate[at].day, text);
            json_text(NULL, text);
        }
        json_close();
        json_flag("in_doubt", h->doubt != NULL);
        if (h->doubt)
            json_text("why", h->doubt);
        moment_write(h->as_of, text);
        json_text("as_of", text);
        json_close();
    }
}

/* Watermarks, doubts and rates, on standard error. */
static void tell(const struct where *w, int status)
{
    char moment[24];
    const struct known_host *h = copies_oldest(&w->copies);
    if (w->answer.unseen)
        remark("no host is known to have an attribute '%s': it rules nothing out",
               w->answer.unseen);
    for (size_t i = 0; i < w->copies.n; i++) {
        const struct known_host *one = &w->copies.host[i];
        moment_write(one->as_of, moment);
        if (one->doubt)
            remark("in doubt: %s: %s; as of %s", one->name, one->doubt, moment);
        else if (w->verbose)
            remark("%s: as of %s", one->name, moment);
    }
    moment_write(h->as_of, moment);
    if (status == NONE)
        remark("none as of %s, the oldest of %zu hosts (%s)", moment, w->copies.n, h->name);
    if (w->verbose)
        remark("%llu summaries of %zu hosts; false candidates: %.2g per value and host-day, %.2g "
               "per combination and fleet",
               (unsigned long long)w->answer.pieces, w->copies.n, w->answer.host_day,
               w->answer.fleet);
}

static int where_ask(struct where *w)
{
    if (!fleet_ask(&w->copies, &w->question, &w->answer))
        return TROUBLE;
    if (w->copies.n == 0)
        return complain("no hosts: %s: publish some with tamis index --update CATALOG --publish "
                        "ADDRESS --as HOST",
                        w->copies.folder);
    if (w->json)
        print_json(w);
    else
        print_text(w);
    int status = w->answer.n ? FOUND : w->answer.in_doubt ? TROUBLE : NONE;
    tell(w, status);
    return status;
}

int verb_where(int argc, char **argv)
{
    struct where w = {0};
    const struct arg args[] = {
        ARG("since", 0, ARG_TEXT, &w.question.asked.since),
        ARG("until", 0, ARG_TEXT, &w.question.asked.until),
        ARG("fresh", 0, ARG_FLAG, &w.question.fresh),
        ARG("output", 'o', ARG_TEXT, &w.folder),
        ARG("seal", 0, ARG_TEXT, &w.seal),
        ARG("json", 0, ARG_FLAG, &w.json),
        ARG("verbose", 'v', ARG_FLAG, &w.verbose),
    };
    struct words words = args_read(argc, argv, args, COUNT(args));
    if (words.n == 0)
        return complain(
            "no address: ADDRESS: give redis://HOST:PORT/NAME, file:FOLDER, or a folder "
            "of copies");
    w.question.asked.words = words.word + 1;
    w.question.asked.n = words.n - 1;
    w.question.rates = w.verbose;
    int status = fleet_open(&w.copies, words.word[0], w.folder, w.seal) ? where_ask(&w) : TROUBLE;
    answer_free(&w.answer);
    copies_free(&w.copies);
    return status;
}
