/**
 * Scrolls a list so that one of its elements is in the middle. Unlike `scrollIntoView` it leaves the page around
 * the view where it is.
 */
export function showIn(list: Element | null | undefined, element: Element | null | undefined): void {
  if (!list || !element) return
  const outer = list.getBoundingClientRect()
  const inner = element.getBoundingClientRect()
  list.scrollTop += inner.top - outer.top - (outer.height - inner.height) / 2
}
