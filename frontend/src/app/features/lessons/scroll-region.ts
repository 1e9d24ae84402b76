/** Makes an element that scrolls focusable, so that the keyboard can scroll it; one that does not scroll is not a tab stop. */

export function scrollRegion(label: string) {
  return (element: HTMLElement): (() => void) => {
    const update = () => {
      const doesScroll = element.scrollWidth > element.clientWidth + 1;
      if (!doesScroll) for (const name of ["tabindex", "role", "aria-label"]) element.removeAttribute(name);
      else for (const [name, value] of [["tabindex", "0"], ["role", "group"], ["aria-label", label]]) element.setAttribute(name, value);
    };
    const observer = new ResizeObserver(update);
    observer.observe(element);
    for (const child of element.children) observer.observe(child);
    return () => observer.disconnect();
  };
}
