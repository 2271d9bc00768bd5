// The replay's worker: whatever a replayed page asks for, and however it names it, comes from the archive, of the page's time.
"use strict";

const own = /^\/web\/(\d+)([a-z]{2}_)?\/(.*)$/s;
const modifiers = { image: "im_", script: "js_", style: "cs_", iframe: "if_", frame: "fr_", audio: "oe_", video: "oe_", track: "oe_", object: "oe_", embed: "oe_" };

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.mode === "navigate") {
    event.respondWith(page(request));
  } else if (url.origin === self.location.origin && /^\/(web|static)\//.test(url.pathname)) {
    // A script that asks for a page gets it without what readers get.
    const found = own.exec(url.pathname + url.search);
    const isWritten = found && request.destination === "script" && /^(js|if|fr)_$/.test(found[2]);
    if (found && (!found[2] || isWritten)) event.respondWith(clientOf(event).then((client) => asked(request, client, found[1], found[3])));
  } else if (/^https?:$/.test(url.protocol)) {
    event.respondWith(mapped(event, url));
  }
});

// A page as the server gives it. A request from here does not say what it is for, so the server cannot leave out the sandbox.
async function page(request) {
  const response = await fetch(request);
  const policy = response.headers.get("Content-Security-Policy");
  const isAmongPages = request.destination === "document" || parsed(request.referrer);
  if (!policy || !isAmongPages || response.type !== "basic") return response;
  const headers = new Headers(response.headers);
  headers.set("Content-Security-Policy", policy.replace(/; sandbox allow-scripts [^;]*/, ""));
  return new Response(response.body, { status: response.status, statusText: response.statusText, headers });
}

async function clientOf(event) {
  return event.clientId ? self.clients.get(event.clientId) : null;
}

// What a page, by its own address, means by a URL.
async function mapped(event, url) {
  const { request } = event;
  const client = await clientOf(event);
  const where = [client && client.url, request.referrer].map(parsed).find((found) => found);
  if (!where) return new Response("", { status: 404 });
  const target = url.origin === self.location.origin ? new URL(url.pathname + url.search, where.page).href : url.href;
  return asked(request, client, where.time, target);
}

// A requisite as it was at a time. A script is written for pages, which have the replay's own script; others get it as it was captured.
async function asked(request, client, time, target) {
  const headers = new Headers();
  for (const name of ["Range", "Accept", "Content-Type"]) {
    if (request.headers.has(name)) headers.set(name, request.headers.get(name));
  }
  const isOfPage = client && client.type === "window" && parsed(client.url);
  const modifier = (request.destination !== "script" || isOfPage) && modifiers[request.destination] || "mp_";
  const { method } = request;
  const body = /^(GET|HEAD)$/.test(method) ? undefined : await request.arrayBuffer();
  return fetch(`/web/${time}${modifier}/${target}`, { method, headers, body });
}

// Time and URL of the page at an address in the archive.
function parsed(address) {
  if (!address) return null;
  try {
    const url = new URL(address);
    const found = url.origin === self.location.origin && own.exec(url.pathname + url.search);
    return found ? { time: found[1], page: new URL(found[3]) } : null;
  } catch {
    return null;
  }
}
