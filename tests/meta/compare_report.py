#!/usr/bin/env python3
"""The table and plot of bench/compare from given records. usage: compare_report.py SOURCE-ROOT   (TAP on stdout)"""
import os
import sys
import xml.dom.minidom

sys.path[:0] = [os.path.join(sys.argv[1], 'bench'), os.path.join(sys.argv[1], 'tests', 'cli')]
sys.dont_write_bytecode = True

import compare_report  # noqa: E402
import tap  # noqa: E402

COMMON = {'m': 2, 'n': 3, 'k': 4, 'dtype': 'f4', 'memory_bytes': 1 << 20, 'budget_bytes': 1 << 19, 'threads': 2,
          'cpu': 'C', 'cores': 2, 'kernel': 'K', 'jask': 'J', 'python': 'P', 'numpy': 'N', 'dask': 'D',
          'cubed': 'Q', 'blas': 'B', 'cache': 'cold'}


def record(peer, number, **found):
    return {**COMMON, 'peer': peer, 'round': number, **found}


RECORDS = [record('jask', 0, seconds=1.0, difference=0.0), record('slow', 0, seconds=4.0, difference=1e-6),
           record('jask', 1, seconds=2.0), record('slow', 1, seconds=4.0),
           record('jask', 2, seconds=1.5), record('slow', 2, seconds=4.5),
           record('late', 0, failed='> 9 s')]


def row_of(peer):
    lines = compare_report.table(RECORDS).splitlines()
    return [cell.strip() for line in lines if line.startswith('| %s |' % peer)
            for cell in line.strip('|').split('|')]


def the_head_names_the_kernels_where_they_are_known():
    assert compare_report.head(RECORDS).endswith('BLAS of jask: B.'), compare_report.head(RECORDS)
    known = [{**RECORDS[0], 'core': 'Zen'}]
    assert compare_report.head(known).endswith('BLAS of jask: B, its kernels for Zen.'), compare_report.head(known)
    other = [{**RECORDS[0], 'core': ''}]
    assert compare_report.head(other).endswith('BLAS of jask: B.'), compare_report.head(other)


def ratios_are_medians_of_the_rounds():
    assert row_of('jask') == ['jask', '1.50 s (1.00 to 2.00)', '1.00', '0.0e+00'], row_of('jask')
    assert row_of('slow') == ['slow', '4.00 s (4.00 to 4.50)', '3.00', '1.0e-06'], row_of('slow')


def what_failed_is_said_and_has_no_ratio():
    assert row_of('late') == ['late', '> 9 s', '', ''], row_of('late')


def the_plot_is_svg_with_every_peer():
    text = compare_report.plot(RECORDS)
    document = xml.dom.minidom.parseString(text)
    assert document.documentElement.tagName == 'svg' and len(document.getElementsByTagName('rect')) == 2
    assert all('>%s<' % peer in text for peer in ('jask', 'slow', 'late')) and 'cold: &gt; 9 s' in text


tap.run([the_head_names_the_kernels_where_they_are_known, ratios_are_medians_of_the_rounds, what_failed_is_said_and_has_no_ratio,
         the_plot_is_svg_with_every_peer], 'compare-report')
