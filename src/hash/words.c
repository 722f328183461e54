/*
 * Words of a text. A token is a maximal run of letters, digits, underscores and bytes from 0x80 on;
 * ASCII letters are folded to lower case. Tokens joined by one and the same of . : - / @, with
 * nothing else between them, also form a compound, as long as possible: 10.1.2.3:80 yields 10, 1,
 * 2, 3, 80, 10.1.2.3 and 3:80. So an address, a time, a path or an identifier is one key, whatever
 * it is joined to, and its pieces can be queried too.
 *
 * A phrase matches consecutive tokens. What is joined in the phrase must be joined in the same way
 * in the text, and the join must not continue there: 10.1.2.3 matches 10.1.2.3:80, but not
 * 10.1.2.3.4; 1.2 does not match 10.1.2.3, but the two words 1 2 do. So the compounds of the phrase
 * are compounds of the text.
 */
#include "words.h"

const uint8_t byte_kinds[256] = {['0' ... '9'] = BYTE_WORD,   ['A' ... 'Z'] = BYTE_WORD,
                                 ['a' ... 'z'] = BYTE_WORD,   ['_'] = BYTE_WORD,
                                 [0x80 ... 0xff] = BYTE_WORD, ['.'] = BYTE_JOIN,
                                 [':'] = BYTE_JOIN,           ['-'] = BYTE_JOIN,
                                 ['/'] = BYTE_JOIN,           ['@'] = BYTE_JOIN};

static bool starts_word(const char *at, const char *end)
{
    return at < end && byte_kinds[(uint8_t)*at] == BYTE_WORD;
}

/* A token, and the bytes that join it to the tokens before and after it, or 0. */
struct token {
    const char *at, *end;
    char before, after;
};

/* The next token; `from` is the end of the previous one, or the beginning. */
static bool token_next(const char *from, const char *end, struct token *t)
{
    char before = t->after;
    while (from < end && byte_kinds[(uint8_t)*from] != BYTE_WORD)
        from++;
    if (from == end)
        return false;
    *t = (struct token){.at = from, .before = before};
    while (starts_word(from, end))
        from++;
    t->end = from;
    if (from < end && byte_kinds[(uint8_t)*from] == BYTE_JOIN && starts_word(from + 1, end))
        t->after = *from;
    return true;
}

static void give_folded(const char *at, const char *end, tamis_give give, void *context)
{
    char key[WORD_LEN_MAX];
    size_t len = (size_t)(end - at) < WORD_LEN_MAX ? (size_t)(end - at) : WORD_LEN_MAX;
    for (size_t i = 0; i < len; i++)
        key[i] = fold(at[i]);
    give(context, (tamis_key){key, len}, true);
}

/* Yields compounds, and either all tokens or only those that are not part of a compound. */
static unsigned words_give(tamis_key text, bool all, tamis_give give, void *context)
{
    const char *at = text.data, *end = at + text.len, *first = NULL;
    struct token t = {.after = 0};
    unsigned n = 0;
    for (; token_next(at, end, &t); at = t.end) {
        if (all || (!t.before && !t.after)) {
            give_folded(t.at, t.end, give, context);
            n++;
        }
        if (t.before == t.after)
            continue;
        if (t.before) {
            give_folded(first, t.end, give, context);
            n++;
        }
        first = t.at;
    }
    return n;
}

struct token_giving {
    tamis_give give;
    void *context;
};

static bool give_short(void *context, const uint8_t *word, size_t len)
{
    const struct token_giving *to = context;
    to->give(to->context, (tamis_key){word, len < WORD_LEN_MAX ? len : WORD_LEN_MAX}, true);
    return false;
}

unsigned words_parts(tamis_key value, tamis_give give, void *context)
{
    if (value.len <= WORDS_TEXT)
        return words_each(value, give_short, &(struct token_giving){give, context});
    return words_give(value, true, give, context);
}

tamis_need words_ask(tamis_key phrase, tamis_give give, void *context)
{
    return words_give(phrase, false, give, context) ? TAMIS_NEED_ALL : TAMIS_NEED_WRONG;
}

bool words_any(tamis_key text)
{
    return token_next(text.data, (const char *)text.data + text.len, &(struct token){0});
}

static bool token_equal(const struct token *x, const struct token *y)
{
    if (x->end - x->at != y->end - y->at)
        return false;
    for (ptrdiff_t i = 0; i < x->end - x->at; i++)
        if (fold(x->at[i]) != fold(y->at[i]))
            return false;
    return true;
}

/* Compares what joins the tokens on one side, in the text and in the phrase: the same byte, or
   at the edge of a compound anything except the byte that joins its other side. */
static bool join_fits(char text, char phrase, char other)
{
    return phrase ? text == phrase : !other || text != other;
}

/* Is the token of the text joined as the token of the phrase requires? */
static bool token_fits(const struct token *text, const struct token *phrase)
{
    return token_equal(text, phrase) && join_fits(text->before, phrase->before, phrase->after) &&
           join_fits(text->after, phrase->after, phrase->before);
}

bool words_match(tamis_key value, tamis_key phrase)
{
    const char *end = (const char *)value.data + value.len;
    const char *phrase_end = (const char *)phrase.data + phrase.len;
    struct token first = {.after = 0}, t = {.after = 0};
    if (!token_next(phrase.data, phrase_end, &first))
        return false;
    for (const char *at = value.data; token_next(at, end, &t); at = t.end) {
        struct token here = t, asked = first;
        bool fits = token_fits(&here, &asked), more = true;
        while (fits && (more = token_next(asked.end, phrase_end, &asked)))
            fits = token_next(here.end, end, &here) && token_fits(&here, &asked);
        if (fits && !more)
            return true;
    }
    return false;
}
