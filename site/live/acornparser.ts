/**
 * In the place of oxc-parser, which is native: acorn, for the plain JavaScript of the page. The compiler uses only
 * the tree, `errors` and `hasModuleSyntax`.
 */
import { parse } from 'acorn'
// @ts-expect-error: the package has no types for this file
import visitorKeys from '../../node_modules/oxc-parser/src-js/generated/visit/keys.js'

export { visitorKeys }

export type OxcError = {
  readonly severity: string
  readonly message: string
  readonly labels: readonly { readonly start: number; readonly end: number }[]
  readonly helpMessage: string | null
}

export function parseSync(
  _file: string,
  source: string,
  { sourceType }: { sourceType?: string } = {},
): { program: unknown; errors: OxcError[]; module: { hasModuleSyntax: boolean } } {
  try {
    const program = parse(source, {
      ecmaVersion: 'latest',
      sourceType: sourceType === 'commonjs' ? 'script' : 'module',
      preserveParens: true,
      allowReturnOutsideFunction: sourceType === 'commonjs',
    })
    const hasModuleSyntax = program.body.some(({ type }) => /^(?:Import|Export)/.test(type))
    return { program, errors: [], module: { hasModuleSyntax } }
  } catch (error) {
    const { message, pos = 0 } = error as Error & { pos?: number }
    const labels = [{ start: pos, end: pos + 1 }]
    const errors = [{ severity: 'Error', message, labels, helpMessage: null }]
    return {
      program: { type: 'Program', body: [], start: 0, end: 0 },
      errors,
      module: { hasModuleSyntax: true },
    }
  }
}
