/** Makes the text of an element smaller until its content fits its width, down to a smallest size; below that, the element scrolls. */

const MAX_ROUNDS = 3;

/** The factor for a content of a width in an element of another: at most 1, at least the smallest. */
export function fitFactor(contentWidth: number, width: number, smallest: number): number {
  if (!width || contentWidth <= width) return 1;
  return Math.max(smallest, Math.floor((width / contentWidth) * 100) / 100);
}

/** The factor is the custom property `--fit` of the element. */
export function fitWidth(smallest: number) {
  return (element: HTMLElement): (() => void) => {
    let fitted = { width: -1, content: -1 };
    const update = () => {
      if (element.clientWidth === fitted.width && element.scrollWidth === fitted.content) return;
      element.style.removeProperty("--fit");
      let factor = 1;
      // Space around the text does not shrink with it, so that a second and a third look may be needed.
      for (let round = 0; round < MAX_ROUNDS && element.scrollWidth > element.clientWidth && factor > smallest; round += 1) {
        factor = Math.max(smallest, factor * fitFactor(element.scrollWidth, element.clientWidth, smallest));
        element.style.setProperty("--fit", String(factor));
      }
      fitted = { width: element.clientWidth, content: element.scrollWidth };
    };
    const observer = new ResizeObserver(update);
    observer.observe(element);
    for (const child of element.children) observer.observe(child);
    return () => observer.disconnect();
  };
}
