// Generates the lists of src/engine/address/lists/ from maintained npm packages, so that none of
// them is needed at run time. Each list has one name per line, lower case, sorted by bytes, without
// a header. Usage: node tools/bake-lists.mjs [folder]
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { REAL_PROVIDERS } from '../src/engine/address/name-list.ts'
import { listedTypo } from '../src/engine/address/typo.ts'
import { hasRegisteredTld } from '../src/engine/address/typo-tld.ts'
import { electDisposable, isDisputed } from './lists/disposable.mjs'
import { toDomains, withParents } from './lists/names.mjs'
import { MORE_ROLES, NOT_ROLES } from './lists/roles.mjs'
import { packageFolder, packageNames, readJson, readSources, readText } from './lists/sources.mjs'

const require = createRequire(import.meta.url)
const root = join(import.meta.dirname, '..')
const folder = process.argv[2] ?? join(root, 'src/engine/address/lists')

const SOURCES = {
  'disposable.txt': packageNames(),
  'free.txt': ['free-email-domains', 'email-providers'],
  'role.txt': ['role-based-email-addresses'],
}

// Names in the lists that are not providers: reserved names, other sites, doubled endings.
const NOT_FREE =
  /\.com\.(com|net|org)$|(^|\.)(example|test|invalid)\.(com|net|org|de)$|^(test|www|your|yourdomain)\.\w+$|^(google|facebook|alibaba|about|name|dnsmadeeasy)\.com$/

// Provider lists are based on user input and contain typos and unregistered TLDs, such as
// `gmsil.com`.
const isTypo = name => listedTypo(name) !== null || !hasRegisteredTld(name)

const sources = readSources()
const disposable = new Set(electDisposable(sources))
const free = toDomains([
  ...require('free-email-domains'),
  ...readJson('email-providers', 'all.json'),
  ...REAL_PROVIDERS,
]).filter(
  name =>
    !NOT_FREE.test(name) &&
    !isTypo(name) &&
    !isDisputed(sources, name) &&
    !withParents(name).some(part => disposable.has(part)),
)
const roles = [...require('role-based-email-addresses'), ...MORE_ROLES]
  .map(name => name.toLowerCase())
  .filter(name => /^[a-z][a-z0-9._-]*$/.test(name) && !NOT_ROLES.has(name))

const write = (file, names) => {
  const sorted = [...new Set(names)].sort((a, b) => (a < b ? -1 : 1))
  writeFileSync(join(folder, file), `${sorted.join('\n')}\n`)
  return sorted.length
}

mkdirSync(folder, { recursive: true })
const counts = {
  'disposable.txt': write('disposable.txt', disposable),
  'free.txt': write('free.txt', free),
  'role.txt': write('role.txt', roles),
}
const origins = Object.entries(SOURCES).map(([file, names]) => ({
  file,
  names: counts[file],
  packages: names.map(name => {
    const { version, license } = readJson(name, 'package.json')
    return { name, version, license }
  }),
}))
writeFileSync(join(folder, 'sources.json'), `${JSON.stringify(origins, null, 2)}\n`)

const readLicense = name => {
  const file = readdirSync(packageFolder(name)).find(entry => /^licen[cs]e/i.test(entry))
  return `# ${name}\n\n${readText(name, file).trim()}\n`
}
const names = [...new Set(Object.values(SOURCES).flat())].sort()
writeFileSync(join(folder, 'NOTICE.md'), names.map(readLicense).join('\n'))
