#!/usr/bin/env python3
"""Bytes that plans move, over the lower bound, for the cases of bench/README.md.

usage: planner_table.py JASK_GEMM

The second table is of what files are read beside a card of 4 GiB, with host memory for strips of the inputs and for sums.

No data is read: jask-gemm --size ... --plan describes each product in f32 on the CPU. `jask` are the fewest
bytes, `pages` the square pages of the reference. `tiles N` is what a library does that cuts all three matrices
into N x N tiles and sends both input tiles for every product of tiles, as cuBLASXt does: computed here, with the
memory that two tiles of each operand take; a dash where that is more than the case has.
"""
import json
import subprocess
import sys

MIB, GIB = 1 << 20, 1 << 30
CASES = [
    ("square 32768", 32768, 32768, 32768), ("square 65536", 65536, 65536, 65536),
    ("square 131072", 131072, 131072, 131072), ("k 8192", 131072, 131072, 8192), ("k 512", 131072, 131072, 512),
    ("Gram 10M x 1024", 1024, 1024, 10000000), ("m 64", 64, 16384, 16384), ("k 4M", 4096, 4096, 4194304),
    ("row x matrix", 1, 131072, 131072),
]
BUDGETS = [("256 MiB", 256 * MIB), ("1 GiB", GIB), ("4 GiB", 4 * GIB)]
TILES = [1024, 2048, 4096]
# Side of a square product, GiB of host memory.
HOST_CASES = [(65536, 16), (131072, 16), (131072, 64), (262144, 16), (262144, 64), (262144, 256), (524288, 64)]
CARD = "gpu=4G,flops=51T,h2d=55G,disk=2G,memory=4.3T"


def plan(tool, sides, budget, planner, *more):
    command = [tool, "--size", "x".join(str(side) for side in sides), "-b", str(budget), "--planner", planner,
               "-d", "host", "--plan", "--json", *more]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def moved(p):
    return p["h2d_bytes"] + p["d2h_bytes"]


def tiled(sides, tile, budget):
    """Bytes of fixed square tiles; None where they do not fit."""
    m, n, k = sides
    bm, bn, bk = (min(side, tile) for side in sides)
    if 4 * 2 * (bm * bk + bk * bn + bm * bn) > budget:
        return None
    return 4 * (m * k * -(-n // bn) + k * n * -(-m // bm) + m * n)


def ratio(value, bound):
    return "-" if value is None else "%.2f" % (value / bound)


def host_table(tool):
    print("| square | host memory | A and B | no host memory | auto | bytes |")
    print("|---|---|---|---|---|---|")
    for side, host in HOST_CASES:
        cells = [str(side), "%d GiB" % host, "%d" % (2 * 4 * side * side / GIB)]
        for planner, machine in [("bytes", CARD), ("auto", CARD + ",host=%dG" % host), ("bytes", CARD + ",host=%dG" % host)]:
            planned = plan(tool, [side] * 3, 4 * GIB, planner, "--machine", machine)
            cells.append("%.0f" % (planned["file_read_bytes"] / GIB))
        print("| " + " | ".join(cells) + " |")


def main():
    tool = sys.argv[1]
    print("| m x n x k | budget | bound, GiB | jask | pages | " + " | ".join("tiles %d" % t for t in TILES) + " |")
    print("|---|---|---|---|---|" + "---|" * len(TILES))
    for name, *sides in CASES:
        for label, budget in BUDGETS:
            ours = plan(tool, sides, budget, "bytes")
            if ours["budget_bytes"] != budget:
                sys.exit("%s was cut to %d bytes: this machine has too little memory" % (label, ours["budget_bytes"]))
            pages = plan(tool, sides, budget, "page")
            bound = ours["lower_bound_bytes"]
            cells = [name, label, "%.2f" % (bound / GIB), "**%s**" % ratio(moved(ours), bound),
                     ratio(moved(pages), bound)] + [ratio(tiled(sides, t, budget), bound) for t in TILES]
            print("| " + " | ".join(cells) + " |")
    print()
    host_table(tool)


main()
