#!/usr/bin/env python3
"""Crawl the same web with this program and with others, one after the other, and print what each took.

    benches/peers/compare.py --seeds LIST [--out DIR] [--only NAME[,NAME]] [--archive PROGRAM]

LIST has one URL a line, of servers that are yours: nobody waits between requests. Peers that are not found are named and
left out:

    wget      on the PATH
    scrapy    importable by this Python, with warcio; the crawler is scrapy_warc.py beside this file
    spider    a program of the crate `spider` that takes a file for its WARC and URLs, named by $PEER_SPIDER

Records are counted afterwards by FastWARC (pip install fastwarc), so that each is judged by what it stored. A page is a
response or revisit whose HTTP head says HTML; robots.txt is no capture.
"""

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

HERE = Path(__file__).resolve().parent


def commands(arguments, urls, out):
    """Every contestant: its name, its command, and where it leaves its WARC files."""
    archive = [arguments.archive, "crawl", "--seeds", str(arguments.seeds), "--delay", "0", "--allow-private"]
    hosts = ",".join(sorted({urlsplit(url).hostname for url in urls}))
    yield "archive", [*archive, "--archive", out / "archive", "--no-full-text", "--timings"], out / "archive"
    yield "archive with index", [*archive, "--archive", out / "indexed", "--timings"], out / "indexed"
    if os.environ.get("PEER_SPIDER"):
        folder = out / "spider"
        folder.mkdir()
        yield "spider", [os.environ["PEER_SPIDER"], folder / "pages", *urls], folder
    else:
        print("spider: $PEER_SPIDER names no program", file=sys.stderr)
    if shutil.which("wget"):
        folder = out / "wget"
        folder.mkdir()
        options = ["-q", "-r", "-l", "inf", "-H", "-D", hosts, "-e", "robots=on", "--warc-file=all", "--warc-cdx"]
        yield "wget", ["wget", *options, "--delete-after", "--reject-regex", r"\?", *urls], folder
    else:
        print("wget: not on the PATH", file=sys.stderr)
    if importlib.util.find_spec("scrapy") and importlib.util.find_spec("warcio"):
        folder = out / "scrapy"
        folder.mkdir()
        yield "scrapy", [sys.executable, HERE / "scrapy_warc.py", folder / "pages.warc.gz", *urls], folder
    else:
        print("scrapy: not importable, or warcio is not", file=sys.stderr)


def run(command, folder, log):
    """Runs a command in a folder; wall seconds, processor seconds, peak memory in MB."""
    began = time.monotonic()
    folder.mkdir(exist_ok=True)
    process = subprocess.Popen([str(part) for part in command], cwd=folder, stdout=log, stderr=log)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - began
    # wget says 8 when a server answered with an error, as some pages of every site do.
    if os.waitstatus_to_exitcode(status) not in (0, 8):
        print(f"{command[0]} ended with {os.waitstatus_to_exitcode(status)}", file=sys.stderr)
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def stored(folder):
    """Captures, pages among them, and bytes of the WARC files below a folder."""
    from fastwarc.warc import ArchiveIterator, WarcRecordType

    captures = pages = size = 0
    for path in sorted(folder.rglob("*")):
        if not path.name.endswith((".warc", ".warc.gz", ".warc.zst")):
            continue
        size += path.stat().st_size
        with open(path, "rb") as stream:
            kinds = WarcRecordType.response | WarcRecordType.revisit
            for record in ArchiveIterator(stream, record_types=kinds):
                if urlsplit(record.headers.get("WARC-Target-URI", "")).path == "/robots.txt":
                    continue
                captures += 1
                head = record.http_headers
                pages += "html" in (head.get("Content-Type") or "").lower() if head else 0
    return captures, pages, size / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", required=True, type=lambda path: Path(path).resolve())
    parser.add_argument("--out", default="/tmp/peers", type=Path, help="an empty folder for everything that is stored")
    parser.add_argument("--only", help="names of contestants, with commas between")
    parser.add_argument("--archive", default=str(HERE.parents[1] / "target/dist/archive"))
    arguments = parser.parse_args()
    lines = (line.split() for line in arguments.seeds.read_text().splitlines())
    urls = [words[0] for words in lines if words and not words[0].startswith("#")]
    out = arguments.out.resolve()
    out.mkdir(parents=True)
    wanted = arguments.only.split(",") if arguments.only else None
    rows = []
    for name, command, folder in commands(arguments, urls, out):
        if wanted and name not in wanted:
            continue
        with open(out / f"{name.replace(' ', '-')}.log", "wb") as log:
            rows.append((name, folder, *run(command, folder, log)))
    print("contestant           captures   pages  wall s  CPU s  peak MB  stored MB  pages/s  pages/CPU s")
    results = {}
    for name, folder, wall, cpu, peak in rows:
        captures, pages, size = stored(folder)
        results[name] = pages / wall
        print(f"{name:20} {captures:8} {pages:7} {wall:7.2f} {cpu:6.2f} {peak:8.0f} {size:10.1f} "
              f"{pages / wall:8.0f} {pages / cpu:12.0f}")
    for ours in ("archive", "archive with index"):
        for peer in ("spider", "wget", "scrapy"):
            if ours in results and peer in results:
                print(f"{ours}: {results[ours] / results[peer]:.2f} times the pages a second of {peer}")


main()
