#!/usr/bin/env python3
"""Ask an archive and DuckDB, which reads the archive's table of captures, the same questions, in turn.

    benches/peers/duckdb_queries.py ARCHIVE [--program PROGRAM] [--rounds N] [--table FILE]

DuckDB (pip install duckdb) stays open and is timed without its start; `archive query` is timed as a process, with the opening of
the archive. Milliseconds, medians; the answers of counts are compared.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb

ROOT = Path(__file__).resolve().parents[2]
QUESTIONS = [
    ("count captures group by status limit 100000", "select fetch_status, count(*) from c group by 1"),
    ("capture select sum(stored)", "select sum(warc_record_length) from c"),
    ("captures select year(time), month(time), count group by year(time), month(time)",
     "select year(fetch_time), month(fetch_time), count(*) from c group by 1, 2"),
    ("captures select host, sum(stored), count group by host limit 1000000",
     "select url_host_name, sum(warc_record_length), count(*) from c group by 1"),
    ("capture select url, stored order by stored limit 10", "select url, warc_record_length from c order by 2 desc limit 10"),
    ("count pages captures > 0 group by site limit 1000000",
     "select coalesce(url_host_private_domain, url_host_name), count(distinct url) from c group by 1"),
    ("count captures host = \"{host}\"", "select count(*) from c where url_host_name = '{host}'"),
    ("page importance > 2 and type = html and status = 200 select url limit 100",
     "select distinct url from c where importance > 2 and fetch_status = 200 and content_mime_detected = 'text/html' limit 100"),
    ("page url = \"{url}\" select url, status", "select url, fetch_status from c where url = '{url}'"),
]


def timed(work, rounds):
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        answer = work()
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times), answer


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archive", type=Path)
    parser.add_argument("--program", default=str(ROOT / "target/dist/archive"))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--table", type=Path, help="a table that was exported before")
    arguments = parser.parse_args()

    def ask(*words):
        command = [arguments.program, *words, "--archive", str(arguments.archive), "--json"]
        return [json.loads(line) for line in subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.splitlines()]

    with tempfile.TemporaryDirectory() as folder:
        table = arguments.table or Path(folder, "captures.parquet")
        if not table.exists():
            ask("export", "parquet", "--output", str(table))
        duck = duckdb.connect()
        duck.execute(f"create view c as select * from '{table}'")
        duck.execute("create view pages as select * from c where url_path <> '/robots.txt'")
        best = ask("query", "page captures > 0 order by importance desc select url, host limit 1")[0]
        print("| question | archive | DuckDB | times as fast |\n|---|---|---|---|")
        for own, sql in QUESTIONS:
            own, sql = (text.format(host=best["host"], url=best["url"]) for text in (own, sql))
            ours, rows = timed(lambda own=own: ask("query", own), arguments.rounds)
            theirs, _ = timed(lambda sql=sql: duck.execute(sql).fetchall(), arguments.rounds)
            print(f"| `{own}` | {ours:.0f} | {theirs:.0f} | {theirs / ours:.2f} |")
            # The table has robots.txt files, too, which are no pages.
            others = duck.execute(sql.replace("from c", "from pages")).fetchall()
            counts = [sorted(map(str, counted)) for counted in ([list(row.values())[-1] for row in rows], [row[-1] for row in others])]
            if "count" in own and counts[0] != counts[1]:
                print(f"answers differ: {counts[0][:5]} {counts[1][:5]}", file=sys.stderr)


if __name__ == "__main__":
    main()
