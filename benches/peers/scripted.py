#!/usr/bin/env python3
"""Two hosts of pages whose scripts, styles, frames and forms ask for more: what `fidelity.py` is run on, beside real sites.

    benches/peers/scripted.py &         # http://127.0.2.1:8090/ and http://127.0.2.2:8090/; / links to all that is there

What scripts put together is linked to as well, so that a crawl has it. A page has one way of asking.
"""

import gzip
import struct
import threading
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT = 8090
ONE, OTHER = (f"http://127.0.2.{number}:{PORT}" for number in (1, 2))


def png(red, green, blue, width=160, height=90):
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows = (b"\0" + bytes((red, green, blue)) * width) * height
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def svg(colour):
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="160" height="90"><rect id="r" width="160" height="90" fill="{colour}"/></svg>'


HTML, JS, CSS = "text/html; charset=utf-8", "text/javascript", "text/css"

# What pages ask for: path, type, content.
PARTS = [(f"/img/{number}.png", "image/png", png(40 * number % 256, 90 * number % 256, 160)) for number in range(1, 13)] + [
    ("/data.json", "application/json", '{"said": "from data"}'),
    ("/data.json?_=1700000000000", "application/json", '{"said": "from data"}'),
    ("/data/deep.json?a=1&b=x%20y", "application/json", '{"said": "from a query"}'),
    ("/js/late.js", JS, 'document.getElementById("out").textContent = "late ran";'),
    ("/js/module.js", JS, 'import { word } from "./word.js"; document.getElementById("out").textContent = word;'),
    ("/js/word.js", JS, 'export const word = "imported";'),
    ("/js/lazy.js", JS, 'export const image = new URL("../img/4.png", import.meta.url).href;'),
    ("/js/worker.js", JS, 'importScripts("/js/lib.js"); postMessage(libWord());'),
    ("/js/lib.js", JS, 'function libWord() { return "from a worker"; }'),
    ("/js/jsonp.js?callback=take", JS, 'take("called back");'),
    ("/css/plain.css", CSS, "p { color: #063; font-size: 30px }"),
    ("/css/first.css", CSS, '@import "deep/second.css"; @import url(/css/third.css) screen; h1 { color: #900 }'),
    ("/css/deep/second.css", CSS, "body { background: #eef url(../../img/5.png) no-repeat 300px 20px }"),
    ("/css/third.css", CSS, f"p {{ border: 20px solid #369; background-image: url('{OTHER}/img/6.png') }}"),
    ("/css/variables.css", CSS, ":root { --picture: url(/img/7.png) } p { height: 90px; background: var(--picture) }"),
    ("/css/sets.css", CSS, "p { height: 90px; background: image-set(url(/img/8.png) 1x, url(/img/9.png) 2x) }"),
    ("/frame/inner", HTML, "<body style='background:#ffc'><p>in a frame</p><img src='../img/3.png'>"),
    ("/frame/script", HTML, "<body><p id=out></p><script>fetch('/data.json').then(a => a.json()).then(d => out.textContent = d.said)</script>"),
    ("/frame/outer", HTML, "<body>outer <iframe src='inner' width=300 height=200></iframe>"),
    ("/pictures/a.svg", "image/svg+xml", svg("teal")),
    ("/pictures/b.svg", "image/svg+xml", svg("purple")),
    ("/landed?q=words&z=%C3%A9", HTML, "<h1>Results</h1><p>what was searched for</p><img src='/img/2.png'>"),
    ("/landed", HTML, "<h1>Landed</h1><img src='img/1.png'>"),
    ("/folder/in/depth", HTML, "<h1>In depth</h1><img src='../../img/10.png'>"),
]

OUT = "<p id=out>waiting</p>"


def script(text, before=OUT, kind=""):
    return f"<!doctype html><title>t</title><h1>A page</h1>{before}<script {kind}>{text}</script>"


def added(tag, attribute, value):
    return script(f"const e = document.createElement('{tag}'); e.{attribute} = {value}; document.body.append(e);", "")


