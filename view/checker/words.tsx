import type { VNode } from 'preact'
import type { Execution } from '../../src/checker/report/execution.ts'
import { valuesAfter } from './order.ts'

/** The value of each word after the selected step; the word that the step touched stands out. */
export function Words({ execution, at }: { execution: Execution; at: number }): VNode | null {
  if (execution.words.length === 0) return null
  const values = valuesAfter(execution, at)
  const before = valuesAfter(execution, at - 1)
  const touched = execution.steps[at]?.word
  return (
    <section class="words">
      <h3>Words after step {at + 1}</h3>
      <table>
        <tbody>
          {execution.words.map(({ name }, word) => (
            <tr key={word} class={word === touched ? 'touched' : ''}>
              <th scope="row">{name}</th>
              <td>
                {values[word] === before[word] ? (
                  values[word]
                ) : (
                  <>
                    <s>{before[word]}</s> <b>{values[word]}</b>
                  </>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}
