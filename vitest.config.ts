import { defineConfig, type ViteUserConfig } from 'vitest/config'
import { heddleChecker } from './src/checker/vite.ts'

const config: ViteUserConfig = defineConfig({
  // Checks inside tests: a test file that imports the checker is instrumented.
  plugins: [heddleChecker()],
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts', 'bench/**/*.test.ts', 'examples/**/*.test.ts'],
    exclude: ['**/fixtures/**', '**/node_modules/**'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 600_000,
    // A busy machine may take its time: what is polled for comes, or the test hangs.
    expect: { poll: { timeout: 120_000, interval: 5 } },
    hookTimeout: 300_000,
  },
})

export default config
