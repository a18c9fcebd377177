import type { Plugin } from 'rollup'
import type { HeddleOptions } from './options.ts'
import { heddle } from './unplugin.ts'

export type { HeddleOptions }

const plugin: (options?: HeddleOptions) => Plugin[] = heddle.rollup
export default plugin
