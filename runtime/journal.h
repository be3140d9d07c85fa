/* The journal of a resumable product, as bytes: what the product was, and which tiles of the result
 * are finished. Pure: no file is touched here.
 *
 *     "JASKJRNL"   magic
 *     u32          version, 1
 *     u32          length of the facts
 *     facts        lines "name: value\n" without NUL
 *     u64          checksum of everything before
 *     records      u64 tile, u64 checksum of the header's checksum and the tile; tiles count from 0
 *
 * All numbers are little-endian. A record is appended when its tile is durable, so the valid
 * records at the beginning count the finished tiles; what follows the first bad one (a write cut
 * off by a crash) means nothing. The checksums find damage, not malice. */
#ifndef JK_RUNTIME_JOURNAL_H
#define JK_RUNTIME_JOURNAL_H

#include "common/base.h"

#define JK_JOURNAL_FACTS_MAX ((size_t)64 << 10)
#define JK_JOURNAL_HEADER_MAX (JK_JOURNAL_FACTS_MAX + 24)
#define JK_JOURNAL_RECORD_BYTES ((size_t)16)

/* FNV-1a over 64 bits, continued from `hash`; begin with JK_HASH_BEGIN. */
#define JK_HASH_BEGIN ((uint64_t)0xcbf29ce484222325)
uint64_t jk_hash(uint64_t hash, const void *bytes, size_t len);

typedef enum jk_journal_state {
    JK_JOURNAL_GOOD,
    JK_JOURNAL_UNBEGUN, /* cut off in the header: nothing was recorded */
    JK_JOURNAL_FOREIGN, /* not a journal */
    JK_JOURNAL_OTHER_VERSION,
    JK_JOURNAL_DAMAGED
} jk_journal_state;

/* Text within other text, not NUL-terminated. */
typedef struct jk_span {
    const char *at;
    size_t len;
} jk_span;

typedef struct jk_journal {
    jk_span facts;       /* within the bytes that were parsed */
    uint64_t checksum;   /* of the header; records build on it */
    size_t header_bytes; /* the first record begins here */
    int64_t tiles;       /* finished */
} jk_journal;

/* Sets *out for a good one only. */
jk_journal_state jk_journal_parse(const unsigned char *bytes, size_t len, jk_journal *out);

/* Write the header into `bytes` (JK_JOURNAL_HEADER_MAX) and describe it; facts must be shorter than
 * JK_JOURNAL_FACTS_MAX. */
void jk_journal_begin(const char *facts, unsigned char *bytes, jk_journal *out);

void jk_journal_record(const jk_journal *journal, int64_t tile,
                       unsigned char bytes[JK_JOURNAL_RECORD_BYTES]);

/* The first fact in which two lists differ; false when there is none. A fact that one list lacks
 * has an empty value there. */
typedef struct jk_fact_change {
    jk_span name, before, now;
} jk_fact_change;
bool jk_journal_differs(jk_span before, jk_span now, jk_fact_change *out);

#endif
