#!/usr/bin/env python3
"""Ask an archive of XML documents and BaseX the same ten path queries, in turn.

    benches/peers/xml_queries.py FOLDER --basex basex.jar [--testweb PROGRAM] [--program PROGRAM] [--rounds N] [--cold N] [--work DIR]

FOLDER has Mallard documents, as of Debian's `gnome-user-docs` in /usr/share/help; `basex.jar` is in Debian's package `basex`. With
`--testweb target/dist/examples/testweb` it receives the DocBook documents of a test web of 20 000 pages, unless it is there. Each
document is put into a WARC file and imported, and added to a database with all indexes of BaseX (text, attribute, token and full
text). The same documents have to be found. Both are timed twice, in milliseconds, medians: warm, `archive serve` asked over HTTP and BaseX's
server over its socket, each on one connection; and cold, as one command, with the start of Java for BaseX.
"""

import argparse
import csv
import hashlib
import http.client
import importlib
import json
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
from pathlib import Path
from statistics import median

warc_files = importlib.import_module("import")
ROOT = Path(__file__).resolve().parents[2]
PORT = 19840
SERVE_PORTS = (19841, 19842)
HOST = "http://help.example/"
WEB = "127.0.0.1:19843"
MALLARD = 'declare default element namespace "http://projectmallard.org/1.0/"; '
DOCBOOK = (
    'declare default element namespace "http://docbook.org/ns/docbook"; '
    'declare namespace xlink = "http://www.w3.org/1999/xlink"; '
)
OF_MALLARD = [
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
OF_DOCBOOK = [
    ("/article", "/article"),
    ("//article/@lang = fr", "//article[@xml:lang = 'fr']"),
    ("//publisher = lighthouse", "//publisher[. = 'lighthouse']"),
    ("//info[publisher = bridge and date since 2023-06-01]", "//info[publisher = 'bridge' and date >= '2023-06-01']"),
    ("//date since 2023-10-01", "//date[. >= '2023-10-01']"),
    ("//section/title = census", "//section/title[. = 'census']"),
    ("//info/title contains archive", "//info/title[.//text() contains text 'archive']"),
    ("//link/@href = \"http://h0.s7.test/\"", "//link[@xlink:href = 'http://h0.s7.test/']"),
    ("//listitem//link contains telescope", "//listitem//link[.//text() contains text 'telescope']"),
    ("//para contains \"poem on theatre\"", "//para[.//text() contains text 'poem on theatre']"),
]


class BaseX:
    """A session with a server: the protocol of https://docs.basex.org/main/Server_Protocol."""

    def __init__(self, jar, folder):
        self.java = ["java", f"-Dorg.basex.path={folder}", "-Xmx4g", "-cp", str(jar)]
        self.process = subprocess.Popen(
            [*self.java, "org.basex.BaseXServer", f"-p{PORT}"], stdout=subprocess.DEVNULL
        )
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

    def command(self, query):
        return output([*self.java, "org.basex.BaseX", query])

    def close(self):
        self.process.terminate()
        self.process.wait()


class Served:
    """`archive serve`, and a connection to it."""

    def __init__(self, program, archive):
        places = [f"127.0.0.1:{port}" for port in SERVE_PORTS]
        options = ["--archive", str(archive), "--listen", places[0], "--replay-listen", places[1]]
        self.process = subprocess.Popen([program, "serve", *options], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.process.stdout.readline()
        self.connection = http.client.HTTPConnection(places[0])

    def ask(self, query):
        target = "/query?" + urllib.parse.urlencode({"q": query})
        self.connection.request("GET", target, headers={"Accept": "application/json"})
        answer = self.connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise ValueError(f"{query}: {body.decode()}")
        return body

    def close(self):
        self.process.terminate()
        self.process.wait()


def output(words):
    return subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout


def fetch(program, folder):
    """Writes all documents of a test web into a folder."""
    with tempfile.NamedTemporaryFile() as truth:
        options = ["--plain", "--xml", "1", "--pages", "20000", "--hosts", "200", "--truth", truth.name]
        server = subprocess.Popen([program, *options, "--listen", WEB], stdout=subprocess.PIPE)
        try:
            server.stdout.readline()
            connection = http.client.HTTPConnection(WEB)
            for number, page in enumerate(csv.DictReader(open(truth.name, encoding="utf-8"))):
                url = urllib.parse.urlsplit(page["url"])
                connection.request("GET", url.path or "/", headers={"Host": url.netloc})
                answer = connection.getresponse()
                body = answer.read()
                if answer.status == 200 and "xml" in answer.getheader("Content-Type", ""):
                    target = folder / url.netloc / f"{number}.xml"
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(body)
        finally:
            server.terminate()
            server.wait()


def make(folder, names, target):
    """Writes the documents of such names below a folder as responses."""
    with open(target, "wb") as file:
        for path in sorted(path for path in folder.rglob(names) if path.is_file()):
            body = path.read_bytes()
            head = f"HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\nContent-Length: {len(body)}\r\n\r\n"
            fields = [
                ("WARC-Target-URI", f"{HOST}{path.relative_to(folder).as_posix()}".replace("@", "%40")),
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
    parser.add_argument("--testweb")
    parser.add_argument("--program", default=str(ROOT / "target/dist/archive"))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--cold", type=int, default=3, help="rounds of commands")
    parser.add_argument("--work", type=Path, help="a folder for both, which is kept")
    arguments = parser.parse_args()
    temporary = tempfile.TemporaryDirectory()
    work = arguments.work or Path(temporary.name)
    work.mkdir(exist_ok=True)
    archive, warc = work / "archive", work / "documents.warc.gz"
    names, prologue, questions = "*.page", MALLARD, OF_MALLARD
    if arguments.testweb:
        names, prologue, questions = "*.xml", DOCBOOK, OF_DOCBOOK
        if not arguments.folder.exists():
            fetch(arguments.testweb, arguments.folder)

    def own(*words):
        return output([arguments.program, *words, "--archive", str(archive)])

    if not archive.exists():
        make(arguments.folder, names, warc)
        print(f"import: {timed(lambda: own('import', str(warc)))[0]:.0f} ms")
    basex, served = BaseX(arguments.basex, work), Served(arguments.program, archive)
    try:
        if not (work / "data/documents").exists():
            for option in ["XINCLUDE false", "TOKENINDEX true", "FTINDEX true", f"CREATEFILTER {names}", "CHOP false"]:
                basex.ask(f"SET {option}")
            print(f"BaseX: {timed(lambda: basex.ask(f'CREATE DB documents {arguments.folder.resolve()}'))[0]:.0f} ms")
        basex.ask("OPEN documents")
        print(f"index: archive {size(archive / 'state/fulltext'):.1f} MB, BaseX {size(work / 'data/documents'):.1f} MB with documents")
        columns = ["archive", "BaseX", "times as fast"]
        heads = ["question", "documents", *(f"{column}, {how}" for how in ("warm", "cold") for column in columns)]
        print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
        for ours, theirs in questions:
            documents = f"{prologue} collection('documents'){theirs}/root()"
            question, query = f"count pages {ours}", f"{prologue} count(collection('documents'){theirs}/root())"
            # Each document that is found, and not only how many.
            urls = {row["url"] for row in json.loads(served.ask(f"page {ours} select url limit 100000"))}
            paths = basex.ask(f"XQUERY {documents} ! substring-after(base-uri(), '/documents/')").split("\n")
            found = {HOST + path.replace("@", "%40") for path in paths if path}
            if urls != found:
                print(f"{ours}: {len(urls - found)} only in the archive, {len(found - urls)} only in BaseX", file=sys.stderr)
            ways = [
                (arguments.rounds, lambda: served.ask(question), lambda: basex.ask(f"XQUERY {query}")),
                (arguments.cold, lambda: own("query", question), lambda: basex.command(query)),
            ]
            cells = [f"`{ours}`", str(len(found))]
            for rounds, own_way, other_way in ways:
                # The first round is not counted.
                taken = [(timed(own_way)[0], timed(other_way)[0]) for _ in range(rounds + 1)][1:]
                middle = [median(one) for one in zip(*taken)]
                cells += [f"{middle[0]:.1f}", f"{middle[1]:.1f}", f"{middle[1] / middle[0]:.2f}"]
            print(f"| {' | '.join(cells)} |", flush=True)
    finally:
        served.close()
        basex.close()


if __name__ == "__main__":
    main()
