/** The current route as reactive state, in step with the browser's history. */

import { formatRoute, type Page, PAGES, parseRoute, type Route } from "./routes";

/** Browsers limit how often the URL may be replaced; typing would exceed that. */
const REPLACE_DELAY_MS = 300;

export class Navigation {
  route = $state.raw<Route>(parseRoute(location.hash));
  /** The last route of each page: the links in the header lead back to it. */
  last = $state.raw<Partial<Record<Page, Route>>>({});
  #timer: ReturnType<typeof setTimeout> | null = null;

  constructor() {
    this.#show(this.route);
  }

  /** Follow back and forward, links and typed URLs; return a function that stops it. */
  listen(): () => void {
    const follow = () => {
      this.#clearTimer();
      if (location.hash === formatRoute(this.route)) return;
      this.#show(parseRoute(location.hash));
    };
    addEventListener("popstate", follow);
    addEventListener("hashchange", follow);
    return () => {
      removeEventListener("popstate", follow);
      removeEventListener("hashchange", follow);
    };
  }

  /** Show a route, with a new entry in the browser's history. */
  push(route: Route): void {
    this.flush();
    history.pushState(null, "", formatRoute(route));
    this.#show(route);
  }

  /** Show a route in place of the current one, as when typing; the URL follows after a short delay. */
  replace(route: Route): void {
    this.#show(route);
    this.#clearTimer();
    this.#timer = setTimeout(() => this.flush(), REPLACE_DELAY_MS);
  }

  /** Write a delayed change into the URL now. */
  flush(): void {
    if (this.#timer === null) return;
    this.#clearTimer();
    history.replaceState(null, "", formatRoute(this.route));
  }

  #show(route: Route): void {
    this.route = route;
    const page = PAGES.find((known) => known === route.page);
    if (page) this.last = { ...this.last, [page]: route };
  }

  #clearTimer(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}
