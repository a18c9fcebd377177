import type { ComponentChildren, VNode } from 'preact'

/** A panel without data: what is missing, and what to do. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }): VNode {
  return (
    <div class="empty">
      <h2>{title}</h2>
      <p>{children}</p>
    </div>
  )
}
