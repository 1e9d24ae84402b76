/** The files of the site: from the web server, or from the page itself if that is a single file. */

/** Files inside the page by their paths, each as a blob. */
export type EmbeddedFiles = Record<string, Blob>;

/** Return the files that the page contains: elements with the path as `data-path` and base64 as text. */
export async function readEmbeddedFiles(): Promise<EmbeddedFiles> {
  const elements = [...document.querySelectorAll<HTMLScriptElement>("script[data-path]")];
  const entries = elements.map(async (element) => {
    const response = await fetch(`data:application/octet-stream;base64,${element.text.trim()}`);
    const blob = await response.blob();
    element.remove(); // its text would take memory
    return [element.dataset.path!, blob] as const;
  });
  return Object.fromEntries(await Promise.all(entries));
}

/** Where the site keeps what it has loaded, so that it works offline. */
export interface FileCache {
  name: string;
  base: string;
}

/** The cache of a site, under the name that its service worker uses. */
export function cacheOf({ version }: { version: string }): FileCache {
  const base = document.baseURI;
  return { name: `attendo ${new URL("./", base).href} ${version}`, base };
}

/** Open a file: embedded, kept from an earlier visit, or from the web server. */
export async function openFile(path: string, embedded: EmbeddedFiles, { name, base }: FileCache): Promise<Response> {
  if (embedded[path]) return new Response(embedded[path]);
  const url = new URL(path, base);
  const cache = await openCache(name);
  const kept = await cache?.match(url);
  if (kept) return kept;
  const response = await fetch(url);
  if (!response.ok || !response.body) throw new Error(`${path}: HTTP ${String(response.status)}`);
  // The disk may be full: then the file is loaded again at the next visit.
  if (cache) void cache.put(url, response.clone()).catch(() => undefined);
  return response;
}

/** The cache of this version of the site; browsers have one on https and localhost only. */
async function openCache(name: string): Promise<Cache | null> {
  if (!name || typeof caches === "undefined") return null;
  try {
    return await caches.open(name);
  } catch {
    return null; // switched off by the user
  }
}
