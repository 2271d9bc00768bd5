#!/usr/bin/env python3
"""Crawl a large test web and say whether the crawl slows down as it grows: the speed of every tenth of its captures.

    cargo build --profile dist && cargo build --profile dist --example testweb
    benches/peers/pace.py --pages 2000000 [--hosts N] [--out DIR] [--archive PROGRAM] [--testweb PROGRAM] [-- OPTIONS]
    benches/peers/pace.py --hostile -- --for 60s

The test web is served by a process of its own, at one loopback address for all hosts. What follows `--` goes to
`archive crawl`. Two million pages need some 20 GB of disk and, on two processors, half an hour.

With `--hostile` hosts that attack are seeds too: XML that grows, media types without end, large robots.txt files and chains of them.
How many pages of other hosts were fetched is printed at the end; compare it with that of a run as long without them.

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
ATTACKERS = [
    f"http://{host}.attack.test/{path}\n" for host, path in [("xml", 0), ("types", 0), ("x0.rules", ""), ("x0.chain", "")]
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=200_000)
    parser.add_argument("--hosts", type=int, help="one for a thousand pages, unless given")
    parser.add_argument("--out", type=Path, default=Path("/tmp/pace"), help="a folder that is not there yet")
    parser.add_argument("--archive", default=str(ROOT / "target/dist/archive"))
    parser.add_argument("--testweb", default=str(ROOT / "target/dist/examples/testweb"))
    parser.add_argument("--hostile", action="store_true", help="crawl hosts that attack, too")
    parser.add_argument("options", nargs="*", help="for archive crawl")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True)
    hosts = arguments.hosts or max(100, arguments.pages // 1000)
    command = [arguments.testweb, "--pages", str(arguments.pages), "--hosts", str(hosts), "--listen", ADDRESS]
    command += ["--seeds", str(SEEDS)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        seeds = arguments.out / "seeds.txt"
        attackers = ATTACKERS if arguments.hostile else []
        seeds.write_text("".join([server.stdout.readline() for _ in range(SEEDS)] + attackers))
        crawl = [arguments.archive, "crawl", "--seeds", str(seeds), "--archive", str(arguments.out / "archive")]
        # The end of a crawl waits for servers that fail, whatever its size.
        crawl += ["--limit", str(arguments.pages * 3 // 4)]
        crawl += ["--scope", "any", "--delay", "0", "--allow-private", "--connect-to", f"::{ADDRESS}", "--timings"]
        began = time.monotonic()
        status = subprocess.run(crawl + arguments.options, check=False).returncode
        elapsed = time.monotonic() - began
        query = "captures > 0 and not host ~ '*.attack.test' select url".replace("'", '"')
        query = [arguments.archive, "query", query, "--json", "--archive", str(arguments.out / "archive")]
        others = subprocess.run(query, stdout=subprocess.PIPE, check=True).stdout.count(b"\n")
        print(f"{elapsed:.0f} s, {others} URLs of hosts that do not attack, {others / elapsed:.0f}/s", file=sys.stderr)
        return status
    finally:
        server.terminate()
        server.wait()


sys.exit(main())
