// The service worker of the site: what has been loaded once works offline. `attendo export --to web` writes VERSION and FILES above.

const PREFIX = `attendo ${registration.scope} `;

addEventListener("install", (event) => {
  skipWaiting();
  event.waitUntil(caches.open(PREFIX + VERSION).then((cache) => cache.addAll(FILES.map((path) => new Request(path, { cache: "no-cache" })))));
});

addEventListener("activate", (event) => {
  const remove = (names) => Promise.all(names.filter((name) => name.startsWith(PREFIX) && name !== PREFIX + VERSION).map((name) => caches.delete(name)));
  event.waitUntil(caches.keys().then(remove).then(() => clients.claim()));
});

// The models are put into the cache by the page when it loads them.
addEventListener("fetch", (event) => {
  const { method, url } = event.request;
  if (method !== "GET" || !url.startsWith(registration.scope)) return;
  const answer = async () => (await (await caches.open(PREFIX + VERSION)).match(event.request, { ignoreSearch: true })) ?? fetch(event.request);
  event.respondWith(answer());
});
