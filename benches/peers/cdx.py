#!/usr/bin/env python3
"""Ask the CDX servers of this program and of pywb the same queries, over the index of the same archive.

    benches/peers/cdx.py ARCHIVE --pywb VENV/bin [--program PROGRAM] [--queries 500] [--seed 1]

Queries are drawn from the archive's own lines: kinds of matches, times, filters, fields, orders, limits. pywb has no `collapse=`, and
pages of blocks of a compressed index alone: what must come of these is made here of its whole answer. A line for each query whose
answers differ, then sums as JSON. Wants pywb in VENV.
"""

import collections
import itertools
import json
import random
import urllib.error
import urllib.parse
import urllib.request

from beside_pywb import arguments, served

FIELDS = ["urlkey", "timestamp", "url", "mime", "status", "digest", "length", "offset", "filename"]
# pywb says in which of its indexes a line is, and that it may be shown.
OF_ITS_OWN = ', "source": "archive/indexes/index.cdxj", "source-coll": "archive", "access": "allow"'


def drawn(dice, lines):
    """A query of one of the lines: its parameters, and what is asked of pages and collapses beside."""
    key, stamp, fields = dice.choice(lines).split(" ", 2)
    url, fields = json.loads(fields)["url"], json.loads(fields)
    parts = urllib.parse.urlsplit(url)
    kind = dice.choice(["exact", "exact", "prefix", "host", "domain"])
    if kind == "prefix":
        url = url[: dice.randint(len(parts.scheme) + 3 + len(parts.netloc) + 1, len(url))]
    if kind == "domain":
        url = parts.hostname
    asked = [("url", url)] if kind == "exact" and dice.random() < 0.5 else [("url", url), ("matchType", kind)]
    if dice.random() < 0.3:
        asked.append((dice.choice(["from", "to"]), stamp[: dice.choice([4, 6, 8, 10, 12, 14])]))
    for _ in range(dice.choice([0, 0, 0, 1, 1, 2])):
        field = dice.choice([field for field in ("mime", "status", "digest", "url") if field in fields])
        value = fields[field]
        mark, value = dice.choice([("", value[: len(value) // 2 + 1]), ("=", value), ("~", value[:2] + ".*")])
        asked.append(("filter", dice.choice(["", "!"]) + mark + field + ":" + value))
    if dice.random() < 0.15:
        asked.append(("collapseTime", str(dice.choice([4, 8, 10, 12, 14]))))
    if dice.random() < 0.2:
        asked.append(("limit", str(dice.choice([1, 2, 5, 20]))))
    # Of several URLs pywb looks at no more lines than its limit for the nearest.
    if kind == "exact" and dice.random() < 0.3:
        asked.append(("closest", stamp[: dice.choice([4, 8, 14])]))
    elif dice.random() < 0.2:
        asked.append(("sort", "reverse"))
    asked.append(("output", dice.choice(["text", "json", "cdxj"])))
    if asked[-1][1] == "text" or dice.random() < 0.3:
        asked.append(("fl", ",".join(dice.sample(FIELDS, dice.randint(2, 9)))))
    names = [name for name, _ in asked]
    beside = dice.choice([None, None, "page", "collapse"])
    return asked, beside if not {"limit", "closest", "sort", "collapseTime"} & set(names) else None


def get(address, parameters):
    try:
        answer = urllib.request.urlopen(f"{address}?{urllib.parse.urlencode(parameters)}")
        return answer.read().decode()
    except urllib.error.HTTPError as error:
        # pywb says so of what has no line.
        return "" if error.code == 404 else f"{error.code}"


def main():
    parser = arguments(__doc__)
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with served(given) as (index, ours, theirs):
        dice, lines, sums = random.Random(given.seed), index.read_text().splitlines(), collections.Counter()
        for _ in range(given.queries):
            asked, beside = drawn(dice, lines)
            pywb = lambda query: get(f"http://127.0.0.1:{theirs}/archive/cdx", query + [("allowFuzzy", "0")]).replace(OF_ITS_OWN, "")
            us = lambda query: get(f"http://127.0.0.1:{ours}/cdx", query)
            expected = pywb(asked)
            if beside == "page":
                size = dice.choice([1, 3, 10, 100])
                paged = asked + [("pageSize", str(size))]
                pages = json.loads(us(paged + [("showNumPages", "true")]))["pages"]
                # All of up to twelve pages, else their ends.
                numbers = range(pages) if pages <= 12 else [0, 1, pages // 2, pages - 1]
                found = "".join(us(paged + [("page", str(page))]) for page in numbers)
                rows = expected.splitlines(keepends=True)
                expected = "".join(row for page in numbers for row in rows[page * size : (page + 1) * size])
                if pages != max(1, -(-len(rows) // size)):
                    found = f"{pages} pages of {len(rows)} lines"
            elif beside == "collapse":
                field, length = dice.choice(["urlkey", "digest", "timestamp", "status", "mime"]), dice.choice([None, 1, 4, 10])
                found = us(asked + [("collapse", field if length is None else f"{field}:{length}")])
                whole = [json.loads(row) for row in pywb([it for it in asked if it[0] not in ("output", "fl")] + [("output", "json")]).splitlines()]
                alike = itertools.groupby(range(len(whole)), lambda place: whole[place].get(field, "")[:length])
                rows = expected.splitlines(keepends=True)
                expected = "".join(rows[next(places)] for _, places in alike)
            else:
                found = us(asked)
            sums.update({"queries": 1, "equal": found == expected, "lines": expected.count("\n"), beside or "plain": 1, "empty": not expected})
            if found != expected:
                print(beside, urllib.parse.urlencode(asked), found[:300], expected[:300], sep="\n  ", flush=True)
        print(json.dumps(sums))


if __name__ == "__main__":
    main()
