import { describe, expect, it } from 'vitest'
import { publishArguments, type ReleaseFacts, refusals, releaseOptions } from '../scripts/releaseplan.ts'

const ready: ReleaseFacts = {
  version: '0.2.0',
  lockVersion: '0.2.0',
  changelog: '# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-11-19\n\n### Added\n\n- A thing.\n',
  changes: '',
  tags: ['v0.2.0'],
  published: ['0.1.0'],
  repository: 'git+https://example.org/heddle.git',
  environment: { GITHUB_ACTIONS: 'true', ACTIONS_ID_TOKEN_REQUEST_URL: 'https://example.org' },
}

describe('a release', () => {
  it('is published when nothing speaks against it', () => {
    expect(refusals(ready)).toEqual([])
    const onGitLab = { GITLAB_CI: 'true', SIGSTORE_ID_TOKEN: 'x' }
    expect(refusals({ ...ready, environment: onGitLab })).toEqual([])
  })

  it.each<[string, Partial<ReleaseFacts>, string]>([
    ['a change in the tree', { changes: ' M README.md\n' }, 'README.md'],
    ['a file that git does not know', { changes: '?? notes\n' }, 'notes'],
    ['no tag', { tags: [] }, 'HEAD has no tag; give it the tag of the version: git tag v0.2.0'],
    ['the tag of another version', { tags: ['v0.1.0'] }, 'HEAD has v0.1.0'],
    ['another version in the lock file', { lockVersion: '0.1.0' }, 'package-lock.json is of 0.1.0'],
    ['no section of the version', { changelog: '## [0.1.0] - 2026-11-15\n\n- x\n' }, 'no section [0.2.0]'],
    ['a section without a date', { changelog: '## [0.2.0]\n\n- x\n' }, 'needs a date'],
    ['a section without entries', { changelog: '## [0.2.0] - 2026-11-19\n' }, 'needs a date and entries'],
    [
      'entries that are not released',
      { changelog: '## [Unreleased]\n\n### Fixed\n\n- y\n\n## [0.2.0] - 2026-11-19\n\n- x\n' },
      'entries under [Unreleased]',
    ],
    ['a version that is published', { published: ['0.1.0', '0.2.0'] }, 'is in the registry'],
    ['a registry that does not answer', { published: null }, 'did not say'],
    ['a machine without an identity', { environment: {} }, 'provenance needs the identity of a CI job'],
    ['a job without the permission', { environment: { GITHUB_ACTIONS: 'true' } }, 'id-token: write'],
    ['a job of GitLab without a token', { environment: { GITLAB_CI: 'true' } }, 'SIGSTORE_ID_TOKEN'],
    ['no repository', { repository: undefined }, 'names no repository.url'],
  ])('is refused for one reason, with its remedy: %s', (_, change, text) => {
    const reasons = refusals({ ...ready, ...change })
    expect(reasons).toHaveLength(1)
    expect(reasons[0]).toContain(text)
  })

  it('names all reasons at once', () => {
    expect(refusals({ ...ready, tags: [], published: null, environment: {} })).toHaveLength(3)
  })

  it('has provenance, and a dry run publishes nothing', () => {
    expect(publishArguments('a.tgz', '0.2.0', false)).toContain('--provenance')
    expect(publishArguments('a.tgz', '0.2.0', false)).not.toContain('--dry-run')
    expect(publishArguments('a.tgz', '0.2.0', true)).toContain('--dry-run')
  })

  it('of a candidate is not the latest version', () => {
    expect(publishArguments('a.tgz', '0.2.0', false)).toEqual(expect.arrayContaining(['--tag', 'latest']))
    expect(publishArguments('a.tgz', '1.0.0-rc.1', false)).toEqual(expect.arrayContaining(['--tag', 'next']))
  })

  it('runs its gates, unless it is a dry run that leaves them out', () => {
    expect(releaseOptions([])).toEqual({ isDry: false, gates: true })
    expect(releaseOptions(['--dry-run'])).toEqual({ isDry: true, gates: true })
    expect(releaseOptions(['--dry-run', '--without-gates'])).toEqual({ isDry: true, gates: false })
    expect(() => releaseOptions(['--without-gates'])).toThrow('a release runs its gates')
    expect(() => releaseOptions(['--dryrun'])).toThrow('--dryrun: unknown')
  })
})
