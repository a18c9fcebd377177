import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { npm } from './matrix.ts'
import { publishArguments, type ReleaseFacts, refusals, releaseOptions } from './releaseplan.ts'
import { wrongInPackage } from './tarball.ts'

/**
 * `npm run release`: checks the tree, the tag, the changelog and the registry, runs the gates, builds, packs,
 * checks the tarball, and publishes it with provenance. It refuses before the gates if it could not publish.
 *
 * `npm run release -- --dry-run` does all of it, names what a release would refuse, and publishes nothing;
 * `--dry-run --without-gates` leaves the gates out.
 */
const root = join(import.meta.dirname, '..')
const gates = [['test'], ['run', 'check'], ['run', 'matrix']]

function git(...args: string[]): string {
  return execFileSync('git', args, { cwd: root, encoding: 'utf8' })
}

const json = (name: string): any => JSON.parse(readFileSync(join(root, name), 'utf8'))

function publishedVersions(name: string): string[] | null {
  const { status, stdout, stderr } = spawnSync('npm', ['view', name, 'versions', '--json'], {
    encoding: 'utf8',
  })
  if (status !== 0) return /E404/.test(stderr + stdout) ? [] : null
  return [JSON.parse(stdout)].flat() as string[]
}

function facts(): ReleaseFacts {
  const { name, version, repository } = json('package.json')
  return {
    version,
    lockVersion: json('package-lock.json').version,
    changelog: readFileSync(join(root, 'CHANGELOG.md'), 'utf8'),
    changes: git('status', '--porcelain'),
    tags: git('tag', '--points-at', 'HEAD').split('\n').filter(Boolean),
    published: publishedVersions(name),
    repository: repository?.url,
    environment: process.env,
  }
}

function step(name: string, act: () => void): void {
  console.log(`\n== ${name}`)
  try {
    act()
  } catch (error) {
    console.error(`release: ${name} failed: ${(error as Error).message}`)
    process.exit(1)
  }
}

function live(...args: string[]): void {
  execFileSync('npm', args, { cwd: root, stdio: 'inherit' })
}

let options
try {
  options = releaseOptions(process.argv.slice(2))
} catch (error) {
  console.error(`release: ${(error as Error).message}`)
  process.exit(2)
}

const found = facts()
const reasons = refusals(found)
for (const reason of reasons) console.log(`${options.isDry ? 'would refuse' : 'refused'}: ${reason}`)
if (reasons.length > 0 && !options.isDry) process.exit(1)

const scratch = mkdtempSync(join(tmpdir(), 'heddle-release-'))
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }))
let tarball = ''
if (options.gates) for (const gate of gates) step(`npm ${gate.join(' ')}`, () => live(...gate))
step('build', () => live('run', 'build', '--', '--logLevel', 'warn'))
step('pack', () => {
  const [{ filename, size, unpackedSize, entryCount }] = JSON.parse(
    npm(root, 'pack', '--json', '--ignore-scripts', '--pack-destination', scratch),
  )
  tarball = join(scratch, filename)
  console.log(`${filename}: ${entryCount} files, ${size} bytes packed, ${unpackedSize} bytes unpacked`)
})
step('check the tarball', () => {
  const unpacked = join(scratch, 'unpacked')
  mkdirSync(unpacked)
  execFileSync('tar', ['-xzf', tarball, '-C', unpacked])
  const wrong = wrongInPackage(join(unpacked, 'package'))
  if (wrong.length > 0) throw new Error(wrong.join('\n'))
  const after = git('status', '--porcelain')
  if (after !== found.changes) throw new Error(`the gates or the build changed the tree:\n${after}`)
})
step(options.isDry ? 'publish, without effect' : 'publish', () =>
  live(...publishArguments(tarball, found.version, options.isDry)),
)
console.log(
  options.isDry
    ? `\ndry run: to its end; a release of ${found.version} now would ${reasons.length > 0 ? `be refused for ${reasons.length} reasons, as above` : 'be published'}`
    : `\npublished ${found.version}; push the tag: git push origin v${found.version}`,
)
