import type { VNode } from 'preact'

/** A stack with the names of its files; their folders are in the tooltip. */
export function Stack({ text }: { text: string }): VNode {
  const short = text.replaceAll(
    /(?:file:\/\/)?(?:[A-Za-z]:)?[/\\](?:[^\s():/\\]+[/\\])*([^\s():/\\]+:\d+)/g,
    '$1',
  )
  return (
    <pre class="stack" title={text}>
      {short
        .split('\n')
        .map(line => line.trim())
        .join('\n')}
    </pre>
  )
}
