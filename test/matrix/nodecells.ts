import { type Cell, programFiles } from './cell.ts'

const versions = [20, 22, 24, 26]
const esm = { 'package.json': '{ "private": true, "type": "module" }' }
const register = ['--import', 'heddle/register']

/** A project after `npm init -y` and `npx tsc --init`. */
const tsconfig = JSON.stringify({
  compilerOptions: {
    rootDir: './src',
    outDir: './dist',
    module: 'nodenext',
    target: 'esnext',
    types: ['node'],
    strict: true,
    skipLibCheck: true,
    verbatimModuleSyntax: true,
    isolatedModules: true,
    rewriteRelativeImportExtensions: true,
    lib: ['esnext', 'dom'],
  },
  include: ['src'],
})

/** Node without other tools: every way to write a program, on every version. */
export const nodeCells: readonly Cell[] = versions.flatMap(version => [
  {
    name: `node ${version}, JavaScript modules`,
    files: () => ({ ...esm, ...programFiles('esm') }),
    run: (project, tools) => tools.command(project, tools.node(version), [...register, 'src/main.js']),
  },
  {
    name: `node ${version}, CommonJS`,
    quick: version === 20 || version === 26,
    files: () => ({ 'package.json': '{ "private": true }', ...programFiles('commonjs') }),
    run: (project, tools) => tools.command(project, tools.node(version), [...register, 'src/main.js']),
  },
  {
    name: `node ${version}, TypeScript without a build step`,
    quick: version === 20 || version === 26,
    files: () => ({ ...esm, ...programFiles('typescript') }),
    run: (project, tools) =>
      tools.command(project, tools.node(version), [tools.bin('heddle'), 'run', 'src/main.ts']),
  },
  {
    name: `node ${version}, TypeScript with tsx`,
    files: () => ({ ...esm, ...programFiles('typescript') }),
    run: (project, tools) =>
      tools.command(project, tools.node(version), [tools.bin('tsx'), ...register, 'src/main.ts']),
  },
  {
    name: `node ${version}, TypeScript with tsc`,
    files: () => ({ ...esm, 'tsconfig.json': tsconfig, ...programFiles('typescript') }),
    run: async (project, tools) => {
      await tools.command(project, tools.node(26), [tools.bin('tsc')])
      return await tools.command(project, tools.node(version), [...register, 'dist/main.js'])
    },
  },
])
