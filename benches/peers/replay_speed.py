#!/usr/bin/env python3
"""How many replayed pages and CDX answers a second this program and pywb give, from the same WARC files.

    archive crawl --archive A --codec gzip …
    benches/peers/replay_speed.py A --pywb VENV/bin [--program PROGRAM] [--rounds 3]     # pip install pywb uwsgi gevent

Two processors serve and ask: pywb has two uwsgi workers, wrk 16 connections. The two take turns; a line of JSON for each kind of
request has the median answers a second of both, and how long an answer takes for one client, in milliseconds.
"""

import json
import re
import statistics
import subprocess
import urllib.parse
import urllib.request

from beside_pywb import arguments, served

SECONDS = 4


def page(program, archive, size):
    """The page in HTML that is nearest to a size, and its timestamp."""
    query = f"capture status = 200 and content_type = 'text/html' and size < {size} order by size limit 1 select url, time"
    found = subprocess.run([program, "query", query, "--archive", archive, "--json"], check=True, stdout=subprocess.PIPE, text=True)
    capture = json.loads(found.stdout)
    return re.sub(r"\D", "", capture["time"])[:14], capture["url"]


def asked(url, connections):
    """Answers a second, and milliseconds of one, half of them."""
    command = ["wrk", "-t1", f"-c{connections}", f"-d{SECONDS}s", "--latency", "--timeout", "20s", url]
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    if "Non-2xx" in said:
        raise SystemExit(f"{url} gives no page: {said}")
    value, unit = re.search(r"50%\s+([\d.]+)(us|ms|s)", said).groups()
    return float(re.search(r"Requests/sec:\s+([\d.]+)", said)[1]), float(value) * {"us": 1e-3, "ms": 1, "s": 1e3}[unit]


def main():
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with served(given, workers=2) as (_, ours, theirs):
        kinds = []
        for size in (44_000, 760_000):
            time, url = page(given.program, given.archive, size)
            length = len(urllib.request.urlopen(f"http://127.0.0.1:{ours}/web/{time}id_/{url}").read())
            kinds.append((f"a page of {length} bytes", f"/web/{time}mp_/{url}", f"/archive/{time}mp_/{url}"))
        query = "url=" + urllib.parse.quote(url, safe="") + "&output=json"
        kinds.append(("a CDX answer", f"/cdx?{query}", f"/archive/cdx?{query}"))
        for name, own, other in kinds:
            urls = {"archive": f"http://127.0.0.1:{ours}{own}", "pywb": f"http://127.0.0.1:{theirs}{other}"}
            seen = {program: [] for program in urls}
            for _ in range(given.rounds):
                for program, url in urls.items():
                    seen[program].append((asked(url, 16)[0], asked(url, 1)[1]))
            result = {program: [round(statistics.median(column), 2) for column in zip(*runs)] for program, runs in seen.items()}
            print(json.dumps({"asked": name} | result | {"times": round(result["archive"][0] / result["pywb"][0], 1)}), flush=True)


main()
