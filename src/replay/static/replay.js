// Stands first in every replayed page. It brings the page under the worker, which maps what scripts ask for, and keeps the
// reader in the archive where no worker sees it: navigations, and frames that scripts add.
(() => {
  "use strict";
  const own = /^\/web\/(\d+)([a-z]{2}_)?\/(.*)$/s;
  const where = own.exec(location.pathname + location.search);
  if (!where) return;

  // The address in the archive of what the page means by a URL; nothing when it is there already, or leads nowhere.
  const mapped = (text, modifier) => {
    let url;
    try { url = new URL(text, document.baseURI); } catch { return null; }
    if (!/^https?:$/.test(url.protocol)) return null;
    if (url.origin === location.origin) {
      if (/^\/(web|static|timegate|timemap|warc)\//.test(url.pathname)) return null;
      url = new URL(url.pathname + url.search + url.hash, where[3]);
    }
    return `/web/${where[1]}${modifier}/${url.href}`;
  };
  const page = where[2] || "";

  // A document's address, as scripts read it of the document, is that of the page. No browser lets `location` be replaced.
  const meant = (address) => {
    try {
      const { pathname, search, hash } = new URL(address), found = own.exec(pathname + search);
      return found ? new URL(found[3] + hash).href : address;
    } catch { return address; }
  };
  for (const name of ["URL", "documentURI", "referrer"]) {
    const given = Object.getOwnPropertyDescriptor(Document.prototype, name);
    Object.defineProperty(Document.prototype, name, { ...given, get() { return meant(given.get.call(this)); } });
  }
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
    if (link && isBlob(link.href) && !link.hasAttribute("download")) event.preventDefault();
    const to = link && mapped(link.href, page);
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
    const to = this.nodeName === "A" && this.hasAttribute("href") && mapped(this.href, page);
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
  const wanted = (element, name, value) => {
    const [known, modifier] = kinds[element.nodeName] || [];
    if (known !== String(name).toLowerCase()) return value;
    if (/^\s*javascript:/i.test(value)) return "about:blank";
    const blob = element.nodeName === "IFRAME" && blobs.get(String(value));
    if (!blob) return mapped(value, modifier) || value;
    blob.text().then((text) => { element.srcdoc = text; });
    return "about:blank";
  };
  for (const kind of [HTMLIFrameElement, HTMLFrameElement, HTMLObjectElement, HTMLEmbedElement, HTMLLinkElement]) {
    for (const name of ["src", "data", "href"]) {
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

  // How far from the page's date its parts were captured, as each answer says.
  addEventListener("load", () => {
    const banner = document.querySelector("archive-banner");
    const label = banner && banner.shadowRoot && banner.shadowRoot.querySelector("span");
    const parts = performance.getEntriesByType("resource").flatMap((part) => [...part.serverTiming]);
    const days = Math.max(0, ...parts.filter(({ name }) => name === "apart").map(({ duration }) => duration)) / 86400000;
    if (label && days >= 1) label.textContent = ` \u00b7 ${label.dataset.apart.replace("{}", Math.round(days))}`;
  });
})();
