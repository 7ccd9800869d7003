// Releases a version: checks the repository, sets the version in all files, commits and tags it,
// and prints the release notes and the remaining commands. It publishes and pushes nothing.
//
//   node tools/release.mjs VERSION [--dry-run]
//
// The entries of [Unreleased] in CHANGELOG.md become the section of the version, with the date of
// today, unless that section exists. --dry-run only checks, and prints what would change.
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'

/** The files that contain the version, and the text before it. */
const FILES = [
  ['package.json', /^ {2}"version": "/gm],
  ['package-lock.json', /^(?: {2}| {4}"": \{\n(?: {6}.*\n)*? {6})"version": "/gm],
  ['clients/python/pyproject.toml', /^version = "/gm],
  ['deploy/kubernetes.yaml', /image: \S+\/ev:/g],
]

const { version, isDryRun } = readArguments()
const changelog = addSection(readFileSync('CHANGELOG.md', 'utf8'))
const notes = notesOf(changelog.changed)
checkRepository()
const changes = [changelog, ...FILES.map(([path, before]) => setVersion(path, before))].filter(
  ({ text, changed }) => text !== changed,
)
if (isDryRun) {
  if (changes.length > 0) {
    print(`Would set ${version} in ${changes.map(({ path }) => path).join(', ')}, and commit.`)
  }
  print(`Would tag v${version}.`)
} else {
  for (const { path, changed } of changes) writeFileSync(path, changed)
  if (changes.length > 0) git('commit', '--all', '--quiet', '-m', `release: ${version}`)
  git('tag', '--annotate', `v${version}`, '--cleanup=verbatim', '-m', `${version}\n\n${notes}`)
  print(`Tagged v${version}.`)
}
print(`
Release notes:

${notes}

Then test, and push, after which .github/workflows/publish.yml publishes the npm packages:

  npm ci && npm run test:all && npm run coverage && npm run fuzz
  sudo bash tools/release-files.sh
  git push origin main v${version}
  python3 -m build clients/python && python3 -m twine upload clients/python/dist/*`)

function readArguments() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { 'dry-run': { type: 'boolean', default: false } },
  })
  const [name = ''] = positionals
  if (positionals.length !== 1 || !/^\d+\.\d+\.\d+$/.test(name)) {
    fail('Usage: node tools/release.mjs VERSION [--dry-run], with a version such as 1.2.3.')
  }
  return { version: name, isDryRun: values['dry-run'] }
}

/** Makes a section of the unreleased entries, unless the version has one. */
function addSection(text) {
  const [, unreleased = ''] = text.split(/^## /m)
  const isNew = !text.includes(`\n## [${version}] - `) && /^- /m.test(unreleased)
  const date = new Date().toISOString().slice(0, 10)
  const changed = isNew
    ? text.replace('## [Unreleased]\n', `## [Unreleased]\n\n## [${version}] - ${date}\n`)
    : text
  return { path: 'CHANGELOG.md', text, changed }
}

/** Returns the section of the version, which must be the newest and have a date. */
function notesOf(changelog) {
  const [, ...sections] = changelog.split(/^## /m)
  const [unreleased = '', newest = ''] = sections
  const [heading = '', ...lines] = newest.split('\n')
  if (!unreleased.startsWith('[Unreleased]')) fail('CHANGELOG.md must start with [Unreleased].')
  if (/^- /m.test(unreleased)) {
    fail(`CHANGELOG.md has unreleased changes beside a section [${version}]. Move them there.`)
  }
  const [, name, date] = /^\[(.+)\] - (\d{4}-\d\d-\d\d)$/.exec(heading) ?? []
  if (name !== version || date === undefined) {
    fail(
      `The newest section of CHANGELOG.md is "${heading}"; expected "[${version}] - YYYY-MM-DD".`,
    )
  }
  const text = lines.join('\n').trim()
  if (text === '') fail(`The section [${version}] of CHANGELOG.md is empty.`)
  return text
}

function checkRepository() {
  const branch = git('branch', '--show-current')
  if (branch !== 'main') fail(`The branch is ${branch || 'detached'}; release from main.`)
  const dirty = git('status', '--porcelain')
  if (dirty !== '') fail(`Commit or remove these changes first:\n${dirty}`)
  if (git('tag', '--list', `v${version}`) !== '') fail(`The tag v${version} exists already.`)
}

function setVersion(path, before) {
  const text = readFileSync(path, 'utf8')
  const pattern = new RegExp(`(${before.source})\\d+\\.\\d+\\.\\d+`, before.flags)
  if (!pattern.test(text)) fail(`${path} has no version.`)
  return { path, text, changed: text.replaceAll(pattern, `$1${version}`) }
}

function git(...args) {
  const { status, stdout, stderr } = spawnSync('git', args, { encoding: 'utf8' })
  if (status !== 0) fail(`git ${args[0]} failed: ${stderr}`)
  return stdout.trimEnd()
}

function print(text) {
  process.stdout.write(`${text}\n`)
}

function fail(message) {
  process.stderr.write(`error: ${message}\n`)
  process.exit(1)
}
