#!/usr/bin/env python3
"""Import WARC files with this program and index them with cdxj-indexer (warcio), and print the ratio.

    benches/peers/import.py FILES… [--archive PROGRAM] [--indexer PROGRAM] [--rounds N]
    benches/peers/import.py --pages FOLDER [--limit N] …

FILES are `.warc.gz`. With `--pages` one is made first: a response for every HTML file below a folder, one gzip member a
record, with the digests that crawlers write. Importing checks digests, parses, finds copies, compresses anew and books every
capture; indexing reads the records and writes a line for each, sorted (`-s`). Both run alternately; the best of each counts,
and so does everything from the start of the process to its end. This program uses all cores, the indexer is made for one:
both the time on the clock and that of the processors are printed.

    pip install cdxj-indexer
"""

import argparse
import base64
import gzip
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

HERE = Path(__file__).resolve().parent


def record(kind, fields, block):
    """A WARC record as one gzip member."""
    lines = [f"WARC-Type: {kind}", f"WARC-Record-ID: <urn:uuid:{uuid.uuid4()}>", "WARC-Date: 2026-01-01T00:00:00Z"]
    lines += [f"{name}: {value}" for name, value in fields]
    head = "\r\n".join(["WARC/1.1", *lines, f"Content-Length: {len(block)}", "", ""])
    return gzip.compress(head.encode() + block + b"\r\n\r\n", 6)


def digest(block):
    return "sha1:" + base64.b32encode(hashlib.sha1(block).digest()).decode()


def make(folder, target, limit):
    """Writes the pages below a folder as responses; the first folder of a path is its site."""
    paths = sorted(path for path in folder.rglob("*.html") if path.is_file())[:limit]
    with open(target, "wb") as file:
        file.write(record("warcinfo", [("Content-Type", "application/warc-fields")], b"software: benches/peers\r\n"))
        for path in paths:
            body = path.read_bytes()
            site, _, name = path.relative_to(folder).as_posix().partition("/")
            head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n\r\n"
            block = head.encode() + body
            fields = [
                ("WARC-Target-URI", f"http://{site.lower()}.example/{name}".replace(" ", "%20")),
                ("Content-Type", "application/http;msgtype=response"),
                ("WARC-Payload-Digest", digest(body)),
                ("WARC-Block-Digest", digest(block)),
            ]
            file.write(record("response", fields, block))


def run(command):
    """Runs a command; seconds on the clock and of the processors."""
    began = time.monotonic()
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - began
    # Importing says 1 when a record was broken; the rest is in the archive.
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        sys.exit(f"{command[0]} ended with {os.waitstatus_to_exitcode(status)}")
    return wall, usage.ru_utime + usage.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--pages", type=Path, help="make a file of the HTML files below this folder")
    parser.add_argument("--limit", type=int, default=20_000, help="pages at most")
    parser.add_argument("--archive", default=HERE.parents[1] / "target/dist/archive", help="this program")
    parser.add_argument("--indexer", default=shutil.which("cdxj-indexer"), help="cdxj-indexer")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    if arguments.indexer is None:
        sys.exit("cdxj-indexer is not on the PATH (pip install cdxj-indexer); --indexer names it")
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        files = list(arguments.files)
        if arguments.pages:
            files.append(folder / "pages.warc.gz")
            make(arguments.pages, files[-1], arguments.limit)
        if not files:
            parser.error("no files")
        size = sum(path.stat().st_size for path in files)
        best = {}
        for round in range(arguments.rounds):
            target = folder / f"archive{round}"
            ours = [arguments.archive, "import", *files, "--archive", target, "--no-full-text"]
            theirs = [arguments.indexer, "-s", "-o", folder / "index.cdxj", *files]
            for name, command in (("archive import", ours), ("cdxj-indexer -s", theirs)):
                best[name] = min(best.get(name, (float("inf"), 0.0)), run(command))
            shutil.rmtree(target)
        print(f"{len(files)} files, {size / 1e6:.1f} MB")
        for name, (wall, cpu) in best.items():
            print(f"{name:<16} {wall:7.2f} s {size / 1e6 / wall:7.1f} MB/s   {cpu:7.2f} s of the processors")
        (ours, our_cpu), (theirs, their_cpu) = best.values()
        print(f"importing is {theirs / ours:.2f} times as fast as indexing, {their_cpu / our_cpu:.2f} times for the processors")


if __name__ == "__main__":
    main()
