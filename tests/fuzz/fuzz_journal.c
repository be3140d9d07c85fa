/* Journals of resumable products: any bytes, and sound ones with one byte damaged, which checksums
 * would hide from a fuzzer. */
#include "fuzz.h"

#include "runtime/journal.h"

#include <stdlib.h>
#include <string.h>

#define TILES 5

static void parse_any(const uint8_t *data, size_t size)
{
    jk_journal journal;
    jk_fact_change change;
    const char *begin = (const char *)data;
    if (jk_journal_parse(data, size, &journal) != JK_JOURNAL_GOOD)
        return;
    fuzz_must(journal.facts.at >= begin && journal.header_bytes <= size &&
                  journal.facts.at + journal.facts.len <= begin + journal.header_bytes,
              "the facts lie in the header");
    fuzz_must(journal.tiles >= 0 && (uint64_t)journal.tiles <=
                                        (size - journal.header_bytes) / JK_JOURNAL_RECORD_BYTES,
              "every tile has its record");
    fuzz_must(!jk_journal_differs(journal.facts, journal.facts, &change), "facts are themselves");
}

/* A journal with `facts` and TILES records; to be freed. */
static unsigned char *make(const char *facts, jk_journal *out, size_t *size)
{
    unsigned char *bytes = malloc(JK_JOURNAL_HEADER_MAX + TILES * JK_JOURNAL_RECORD_BYTES);
    fuzz_must(bytes != NULL, "there is memory");
    jk_journal_begin(facts, bytes, out);
    for (int64_t tile = 0; tile < TILES; tile++)
        jk_journal_record(out, tile,
                          bytes + out->header_bytes + (size_t)tile * JK_JOURNAL_RECORD_BYTES);
    *size = out->header_bytes + TILES * JK_JOURNAL_RECORD_BYTES;
    return bytes;
}

static void damage(unsigned char *bytes, size_t size, size_t at, unsigned char change)
{
    jk_journal made, read;
    jk_journal_state state;
    fuzz_must(jk_journal_parse(bytes, size, &made) == JK_JOURNAL_GOOD && made.tiles == TILES,
              "what was made is good");
    state = jk_journal_parse(bytes, at, &read);
    fuzz_must(at < made.header_bytes
                  ? state == JK_JOURNAL_UNBEGUN
                  : state == JK_JOURNAL_GOOD &&
                        read.tiles == (int64_t)((at - made.header_bytes) / JK_JOURNAL_RECORD_BYTES),
              "a journal that was cut off counts whole records");
    bytes[at] ^= change;
    state = jk_journal_parse(bytes, size, &read);
    fuzz_must(at < made.header_bytes
                  ? state != JK_JOURNAL_GOOD
                  : state == JK_JOURNAL_GOOD &&
                        read.tiles == (int64_t)((at - made.header_bytes) / JK_JOURNAL_RECORD_BYTES),
              "damage is seen where it begins");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    parse_any(data, size);
    if (size > 3 && size < JK_JOURNAL_FACTS_MAX) {
        jk_journal journal;
        jk_fact_change change;
        size_t made;
        char *facts = fuzz_text(data + 3, size - 3);
        unsigned char *bytes = make(facts, &journal, &made);
        size_t half = journal.facts.len / 2;
        damage(bytes, made, (data[0] + 256u * data[1]) % made, data[2] ? data[2] : 1);
        jk_journal_differs((jk_span){facts, half},
                           (jk_span){facts + half, journal.facts.len - half}, &change);
        free(bytes);
        free(facts);
    }
    return 0;
}
