import type { Plugin } from 'rolldown'
import type { HeddleOptions } from './options.ts'
import { heddle } from './unplugin.ts'

export type { HeddleOptions }

const plugin: (options?: HeddleOptions) => Plugin[] = heddle.rolldown
export default plugin
