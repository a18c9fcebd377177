import type { VNode } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { ExecutionStep } from '../../src/checker/report/execution.ts'
import { showIn } from './scroll.ts'

export interface SourceProps {
  readonly step: ExecutionStep | undefined
  readonly sources: Readonly<Record<string, string>>
}

/** The file of the selected step, with its line in the middle. */
export function Source({ step, sources }: SourceProps): VNode | null {
  const line = useRef<HTMLLIElement>(null)
  useEffect(() => {
    showIn(line.current?.parentElement, line.current)
  }, [step?.file, step?.line])
  if (step === undefined || step.file === '') return null
  const text = sources[step.file]
  const name = step.file.replace(/\?.*$/, '').split('/').slice(-2).join('/')
  return (
    <section class="source">
      <h3>
        {name}:{step.line}
      </h3>
      {text === undefined ? (
        <p>The source of this step is not here.</p>
      ) : (
        <ol aria-label={`Source of ${name}`}>
          {text.split('\n').map((content, n) => (
            <li
              key={n}
              ref={n + 1 === step.line ? line : undefined}
              class={n + 1 === step.line ? 'here' : ''}
              aria-current={n + 1 === step.line ? 'location' : undefined}
            >
              <code>{content}</code>
            </li>
          ))}
        </ol>
      )}
    </section>
  )
}
