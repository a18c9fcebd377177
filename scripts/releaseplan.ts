/** What a release depends on. `release.ts` collects it; nothing here reads the machine. */
export interface ReleaseFacts {
  readonly version: string
  readonly lockVersion: string
  readonly changelog: string
  /** `git status --porcelain`. */
  readonly changes: string
  /** The tags of HEAD. */
  readonly tags: readonly string[]
  /** The versions in the registry. Null: the registry did not answer. */
  readonly published: readonly string[] | null
  /** `repository.url` of package.json. */
  readonly repository: string | undefined
  readonly environment: Readonly<Record<string, string | undefined>>
}

/** Each reason not to publish, with its remedy. */
export function refusals(facts: ReleaseFacts): string[] {
  const { version, lockVersion, changelog, changes, tags, published } = facts
  const reasons: string[] = []
  if (changes.trim() !== '')
    reasons.push(`the tree has changes; commit or remove them:\n${indented(changes)}`)
  if (!tags.includes(`v${version}`))
    reasons.push(
      `HEAD has ${tags.join(', ') || 'no tag'}; give it the tag of the version: git tag v${version}`,
    )
  if (lockVersion !== version)
    reasons.push(
      `package-lock.json is of ${lockVersion}, package.json of ${version}; run npm version ${version} --no-git-tag-version --allow-same-version`,
    )
  reasons.push(...wrongInChangelog(version, changelog))
  if (published === null) reasons.push(`the registry did not say which versions it has; try again`)
  else if (published.includes(version))
    reasons.push(`version ${version} is in the registry; choose a higher one`)
  reasons.push(...noProvenance(facts))
  return reasons
}

function wrongInChangelog(version: string, changelog: string): string[] {
  const parts = changelog.split(/^## /m).slice(1)
  const own = parts.find(part => part.startsWith(`[${version}]`))
  const unreleased = parts.find(part => part.startsWith('[Unreleased]'))
  const wrong: string[] = []
  if (own === undefined) wrong.push(`CHANGELOG.md has no section [${version}]; rename [Unreleased]`)
  else if (!/^\[[^\]]+\] - \d{4}-\d\d-\d\d\n[^]*\S/.test(own))
    wrong.push(
      `CHANGELOG.md: the section [${version}] needs a date and entries: ## [${version}] - YYYY-MM-DD`,
    )
  if (unreleased !== undefined && /^[-*] /m.test(unreleased))
    wrong.push(`CHANGELOG.md has entries under [Unreleased]; move them to [${version}]`)
  return wrong
}

/**
 * npm signs a provenance with an identity of the CI job (OIDC). A machine at home has none, and npm compares
 * the repository of the job with that of package.json.
 */
function noProvenance({ repository, environment }: ReleaseFacts): string[] {
  const onGitHub = environment.GITHUB_ACTIONS === 'true'
  const onGitLab = environment.GITLAB_CI === 'true'
  const wrong: string[] = []
  if (onGitHub && environment.ACTIONS_ID_TOKEN_REQUEST_URL === undefined)
    wrong.push('the job may not ask for an identity; give it permissions: id-token: write')
  else if (onGitLab && environment.SIGSTORE_ID_TOKEN === undefined)
    wrong.push('the job has no SIGSTORE_ID_TOKEN; give it id_tokens: SIGSTORE_ID_TOKEN: aud: sigstore')
  else if (!onGitHub && !onGitLab)
    wrong.push('provenance needs the identity of a CI job (OIDC); publish from GitHub Actions or GitLab CI')
  if (repository === undefined)
    wrong.push('package.json names no repository.url; npm compares it with the repository of the CI job')
  return wrong
}

/** A version such as 1.0.0-rc.1 does not become `latest`. A dry run signs nothing: it has no identity. */
export function publishArguments(tarball: string, version: string, isDry: boolean): string[] {
  const tag = version.includes('-') ? 'next' : 'latest'
  return ['publish', tarball, '--access', 'public', '--tag', tag, isDry ? '--dry-run' : '--provenance']
}

export interface ReleaseOptions {
  readonly isDry: boolean
  readonly gates: boolean
}

/** Throws an error when the arguments are wrong. */
export function releaseOptions(args: readonly string[]): ReleaseOptions {
  const unknown = args.find(arg => !['--dry-run', '--without-gates'].includes(arg))
  if (unknown !== undefined)
    throw new TypeError(`${unknown}: unknown; give --dry-run, or --dry-run --without-gates`)
  const isDry = args.includes('--dry-run')
  if (args.includes('--without-gates') && !isDry)
    throw new TypeError('--without-gates: a release runs its gates; give it with --dry-run only')
  return { isDry, gates: !args.includes('--without-gates') }
}

function indented(text: string): string {
  return text
    .trimEnd()
    .split('\n')
    .map(line => `    ${line}`)
    .join('\n')
}
