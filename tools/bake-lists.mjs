// Bakes the lists of src/address/lists/ from well-kept npm packages, so that none of them is needed at run time.
// Usage: node tools/bake-lists.mjs [folder]   Each list is one name a line, lower case, sorted by bytes, without a header.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { getDomain } from 'tldts'
import tr46 from 'tr46'
import { REAL_PROVIDERS, RELAYS } from '../src/address/provider.ts'
import { hasRealEnding } from '../src/address/typo/ending.ts'
import { listedTypo } from '../src/address/typo/typo.ts'

const require = createRequire(import.meta.url)
const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const folder = process.argv[2] ?? join(root, 'src/address/lists')

const SOURCES = {
  'disposable.txt': ['disposable-domains', 'disposable-email-domains-js'],
  'free.txt': ['free-email-domains', 'email-providers'],
  'role.txt': ['role-based-email-addresses'],
}

// Names that stand in the lists and are no provider: reserved, or the front page of something else.
const NOT_FREE =
  /(^|\.)(example|test|invalid)\.(com|net|org|de)$|^(test|www|your|yourdomain)\.\w+$|^(google|facebook|alibaba|about|name|dnsmadeeasy)\.com$/

// Local parts of the role list that are people's names or places, not tasks; digits and keyboard walks are judged elsewhere.
const NOT_ROLES = new Set(
  `alla alexa alpha sydney paris india denver france gardner english merchant brand general prime care
  sale crew head house job may smile lt me no us per aaa abc asd asdf asdasd angels friends la ta ca cm bd
  mt sf ny`.split(/\s+/),
)
const MORE_ROLES =
  `accueil anfrage anfragen acquisti bewerbung bewerbungen bilgi boekhouding bounce bounces
  buero buro compras consulta contatti copyright destek dmca dpo datenschutz einkauf ekonomi empfang
  faktura fakturering fattura fatture fax gdpr iletisim iroda kancelaria kanzlei kapcsolat klantenservice
  kontakty ksiegowosc kundservice kundtjanst mairie muhasebe obchod objednavky ordre ouvidoria podpora
  postkasse postmottak poststelle praxis receptie recepce reclami rechnung rechnungen rendeles rezerwacje
  sales3 satis secretariat segreteria sprzedaz ufficio ugyfelszolgalat vanzari vendite verkoop vertrieb
  verwaltung zakupy news usenet uucp ftp www hostmaster postmaster abuse noc trouble`.split(/\s+/)

const ascii = name => tr46.toASCII(name.trim().toLowerCase(), { useSTD3ASCIIRules: true }) ?? ''
const isName = name => /^[a-z0-9-]+(\.[a-z0-9-]+)+$/.test(name)
// A public suffix (`co.uk`, `duckdns.org`) has many owners: one bad tenant must not condemn the others.
const isOwned = name => getDomain(name, { allowPrivateDomains: true }) !== null
// Lists of providers hold what people typed, slips and dead endings too: `gmsil.com` is nobody's provider.
const isTypo = name => listedTypo(name) !== null || !hasRealEnding(name)
const withParents = name => name.split('.').map((_, index, labels) => labels.slice(index).join('.'))
const isReal = name => withParents(name).some(part => REAL_PROVIDERS.has(part) || RELAYS.has(part))
const domains = names => names.map(ascii).filter(name => isName(name) && isOwned(name))
const json = (name, file) =>
  JSON.parse(readFileSync(join(root, 'node_modules', name, file), 'utf8'))

const disposable = new Set(
  domains([
    ...require('disposable-domains'),
    ...require('disposable-email-domains-js').disposableEmailBlocklist(),
  ]).filter(name => !isReal(name)),
)
const free = domains([
  ...require('free-email-domains'),
  ...json('email-providers', 'all.json'),
  ...REAL_PROVIDERS,
]).filter(
  name =>
    !NOT_FREE.test(name) && !isTypo(name) && !withParents(name).some(part => disposable.has(part)),
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
const sources = Object.entries(SOURCES).map(([file, names]) => ({
  file,
  names: counts[file],
  packages: names.map(name => {
    const { version, license } = json(name, 'package.json')
    return { name, version, license }
  }),
}))
writeFileSync(join(folder, 'sources.json'), `${JSON.stringify(sources, null, 2)}\n`)
