// Stands first in every replayed page. It brings the page under the worker, which maps what scripts ask for, and keeps the
// reader in the archive where no worker sees it: navigations, and frames that scripts add.
(() => {
  "use strict";
  const own = /^\/web\/(\d+)([a-z]{2}_)?\/(.*)$/s;
  const where = own.exec(location.pathname + location.search);

  // The address in the archive of what the page means by a URL; nothing when it is there already, or leads nowhere.
  const mapping = (where, archive, base, start = "") => (text, modifier) => {
    let url;
    if (!where) return null;
    try { url = new URL(text, base()); } catch { return null; }
    if (!/^https?:$/.test(url.protocol)) return null;
    if (url.origin === archive) {
      if (/^\/(web|static|timegate|timemap|warc)\//.test(url.pathname)) return null;
      url = new URL(url.pathname + url.search + url.hash, where[3]);
    }
    return `${start}/web/${where[1]}${modifier}/${url.href}`;
  };
  const archive = location.origin;
  const mapped = mapping(where, archive, () => document.baseURI);
  const page = (where && where[2]) || "";

  // What connects by itself, which browsers leave to no policy, is taken away in every global scope before anything of the page runs
  // there; what may ask for answers asks the archive. This and `mapping` are also the beginning of workers made of blobs.
  const confine = (scope, mapped) => {
    const connecting = ["RTCPeerConnection", "webkitRTCPeerConnection", "mozRTCPeerConnection", "RTCIceTransport", "WebTransport",
      "WebSocketStream", "PresentationRequest", "PaymentRequest", "cookieStore", "CookieStore"];
    for (const name of connecting) delete scope[name];
    const { ServiceWorkerRegistration } = scope;
    for (const name of ["backgroundFetch", "pushManager"]) if (ServiceWorkerRegistration) delete ServiceWorkerRegistration.prototype[name];
    const to = (url) => mapped(url, "mp_") || url;
    const { fetch } = scope;
    // A cookie of the reader goes with it, whatever the page says of its own.
    scope.fetch = (input, given) => fetch.call(scope, input && input.url ? input : to(input), given && given.credentials === "omit" ? { ...given, credentials: "same-origin" } : given);
    for (const name of ["Request", "EventSource"]) {
      if (scope[name]) scope[name] = new Proxy(scope[name], { construct: (kind, [url, ...rest], made) => Reflect.construct(kind, [url && url.url ? url : to(url), ...rest], made) });
    }
    const { XMLHttpRequest } = scope;
    if (!XMLHttpRequest) return;
    const { open } = XMLHttpRequest.prototype;
    XMLHttpRequest.prototype.open = function (method, url, ...rest) { return open.call(this, method, to(url), ...rest); };
  };

  // The address on the live web of one here.
  const meant = (address) => {
    try {
      const { origin, pathname, search, hash } = new URL(address), found = own.exec(pathname + search);
      if (!where || origin !== location.origin || (!found && /^\/(web|static)\//.test(pathname))) return address;
      return new URL(found ? found[3] + hash : pathname + search + hash, where[3]).href;
    } catch { return address; }
  };

  // No browser lets `location` be replaced. So the archive gives scripts this name instead of it, as that of a variable and, of what may be
  // a window, of a property; of anything else this property is its `location`. Parts of it are those of the page's address.
  const name = "_archive_location";
  const pieces = ["href", "protocol", "host", "hostname", "port", "pathname", "search", "hash", "origin"];
  const here = window.origin;
  const locate = (view) => {
    const real = view.location;
    const url = () => new URL(meant(real.href));
    const to = (text) => mapped(text, view === view.parent ? page : page || "if_") || text;
    const object = Object.create(view.Location.prototype);
    const add = (part, given) => Object.defineProperty(object, part, { enumerable: true, ...given });
    for (const part of pieces) {
      const set = (value) => {
        if (part === "hash") real.hash = value;
        else if (part === "href") real.href = to(`${value}`);
        else real.href = to(Object.assign(url(), { [part]: value }).href);
      };
      add(part, { get: () => url()[part], set: part === "origin" ? undefined : set });
    }
    add("ancestorOrigins", { get: () => real.ancestorOrigins });
    for (const part of ["assign", "replace"]) add(part, { value: (text) => real[part](to(`${text}`)) });
    add("reload", { value: () => real.reload() });
    add("toString", { value: () => url().href });
    Object.defineProperty(object, "valueOf", { value: () => object });
    Object.defineProperty(object, Symbol.toPrimitive, { value: undefined });

    const define = (owner, get, set) => Object.defineProperty(owner, name, { get, set, configurable: true });
    define(view, () => object, (value) => { object.href = value; });
    define(view.Document.prototype, function () {
      return this.defaultView ? this.defaultView[name] : this.location;
    }, function (value) { this.defaultView[name] = value; });
    define(view.Object.prototype, function () { return this.location; }, function (value) {
      if (this === Object(this)) Reflect.set(this, "location", value);
    });
    // What a message is sent with: whatever origin it is meant for, it is this one.
    const isOrigin = (text) => typeof text === "string" && /^https?:/i.test(text);
    const sent = (message, to, ...rest) => [message, isOrigin(to) ? here : to && isOrigin(to.targetOrigin) ? { ...to, targetOrigin: here } : to, ...rest];
    Object.defineProperty(view, "_archive_sent", { value: (...given) => (given.length > 1 ? sent(...given) : given), configurable: true });
    // In an attribute's script, and in `with`, the variable is meant.
    for (const kind of [view.Element, view.Document]) kind.prototype[Symbol.unscopables][name] = true;
    Object.defineProperty(view.Object.prototype, Symbol.unscopables, {
      configurable: true,
      get() { return "location" in this ? undefined : { __proto__: null, [name]: true }; },
      set(value) { Object.defineProperty(this, Symbol.unscopables, { value, writable: true, configurable: true }); },
    });
  };
  locate(window);
  // A proxy asks its own code for a property: so it is asked for the one that the page means.
  window.Proxy = new Proxy(Proxy, {
    construct(kind, [target, given, ...rest], made) {
      const handler = given && Object.create(given);
      const plain = (of, key) => (key === name && of !== window && of !== document ? "location" : key);
      if (given && given.get) handler.get = (of, key, self) => given.get(of, plain(of, key), self);
      if (given && given.set) handler.set = (of, key, ...others) => given.set(of, plain(of, key), ...others);
      return Reflect.construct(kind, [target, handler, ...rest], made);
    },
  });
  // Where a link of any frame leads here.
  const addresses = ["a", "area"].map((kind) => Object.getOwnPropertyDescriptor(Object.getPrototypeOf(document.createElement(kind)), "href").get);
  const address = (link) => {
    for (const href of addresses) try { return href.call(link); } catch { /* of the other kind */ }
    return "";
  };

  // Documents made of blobs are under no worker. A frame has such a one as its own text instead; no window has it.
  const isBlob = (url) => /^\s*blob:/i.test(url);
  const blobs = new Map();

  // What a worker never sees: frames, objects, icons and connections that scripts add. A browser may connect as soon as an
  // attribute is set, so it is mapped while it is set; what comes as markup is mapped when it is there.
  const kinds = { IFRAME: ["src", "if_"], FRAME: ["src", "fr_"], OBJECT: ["data", "oe_"], EMBED: ["src", "oe_"], LINK: ["href", "mp_"] };
  const kindOf = (element) => (element.localName || "").toUpperCase();
  const documentOf = (text) => unhinted(String(text)).replace(/^(\s*<!doctype[^>]*>)?/i, "$&<script src=/static/replay.js></script>");
  const wanted = (element, name, value) => {
    const kind = kindOf(element), [known, modifier] = kinds[kind] || [];
    // The scripts of text that came from the archive need the names that are defined here.
    if (kind === "IFRAME" && /^srcdoc$/i.test(name)) return documentOf(value);
    if (known !== String(name).toLowerCase()) return value;
    if (/^\s*javascript:/i.test(value)) return "about:blank";
    const blob = kind === "IFRAME" && blobs.get(String(value));
    if (!blob || !/^text\/html/i.test(blob.type)) return mapped(value, modifier) || value;
    blob.text().then((text) => { element.srcdoc = text; });
    return "about:blank";
  };
  const { setAttribute } = Element.prototype;
  const mend = (element) => {
    const [name] = kinds[kindOf(element)] || [];
    const value = name && element.getAttribute(name);
    const to = value && wanted(element, name, value);
    if (to && to !== value) setAttribute.call(element, name, to);
    if (kindOf(element) === "SCRIPT") setAttribute.call(element, "type", "archived/speculationrules");
  };
  // Has `each` look at elements of some kinds that are put into a document.
  const watch = (root, names, each) => new MutationObserver((records) => {
    for (const { addedNodes } of records) {
      for (const node of addedNodes) {
        if (node.nodeType !== Node.ELEMENT_NODE) continue;
        if (names[kindOf(node)]) each(node);
        node.querySelectorAll(Object.keys(names).join().toLowerCase()).forEach(each);
      }
    }
  }).observe(root, { subtree: true, childList: true });

  // Markup without what a browser looks up or connects to at once, whatever policies say: hints, and frames of other hosts.
  const inert = document.implementation.createHTMLDocument("").createElement("template");
  const { set: setMarkup } = Object.getOwnPropertyDescriptor(Element.prototype, "innerHTML");
  const quoted = (name, value) => ` ${name}="${value.replace(/&/g, "&amp;").replace(/"/g, "&quot;")}"`;
  const framed = (tag, kind, rest) => {
    setMarkup.call(inert, `<iframe${rest}>`);
    const frame = inert.content.firstElementChild;
    const [src, srcdoc] = frame ? [frame.getAttribute("src"), frame.getAttribute("srcdoc")] : ["about:blank", null];
    // The first of several attributes counts.
    const first = (src === null ? "" : quoted("src", frame ? wanted(frame, "src", src) : src)) + (srcdoc === null ? "" : quoted("srcdoc", documentOf(srcdoc)));
    return `<${kind}${first}${rest}`;
  };
  const unhinted = (text) => {
    if (!/link|<i?frame/i.test(text)) return text;
    const plain = String(text).replace(/dns-prefetch|preconnect/gi, "x$&");
    return plain.replace(/(\srel\s*=\s*(?:"[^"&]*|'[^'&]*|[^\s"'>&]*))&/gi, "$1").replace(/<(i?frame)(?=[\s/])((?:"[^"]*"|'[^']*'|[^'">])*)/gi, framed);
  };
  const hints = "link, script[type='speculationrules' i]";
  const entering = (node) => {
    if (!node || !node.querySelectorAll) return;
    if (node.matches && node.matches(hints)) mend(node);
    node.querySelectorAll(hints).forEach(mend);
  };

  // Cookies stay with their page: the archive's own are none of its business, and the browser sends all of a host to each of its ports.
  const jar = new Map();
  const cookie = {
    get: () => Array.from(jar, ([name, value]) => (name ? `${name}=${value}` : value)).join("; "),
    set(text) {
      const [pair, ...attributes] = String(text).split(";");
      const given = new Map(attributes.map((one) => one.split("=")).map(([name, ...value]) => [name.trim().toLowerCase(), value.join("=").trim()]));
      const at = pair.indexOf("="), name = pair.slice(0, Math.max(at, 0)).trim(), path = given.get("path") || "/";
      const isOver = Number(given.get("max-age") || 1) <= 0 || Date.parse(given.get("expires")) <= Date.now();
      if (isOver) jar.delete(name);
      else if ([location.pathname, meant(location.href).replace(/^\w+:\/\/[^/]*/, "")].some((own) => own.startsWith(path))) jar.set(name, pair.slice(at + 1).trim());
    },
  };

  // Keeps a window, and what scripts do in it, in the archive.
  const keep = (view) => {
    // The policy of an empty frame forbids its requests.
    confine(view, view === window ? mapped : () => null);
    const { document, URL, Worker } = view;
    const prototypeOf = (kind) => (view[kind] && view[kind].prototype) || {};
    const amendSetter = (kind, name, change) => {
      const given = Object.getOwnPropertyDescriptor(prototypeOf(kind), name);
      if (given && given.set) Object.defineProperty(prototypeOf(kind), name, { ...given, set(value) { given.set.call(this, change(this, value)); sweep(view); } });
    };
    const amendMethod = (kind, name, change) => {
      const given = prototypeOf(kind)[name];
      if (!given) return;
      prototypeOf(kind)[name] = function (...values) {
        const result = given.apply(this, change(this, values));
        sweep(view);
        return result;
      };
    };
    Object.defineProperty(prototypeOf("Document"), "cookie", { ...cookie, enumerable: true, configurable: true });

    const { createObjectURL, revokeObjectURL } = URL;
    URL.createObjectURL = (object) => {
      const url = createObjectURL.call(URL, object);
      if (object instanceof view.Blob) blobs.set(url, object);
      return url;
    };
    URL.revokeObjectURL = (url) => {
      blobs.delete(url);
      revokeObjectURL.call(URL, url);
    };
    const prelude = `(${confine})(self, (${mapping})(${JSON.stringify(where)}, ${JSON.stringify(archive)}, () => location.href, ${JSON.stringify(archive)}));\n`;
    view.Worker = new Proxy(Worker, {
      construct(kind, [url, ...rest], made) {
        const blob = blobs.get(String(url));
        return Reflect.construct(kind, [blob ? createObjectURL.call(URL, new Blob([prelude, blob], { type: blob.type })) : url, ...rest], made);
      },
    });

    // Where a script, or a link that it made, would leave the archive.
    if (view.navigation) {
      view.navigation.addEventListener("navigate", (event) => {
        const to = event.cancelable && !event.downloadRequest && mapped(event.destination.url, page);
        const isOutside = isBlob(event.destination.url) && !event.downloadRequest;
        if ((!to && !isOutside) || event.hashChange) return;
        event.preventDefault();
        if (to) view.location.assign(to);
      });
    }
    document.addEventListener("click", (event) => {
      const link = event.target.closest && event.target.closest("a[href], area[href]");
      if (link && isBlob(address(link)) && !link.hasAttribute("download")) event.preventDefault();
      const to = link && mapped(address(link), page);
      if (to) link.href = to;
    }, true);
    const send = (form, button) => {
      for (const [element, name] of [[form, "action"], [button, "formaction"]]) {
        const to = element && element.hasAttribute(name) && mapped(element.getAttribute(name), page);
        if (to) setAttribute.call(element, name, to);
      }
    };
    document.addEventListener("submit", ({ target, submitter }) => send(target, submitter), true);
    amendMethod("HTMLFormElement", "submit", (form, values) => (send(form), values));
    const { open } = view;
    view.open = (url, ...rest) => (isBlob(url) ? null : adopt(open.call(view, (url && mapped(url, page)) || url, ...rest)));
    amendMethod("HTMLElement", "click", (element, values) => {
      const to = kindOf(element) === "A" && element.hasAttribute("href") && mapped(address(element), page);
      if (to) element.href = to;
      return values;
    });

    for (const kind of ["HTMLIFrameElement", "HTMLFrameElement", "HTMLObjectElement", "HTMLEmbedElement", "HTMLLinkElement"]) {
      for (const name of ["src", "srcdoc", "data", "href"]) amendSetter(kind, name, (element, value) => wanted(element, name, value));
    }
    amendMethod("Element", "setAttribute", (element, [name, value]) => [name, wanted(element, name, value)]);
    amendMethod("Element", "setAttributeNS", (element, [space, name, value]) => [space, name, wanted(element, name, value)]);
    for (const [kind, name] of [["Element", "innerHTML"], ["Element", "outerHTML"], ["ShadowRoot", "innerHTML"]]) amendSetter(kind, name, (_, text) => unhinted(text));
    for (const kind of ["Element", "ShadowRoot"]) amendMethod(kind, "setHTMLUnsafe", (_, [text, ...rest]) => [unhinted(text), ...rest]);
    amendMethod("Element", "insertAdjacentHTML", (_, [place, text]) => [place, unhinted(text)]);
    amendMethod("Range", "createContextualFragment", (_, [text]) => [unhinted(text)]);
    // A tag may come in pieces.
    let held = "";
    for (const name of ["write", "writeln"]) {
      amendMethod("Document", name, (_, texts) => {
        const text = held + texts.join(""), at = text.lastIndexOf("<");
        held = at >= 0 && /^<(?:\/?[a-z](?:"[^"]*"|'[^']*'|[^'">])*(?:"[^"]*|'[^']*)?)?$/i.test(text.slice(at)) ? text.slice(at) : "";
        return [unhinted(text.slice(0, text.length - held.length))];
      });
    }
    const inserted = {
      Node: ["appendChild", "insertBefore", "replaceChild"],
      Element: ["append", "prepend", "replaceChildren", "before", "after", "replaceWith", "insertAdjacentElement", "moveBefore"],
      DocumentFragment: ["append", "prepend", "replaceChildren"],
      CharacterData: ["before", "after", "replaceWith"],
      Range: ["insertNode", "surroundContents"],
    };
    for (const [kind, names] of Object.entries(inserted)) {
      for (const name of names) amendMethod(kind, name, (_, nodes) => (nodes.forEach(entering), nodes));
    }
    for (const kind of ["HTMLIFrameElement", "HTMLFrameElement"]) {
      const inside = Object.getOwnPropertyDescriptor(prototypeOf(kind), "contentWindow").get;
      for (const name of ["contentWindow", "contentDocument"]) {
        const given = Object.getOwnPropertyDescriptor(prototypeOf(kind), name);
        Object.defineProperty(prototypeOf(kind), name, { ...given, get() { adopt(inside.call(this)); return given.get.call(this); } });
      }
    }
  };

  // An empty frame or window that a script fills is under no worker, but has the policy of a page that is under one. So it is given
  // one as without a worker, and its pictures and the like are mapped when they are there.
  const parts = { IMG: ["src", "im_"], INPUT: ["src", "im_"], SCRIPT: ["src", "js_"], AUDIO: ["src", "oe_"], VIDEO: ["src", "oe_"], SOURCE: ["src", "oe_"], ...kinds };
  const adopted = new WeakSet();
  const adopt = (view) => {
    let inner;
    try { inner = view && /^about:(blank|srcdoc)/.test(view.location.href) && view.document; } catch { return view; }
    if (!inner || adopted.has(inner) || !inner.head) return view;
    adopted.add(inner);
    keep(view);
    if (view.location.href === "about:srcdoc") return view;
    locate(view);
    const policy = inner.createElement("meta");
    policy.httpEquiv = "Content-Security-Policy";
    policy.content = "default-src 'self' data: blob: 'unsafe-inline' 'unsafe-eval'; form-action 'self'; base-uri 'self'";
    inner.head.append(policy);
    watch(inner, parts, (element) => {
      const [name, modifier] = parts[kindOf(element)];
      const to = element.hasAttribute(name) && mapped(element.getAttribute(name), modifier);
      if (to) setAttribute.call(element, name, to);
    });
    return view;
  };
  const sweep = (view) => { for (let number = 0; number < view.length; number += 1) adopt(view[number]); };
  keep(window);
  watch(document, kinds, (element) => {
    if (/^I?FRAME$/.test(kindOf(element))) adopt(element.contentWindow);
    mend(element);
  });
  if (!where) return;

  // What scripts read of documents, links and messages is of the live web, too.
  const amend = (kind, name, change) => {
    const given = Object.getOwnPropertyDescriptor(kind.prototype, name);
    if (given) Object.defineProperty(kind.prototype, name, { ...given, get() { return change(given.get.call(this), this); } });
  };
  for (const name of ["URL", "documentURI", "referrer"]) amend(Document, name, meant);
  amend(Request, "url", meant);
  for (const name of ["oldURL", "newURL"]) amend(HashChangeEvent, name, meant);
  for (const kind of [HTMLAnchorElement, HTMLAreaElement]) {
    for (const part of pieces) {
      amend(kind, part, (value, link) => {
        const url = meant(address(link));
        return url === address(link) ? value : new URL(url)[part];
      });
    }
    kind.prototype.toString = function () { return this.href; };
  }
  amend(MessageEvent, "origin", (value, { source }) => {
    if (value !== location.origin) return value;
    try {
      const { origin } = source[name];
      return origin === "null" ? window[name].origin : origin;
    } catch { return value; }
  });
  const replaced = (value) => Object.defineProperty(window, "origin", { value, writable: true, enumerable: true, configurable: true });
  Object.defineProperty(window, "origin", { get: () => window[name].origin, set: replaced, configurable: true });
  const domain = Object.getOwnPropertyDescriptor(Document.prototype, "domain");
  const host = () => new URL(meant(location.href)).hostname;
  // Pages of one site that make it theirs are of one origin here.
  if (domain) Object.defineProperty(Document.prototype, "domain", { ...domain, get: host, set() {} });

  // The worker has the page from its next loading on: so a page that is the first of its reader is loaded once more.
  const workers = navigator.serviceWorker;
  if (workers && !workers.controller) {
    const tried = "archive-replay-worker";
    let isFirst = false;
    try { isFirst = !sessionStorage.getItem(tried); sessionStorage.setItem(tried, "1"); } catch { /* no storage */ }
    const registered = workers.register("/static/worker.js", { scope: "/web/" });
    // A frame of another replayed page is loaded anew with it; one of the application is like a window.
    let isOuter = window === window.parent;
    try { isOuter ||= window.parent.location.origin !== location.origin; } catch { isOuter = true; }
    if (isFirst && isOuter) {
      window.stop();
      registered.then(() => workers.ready).then(() => location.reload(), () => location.reload());
      return;
    }
  }
  // Workers of the page itself would stay when it is gone.
  if (workers) workers.register = () => Promise.reject(new DOMException("not in the archive", "SecurityError"));

  for (const name of ["pushState", "replaceState"]) {
    const given = History.prototype[name];
    History.prototype[name] = function (state, title, url) {
      given.call(this, state, title, (url && mapped(url, page)) || url);
    };
  }

  // Within an element that shows no other content, such as an unfinished list of options, the banner could not be seen.
  addEventListener("DOMContentLoaded", () => {
    const banner = document.querySelector("archive-banner");
    if (banner && document.body && banner.parentNode !== document.body) document.body.append(banner);
  });

  // How far from the page's date its parts were captured, as each answer says.
  addEventListener("load", () => {
    const banner = document.querySelector("archive-banner");
    const label = banner && banner.shadowRoot && banner.shadowRoot.querySelector("span");
    const parts = performance.getEntriesByType("resource").flatMap((part) => [...part.serverTiming]);
    const days = Math.max(0, ...parts.filter(({ name }) => name === "apart").map(({ duration }) => duration)) / 86400000;
    if (label && days >= 1) label.textContent = ` \u00b7 ${label.dataset.apart.replace("{}", Math.round(days))}`;
  });
})();
