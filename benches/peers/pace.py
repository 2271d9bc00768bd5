#!/usr/bin/env python3
"""Crawl a large test web and say whether the crawl slows down as it grows: the speed of every tenth of its captures.

    cargo build --release && cargo build --release --example testweb
    benches/peers/pace.py --pages 2000000 [--hosts N] [--out DIR] [--archive PROGRAM] [--testweb PROGRAM] [-- OPTIONS]

The test web is served by a process of its own, at one loopback address for all hosts. What follows `--` goes to
`archive crawl`. Two million pages need some 20 GB of disk and, on two processors, half an hour.

Of both speeds that are printed, that by processor time says more on a machine that has other work.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = "127.0.0.1:8731"
SEEDS = 10


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=200_000)
    parser.add_argument("--hosts", type=int, help="one for a thousand pages, unless given")
    parser.add_argument("--out", type=Path, default=Path("/tmp/pace"), help="a folder that is not there yet")
    parser.add_argument("--archive", default=str(ROOT / "target/release/archive"))
    parser.add_argument("--testweb", default=str(ROOT / "target/release/examples/testweb"))
    parser.add_argument("options", nargs="*", help="for archive crawl")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True)
    hosts = arguments.hosts or max(100, arguments.pages // 1000)
    command = [arguments.testweb, "--pages", str(arguments.pages), "--hosts", str(hosts), "--listen", ADDRESS]
    command += ["--seeds", str(SEEDS)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        seeds = arguments.out / "seeds.txt"
        seeds.write_text("".join(server.stdout.readline() for _ in range(SEEDS)))
        crawl = [arguments.archive, "crawl", "--seeds", str(seeds), "--archive", str(arguments.out / "archive")]
        # The end of a crawl waits for servers that fail, whatever its size.
        crawl += ["--limit", str(arguments.pages * 3 // 4)]
        crawl += ["--scope", "any", "--delay", "0", "--allow-private", "--connect-to", f"::{ADDRESS}", "--timings"]
        began = time.monotonic()
        status = subprocess.run(crawl + arguments.options, check=False).returncode
        print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)
        return status
    finally:
        server.terminate()
        server.wait()


sys.exit(main())
