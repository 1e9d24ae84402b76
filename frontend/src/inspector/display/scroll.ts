/** Scroll a bar sideways so that an element of it is in its middle. */
export function centerIn(bar: HTMLElement, element: Element | null): void {
  if (!element) return;
  const [outer, inner] = [bar.getBoundingClientRect(), element.getBoundingClientRect()];
  bar.scrollLeft += inner.left + inner.width / 2 - outer.left - outer.width / 2;
}
