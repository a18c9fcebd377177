import { check, History, linearizable, specifications } from '../../src/checker/check.ts'
import { HastyStack, type Stack, SteadyStack } from './stack.ts'

/** One thread takes a node. The other takes two, and puts the first of them back. */
function popBesidePush(make: (memory: SharedArrayBuffer) => Stack) {
  return () => {
    const history = new History()
    const stack = history.of(make(new SharedArrayBuffer(16)))
    for (const node of [1, 2]) stack.push(node)
    return {
      threads: {
        ann: () => void stack.pop(),
        bob() {
          const node = stack.pop()
          stack.pop()
          if (node !== undefined) stack.push(node)
        },
      },
      final() {
        // What is left, and that no node is in two places.
        for (let left = stack.pop(); left !== undefined; left = stack.pop());
        linearizable(specifications.stack(), history)
      },
    }
  }
}

check(
  'the hasty stack is linearizable',
  popBesidePush(memory => new HastyStack(memory)),
)
check(
  'the steady stack is linearizable',
  popBesidePush(memory => new SteadyStack(memory)),
)
