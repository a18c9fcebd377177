/** `heddle/view`: shows a kernel of this page inside an element of the page. */
import { checkOptions, type Kinds } from '../coroutine/core/knownoptions.ts'
import { KernelSource } from './kernelsource.ts'
import type { PanelName, ViewSource } from './source.ts'

export type {
  PanelName,
  ViewAbout,
  ViewListener,
  ViewMessage,
  ViewReply,
  ViewRequest,
  ViewSource,
} from './source.ts'

export interface MountOptions {
  /** The title of the view. `document.title` without it. */
  readonly title?: string
}

const mountOptions: Kinds<MountOptions> = { title: 'string' }

/** A mounted view. */
export interface MountedView {
  /** Shows a panel. */
  show(panel: PanelName): void
  /** Removes the view from the element, and ends its recording. */
  close(): void
}

/** The page's own bundle, which the build puts beside this module. */
interface Page {
  mount(source: ViewSource, element: Element): MountedView
}

/**
 * Mounts the view of a kernel into an element. The kernel was booted on this thread. The view has its own
 * style: neither it nor the page changes the other's.
 */
export async function mountView(
  kernel: object,
  element: Element,
  options: MountOptions = {},
): Promise<MountedView> {
  checkOptions('mountView(kernel, element, options)', options, mountOptions)
  if (typeof (element as Partial<Element> | null)?.attachShadow !== 'function') {
    throw new TypeError('mountView(kernel, element): element is not an element of the page; give a <div>')
  }
  const source = new KernelSource(kernel, options.title ?? globalThis.document.title)
  return await mountSource(source, element)
}

/** As `mountView`, for any source. */
export async function mountSource(source: ViewSource, element: Element): Promise<MountedView> {
  const page = (await import('../../view/page.tsx')) as Page
  return page.mount(source, element)
}
