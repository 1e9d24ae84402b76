/** Local storage. A page in a frame may be denied access to it: then nothing is stored. */

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
    // access denied
  }
}

/** As `stored`, but only until the tab is closed: for secrets. */
export function sessionStored(key: string): string | null {
  try {
    return sessionStorage.getItem(key);
  } catch {
    return null;
  }
}

export function sessionStore(key: string, value: string): void {
  try {
    sessionStorage.setItem(key, value);
  } catch {
    // access denied
  }
}
