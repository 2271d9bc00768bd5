#!/usr/bin/env python3
"""A web with a wall of each kind, crawled in one run by this program and by others: a table of who gets what.

    benches/peers/walls.py [--archive PROGRAM] [--only NAME[,NAME]] [--playwright FOLDER]

Hosts are 127.0.3.1 and following; two more are known to an HTTP proxy and to a SOCKS proxy only. Each host has a hall that
links to a room, and a program gets it if the server gave it both. Each program is told all that it can be told for one
run. Its files are searched for the passwords afterwards. Peers that are not found are named and left out:

    wget        on the PATH
    scrapy      importable by this Python, with warcio; its spider is at the end of this file
    playwright  walls.mjs beside this file, with Node, Chromium, and playwright-core in FOLDER/node_modules
"""

import argparse
import base64
import hashlib
import importlib.util
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

HERE = Path(__file__).resolve().parent
PORT, HTTP_PROXY, SOCKS_PROXY = 8110, 8111, 8112
WALLS = ["none", "session cookie", "cookie wall", "referer", "basic", "digest", "client certificate", "slow", "rate limit"]
HOSTS = {f"127.0.3.{number}": wall for number, wall in enumerate(WALLS, 1)}
BEHIND = {"proxy.walls.test": "proxy", "socks.walls.test": "SOCKS proxy"}
ALL = {**HOSTS, **BEHIND}
# Some programs have one name and password for all servers.
NAME, PASSWORDS = "anna", {"server": "s3rver-s3cret", "proxy": "pr0xy-s3cret"}
COOKIE = "c00kie-s3cret"
SLOW_SECONDS, RATE_SECONDS = 4, 1


def url(host):
    return f"{'https' if ALL[host] == 'client certificate' else 'http'}://{host}:{PORT}/"


def basic(password):
    return base64.b64encode(f"{NAME}:{password}".encode()).decode()


def secrets():
    return [COOKIE, *PASSWORDS.values(), *(basic(password) for password in PASSWORDS.values())]


class Door(BaseHTTPRequestHandler):
    """Answers for all hosts; `got` has what was given, as host and path, and `asked` how often."""

    protocol_version = "HTTP/1.1"
    got, asked = set(), {}

    def do_GET(self):
        host, path = self.headers.get("Host", "").split(":")[0], self.path
        wall, cookies = ALL.get(host), self.headers.get("Cookie", "")
        key = (host, path)
        self.asked[key] = self.asked.get(key, 0) + 1
        if path == "/robots.txt":
            return self.answer(200, b"User-agent: *\nAllow: /\n", {"Content-Type": "text/plain"})
        proof = self.headers.get("Authorization", "")
        if wall == "session cookie" and f"sid={COOKIE}" not in cookies:
            return self.answer(401, b"closed")
        if wall == "cookie wall" and "seen=1" not in cookies:
            return self.answer(302, b"", {"Location": path, "Set-Cookie": "seen=1; Path=/"})
        if wall == "referer" and path != "/" and host not in self.headers.get("Referer", ""):
            return self.answer(403, b"closed")
        if wall == "basic" and proof != f"Basic {basic(PASSWORDS['server'])}":
            return self.answer(401, b"closed", {"WWW-Authenticate": 'Basic realm="x"'})
        if wall == "digest" and not self.is_proved(proof):
            return self.answer(401, b"closed", {"WWW-Authenticate": 'Digest realm="x", nonce="n", qop="auth"'})
        if wall == "rate limit" and self.asked[key] == 1:
            return self.answer(429, b"later", {"Retry-After": str(RATE_SECONDS)})
        if wall == "slow":
            time.sleep(SLOW_SECONDS)
        if path not in ("/", "/room"):
            return self.answer(404, b"")
        self.got.add(key)
        name = "hall" if path == "/" else "room"
        page = f"<!doctype html><title>{name}: {wall}</title><a href=/room>room</a>".encode()
        return self.answer(200, page, {"Content-Type": "text/html"})

    def is_proved(self, proof):
        """RFC 7616 with MD5."""
        got = dict(re.findall(r'(\w+)="?([^",]+)"?', proof))
        hash_of = lambda text: hashlib.md5(text.encode()).hexdigest()
        who = hash_of(f"{NAME}:x:{PASSWORDS['server']}")
        what = hash_of(f"GET:{self.path}")
        return got.get("response") == hash_of(f"{who}:n:{got.get('nc')}:{got.get('cnonce')}:auth:{what}")

    def answer(self, status, body, fields=()):
        self.send_response(status)
        for name, value in dict(fields).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def pump(one, other):
    """Copies both ways until one side ends."""

    def copy(source, target):
        try:
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    back = threading.Thread(target=copy, args=(other, one), daemon=True)
    back.start()
    copy(one, other)
    back.join()


