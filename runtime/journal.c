#include "runtime/journal.h"

#include <assert.h>
#include <string.h>

#define MAGIC "JASKJRNL"
#define MAGIC_BYTES 8
#define VERSION 1
#define PREAMBLE 16 /* magic, version, length of the facts */
#define CHECKSUM_BYTES 8

uint64_t jk_hash(uint64_t hash, const void *bytes, size_t len)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ p[i]) * 0x100000001b3;
    return hash;
}

static void put_number(unsigned char *bytes, uint64_t value, int size)
{
    for (int i = 0; i < size; i++)
        bytes[i] = (unsigned char)(value >> 8 * i);
}

static uint64_t get_number(const unsigned char *bytes, int size)
{
    uint64_t value = 0;
    for (int i = 0; i < size; i++)
        value |= (uint64_t)bytes[i] << 8 * i;
    return value;
}

void jk_journal_begin(const char *facts, unsigned char *bytes, jk_journal *out)
{
    size_t len = strlen(facts);
    assert(len < JK_JOURNAL_FACTS_MAX);
    memcpy(bytes, MAGIC, MAGIC_BYTES);
    put_number(bytes + 8, VERSION, 4);
    put_number(bytes + 12, len, 4);
    memcpy(bytes + PREAMBLE, facts, len);
    *out = (jk_journal){.facts = {(const char *)bytes + PREAMBLE, len},
                        .checksum = jk_hash(JK_HASH_BEGIN, bytes, PREAMBLE + len),
                        .header_bytes = PREAMBLE + len + CHECKSUM_BYTES};
    put_number(bytes + PREAMBLE + len, out->checksum, CHECKSUM_BYTES);
}

void jk_journal_record(const jk_journal *journal, int64_t tile,
                       unsigned char bytes[JK_JOURNAL_RECORD_BYTES])
{
    unsigned char base[CHECKSUM_BYTES];
    put_number(base, journal->checksum, CHECKSUM_BYTES);
    put_number(bytes, (uint64_t)tile, 8);
    put_number(bytes + 8, jk_hash(jk_hash(JK_HASH_BEGIN, base, sizeof base), bytes, 8), 8);
}

/* Valid records at the beginning, each of the tile that comes next. */
static int64_t count_records(const jk_journal *journal, const unsigned char *bytes, size_t len)
{
    int64_t tile = 0;
    for (; len >= JK_JOURNAL_RECORD_BYTES; len -= JK_JOURNAL_RECORD_BYTES) {
        unsigned char expected[JK_JOURNAL_RECORD_BYTES];
        jk_journal_record(journal, tile, expected);
        if (memcmp(bytes, expected, sizeof expected) != 0)
            break;
        bytes += JK_JOURNAL_RECORD_BYTES;
        tile++;
    }
    return tile;
}

jk_journal_state jk_journal_parse(const unsigned char *bytes, size_t len, jk_journal *out)
{
    jk_journal journal;
    size_t facts_len;
    if (len > 0 && memcmp(bytes, MAGIC, len < MAGIC_BYTES ? len : MAGIC_BYTES) != 0)
        return JK_JOURNAL_FOREIGN;
    if (len < PREAMBLE)
        return JK_JOURNAL_UNBEGUN;
    if (get_number(bytes + 8, 4) != VERSION)
        return JK_JOURNAL_OTHER_VERSION;
    facts_len = (size_t)get_number(bytes + 12, 4);
    if (facts_len >= JK_JOURNAL_FACTS_MAX)
        return JK_JOURNAL_DAMAGED;
    if (len < PREAMBLE + facts_len + CHECKSUM_BYTES)
        return JK_JOURNAL_UNBEGUN;
    journal = (jk_journal){.facts = {(const char *)bytes + PREAMBLE, facts_len},
                           .checksum = jk_hash(JK_HASH_BEGIN, bytes, PREAMBLE + facts_len),
                           .header_bytes = PREAMBLE + facts_len + CHECKSUM_BYTES};
    if (get_number(bytes + PREAMBLE + facts_len, CHECKSUM_BYTES) != journal.checksum ||
        memchr(journal.facts.at, '\0', facts_len))
        return JK_JOURNAL_DAMAGED;
    journal.tiles =
        count_records(&journal, bytes + journal.header_bytes, len - journal.header_bytes);
    *out = journal;
    return JK_JOURNAL_GOOD;
}

/* Take the next line off `text`, as name and value. */
static void next_fact(jk_span *text, jk_span *name, jk_span *value)
{
    const char *end = text->len ? memchr(text->at, '\n', text->len) : NULL;
    size_t len = end ? (size_t)(end - text->at) : text->len;
    const char *colon = len ? memchr(text->at, ':', len) : NULL;
    size_t name_len = colon ? (size_t)(colon - text->at) : len;
    size_t skip = name_len;
    while (skip < len && (text->at[skip] == ':' || text->at[skip] == ' '))
        skip++;
    *name = (jk_span){text->at, name_len};
    *value = (jk_span){text->at + skip, len - skip};
    text->at += end ? len + 1 : len;
    text->len -= end ? len + 1 : len;
}

static bool same(jk_span a, jk_span b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

bool jk_journal_differs(jk_span before, jk_span now, jk_fact_change *out)
{
    while (before.len > 0 || now.len > 0) {
        jk_fact_change change;
        jk_span before_name;
        next_fact(&before, &before_name, &change.before);
        next_fact(&now, &change.name, &change.now);
        if (same(before_name, change.name) && same(change.before, change.now))
            continue;
        if (!same(before_name, change.name)) { /* lists of different kinds: one fact tells it */
            if (change.name.len > 0)
                change.before.len = 0;
            else
                change.name = before_name;
        }
        *out = change;
        return true;
    }
    return false;
}
