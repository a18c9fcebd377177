'use task'

/** A recursive-descent parser of arithmetic, and its evaluation. */
export const size = 500
export const small = 1

interface Node {
  op: string
  value: number
  left: Node | null
  right: Node | null
}

class Parser {
  readonly text: string
  at = 0
  constructor(text: string) {
    this.text = text
  }
  expression(): Node {
    let left = this.term()
    for (;;) {
      const op = this.text[this.at]
      if (op !== '+' && op !== '-') return left
      this.at++
      left = { op, value: 0, left, right: this.term() }
    }
  }
  term(): Node {
    let left = this.factor()
    for (;;) {
      const op = this.text[this.at]
      if (op !== '*' && op !== '%') return left
      this.at++
      left = { op, value: 0, left, right: this.factor() }
    }
  }
  factor(): Node {
    if (this.text[this.at] === '(') {
      this.at++
      const inner = this.expression()
      if (this.text[this.at] !== ')') throw new SyntaxError(`no ) at ${this.at}`)
      this.at++
      return inner
    }
    let value = 0
    let digits = 0
    for (;;) {
      const code = this.text.charCodeAt(this.at)
      if (!(code >= 48 && code <= 57)) break
      value = value * 10 + code - 48
      digits++
      this.at++
    }
    if (digits === 0) throw new SyntaxError(`no number at ${this.at}`)
    return { op: 'n', value, left: null, right: null }
  }
}

function evaluate(node: Node): number {
  switch (node.op) {
    case 'n':
      return node.value
    case '+':
      return (evaluate(node.left!) + evaluate(node.right!)) | 0
    case '-':
      return (evaluate(node.left!) - evaluate(node.right!)) | 0
    case '*':
      return Math.imul(evaluate(node.left!), evaluate(node.right!))
    default:
      return evaluate(node.left!) % (Math.abs(evaluate(node.right!)) + 1)
  }
}

function write(depth: number): string {
  if (depth === 0) return '7*(3+12)-4'
  const inner = write(depth - 1)
  return `(${inner})+${depth}*(${inner})%97`
}

export function run(rounds: number): number {
  const text = write(6)
  let total = 0
  for (let i = 0; i < rounds; i++) total = (total + evaluate(new Parser(text).expression())) | 0
  return total
}