def http_proxy(client):
    head = b""
    while b"\r\n\r\n" not in head:
        head += client.recv(1) or exit()
    line, *fields = head.decode("latin-1").split("\r\n")
    if not any(field.lower() == f"proxy-authorization: basic {basic(PASSWORDS['proxy'])}".lower() for field in fields):
        client.sendall(b"HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic realm=x\r\nContent-Length: 0\r\n"
                       b"Connection: close\r\n\r\n")
        return
    method, target, _ = line.split(" ")
    host = target.split(":")[0] if method == "CONNECT" else urlsplit(target).hostname
    if ALL.get(host) != "proxy":
        client.sendall(b"HTTP/1.1 403 Not here\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        return
    server = socket.create_connection(("127.0.3.1", PORT))
    if method == "CONNECT":
        client.sendall(b"HTTP/1.1 200 Here\r\n\r\n")
    else:
        rest = [field for field in fields if not field.lower().startswith(("proxy-", "connection:"))]
        path = urlsplit(target).path or "/"
        request = "\r\n".join([f"GET {path} HTTP/1.1", "Connection: close", *rest])
        server.sendall(request.encode("latin-1"))
    pump(client, server)


def socks_proxy(client):
    count = client.recv(2)[1]
    client.recv(count)
    client.sendall(b"\5\0")
    kind = client.recv(4)[3]
    host = client.recv(client.recv(1)[0]).decode() if kind == 3 else socket.inet_ntoa(client.recv(4))
    client.recv(2)
    if ALL.get(host) != "SOCKS proxy":
        client.sendall(b"\5\2\0\1\0\0\0\0\0\0")
        return
    client.sendall(b"\5\0\0\1\0\0\0\0\0\0")
    pump(client, socket.create_connection(("127.0.3.1", PORT)))


def listen(port, serve):
    listener = socket.create_server(("127.0.0.1", port))

    def one(client):
        with client:
            try:
                serve(client)
            except (OSError, IndexError, SystemExit):
                pass

    def accept():
        while True:
            threading.Thread(target=one, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()


def serve(out):
    """Starts everything; returns the certificate that serves, is trusted, and is shown by clients, with its key."""
    own, key = out / "own.pem", out / "key.pem"
    guarded = next(host for host in HOSTS if HOSTS[host] == "client certificate")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-subj", "/CN=walls", "-addext", "basicConstraints=critical,CA:FALSE", "-addext", f"subjectAltName=IP:{guarded}", "-keyout", key, "-out", own],
        check=True, stderr=subprocess.DEVNULL)
    for host, wall in HOSTS.items():
        server = ThreadingHTTPServer((host, PORT), Door)
        server.daemon_threads = True
        # Who breaks off concerns nobody.
        server.handle_error = lambda *_: None
        if wall == "client certificate":
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(own, key)
            context.load_verify_locations(own)
            context.verify_mode = ssl.CERT_REQUIRED
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
    listen(HTTP_PROXY, http_proxy)
    listen(SOCKS_PROXY, socks_proxy)
    return own, key


def run(command, out, **more):
    with open(out / "log.txt", "ab") as log:
        return subprocess.run([str(part) for part in command], stdout=log, stderr=log, cwd=out, timeout=300, **more)


def of(wall):
    return next(host for host in ALL if ALL[host] == wall)


def archive(program, out, own, key):
    both = out / "both.pem"
    both.write_text(own.read_text() + key.read_text())
    jar = out / "cookies.txt"
    jar.write_text(f"# Netscape HTTP Cookie File\n{of('session cookie')}\tFALSE\t/\tFALSE\t0\tsid\t{COOKIE}\n")
    folder = out / "web.archive"
    for host, way, value, secret in [
        (f"http://{of('session cookie')}:{PORT}", "--cookies", jar, ""),
        (f"http://{of('basic')}:{PORT}", "--basic", NAME, PASSWORDS["server"]),
        (f"http://{of('digest')}:{PORT}", "--digest", NAME, PASSWORDS["server"]),
        (f"{of('client certificate')}:{PORT}", "--certificate", both, ""),
        (f"127.0.0.1:{HTTP_PROXY}", "--proxy", NAME, PASSWORDS["proxy"]),
    ]:
        run([program, "login", "add", host, "--archive", folder, way, value], out, input=secret.encode())
    for given in (both, jar):
        given.unlink()
    seeds = out / "seeds.txt"
    seeds.write_text("".join(url(host) + "\n" for host in ALL))
    run([program, "crawl", "--archive", folder, "--seeds", seeds, "--delay", "0", "--allow-private", "--cacert", own,
         "--patience", "10s", "--proxy", f"{of('proxy')}=http://127.0.0.1:{HTTP_PROXY}",
         "--proxy", f"{of('SOCKS proxy')}=socks5h://127.0.0.1:{SOCKS_PROXY}"], out)
    # The one place where secrets belong.
    shutil.rmtree(folder / "secrets")


def wget(_, out, own, key):
    jar = out / "cookies.txt"
    jar.write_text(f"# Netscape HTTP Cookie File\n{of('session cookie')}\tFALSE\t/\tFALSE\t2000000000\tsid\t{COOKIE}\n")
    direct = ",".join(host for host in ALL if host != of("proxy"))
    run(["wget", "-r", "-l", "inf", "-H", "-D", ",".join(ALL), "--warc-file=all", "--delete-after", "--tries=3", "-T", "20",
         "--load-cookies", jar, "--user", NAME, "--password", PASSWORDS["server"], "--ca-certificate", own,
         "--certificate", own, "--private-key", key, "--retry-on-http-error=429", "--waitretry=2",
         "-e", f"http_proxy=http://127.0.0.1:{HTTP_PROXY}", "-e", f"no_proxy={direct}",
         "--proxy-user", NAME, "--proxy-password", PASSWORDS["proxy"], *map(url, ALL)], out)
    jar.unlink()


def scrapy(_, out, own, key):
    run([sys.executable, __file__, "--spider"], out)


def playwright(folder, out, own, key):
    told = {
        "urls": [url(host) for host in ALL], "certificate": str(own), "key": str(key), "origin": url(of("client certificate"))[:-1],
        "cookie": {"name": "sid", "value": COOKIE, "url": url(of("session cookie"))}, "name": NAME, "password": PASSWORDS["server"],
        "proxy": {"server": f"http://127.0.0.1:{HTTP_PROXY}", "username": NAME, "password": PASSWORDS["proxy"],
                  "bypass": ",".join(host for host in ALL if host != of("proxy"))},
    }
    run(["node", HERE / "walls.mjs", json.dumps(told)], out, env={**os.environ, "PLAYWRIGHT_CORE": str(folder)})


def count_secrets(out):
    """Files that have a secret, also in packed ones."""
    import gzip

    found = []
    for file in filter(Path.is_file, out.rglob("*")):
        data = file.read_bytes()
        if file.suffix == ".gz":
            data += gzip.decompress(data)
        if any(secret.encode() in data for secret in secrets()):
            found.append(str(file.relative_to(out)))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--archive", default="archive")
    parser.add_argument("--playwright", type=Path)
    parser.add_argument("--only", default="archive,wget,scrapy,playwright")
    arguments = parser.parse_args()
    program = shutil.which(arguments.archive) or arguments.archive
    node = arguments.playwright and (arguments.playwright / "node_modules" / "playwright-core").resolve()
    peers = {
        "archive": (archive, program, True),
        "wget": (wget, None, shutil.which("wget")),
        "scrapy": (scrapy, None, importlib.util.find_spec("scrapy") and importlib.util.find_spec("warcio")),
        "playwright": (playwright, node, node and node.exists()),
    }
    with tempfile.TemporaryDirectory() as folder:
        own, key = serve(Path(folder))
        rows, names = {}, []
        for name in arguments.only.split(","):
            crawl, given, is_there = peers[name]
            if not is_there:
                print(f"{name}: not found", file=sys.stderr)
                continue
            Door.got.clear(), Door.asked.clear()
            out = Path(folder) / name
            out.mkdir()
            began = time.monotonic()
            crawl(Path(given).resolve() if given else None, out, own, key)
            names.append(f"{name} ({time.monotonic() - began:.0f} s)")
            for host, wall in ALL.items():
                got = [(host, path) in Door.got for path in ("/", "/room")]
                rows.setdefault(wall, []).append("both" if all(got) else "hall only" if got[0] else "-")
            rows.setdefault("files with a secret", []).append(", ".join(count_secrets(out)) or "none")
        print("| wall | " + " | ".join(names) + " |\n|---|" + "---|" * len(names))
        for wall, got in rows.items():
            print(f"| {wall} | " + " | ".join(got) + " |")


def spider():
    """The spider of scrapy: its own middlewares, told what they can be told."""
    import scrapy as lib
    from scrapy.crawler import CrawlerProcess

    class Walls(lib.Spider):
        name = "walls"
        http_user, http_pass, http_auth_domain = NAME, PASSWORDS["server"], f"{of('basic')}:{PORT}"

        async def start(self):
            for host in ALL:
                yield self.ask(url(host)).replace(dont_filter=True)

        def ask(self, target):
            host = urlsplit(target).hostname
            request = lib.Request(target, self.parse, cookies={"sid": COOKIE} if ALL[host] == "session cookie" else {})
            if ALL[host] == "proxy":
                request.meta["proxy"] = f"http://{NAME}:{PASSWORDS['proxy']}@127.0.0.1:{HTTP_PROXY}"
            elif ALL[host] == "SOCKS proxy":
                request.meta["proxy"] = f"socks5://127.0.0.1:{SOCKS_PROXY}"
            return request

        def parse(self, response):
            with open("pages.warc", "ab") as file:
                file.write(bytes(str(response.request.headers.to_unicode_dict()), "utf-8") + response.body)
            for link in response.css("a::attr(href)").getall():
                target = response.urljoin(link)
                yield self.ask(target).replace(headers={"Referer": response.url})

    process = CrawlerProcess({"ROBOTSTXT_OBEY": True, "LOG_LEVEL": "INFO", "DOWNLOAD_TIMEOUT": 20, "RETRY_TIMES": 2,
                              "USER_AGENT": "scrapy-walls"})
    process.crawl(Walls)
    process.start()


if __name__ == "__main__":
    spider() if "--spider" in sys.argv else main()
