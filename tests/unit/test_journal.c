/* The journal as bytes: what was written is read back, and nothing damaged is believed. */
#include "runtime/journal.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char facts[] = "A: /x/a.npy\nsize of A: 1000 bytes\nalpha: 1\n";

/* A journal with `tiles` records; returns its length. */
static size_t make(unsigned char *bytes, int64_t tiles, jk_journal *journal)
{
    jk_journal_begin(facts, bytes, journal);
    for (int64_t t = 0; t < tiles; t++)
        jk_journal_record(journal, t,
                          bytes + journal->header_bytes + (size_t)t * JK_JOURNAL_RECORD_BYTES);
    return journal->header_bytes + (size_t)tiles * JK_JOURNAL_RECORD_BYTES;
}

static unsigned char *room(void)
{
    unsigned char *bytes = calloc(1, JK_JOURNAL_HEADER_MAX + 100 * JK_JOURNAL_RECORD_BYTES);
    cr_assert_not_null(bytes);
    return bytes;
}

Test(journal, reads_back_what_was_written)
{
    unsigned char *bytes = room();
    for (int64_t tiles = 0; tiles < 20; tiles++) {
        jk_journal made, read;
        size_t len = make(bytes, tiles, &made);
        cr_assert_eq(jk_journal_parse(bytes, len, &read), JK_JOURNAL_GOOD);
        cr_assert_eq(read.tiles, tiles);
        cr_assert_eq(read.checksum, made.checksum);
        cr_assert_eq(read.header_bytes, made.header_bytes);
        cr_assert_eq(read.facts.len, strlen(facts));
        cr_assert_eq(memcmp(read.facts.at, facts, strlen(facts)), 0);
    }
    free(bytes);
}

/* Wherever a kill cuts it off: whole records count, the last one that is torn does not. */
Test(journal, counts_the_whole_records_of_one_that_was_cut_off)
{
    unsigned char *bytes = room();
    jk_journal made, read;
    size_t len = make(bytes, 5, &made);
    for (size_t cut = 0; cut <= len; cut++) {
        unsigned char *exact = malloc(cut + 1); /* so that reading beyond it shows */
        memcpy(exact, bytes, cut);
        jk_journal_state state = jk_journal_parse(exact, cut, &read);
        if (cut < made.header_bytes) {
            cr_assert_eq(state, JK_JOURNAL_UNBEGUN, "%zu", cut);
        } else {
            cr_assert_eq(state, JK_JOURNAL_GOOD, "%zu", cut);
            cr_assert_eq(read.tiles,
                         (int64_t)((cut - made.header_bytes) / JK_JOURNAL_RECORD_BYTES));
        }
        free(exact);
    }
    free(bytes);
}

/* One bit anywhere: in the header nothing is believed, in a record neither it nor what follows. */
Test(journal, believes_nothing_behind_a_flipped_bit)
{
    unsigned char *bytes = room();
    jk_journal made, read;
    size_t len = make(bytes, 5, &made);
    for (size_t bit = 0; bit < 8 * len; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        jk_journal_state state = jk_journal_parse(bytes, len, &read);
        if (bit / 8 < made.header_bytes) {
            cr_assert_neq(state, JK_JOURNAL_GOOD, "bit %zu", bit);
        } else {
            size_t intact = (bit / 8 - made.header_bytes) / JK_JOURNAL_RECORD_BYTES;
            cr_assert_eq(state, JK_JOURNAL_GOOD);
            cr_assert_eq(read.tiles, (int64_t)intact, "bit %zu", bit);
        }
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    free(bytes);
}

Test(journal, tells_what_is_no_journal_of_this_version)
{
    unsigned char *bytes = room();
    jk_journal made, read;
    size_t len = make(bytes, 1, &made);
    bytes[8] = 2;
    cr_assert_eq(jk_journal_parse(bytes, len, &read), JK_JOURNAL_OTHER_VERSION);
    cr_assert_eq(jk_journal_parse((const unsigned char *)"\x93NUMPY", 6, &read),
                 JK_JOURNAL_FOREIGN);
    memset(bytes, 0, len);
    cr_assert_eq(jk_journal_parse(bytes, len, &read), JK_JOURNAL_FOREIGN);
    cr_assert_eq(jk_journal_parse(bytes, 0, &read), JK_JOURNAL_UNBEGUN);
    free(bytes);
}

/* A record belongs to the journal that it was written for, and to its place in it. */
Test(journal, takes_no_record_of_another_journal_or_tile)
{
    unsigned char *bytes = room(), *other = room();
    jk_journal made, read;
    size_t len = make(bytes, 3, &made), first = made.header_bytes;
    jk_journal_begin("A: /x/b.npy\n", other, &read);
    jk_journal_record(&read, 0, bytes + first);
    cr_assert_eq(jk_journal_parse(bytes, len, &read), JK_JOURNAL_GOOD);
    cr_assert_eq(read.tiles, 0);
    make(bytes, 3, &made);
    jk_journal_record(&made, 2, bytes + first + JK_JOURNAL_RECORD_BYTES);
    cr_assert_eq(jk_journal_parse(bytes, len, &read), JK_JOURNAL_GOOD);
    cr_assert_eq(read.tiles, 1);
    free(other);
    free(bytes);
}

static jk_span span(const char *text)
{
    return (jk_span){text, strlen(text)};
}

static bool is(jk_span s, const char *text)
{
    return s.len == strlen(text) && memcmp(s.at, text, s.len) == 0;
}

Test(journal, names_the_fact_that_has_changed)
{
    static const struct {
        const char *before, *now, *name, *was, *is;
    } cases[] = {
        {"a: 1\nb: 2\n", "a: 1\nb: 3\n", "b", "2", "3"},
        {"a: 1\nb: 2\n", "a: 5\nb: 3\n", "a", "1", "5"},
        {"a: 1\n", "a: 1\nb: 3\n", "b", "", "3"},
        {"a: 1\nb: 2\n", "a: 1\n", "b", "2", ""},
        {"a: 1\nc: 2\n", "a: 1\nb: 3\nc: 2\n", "b", "", "3"},
        {"a: x: y\n", "a: x: z\n", "a", "x: y", "x: z"},
        {"a: 1", "a: 12", "a", "1", "12"},
        {"", "a: 1\n", "a", "", "1"},
    };
    jk_fact_change change;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cr_assert(jk_journal_differs(span(cases[i].before), span(cases[i].now), &change), "%zu", i);
        cr_assert(is(change.name, cases[i].name), "%zu: %.*s", i, (int)change.name.len,
                  change.name.at);
        cr_assert(is(change.before, cases[i].was), "%zu", i);
        cr_assert(is(change.now, cases[i].is), "%zu", i);
        cr_assert_not(jk_journal_differs(span(cases[i].now), span(cases[i].now), &change));
    }
    cr_assert_not(jk_journal_differs(span(""), span(""), &change));
}
