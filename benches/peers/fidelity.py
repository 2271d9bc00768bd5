#!/usr/bin/env python3
"""Replay pages of a crawl in Chromium, by this program and by pywb from the same WARC files, beside the live pages.

    archive crawl --archive A --codec gzip …             # of servers that answer the same still, `scripted.py` among them
    benches/peers/fidelity.py A --pywb VENV/bin [--program PROGRAM] [--limit N]

Of every HTML page and redirect: whether the visible text is the live page's, whether all requisites are there that the live page
loaded, the share of pixels that differ (1200 × 2000, a channel by more than 16), and what was asked of the live web, which a proxy
that answers nothing counts. A line for each page where something differs, then sums as JSON.

    apt-get install chromium chromium-driver; pip install pillow
"""

import base64
import collections
import io
import json
import re
import socket
import subprocess
import threading
import time
import urllib.parse
import urllib.request

from beside_pywb import arguments, free, reached, served
from PIL import Image, ImageChops

WIDTH, HEIGHT, CHANNEL, PIXELS, SETTLED, PATIENCE = 1200, 2000, 16, 0.01, 0.3, 15


class Nowhere(threading.Thread):
    """A proxy that answers nothing and remembers what it was asked for."""

    def __init__(self):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port, self.asked = self.listener.getsockname()[1], []
        self.start()

    def run(self):
        while True:
            stream, _ = self.listener.accept()
            stream.settimeout(1)
            try:
                self.asked.append(stream.recv(4096).split(b"\r\n")[0].decode("latin-1"))
            except OSError:
                pass
            stream.close()


class Browser:
    def __init__(self, *arguments):
        port = free()
        self.driver = subprocess.Popen(["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL)
        reached(port)
        self.base = f"http://127.0.0.1:{port}/session"
        usual = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
        quiet = ["--disable-background-networking", "--disable-component-update"]
        wanted = {"goog:chromeOptions": {"args": usual + quiet + list(arguments)}, "goog:loggingPrefs": {"performance": "ALL"}}
        self.base += "/" + self.post("", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]
        self.resize()

    def resize(self):
        self.cdp("Emulation.setDeviceMetricsOverride", width=WIDTH, height=HEIGHT, deviceScaleFactor=1, mobile=False)

    def post(self, path, sent):
        request = urllib.request.Request(self.base + path, json.dumps(sent).encode(), {"Content-Type": "application/json"})
        return json.load(urllib.request.urlopen(request, timeout=120))["value"]

    def cdp(self, name, **parameters):
        return self.post("/goog/cdp/execute", {"cmd": name, "params": parameters})

    def script(self, text):
        return self.post("/execute/sync", {"script": text, "args": []})

    def log(self):
        for entry in self.post("/se/log", {"type": "performance"}):
            yield json.loads(entry["message"])["message"]

    def show(self, url):
        """Text, requisites by their URLs in the browser, and picture of a page when nothing comes any more."""
        collections.deque(self.log(), 0)
        self.post("/url", {"url": url})
        loaded, begun, last = set(), time.time(), time.time()
        while time.time() - last < SETTLED and time.time() - begun < PATIENCE:
            for event in self.log():
                last = time.time() if event["method"].startswith("Network.") else last
                if event["method"] == "Network.responseReceived":
                    answer = event["params"]["response"]
                    is_data = answer["url"].startswith("data:")
                    if answer["status"] == 200 and not is_data and event["params"]["type"] not in ("Document", "Other"):
                        loaded.add(answer["url"].split("#")[0])
            time.sleep(0.05)
        text = self.script("return document.body ? document.body.innerText : ''")
        # Of a page that a worker has loaded again Chromium takes no picture otherwise.
        self.resize()
        picture = Image.open(io.BytesIO(base64.b64decode(self.cdp("Page.captureScreenshot")["data"]))).convert("RGB")
        return " ".join(text.split()), loaded, picture

    def end(self):
        # The browser outlives a driver that is killed.
        urllib.request.urlopen(urllib.request.Request(self.base, method="DELETE"), timeout=120)
        self.driver.kill()


def differing(a, b):
    """The share of pixels that differ."""
    channels = ImageChops.difference(a, b).split()
    worst = ImageChops.lighter(ImageChops.lighter(channels[0], channels[1]), channels[2])
    return sum(worst.histogram()[CHANNEL + 1 :]) / (WIDTH * HEIGHT)


def main():
    parser = arguments(__doc__)
    parser.add_argument("--limit", type=int, default=300)
    given = parser.parse_args()
    with served(given) as (index, ours, theirs):
        nowhere = Nowhere()
        beside = f"--proxy-bypass-list=<-loopback>;localhost:{ours};127.0.0.1:{theirs}"
        live, replay = Browser(), Browser(f"--proxy-server=127.0.0.1:{nowhere.port}", beside)
        pages, archived = [], set()
        for line in index.open():
            _, stamp, fields = line.split(" ", 2)
            fields = json.loads(fields)
            archived.add(fields["url"])
            if fields.get("status") in ("200", "301", "302") and fields["mime"] == "text/html":
                pages.append((stamp, fields["url"]))
        hosts = {url.split("/")[2] for url in archived if "//" in url}
        count = min(given.limit, len(pages))
        pages = [pages[place * len(pages) // count] for place in range(count)]
        sides = {
            "ours": lambda stamp, url: f"http://localhost:{ours}/web/{stamp}if_/{url}",
            "pywb": lambda stamp, url: f"http://127.0.0.1:{theirs}/archive/{stamp}mp_/{url}",
        }
        # The first page of a reader is loaded twice: see docs/replay.md.
        replay.show(sides["ours"](*pages[0]))
        original = re.compile(r"http://(?:127\.0\.0\.1|localhost):\d+/(?:web|archive)/\d+[a-z]*_?/(.*)")
        at_root = re.compile(rf"http://(?:localhost:{ours}|127\.0\.0\.1:{theirs})(?=/)")

        def plain(url, page):
            """What a replayed URL stands for: one at the root of the replay, which a worker mapped, is of the page's host."""
            found = original.sub(r"\1", url)
            return urllib.parse.urljoin(page, found if found != url else at_root.sub("", url))

        sums = {side: collections.Counter() for side in sides}
        for stamp, url in pages:
            text, loaded, picture = live.show(url)
            # What a script put together was never captured: nobody can show it.
            uncaptured = loaded - archived
            for side, address in sides.items():
                asked = len(nowhere.asked)
                shown, found, drawn = replay.show(address(stamp, url))
                missing = loaded - uncaptured - {plain(one, url) for one in found}
                pixels = differing(picture, drawn)
                left = [one for one in nowhere.asked[asked:] if any(host in one for host in hosts)]
                faults = {"text": shown != text, "requisites": bool(missing), "pixels": pixels >= PIXELS, "left": bool(left)}
                if uncaptured and any(faults.values()):
                    faults["not captured"] = True
                sums[side].update(name for name, is_so in faults.items() if is_so)
                sums[side].update(pages=1, good=not any(faults.values()), loaded=len(loaded & archived))
                if any(faults.values()):
                    said = [name for name, is_so in faults.items() if is_so]
                    print(side, url, *said, f"{pixels:.4f}", sorted(missing | uncaptured)[:3], left[:3], len(shown), len(text), flush=True)
        print(json.dumps(sums))
        for browser in (live, replay):
            browser.end()


if __name__ == "__main__":
    main()
