#!/usr/bin/env python3
"""Ask an archive of XML documents and BaseX the same ten path queries, in turn.

    benches/peers/xml_queries.py FOLDER --basex basex.jar [--program PROGRAM] [--rounds N] [--work DIR]

FOLDER has Mallard documents, as of Debian's `gnome-user-docs` in /usr/share/help; `basex.jar` is in Debian's package `basex`. Each
document is put into a WARC file and imported, and added to a database with all indexes of BaseX (text, attribute, token and full
text). BaseX's server stays open and is asked over a socket; `archive query` is timed as a process, with the opening of the
archive. Milliseconds, medians; what is counted has to be equal.
"""

import argparse
import hashlib
import importlib
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

warc_files = importlib.import_module("import")
ROOT = Path(__file__).resolve().parents[2]
PORT = 19840
MALLARD = 'declare default element namespace "http://projectmallard.org/1.0/"; '
QUESTIONS = [
    ("/page", "/page"),
    ("//link[@type = guide]", "//link[@type = 'guide']"),
    ("//link[@type = guide and @xref = bluetooth]", "//link[@type = 'guide' and @xref = 'bluetooth']"),
    ('//credit/name = "Ekaterina Gerasimova"', "//credit[name = 'Ekaterina Gerasimova']"),
    ('//credit[@type = editor]/name = "David King"', "//credit[@type = 'editor']/name[. = 'David King']"),
    ('//media/@mime = "image/svg"', "//media[@mime = 'image/svg']"),
    ("//title contains bluetooth", "//title[.//text() contains text 'bluetooth']"),
    ("//section/title contains wireless", "//section/title[.//text() contains text 'wireless']"),
    ("//steps/item//link[@xref contains wireless]", "//steps/item//link[@xref contains text 'wireless']"),
    ("//revision/@date since 2019-01-01", "//revision[@date >= '2019-01-01']"),
]


class BaseX:
    """A session with a server: the protocol of https://docs.basex.org/main/Server_Protocol."""

    def __init__(self, jar, folder):
        java = ["java", f"-Dorg.basex.path={folder}", "-Xmx4g", "-cp", str(jar), "org.basex.BaseXServer"]
        self.process = subprocess.Popen([*java, f"-p{PORT}"], stdout=subprocess.DEVNULL)
        for _ in range(100):
            time.sleep(0.1)
            try:
                self.file = socket.create_connection(("127.0.0.1", PORT)).makefile("rwb")
                break
            except ConnectionRefusedError:
                continue
        realm, nonce = self.text().split(":")
        password = hashlib.md5(f"admin:{realm}:admin".encode()).hexdigest()
        self.file.write(b"admin\0" + hashlib.md5((password + nonce).encode()).hexdigest().encode() + b"\0")
        self.file.flush()
        if self.file.read(1) != b"\0":
            raise ConnectionRefusedError("BaseX refuses admin")

    def text(self):
        read = bytearray()
        while (byte := self.file.read(1)) not in (b"\0", b""):
            read += self.file.read(1) if byte == b"\xff" else byte
        return read.decode()

    def ask(self, command):
        self.file.write(command.encode() + b"\0")
        self.file.flush()
        answer, info = self.text(), self.text()
        if self.file.read(1) != b"\0":
            raise ValueError(f"{command}: {info}")
        return answer

    def close(self):
        self.process.terminate()
        self.process.wait()


def make(folder, target):
    """Writes the documents below a folder as responses."""
    with open(target, "wb") as file:
        for path in sorted(path for path in folder.rglob("*.page") if path.is_file()):
            body = path.read_bytes()
            head = f"HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\nContent-Length: {len(body)}\r\n\r\n"
            fields = [
                ("WARC-Target-URI", f"http://help.example/{path.relative_to(folder).as_posix()}".replace("@", "%40")),
                ("Content-Type", "application/http;msgtype=response"),
                ("WARC-Payload-Digest", warc_files.digest(body)),
            ]
            file.write(warc_files.record("response", fields, head.encode() + body))


def timed(work):
    began = time.perf_counter()
    answer = work()
    return (time.perf_counter() - began) * 1000, answer


def size(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--basex", type=Path, required=True)
    parser.add_argument("--program", default=str(ROOT / "target/release/archive"))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--work", type=Path, help="a folder for both, which is kept")
    arguments = parser.parse_args()
    temporary = tempfile.TemporaryDirectory()
    work = arguments.work or Path(temporary.name)
    work.mkdir(exist_ok=True)
    archive, warc = work / "archive", work / "documents.warc.gz"

    def own(*words):
        return subprocess.run(
            [arguments.program, *words, "--archive", str(archive)], check=True, stdout=subprocess.PIPE
        ).stdout

    if not archive.exists():
        make(arguments.folder, warc)
        print(f"import: {timed(lambda: own('import', str(warc)))[0]:.0f} ms")
    basex = BaseX(arguments.basex, work)
    try:
        if not (work / "data/documents").exists():
            for option in ["XINCLUDE false", "TOKENINDEX true", "FTINDEX true", "CREATEFILTER *.page", "CHOP false"]:
                basex.ask(f"SET {option}")
            print(f"BaseX: {timed(lambda: basex.ask(f'CREATE DB documents {arguments.folder.resolve()}'))[0]:.0f} ms")
        basex.ask("OPEN documents")
        print(f"index: archive {size(archive / 'state/fulltext'):.1f} MB, BaseX {size(work / 'data/documents'):.1f} MB with documents")
        print("| question | documents | archive | BaseX | times as fast |\n|---|---|---|---|---|")
        for ours, theirs in QUESTIONS:
            query = f"XQUERY {MALLARD} count(collection('documents'){theirs}/root())"
            times, counts = ([], []), ()
            # The first round is not counted.
            for _ in range(arguments.rounds + 1):
                taken = timed(lambda ours=ours: own("query", f"count pages {ours}")), timed(lambda query=query: basex.ask(query))
                for all_times, (milliseconds, _) in zip(times, taken):
                    all_times.append(milliseconds)
                counts = [int(answer.split()[-1]) for _, answer in taken]
            middle = [median(all_times[1:]) for all_times in times]
            print(f"| `{ours}` | {counts[0]} | {middle[0]:.1f} | {middle[1]:.1f} | {middle[1] / middle[0]:.2f} |")
            if counts[0] != counts[1]:
                print(f"answers differ: {counts}", file=sys.stderr)
    finally:
        basex.close()


if __name__ == "__main__":
    main()
