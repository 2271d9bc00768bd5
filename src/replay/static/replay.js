// Stands first in every replayed page. The page's policy allows nothing but the archive: so what scripts name on the live web is mapped
// before the browser sees it. It also brings the page under the worker, which maps paths from the root, and keeps the reader in the
// archive where no worker sees it: navigations, and frames that scripts add.
(() => {
  "use strict";
  const own = /^\/web\/(\d+)([a-z]{2}_)?\/(.*)$/s;
  // A document within a frame's attribute is of the page that has the frame.
  const isInner = location.href === "about:srcdoc";
  let place = location;
  try { for (let view = window; place.href === "about:srcdoc"; place = view.location) view = view.parent; } catch { /* of another origin */ }
  const where = own.exec(place.pathname + place.search);

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
  const archive = window.origin;
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
    for (const name of ["Request", "EventSource", "Audio"]) {
      if (scope[name]) scope[name] = new Proxy(scope[name], { construct: (kind, [url, ...rest], made) => Reflect.construct(kind, [url && url.url ? url : to(url), ...rest], made) });
    }
    const { XMLHttpRequest, importScripts } = scope;
    if (importScripts) scope.importScripts = (...urls) => importScripts.apply(scope, urls.map(to));
    if (!XMLHttpRequest) return;
    const { open } = XMLHttpRequest.prototype;
    XMLHttpRequest.prototype.open = function (method, url, ...rest) { return open.call(this, method, to(url), ...rest); };
  };

  // The address on the live web of one here.
  const meant = (address) => {
    try {
      const { origin, pathname, search, hash } = new URL(address), found = own.exec(pathname + search);
      if (!where || origin !== archive || (!found && /^\/(web|static)\//.test(pathname))) return address;
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

  // What loads: attributes of elements, and the modifiers of what they name. A browser may connect as soon as an attribute is set, so it
  // is mapped while it is set, and in markup before that is parsed.
  const [picture, film, used, behind] = [{ src: "im_", srcset: "im_" }, { src: "oe_", poster: "im_" }, { href: "im_" }, { background: "im_" }];
  const kinds = {
    IFRAME: { src: "if_" }, FRAME: { src: "fr_" }, OBJECT: { data: "oe_" }, EMBED: { src: "oe_" }, LINK: { href: "mp_", imagesrcset: "im_" },
    SCRIPT: { src: "js_", href: "js_" }, IMG: picture, INPUT: picture, AUDIO: film, VIDEO: film, TRACK: film, SOURCE: { ...picture, ...film },
    IMAGE: used, USE: used, FEIMAGE: used, BODY: behind, TABLE: behind, TD: behind, TH: behind,
  };
  const loading = `${Object.keys(kinds).join().toLowerCase()},feImage,style,[style*="("]`;
  const kindOf = (element) => (element.localName || "").toUpperCase();
  const references = /@namespace[^;]*|(@import\s*(?:url\(\s*)?["']?|\burl\(\s*["']?|\bimage-set\(\s*["']|\dx\s*,\s*["'])(?!data:|\/web\/)([^"')\\]+)/gi;
  const styled = (text) => (/[(@]/.test(text) ? String(text).replace(references, (whole, before, url) => {
    const to = before && mapped(url, before[0] === "@" ? "cs_" : "im_");
    return to ? before + to : whole;
  }) : text);
  // The scripts of text that came from the archive need the names that are defined here.
  const documentOf = (text) => rewritten(String(text), true).replace(/^(\s*<!doctype[^>]*>)?/i, "$&<script src=/static/replay.js></script>");
  // A script that asks for what it named gets that.
  const named = new WeakMap();
  const wanted = (kind, given, value, element) => {
    const name = String(given).toLowerCase().replace("xlink:", "");
    if (name === "style") return styled(value);
    if (kind === "IFRAME" && name === "srcdoc") return documentOf(value);
    // Of the bytes as they were.
    if (name === "integrity" && /^(LINK|SCRIPT)$/.test(kind)) return "";
    if (name === "type" && kind === "SCRIPT" && /^\s*speculationrules\s*$/i.test(value)) return "archived/speculationrules";
    const modifier = kinds[kind] && kinds[kind][name];
    if (!modifier) return value;
    if (/srcset$/.test(name)) return String(value).replace(/[^\s,]\S*[^\s,]/g, (word) => mapped(word, modifier) || word);
    if (/^\s*javascript:/i.test(value)) return "about:blank";
    const blob = kind === "IFRAME" && blobs.get(String(value));
    if (!blob || !/^text\/html/i.test(blob.type)) {
      const to = mapped(value, modifier);
      if (to && element) named.set(element, archive + to);
      return to || value;
    }
    if (element) blob.text().then((text) => { element.srcdoc = text; });
    return "about:blank";
  };

  // Modules are named in scripts, where only the browser finds them: so what it resolves names with maps those of the live web, too.
  const resolved = (names) => Object.fromEntries(Object.entries(names).map(([key, url]) => [key, typeof url === "string" ? mapped(url, "js_") || url : url]));
  const importMap = (text) => {
    try {
      const { imports, scopes } = JSON.parse(text);
      const live = Object.fromEntries(["http://", "https://"].map((scheme) => [scheme, `/web/${where[1]}js_/${scheme}`]));
      const within = Object.entries(scopes || {}).map(([scope, names]) => [mapped(scope, "js_") || scope, resolved(names)]);
      return JSON.stringify({ imports: { ...resolved({ "/": "/", ...imports }), "/web/": "/web/", ...live }, scopes: Object.fromEntries(within) });
    } catch { return text; }
  };
  const addImportMap = (before) => {
    const map = Object.assign(before.ownerDocument.createElement("script"), { type: "importmap", textContent: importMap("{}") });
    before.after(map);
    map.remove();
  };

  const { setAttribute } = Element.prototype;
  const { set: setText } = Object.getOwnPropertyDescriptor(Node.prototype, "textContent");
  const mend = (element) => {
    const kind = kindOf(element);
    for (const { name, value } of Array.from(element.attributes)) {
      const to = name === "srcdoc" ? value : wanted(kind, name, value, element);
      if (to !== value) setAttribute.call(element, name, to);
    }
    const text = kind === "STYLE" && element.textContent;
    if (text && styled(text) !== text) setText.call(element, styled(text));
  };
  // What is to be put into a document, or into a style sheet.
  const entering = (node, isStyle) => {
    if (isStyle && typeof node === "string") return styled(node);
    if (isStyle && node && node.nodeType === Node.TEXT_NODE) node.data = styled(node.data);
    if (!node || !node.querySelectorAll) return node;
    for (const element of [node, ...node.querySelectorAll(loading)]) {
      if (!element.attributes) continue;
      mend(element);
      const isMap = kindOf(element) === "SCRIPT" && /^\s*importmap\s*$/i.test(element.getAttribute("type"));
      if (isMap && !element.isConnected) setText.call(element, importMap(element.textContent));
    }
    return node;
  };
  // Has `each` look at what loads and is put into a document.
  const watch = (root, each) => new MutationObserver((records) => {
    const found = new Set();
    for (const node of records.flatMap(({ addedNodes }) => [...addedNodes])) {
      if (node.nodeType !== Node.ELEMENT_NODE) continue;
      if (node.matches(loading)) found.add(node);
      for (const element of node.querySelectorAll(loading)) found.add(element);
    }
    found.forEach(each);
  }).observe(root, { subtree: true, childList: true });
  // What came in a way that is not known here, and was refused by the policy. Of a property of a style, no browser lets the setter be
  // replaced.
  const shadows = [];
  const mendAll = (document) => {
    for (const root of [document, ...shadows.map((root) => root.deref())]) {
      if (!root) continue;
      root.querySelectorAll(loading).forEach(mend);
      for (const sheet of [...root.styleSheets, ...(root.adoptedStyleSheets || [])]) {
        try {
          Array.from(sheet.cssRules, ({ cssText }) => cssText).forEach((text, at) => {
            if (styled(text) === text) return;
            sheet.deleteRule(at);
            sheet.insertRule(styled(text), at);
          });
        } catch { /* of a `data:` URL */ }
      }
    }
  };

  // Markup, tag by tag. What looks like a tag in the text of a script stays, unless a browser would connect, or open a frame, at once.
  const inert = document.implementation.createHTMLDocument("").createElement("template");
  const { set: setMarkup } = Object.getOwnPropertyDescriptor(Element.prototype, "innerHTML");
  const tags = /<(\/?)([a-z][^\s/>]*)((?:[\s/]+|[^\s/>][^\s/>=]*(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'>][^\s>]*)?)?)*)/gi;
  const quoted = (name, value) => ` ${name}="${String(value).replace(/&/g, "&amp;").replace(/"/g, "&quot;").replace(/</g, "&lt;")}"`;
  const tag = (whole, name, kind, rest, isHtml) => {
    // In XML, upper and lower case differ, as in names of SVG.
    if (!/[/&(]|srcdoc|integrity|speculation/i.test(rest) || (!isHtml && (!kinds[kind] || kinds[kind] === used))) return whole;
    setMarkup.call(inert, `<x${rest}>`);
    const { firstElementChild: read } = inert.content;
    let isChanged = false;
    const attributes = Array.from(read ? read.attributes : [], ({ name: key, value }) => {
      const to = wanted(kind, key, value);
      isChanged ||= to !== value;
      return quoted(key, to);
    });
    return isChanged ? `<${name}${attributes.join("")}${rest.endsWith("/") ? " /" : ""}` : whole;
  };
  const rewritten = (text, isHtml = document.contentType === "text/html") => {
    if (!/</.test(text)) return text;
    let raw = "";
    return String(text).replace(tags, (whole, end, name, rest) => {
      const kind = name.toUpperCase().replace(/^.*:/, ""), isRaw = raw && !/^(LINK|I?FRAME)$/.test(kind);
      if (end && kind === raw) raw = "";
      if (end || isRaw) return whole;
      if (/^(SCRIPT|TEXTAREA|TITLE|XMP)$/.test(kind)) raw = kind;
      return tag(whole, name, kind, rest, isHtml);
    }).replace(/(<style\b[^>]*>)([^]*?)(?=<\/style|$)/gi, (_, start, css) => start + styled(css))
      .replace(/(<script\b[^>]*\btype\s*=\s*["']?importmap\b[^>]*>)([^]*?)(?=<\/script)/gi, (_, start, map) => start + importMap(map));
  };
  const textOf = (node, text) => {
    const owner = node.nodeType === Node.ATTRIBUTE_NODE && node.ownerElement;
    if (owner) return wanted(kindOf(owner), node.name, text, owner);
    return kindOf((node.nodeType === Node.TEXT_NODE && node.parentNode) || node) === "STYLE" ? styled(text) : text;
  };
  const markupOf = (node, text) => (/^(SCRIPT|STYLE)$/.test(kindOf(node)) ? textOf(node, text) : rewritten(text));

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
    const { document, URL, setTimeout } = view;
    const prototypeOf = (kind) => (view[kind] && view[kind].prototype) || {};
    const amendSetter = (kind, name, change, read = (_, value) => value) => {
      const given = Object.getOwnPropertyDescriptor(prototypeOf(kind), name);
      if (given && given.set) Object.defineProperty(prototypeOf(kind), name, { ...given, get() { return read(this, given.get.call(this)); }, set(value) { given.set.call(this, change(this, value)); sweep(view); } });
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
    // Workers have no import maps.
    const module = (url) => {
      const request = new XMLHttpRequest();
      request.open("GET", url, false);
      request.send();
      return request.responseText.replace(/(\b(?:from|import)\s*\(?\s*["'])((?:https?:)?\/\/[^"']+)/g, (_, before, name) => before + new URL(mapped(name, "mp_") || name, archive).href);
    };
    const amendNew = (name, change) => {
      if (view[name]) view[name] = new Proxy(view[name], { construct: (kind, values, made) => Reflect.construct(kind, change(values), made) });
    };
    amendNew("Worker", ([url, ...rest]) => {
      const blob = blobs.get(String(url));
      const parts = blob && [prelude, rest[0] && rest[0].type === "module" ? module(url) : blob];
      return [blob ? createObjectURL.call(URL, new Blob(parts, { type: blob.type })) : mapped(url, "mp_") || url, ...rest];
    });
    amendNew("SharedWorker", ([url, ...rest]) => [mapped(url, "mp_") || url, ...rest]);

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

    for (const kind of ["IFrame", "Frame", "Object", "Embed", "Link", "Script", "Image", "Input", "Media", "Video", "Source", "Track", "Body"]) {
      for (const name of ["src", "srcdoc", "data", "href", "srcset", "imageSrcset", "poster", "background", "integrity", "type"]) {
        amendSetter(`HTML${kind}Element`, name, (element, value) => wanted(kindOf(element), name, value, element), (element, value) => (named.get(element) === value ? meant(value) : value));
      }
    }
    amendMethod("Element", "setAttribute", (element, [name, value]) => [name, wanted(kindOf(element), name, value, element)]);
    amendMethod("Element", "setAttributeNS", (element, [space, name, value]) => [space, name, wanted(kindOf(element), name, value, element)]);
    const put = (element, [attribute, ...rest]) => {
      if (element && attribute) {
        mend(element);
        attribute.value = wanted(kindOf(element), attribute.name, attribute.value, element);
      }
      return [attribute, ...rest];
    };
    for (const name of ["setAttributeNode", "setAttributeNodeNS"]) amendMethod("Element", name, put);
    for (const name of ["setNamedItem", "setNamedItemNS"]) amendMethod("NamedNodeMap", name, (map, values) => put(map[0] && map[0].ownerElement, values));
    for (const [kind, name] of [["Element", "innerHTML"], ["Element", "outerHTML"], ["ShadowRoot", "innerHTML"]]) amendSetter(kind, name, markupOf);
    for (const kind of ["Element", "ShadowRoot"]) amendMethod(kind, "setHTMLUnsafe", (node, [text, ...rest]) => [markupOf(node, text), ...rest]);
    amendMethod("Element", "insertAdjacentHTML", (_, [place, text]) => [place, rewritten(text)]);
    amendMethod("Range", "createContextualFragment", (_, [text]) => [rewritten(text)]);
    for (const [kind, name] of [["Node", "textContent"], ["Node", "nodeValue"], ["CharacterData", "data"], ["Attr", "value"], ["HTMLElement", "innerText"]]) amendSetter(kind, name, textOf);

    for (const kind of ["HTMLElement", "SVGElement"]) amendSetter(kind, "style", (_, text) => styled(text));
    amendSetter("CSSStyleDeclaration", "cssText", (_, text) => styled(text));
    const ofStyles = { CSSStyleDeclaration: ["setProperty"], CSSStyleSheet: ["insertRule", "addRule", "replace", "replaceSync"], CSSGroupingRule: ["insertRule"], CSSStyleRule: ["insertRule"], CSSKeyframesRule: ["appendRule"] };
    const styledAll = (values) => values.map((value) => (typeof value === "string" ? styled(value) : value));
    for (const [kind, names] of Object.entries(ofStyles)) {
      for (const name of names) amendMethod(kind, name, (_, values) => styledAll(values));
    }
    amendNew("FontFace", styledAll);
    amendMethod("Worklet", "addModule", (_, [url, ...rest]) => [mapped(url, "mp_") || url, ...rest]);
    const { attachShadow } = view.Element.prototype;
    view.Element.prototype.attachShadow = function (...values) {
      const root = attachShadow.apply(this, values);
      shadows.push(new WeakRef(root));
      return root;
    };
    let isDue = false;
    document.addEventListener("securitypolicyviolation", ({ effectiveDirective }) => {
      if (isDue || /^(connect|frame|form)/.test(effectiveDirective)) return;
      isDue = true;
      setTimeout(() => { isDue = false; mendAll(document); });
    });
    // A tag may come in pieces.
    let held = "";
    for (const name of ["write", "writeln"]) {
      amendMethod("Document", name, (_, texts) => {
        const text = held + texts.join(""), at = text.lastIndexOf("<");
        held = at >= 0 && /^<(?:\/?[a-z](?:"[^"]*"|'[^']*'|[^'">])*(?:"[^"]*|'[^']*)?)?$/i.test(text.slice(at)) ? text.slice(at) : "";
        return [rewritten(text.slice(0, text.length - held.length))];
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
      for (const name of names) amendMethod(kind, name, (parent, nodes) => nodes.map((node) => entering(node, kindOf(parent) === "STYLE")));
    }
    for (const kind of ["HTMLIFrameElement", "HTMLFrameElement"]) {
      const inside = Object.getOwnPropertyDescriptor(prototypeOf(kind), "contentWindow").get;
      for (const name of ["contentWindow", "contentDocument"]) {
        const given = Object.getOwnPropertyDescriptor(prototypeOf(kind), name);
        Object.defineProperty(prototypeOf(kind), name, { ...given, get() { adopt(inside.call(this)); return given.get.call(this); } });
      }
    }
  };

  // An empty frame or window that a script fills has the policy of its page, and is under no worker.
  const adopted = new WeakSet();
  const adopt = (view) => {
    let inner;
    try { inner = view && /^about:(blank|srcdoc)/.test(view.location.href) && view.document; } catch { return view; }
    if (!inner || adopted.has(inner) || !inner.head) return view;
    adopted.add(inner);
    keep(view);
    if (view.location.href === "about:srcdoc") return view;
    locate(view);
    if (where) addImportMap(inner.head.appendChild(inner.createElement("meta")));
    watch(inner, mend);
    return view;
  };
  const sweep = (view) => { for (let number = 0; number < view.length; number += 1) adopt(view[number]); };
  keep(window);
  watch(document, (element) => {
    if (/^I?FRAME$/.test(kindOf(element))) adopt(element.contentWindow);
    mend(element);
  });
  // Some browsers take one import map only: that of the page, if it has one.
  const { currentScript } = document;
  if (where && currentScript && !("maps" in currentScript.dataset)) addImportMap(currentScript);
  if (!where || isInner) return;

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
