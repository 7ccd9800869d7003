import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { emptyFolder } from './support/ev-process.ts'
import { ROOT } from './support/markdown.ts'

const FILES = [
  'package.json',
  'package-lock.json',
  'clients/python/pyproject.toml',
  'deploy/kubernetes.yaml',
]

const CHANGELOG = `# Changelog

## [Unreleased]

## [7.8.9] - 2026-11-24

### Fixed
- # is kept.

## [0.1.0] - 2026-11-22
- First version.
`

describe('a release', () => {
  test('sets the version everywhere, commits, tags and prints the notes', () => {
    const { folder, git, release } = repository()
    const before = new Map(FILES.map(path => [path, readFileSync(join(folder, path), 'utf8')]))
    const { status, stdout, stderr } = release('7.8.9')
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(git('status', '--porcelain')).toBe('')
    expect(git('log', '-1', '--format=%s')).toBe('release: 7.8.9')
    expect(git('tag', '--list', '--format=%(contents)')).toBe('7.8.9\n\n### Fixed\n- # is kept.')
    expect(git('rev-parse', 'v7.8.9^{commit}')).toBe(git('rev-parse', 'HEAD'))
    expect(stdout).toContain('\n### Fixed\n- # is kept.\n')
    expect(stdout).not.toContain('First version')
    expect(stdout).toContain('git push origin main v7.8.9')
    const current = JSON.parse(before.get('package.json') as string).version
    for (const [path, text] of before) {
      const lines = {
        old: text.split('\n'),
        new: readFileSync(join(folder, path), 'utf8').split('\n'),
      }
      const changed = lines.old.flatMap((line, n) =>
        line === lines.new[n] ? [] : [[line, lines.new[n]]],
      )
      expect(changed).toHaveLength(CHANGED_LINES[path] as number)
      for (const [old, now] of changed) expect(now).toBe(old?.replace(current, '7.8.9'))
    }
    const lock = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8'))
    expect([lock.version, lock.packages[''].version]).toEqual(['7.8.9', '7.8.9'])
  })

  test('makes a section of the unreleased entries', () => {
    const { folder, git, change, release } = repository()
    change('[Unreleased]\n', '[Unreleased]\n\n### Added\n- More.\n')
    const { status, stdout, stderr } = release('8.0.0')
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(git('status', '--porcelain')).toBe('')
    expect(readFileSync(join(folder, 'CHANGELOG.md'), 'utf8')).toMatch(
      /^# Changelog\n\n## \[Unreleased\]\n\n## \[8\.0\.0\] - \d{4}-\d\d-\d\d\n\n### Added\n- More\.\n\n## \[7\.8\.9\] - /,
    )
    expect(git('tag', '--list', '--format=%(contents)')).toBe('8.0.0\n\n### Added\n- More.')
    expect(stdout).not.toContain('is kept')
  })

  test('of the version in the files only tags', () => {
    const { git, release } = repository()
    expect(release('7.8.9').status).toBe(0)
    git('tag', '--delete', 'v7.8.9')
    const commit = git('rev-parse', 'HEAD')
    expect(release('7.8.9').status).toBe(0)
    expect(git('rev-parse', 'v7.8.9^{commit}')).toBe(commit)
  })

  test('with --dry-run changes nothing and says what it would do', () => {
    const { git, release } = repository()
    const { status, stdout } = release('7.8.9', '--dry-run')
    expect(status).toBe(0)
    expect(stdout).toContain(
      `Would set 7.8.9 in ${FILES.join(', ')}, and commit.\nWould tag v7.8.9.`,
    )
    expect(stdout).toContain('\n### Fixed\n- # is kept.\n')
    expect([git('status', '--porcelain'), git('tag')]).toEqual(['', ''])
  })
})

describe('a release is refused', () => {
  test.each<[name: string, prepare: (one: Repository) => unknown, message: RegExp]>([
    ['with a file that is not committed', ({ write }) => write('new.txt', ''), /\?\? new\.txt/],
    ['on another branch', ({ git }) => git('switch', '--quiet', '-c', 'fix'), /branch is fix/],
    ['if the tag exists', ({ git }) => git('tag', 'v7.8.9'), /v7\.8\.9 exists already/],
    [
      'with unreleased changes',
      ({ change }) => change('[Unreleased]\n', '[Unreleased]\n- More.\n'),
      /unreleased changes beside a section \[7\.8\.9\]/,
    ],
    ['without a section', ({ change }) => change('7.8.9', '7.8.8'), /newest section .*\[7\.8\.8\]/],
    ['without a date', ({ change }) => change(' - 2026-11-24', ''), /newest section/],
    ['without notes', ({ change }) => change('### Fixed\n- # is kept.\n', ''), /is empty/],
  ])('%s', (_, prepare, message) => {
    const one = repository()
    prepare(one)
    const before = one.git('rev-parse', 'HEAD')
    const { status, stdout, stderr } = one.release('7.8.9')
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
    expect(stderr).toMatch(message)
    expect(one.git('rev-parse', 'HEAD')).toBe(before)
  })

  test.each(['', 'v1.2.3', '1.2', '1.2.3-beta'])('for the version "%s"', version => {
    const { status, stderr } = repository().release(version)
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: expect.stringMatching(/^error: Usage/),
    })
  })
})

/** Lines with the version in each file. */
const CHANGED_LINES: Record<string, number> = {
  'package.json': 1,
  'package-lock.json': 2,
  'clients/python/pyproject.toml': 1,
  'deploy/kubernetes.yaml': 2,
}

type Repository = ReturnType<typeof repository>

/** Creates a repository with the files of this one that contain the version. */
function repository() {
  const folder = emptyFolder()
  const run = (command: string, args: readonly string[]) =>
    spawnSync(command, args, { cwd: folder, encoding: 'utf8', env: { ...process.env, ...AUTHOR } })
  const git = (...args: string[]) => {
    const { status, stdout, stderr } = run('git', args)
    expect(status, stderr).toBe(0)
    return stdout.trim()
  }
  const write = (path: string, text: string) => writeFileSync(join(folder, path), text)
  for (const path of FILES) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    cpSync(join(ROOT, path), join(folder, path))
  }
  write('CHANGELOG.md', CHANGELOG)
  git('init', '--quiet', '--initial-branch', 'main')
  const commit = () => git('add', '.') + git('commit', '--quiet', '-m', 'test')
  commit()
  return {
    folder,
    git,
    write,
    /** Replaces a part of the changelog and commits it. */
    change(part: string, by: string) {
      write('CHANGELOG.md', CHANGELOG.replace(part, by))
      commit()
    },
    release: (...args: string[]) =>
      run(process.execPath, [join(ROOT, 'tools/release.mjs'), ...args]),
  }
}

const AUTHOR = {
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_AUTHOR_NAME: 'test',
  GIT_AUTHOR_EMAIL: 'test@example.com',
  GIT_COMMITTER_NAME: 'test',
  GIT_COMMITTER_EMAIL: 'test@example.com',
}
