/**
 * Scrolls a list so that one of its elements is seen. Unlike `scrollIntoView` it leaves the page around the view
 * where it is.
 */
export function showIn(
  list: Element | null | undefined,
  element: Element | null | undefined,
  centred: boolean,
): void {
  if (!list || !element) return
  const outer = list.getBoundingClientRect()
  const inner = element.getBoundingClientRect()
  if (centred) list.scrollTop += inner.top - outer.top - (outer.height - inner.height) / 2
  else if (inner.top < outer.top) list.scrollTop -= outer.top - inner.top
  else if (inner.bottom > outer.bottom) list.scrollTop += inner.bottom - outer.bottom
}
