/** Where the reader is: the address, as a value that the pages follow. */

import { formatRoute, type Page, PAGES, parseRoute, type Route } from "./routes";

/** Browsers count how often an address is rewritten; typing would be too fast for them. */
const PAUSE_MS = 300;

export class Place {
  route = $state.raw<Route>(parseRoute(location.hash));
  /** The last address of each page: the way back leads to where one was. */
  last = $state.raw<Partial<Record<Page, Route>>>({});
  #timer: ReturnType<typeof setTimeout> | null = null;

  constructor() {
    this.#keep(this.route);
  }

  /** Follow the browser's back and forward, links and typed addresses; gives the way to stop. */
  listen(): () => void {
    const follow = () => {
      this.#forget();
      if (location.hash === formatRoute(this.route)) return;
      this.#keep(parseRoute(location.hash));
    };
    addEventListener("popstate", follow);
    addEventListener("hashchange", follow);
    return () => {
      removeEventListener("popstate", follow);
      removeEventListener("hashchange", follow);
    };
  }

  /** Go somewhere: the browser's back leads here again. */
  push(route: Route): void {
    this.flush();
    history.pushState(null, "", formatRoute(route));
    this.#keep(route);
  }

  /** Be somewhere a little different: as when typing. */
  replace(route: Route): void {
    this.#keep(route);
    this.#forget();
    this.#timer = setTimeout(() => this.flush(), PAUSE_MS);
  }

  /** Write what is not in the address yet. */
  flush(): void {
    if (this.#timer === null) return;
    this.#forget();
    history.replaceState(null, "", formatRoute(this.route));
  }

  #keep(route: Route): void {
    this.route = route;
    const page = PAGES.find((one) => one === route.page);
    if (page) this.last = { ...this.last, [page]: route };
  }

  #forget(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}
