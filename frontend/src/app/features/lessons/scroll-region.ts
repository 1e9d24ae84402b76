/** What scrolls must be reached by keys; what does not scroll is no stop on their way. */

export function reachable(label: string) {
  return (element: HTMLElement): (() => void) => {
    const look = () => {
      const doesScroll = element.scrollWidth > element.clientWidth + 1;
      if (!doesScroll) for (const name of ["tabindex", "role", "aria-label"]) element.removeAttribute(name);
      else for (const [name, value] of [["tabindex", "0"], ["role", "group"], ["aria-label", label]]) element.setAttribute(name, value);
    };
    const watch = new ResizeObserver(look);
    watch.observe(element);
    for (const child of element.children) watch.observe(child);
    return () => watch.disconnect();
  };
}
