"""Records of bench/compare as a table in Markdown and as a plot in SVG."""
import statistics

COLOURS = {'cold': '#4477aa', 'warm': '#ee7733'}


def order_of(records, key):
    return list(dict.fromkeys(record[key] for record in records))


def cell_of(records, peer, cache):
    """(median, least, most) seconds, or the words of the first failure."""
    mine = [r for r in records if r['peer'] == peer and r['cache'] == cache]
    failed = [r['failed'] for r in mine if 'failed' in r]
    if failed:
        return failed[0]
    seconds = [r['seconds'] for r in mine]
    return (statistics.median(seconds), min(seconds), max(seconds)) if seconds else 'not run'


def ratio_of(records, peer, cache):
    """The median over the rounds of this peer's seconds by jask's of the same round; None without both."""
    by_round = {(r['peer'], r['round']): r['seconds'] for r in records
                if r['cache'] == cache and 'seconds' in r}
    ratios = [seconds / by_round['jask', number] for (name, number), seconds in by_round.items()
              if name == peer and ('jask', number) in by_round]
    return statistics.median(ratios) if ratios else None


def size_text(count):
    return '%.0f MiB' % (count / 2 ** 20)


def array_bytes(r):
    return (r['m'] * r['k'] + r['k'] * r['n'] + r['m'] * r['n']) * int(r['dtype'][1])


def blas_text(r):
    """Records of before 2026-12 have no core."""
    return '%s, its kernels for %s' % (r['blas'], r['core']) if r.get('core') else r['blas']


def head(records):
    r = records[0]
    return ('%d x %d x %d %s, %s of arrays, memory limit %s, budget %s, %d BLAS threads, rounds: %d. %s, '
            '%d cores, Linux %s; %s, Python %s, NumPy %s, Dask %s, cubed %s; BLAS of jask: %s.'
            % (r['m'], r['n'], r['k'], r['dtype'], size_text(array_bytes(r)),
               size_text(r['memory_bytes']) if r['memory_bytes'] else 'none', size_text(r['budget_bytes']),
               r['threads'], len(order_of(records, 'round')), r['cpu'], r['cores'], r['kernel'], r['jask'],
               r['python'], r['numpy'], r['dask'], r['cubed'], blas_text(r)))


def table(records):
    caches = order_of(records, 'cache')
    lines = [head(records), '',
             '| peer | ' + ' | '.join('%s: median (range) | by jask' % c for c in caches)
             + ' | largest relative difference |', '|---' * (2 * len(caches) + 2) + '|']
    for peer in order_of(records, 'peer'):
        cells = [peer]
        for cache in caches:
            cell, ratio = cell_of(records, peer, cache), ratio_of(records, peer, cache)
            cells.append(cell if isinstance(cell, str) else '%.2f s (%.2f to %.2f)' % cell)
            cells.append('' if ratio is None else '%.2f' % ratio)
        found = [r['difference'] for r in records if r['peer'] == peer and r.get('difference') is not None]
        cells.append('%.1e' % max(found) if found else '')
        lines.append('| ' + ' | '.join(cells) + ' |')
    return '\n'.join(lines)


def plot(records):
    """A bar for each median, its range as a line."""
    peers, caches = order_of(records, 'peer'), order_of(records, 'cache')
    cells = {(p, c): cell_of(records, p, c) for p in peers for c in caches}
    longest = max([cell[2] for cell in cells.values() if not isinstance(cell, str)], default=1)
    out, y = [], 10
    for peer in peers:
        out.append('<text x="90" y="%d" text-anchor="end">%s</text>' % (y + 8 * len(caches) + 4, peer))
        for cache in caches:
            out += bar(cells[peer, cache], cache, y, 500 / longest)
            y += 16
        y += 8
    return ('<svg xmlns="http://www.w3.org/2000/svg" width="720" height="%d" font-family="sans-serif" '
            'font-size="12">\n%s\n</svg>\n' % (y + 10, '\n'.join(out)))


def bar(cell, cache, y, scale):
    if isinstance(cell, str):
        words = cell.replace('&', '&amp;').replace('<', '&lt;').replace('>', '&gt;')
        return ['<text x="100" y="%d" fill="#777777">%s: %s</text>' % (y + 11, cache, words)]
    median, least, most = cell
    return ['<rect x="100" y="%d" width="%.1f" height="13" fill="%s"/>' % (y, median * scale, COLOURS[cache]),
            '<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="black"/>'
            % (100 + least * scale, 100 + most * scale, y + 6.5, y + 6.5),
            '<text x="%.1f" y="%d">%s %.2f s</text>' % (106 + most * scale, y + 11, cache, median)]
