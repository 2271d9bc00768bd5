// Stands first in every replayed page. It brings the page under the worker, which maps what scripts ask for, and keeps the
// reader in the archive where no worker sees it: navigations, and frames that scripts add.
(() => {
  "use strict";
  const own = /^\/web\/(\d+)([a-z]{2}_)?\/(.*)$/s;
  const where = own.exec(location.pathname + location.search);

  // The address in the archive of what the page means by a URL; nothing when it is there already, or leads nowhere.
  const mapped = (text, modifier) => {
    let url;
    if (!where) return null;
    try { url = new URL(text, document.baseURI); } catch { return null; }
    if (!/^https?:$/.test(url.protocol)) return null;
    if (url.origin === location.origin) {
      if (/^\/(web|static|timegate|timemap|warc)\//.test(url.pathname)) return null;
      url = new URL(url.pathname + url.search + url.hash, where[3]);
    }
    return `/web/${where[1]}${modifier}/${url.href}`;
  };
  const page = (where && where[2]) || "";

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
  if (!where) return;

  // What scripts read of documents, links and messages is of the live web, too.
  const amend = (kind, name, change) => {
    const given = Object.getOwnPropertyDescriptor(kind.prototype, name);
    if (given) Object.defineProperty(kind.prototype, name, { ...given, get() { return change(given.get.call(this), this); } });
  };
  for (const name of ["URL", "documentURI", "referrer"]) amend(Document, name, meant);
  for (const name of ["oldURL", "newURL"]) amend(HashChangeEvent, name, meant);
  const addresses = new Map([HTMLAnchorElement, HTMLAreaElement].map(({ prototype }) => [prototype, Object.getOwnPropertyDescriptor(prototype, "href").get]));
  // Where a link leads here.
  const address = (link) => {
    for (const [prototype, href] of addresses) if (Object.prototype.isPrototypeOf.call(prototype, link)) return href.call(link);
    return "";
  };
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

  // Documents made of blobs are under no worker. A frame has such a one as its own text instead; no window has it.
  const isBlob = (url) => /^\s*blob:/i.test(url);
  const blobs = new Map();
  const { createObjectURL, revokeObjectURL } = URL;
  URL.createObjectURL = (object) => {
    const url = createObjectURL.call(URL, object);
    if (object instanceof Blob && /^text\/html/i.test(object.type)) blobs.set(url, object);
    return url;
  };
  URL.revokeObjectURL = (url) => {
    blobs.delete(url);
    revokeObjectURL.call(URL, url);
  };

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

  // Where a script, or a link that it made, would leave the archive.
  if (window.navigation) {
    navigation.addEventListener("navigate", (event) => {
      const to = event.cancelable && !event.downloadRequest && mapped(event.destination.url, page);
      const isOutside = isBlob(event.destination.url) && !event.downloadRequest;
      if ((!to && !isOutside) || event.hashChange) return;
      event.preventDefault();
      if (to) location.assign(to);
    });
  }
  document.addEventListener("click", (event) => {
    const link = event.target.closest && event.target.closest("a[href], area[href]");
    if (link && isBlob(address(link)) && !link.hasAttribute("download")) event.preventDefault();
    const to = link && mapped(address(link), page);
    if (to) link.href = to;
  }, true);
  const { open } = window;
  window.open = (url, ...rest) => (isBlob(url) ? null : adopt(open.call(window, (url && mapped(url, page)) || url, ...rest)));
  for (const name of ["pushState", "replaceState"]) {
    const given = History.prototype[name];
    History.prototype[name] = function (state, title, url) {
      given.call(this, state, title, (url && mapped(url, page)) || url);
    };
  }
  const { click } = HTMLElement.prototype;
  HTMLElement.prototype.click = function () {
    const to = this.nodeName === "A" && this.hasAttribute("href") && mapped(address(this), page);
    if (to) this.href = to;
    click.call(this);
  };
  document.addEventListener("submit", (event) => {
    const to = mapped(event.target.action, page);
    if (to) event.target.action = to;
  }, true);

  // What a worker never sees: frames, objects, icons and connections that scripts add. A browser may connect as soon as an
  // attribute is set, so it is mapped while it is set; what comes as markup is mapped when it is there.
  const kinds = { IFRAME: ["src", "if_"], FRAME: ["src", "fr_"], OBJECT: ["data", "oe_"], EMBED: ["src", "oe_"], LINK: ["href", "mp_"] };
  const documentOf = (text) => String(text).replace(/^(\s*<!doctype[^>]*>)?/i, "$&<script src=/static/replay.js></script>");
  const wanted = (element, name, value) => {
    const [known, modifier] = kinds[element.nodeName] || [];
    // The scripts of text that came from the archive need the names that are defined here.
    if (element.nodeName === "IFRAME" && /^srcdoc$/i.test(name)) return documentOf(value);
    if (known !== String(name).toLowerCase()) return value;
    if (/^\s*javascript:/i.test(value)) return "about:blank";
    const blob = element.nodeName === "IFRAME" && blobs.get(String(value));
    if (!blob) return mapped(value, modifier) || value;
    blob.text().then((text) => { element.srcdoc = text; });
    return "about:blank";
  };
  for (const kind of [HTMLIFrameElement, HTMLFrameElement, HTMLObjectElement, HTMLEmbedElement, HTMLLinkElement]) {
    for (const name of ["src", "srcdoc", "data", "href"]) {
      const given = Object.getOwnPropertyDescriptor(kind.prototype, name);
      if (!given) continue;
      const set = function (value) { given.set.call(this, wanted(this, name, value)); };
      Object.defineProperty(kind.prototype, name, { ...given, set });
    }
  }
  const { setAttribute } = Element.prototype;
  Element.prototype.setAttribute = function (name, value) { setAttribute.call(this, name, wanted(this, name, value)); };
  const mend = (element) => {
    const [name] = kinds[element.nodeName] || [];
    const value = name && element.getAttribute(name);
    if (value && wanted(element, name, value) !== value) element.setAttribute(name, value);
  };
  // Has `each` look at elements of some kinds that are put into a document.
  const watch = (root, names, each) => new MutationObserver((records) => {
    for (const { addedNodes } of records) {
      for (const node of addedNodes) {
        if (node.nodeType !== Node.ELEMENT_NODE) continue;
        if (names[node.nodeName]) each(node);
        node.querySelectorAll(Object.keys(names).join()).forEach(each);
      }
    }
  }).observe(root, { subtree: true, childList: true });

  // An empty frame or window that a script fills is under no worker, but has the policy of a page that is under one. So it is given
  // one as without a worker, and its pictures and the like are mapped when they are there.
  const parts = { IMG: ["src", "im_"], INPUT: ["src", "im_"], SCRIPT: ["src", "js_"], AUDIO: ["src", "oe_"], VIDEO: ["src", "oe_"], SOURCE: ["src", "oe_"], ...kinds };
  const adopted = new WeakSet();
  const adopt = (view) => {
    let inner;
    try { inner = view && /^about:blank/.test(view.location.href) && view.document; } catch { return view; }
    if (!inner || adopted.has(inner) || !inner.head) return view;
    adopted.add(inner);
    locate(view);
    const policy = inner.createElement("meta");
    policy.httpEquiv = "Content-Security-Policy";
    policy.content = "default-src 'self' data: blob: 'unsafe-inline' 'unsafe-eval'; form-action 'self'; base-uri 'self'";
    inner.head.append(policy);
    watch(inner, parts, (element) => {
      const [name, modifier] = parts[element.nodeName.toUpperCase()];
      const to = element.hasAttribute(name) && mapped(element.getAttribute(name), modifier);
      if (to) setAttribute.call(element, name, to);
    });
    return view;
  };
  for (const kind of [HTMLIFrameElement, HTMLFrameElement]) {
    const view = Object.getOwnPropertyDescriptor(kind.prototype, "contentWindow").get;
    for (const name of ["contentWindow", "contentDocument"]) {
      const given = Object.getOwnPropertyDescriptor(kind.prototype, name);
      Object.defineProperty(kind.prototype, name, { ...given, get() { adopt(view.call(this)); return given.get.call(this); } });
    }
  }
  watch(document, kinds, (element) => {
    if (element.nodeName === "IFRAME" || element.nodeName === "FRAME") adopt(element.contentWindow);
    mend(element);
  });

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
