#!/usr/bin/env python3
"""A crawl beside `archive serve` under load: how much slower it is than beside an idle server, and whether the server's memory grows.

    benches/peers/beside_crawl.py ARCHIVE --seeds FILE [--rate 50] [--rounds 3] [--limit 15000]     # speed
    benches/peers/beside_crawl.py ARCHIVE --seeds FILE --memory 600 --delay 100ms                   # memory, a line each 10 seconds

64 connections ask for searches and replayed pages, `--rate` a second of both together (0: as many as come back, by wrk). Each crawl goes
on from a copy of the archive, so that all fetch the same; idle and loaded ones take turns.
"""

import argparse
import asyncio
import collections
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import tempfile
import time
import urllib.parse
from pathlib import Path

from beside_pywb import free, reached

CONNECTIONS, WORDS = 64, "module function archive server query index install type list package".split()


def paths(program, archive):
    """Requests by the origin that has them: searches, and pages of the archive as it was before the crawl."""
    with tempfile.TemporaryDirectory() as folder:
        index = Path(folder) / "index.cdxj"
        subprocess.run([program, "export", "--archive", archive, "cdxj", "--output", index], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        rows = [line.split(" ", 2) for line in index.open()]
    pages = [f"/web/{stamp}mp_/{json.loads(fields)['url']}" for _, stamp, fields in rows if '"text/html"' in fields and '"200"' in fields]
    pairs = [" ".join(random.Random(number).sample(WORDS, 2)) for number in range(40)]
    return [f"/search?q={urllib.parse.quote_plus(words)}" for words in WORDS + pairs], pages


class Load:
    """Requests at a steady rate over all connections."""

    def __init__(self, ports, wanted, rate):
        self.ports, self.wanted, self.rate = ports, wanted, rate
        self.times, self.failed, self.is_over = [], collections.Counter(), False

    async def one(self, number):
        dice, side = random.Random(number), number % 2
        reader, writer = await asyncio.open_connection("127.0.0.1", self.ports[side])
        due, pause = time.monotonic() + dice.random() * CONNECTIONS / self.rate, CONNECTIONS / self.rate
        while not self.is_over:
            await asyncio.sleep(max(0, due - time.monotonic()))
            begun = time.monotonic()
            writer.write(f"GET {dice.choice(self.wanted[side])} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(re.search(rb"\r\ncontent-length: (\d+)", head, re.I)[1]))
            self.times.append(time.monotonic() - begun)
            if not head.startswith(b"HTTP/1.1 200"):
                self.failed[head.split(b"\r\n")[0].decode()] += 1
            due = max(due + pause, begun)
        writer.close()

    async def whole(self, done):
        running = [asyncio.create_task(self.one(number)) for number in range(CONNECTIONS)]
        begun = time.monotonic()
        while not done():
            await asyncio.sleep(0.05)
        self.is_over = True
        seconds = time.monotonic() - begun
        # Most of them sleep until their next request is due.
        for one in running:
            one.cancel()
        for outcome in await asyncio.gather(*running, return_exceptions=True):
            if isinstance(outcome, Exception) and not isinstance(outcome, asyncio.CancelledError):
                self.failed[repr(outcome)] += 1
        times = sorted(self.times) or [0]
        at = lambda share: round(1000 * times[int(share * (len(times) - 1))], 1)
        return {"a second": round(len(self.times) / seconds, 1), "p50 ms": at(0.5), "p99 ms": at(0.99), "failed": dict(self.failed)}


def saturate(ports, wanted, seconds):
    """The same by wrk, half of the connections for each origin, as fast as answers come."""
    running = []
    for port, some in zip(ports, wanted):
        script = tempfile.NamedTemporaryFile("w", suffix=".lua", delete=False)
        script.write("local paths = {" + ",".join(json.dumps(path) for path in some) + "}\nlocal at = 0\n")
        script.write("request = function() at = at % #paths + 1 return wrk.format('GET', paths[at]) end\n")
        script.close()
        command = ["wrk", "-t1", f"-c{CONNECTIONS // 2}", f"-d{seconds}s", "-s", script.name, f"http://127.0.0.1:{port}"]
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
    return running


def memory(process):
    """Resident MiB of a program, and those that are no files."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return [int(re.search(rf"{name}:\s+(\d+)", status)[1]) // 1024 for name in ("VmRSS", "RssAnon")]


def worked(process):
    """Seconds that processors have worked for a program."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archive", type=Path)
    parser.add_argument("--seeds", type=Path, required=True)
    parser.add_argument("--program", default="target/dist/archive")
    parser.add_argument("--rate", type=float, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=int, default=15000)
    parser.add_argument("--delay", default="0")
    parser.add_argument("--memory", type=int, help="seconds of one crawl under load, with the server's memory")
    given = parser.parse_args()
    program = shutil.which(given.program) or str(Path(given.program).resolve())
    wanted = paths(program, given.archive)
    speeds = collections.defaultdict(list)
    for number in range(1 if given.memory else 2 * given.rounds):
        is_loaded = bool(given.memory) or number % 2 == 1
        folder = Path(tempfile.mkdtemp())
        archive, ports = folder / "archive", (free(), free())
        shutil.copytree(given.archive, archive)
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        listen = ["--listen", f"127.0.0.1:{ports[0]}", "--replay-listen", f"127.0.0.1:{ports[1]}"]
        server = subprocess.Popen([program, "serve", "--archive", archive, *listen], **quiet)
        for port in ports:
            reached(port)
        until = ["--for", f"{given.memory}s"] if given.memory else ["--limit", str(given.limit)]
        command = [program, "crawl", "--archive", archive, "--seeds", given.seeds, "--codec", "gzip", "--scope", "host"]
        crawl = subprocess.Popen(
            [*command, "--delay", given.delay, "--allow-private", *until], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        begun, last, said = time.monotonic(), 0.0, None

        def done():
            nonlocal last
            if given.memory and time.monotonic() - last >= 10:
                last = time.monotonic()
                print(round(last - begun), "s:", *memory(server), "MiB", flush=True)
            return crawl.poll() is not None

        if is_loaded and given.rate:
            said = asyncio.run(Load(ports, wanted, given.rate).whole(done))
        else:
            hammers = saturate(ports, wanted, given.memory or 600) if is_loaded else []
            while not done():
                time.sleep(0.05)
            for one in hammers:
                # wrk reports what it has when it is interrupted.
                one.send_signal(2)
            said = [re.findall(r"(?:Requests/sec|Non-2xx[^:]*):\s+[\d.]+", one.communicate()[0]) for one in hammers]
        seconds, words = time.monotonic() - begun, crawl.stderr.read()
        if crawl.returncode:
            server.kill()
            raise SystemExit(words)
        captures = int(re.search(r"([\d,]+) captures", words.splitlines()[-1])[1].replace(",", ""))
        speeds["loaded" if is_loaded else "idle"].append(captures / seconds)
        print("loaded" if is_loaded else "idle", captures, f"captures, {seconds:.1f} s, {captures / seconds:.0f} a second", said, f"{worked(server):.1f} s of the server's processor time,", *memory(server), "MiB", flush=True)
        server.kill()
        server.wait()
        shutil.rmtree(folder)
    if not given.memory:
        idle, loaded = (statistics.median(speeds[name]) for name in ("idle", "loaded"))
        print(json.dumps({"processors": os.cpu_count(), "idle": round(idle), "loaded": round(loaded), "share": round(loaded / idle, 3)}))


if __name__ == "__main__":
    main()
