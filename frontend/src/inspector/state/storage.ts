/** What the browser remembers. A page in a frame may be denied its storage; it then forgets, and that is all. */

export function stored(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

export function store(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // denied: nothing is remembered
  }
}