TAKE = ".then(a => a.json()).then(d => out.textContent = d.said)"

# Name and page; where it is another status, that and its fields.
PAGES = {
    "image-joined": added("img", "src", "'/im' + 'g/' + (1 + 1) + '.png'"),
    "image-other-host": added("img", "src", f"'{OTHER}' + '/img/3.png'"),
    "image-relative": added("img", "src", "['img', '4.png'].join('/')"),
    "image-constructor": script("const i = new Image(160, 90); i.src = '//127.0.2.2:8090/img/5.png'; document.body.append(i)"),
    "image-set-attribute": script("out.innerHTML = '<img id=i>'; i.setAttribute('src', location.protocol + '//127.0.2.2:8090/img/1.png')"),
    "image-srcset": script("out.innerHTML = '<img srcset=\"/img/6.png 1x, /img/7.png 2x\">'"),
    "picture": "<picture><source media='(min-width: 100px)' srcset='img/8.png'><img src='img/9.png'></picture>",
    "lazy-native": "<p>top</p><img loading=lazy src=img/1.png><div style='height:900px'></div><img loading=lazy src=img/2.png>",
    "lazy-observer": script(
        "new IntersectionObserver(all => all.forEach(({target, isIntersecting}) => { if (isIntersecting) target.src = target.dataset.src }))"
        ".observe(document.querySelector('img'))",
        "<img width=160 height=90 data-src=/img/10.png>",
    ),
    "lazy-srcset": script("for (const i of document.images) i.srcset = i.dataset.srcset", "<img data-srcset='/img/11.png 1x'>"),
    "css-imports": "<link rel=stylesheet href=css/first.css><h1>Styled</h1><p>twice imported</p>",
    "css-variables": "<link rel=stylesheet href=css/variables.css><p>variable</p>",
    "css-sets": "<link rel=stylesheet href=/css/sets.css><p>set</p>",
    "css-in-page": f"<style>@import url({OTHER}/css/plain.css); div {{ height: 90px; background: url('img/12.png') }}</style><p>text</p><div></div>",
    "css-by-script": script("document.body.style.background = 'url(/img/3.png)'"),
    "css-rule": script("const s = document.head.appendChild(document.createElement('style')); s.sheet.insertRule('p { height: 90px; background: url(/img/4.png) }')"),
    "css-constructed": script("const s = new CSSStyleSheet(); s.replaceSync('p { height: 90px; background: url(/img/5.png) }'); document.adoptedStyleSheets = [s]"),
    "css-link-by-script": script(f"const l = document.createElement('link'); l.rel = 'stylesheet'; l.href = '{OTHER}/css/plain.css'; document.head.append(l)"),
    "fetch-root": script(f"fetch('/data.json'){TAKE}"),
    "fetch-other-host": script(f"fetch('{OTHER}/data.json'){TAKE}"),
    "fetch-query": script(f"fetch('data/deep.json?' + new URLSearchParams({{a: 1}}) + '&b=' + encodeURIComponent('x y')){TAKE}"),
    "fetch-request": script(f"fetch(new Request(new URL('/data.json', document.baseURI), {{headers: {{'X-Requested-With': 'x'}}}})){TAKE}"),
    "xhr": script("const x = new XMLHttpRequest(); x.open('GET', '/data.json'); x.responseType = 'json'; x.onload = () => out.textContent = x.response.said; x.send()"),
    "xhr-other-host": script(f"const x = new XMLHttpRequest(); x.open('GET', '{OTHER}/data.json'); x.onload = () => out.textContent = x.responseText; x.send()"),
    "jsonp": script(f"window.take = word => out.textContent = word; const s = document.createElement('script'); s.src = '{OTHER}/js/jsonp.js?callback=take'; document.head.append(s)"),
    "script-late": script("const s = document.createElement('script'); s.src = ['', 'js', 'late.js'].join('/'); document.body.append(s)"),
    "module": f"<!doctype html><h1>Module</h1>{OUT}<script type=module src=js/module.js></script>",
    "module-in-page": script("import { word } from '/js/word.js'; out.textContent = word;", kind="type=module"),
    "module-dynamic": script("import('/js/' + 'lazy.js').then(({image}) => { out.innerHTML = `<img src='${image}'>` })"),
    "module-map": "<!doctype html><script type=importmap>{\"imports\": {\"word\": \"/js/word.js\"}}</script>"
    + script("import { word } from 'word'; out.textContent = word;", kind="type=module"),
    "worker": script("new Worker('/js/worker.js').onmessage = event => out.textContent = event.data"),
    "worker-blob": script(
        "const text = `fetch('${new URL('/data.json', document.baseURI)}').then(a => a.json()).then(d => postMessage(d.said))`;"
        "new Worker(URL.createObjectURL(new Blob([text]))).onmessage = event => out.textContent = event.data"
    ),
    "frame": "<h1>Frame</h1><iframe src=frame/inner width=400 height=300></iframe>",
    "frame-nested": "<h1>Frames</h1><iframe src=/frame/outer width=500 height=400></iframe>",
    "frame-by-script": added("iframe", "src", "'/frame/' + 'inner'"),
    "frame-other-host": added("iframe", "src", f"'{OTHER}/frame/script'"),
    "frame-srcdoc": "<iframe width=400 height=300 srcdoc=\"<p>in it</p><img src='/img/7.png'>\"></iframe>",
    "frame-blank": script("const f = document.createElement('iframe'); document.body.append(f); f.contentDocument.body.innerHTML = '<img src=/img/8.png>'"),
    "frame-blank-other-host": script(f"const f = document.createElement('iframe'); document.body.append(f); f.contentDocument.body.innerHTML = '<img src={OTHER}/img/8.png>'"),
    "frame-blob": added("iframe", "src", f"URL.createObjectURL(new Blob([`<img src='{ONE}/img/9.png'>`], {{type: 'text/html'}}))"),
    "frame-written": script("const f = document.createElement('iframe'); document.body.append(f); const d = f.contentDocument; d.open(); d.write('<p>written</p><img src=\"/img/10.png\">'); d.close()"),
    "frameset": "<frameset cols='50%,50%'><frame src=/frame/inner><frame src=/frame/script></frameset>",
    "object": "<object data=/pictures/a.svg type=image/svg+xml></object><embed src=pictures/b.svg type=image/svg+xml>",
    "object-by-script": added("object", "data", "'/pictures/' + 'b.svg'"),
    "svg-use": "<svg width=160 height=90><use href='/pictures/a.svg#r'/></svg><svg width=160 height=90><image xlink:href='img/11.png' width=160 height=90 /></svg>",
    "document-write": script(f"document.write('<img src=\"/img/12.png\"><img src=\"{OTHER}/img/2.png\"><p>written</p>')"),
    "inner-html": script(f"out.innerHTML = '<img src=\"{OTHER}/img/4.png\"><b style=\"background:url(/img/5.png)\">markup</b>'"),
    "template": script("document.body.append(t.content.cloneNode(true))", "<template id=t><img src=/img/6.png><p>from a template</p></template>"),
    "shadow": script("out.attachShadow({mode: 'open'}).innerHTML = '<style>b { background: url(/img/7.png) }</style><b>in the shadow</b><img src=img/8.png>'"),
    "custom-element": script("customElements.define('x-y', class extends HTMLElement { connectedCallback() { this.innerHTML = `<img src='${this.getAttribute('of')}'>` } })", "<x-y of=/img/9.png></x-y>"),
    "canvas": script("const i = new Image(); i.onload = () => { c.getContext('2d').drawImage(i, 0, 0); out.textContent = c.toDataURL().length > 100 }; i.src = '/img/10.png'", OUT + "<canvas id=c></canvas>"),
    "base": "<base href='/folder/in/'><h1>Base</h1><img src='../../img/11.png'><a href=depth>in depth</a>",
    "base-by-script": script("const b = document.createElement('base'); b.href = '/folder/in/'; document.head.append(b); out.innerHTML = '<img src=../../img/12.png>'"),
    "storage": script("localStorage.setItem('k', 'kept'); document.cookie = 'c=d'; out.textContent = localStorage.getItem('k') + ' ' + document.cookie"),
    "form-get": script("document.forms[0].submit()", "<form action=/landed><input name=q value=words><input name=z value=é></form>"),
    "form-request-submit": script("document.forms[0].requestSubmit()", "<form action=/landed><input name=q value=words><input name=z value=é></form>"),
    "link-clicked": script("document.links[0].click()", "<a href=/folder/in/depth>on</a>"),
    "location-assign": script("location.assign('/landed')"),
    "location-href": script("location.href = '/folder/in/depth'"),
    "location-replace": script("location.replace('landed')"),
    "push-state": script("history.pushState({}, '', '/folder/in/x'); out.innerHTML = '<img src=../../img/2.png>'"),
    "meta-refresh": "<meta http-equiv=refresh content='0; url=/landed'>",
    "meta-refresh-other-host": f"<meta http-equiv=refresh content='0; url={OTHER}/landed'>",
    "redirect": (301, {"Location": "/folder/in/depth"}),
    "redirect-other-host": (302, {"Location": f"{OTHER}/landed"}),
    "refresh-field": (200, {"Refresh": "0; url=/landed"}),
    "link-field": (200, {"Link": "</css/plain.css>; rel=stylesheet"}),
    "policy": (200, {"Content-Security-Policy": "default-src 'self'; img-src 'self'"}),
    "latin": (200, {"Content-Type": "text/html; charset=iso-8859-1"}),
    "names-itself": script("out.textContent = location.pathname + ' ' + location.host"),
    "names-document": script("out.textContent = document.URL + ' ' + document.domain"),
    "parent-of-frame": script("addEventListener('message', event => out.textContent = event.data)", OUT + "<iframe srcdoc=\"<script>parent.postMessage('from the frame', '*')</script>\"></iframe>"),
    "no-cache-number": script(f"fetch('/data.json?_=' + Date.now()){TAKE}"),
    "timers": script("setTimeout(() => { const i = new Image(); i.src = '/img/3.png'; document.body.append(i); out.textContent = 'late' }, 200)"),
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        status, fields, body = answer(self.path)
        self.send_response(status)
        for name, value in {"Access-Control-Allow-Origin": "*", "Content-Length": str(len(body)), **fields}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def answer(path):
    if path == "/":
        links = [f"{host}{part}" for host in (ONE, OTHER) for part, *_ in PARTS] + [f"{ONE}/{name}" for name in PAGES]
        text = "".join(f'<li><a href="{link.replace("&", "&amp;")}">{link}</a>' for link in links)
        return 200, {"Content-Type": HTML}, f"<!doctype html><h1>All</h1><ul>{text}</ul>".encode()
    for known, kind, content in PARTS:
        if path == known or (known == "/data.json" and path.startswith("/data.json?")):
            content = content if isinstance(content, bytes) else content.encode()
            return (200, {"Content-Type": kind, "Content-Encoding": "gzip"}, gzip.compress(content)) if kind in (CSS, JS) else (200, {"Content-Type": kind}, content)
    page = PAGES.get(path.lstrip("/"))
    if page is None:
        return 404, {"Content-Type": "text/plain"}, b"none"
    if isinstance(page, str):
        return 200, {"Content-Type": HTML}, page.encode()
    status, fields = page
    body = "<!doctype html><h1>Déjà vu</h1><p>text</p><img src='/img/1.png'><script>document.body.append('ran')</script>"
    return status, {"Content-Type": HTML, **fields}, body.encode("latin-1" if "latin" in path else "utf-8")


if __name__ == "__main__":
    for number in (1, 2):
        server = ThreadingHTTPServer((f"127.0.2.{number}", PORT), Handler)
        threading.Thread(target=server.serve_forever, daemon=number == 1).start()
