// Writes a world of simulated mail servers with a hidden truth, for docs/measure.md:
// node tools/measure/world.mjs FOLDER
// writes FOLDER/scenario.json for `ev simulate`, and FOLDER/truth.csv for `ev measure`.

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * The servers by domain. Some packages refuse names such as `.test`, so these look like any other;
 * only the simulator answers for them. Each has as many mailboxes that exist as mailboxes that are missing.
 */
const HOSTS = {
  'evsim-one.com': { behavior: 'polite' },
  'evsim-two.com': { behavior: 'polite' },
  'evsim-three.com': { behavior: 'polite' },
  'evsim-tls.com': { behavior: 'needs-starttls' },
  'evsim-throttled.com': { behavior: 'throttles', max: 10 },
  'evsim-closing.com': { behavior: 'closes' },
  'evsim-grey.com': { behavior: 'greylist', seconds: 5 },
  'evsim-everything.com': { behavior: 'catch-all' },
  'evsim-busy.com': { behavior: 'temporary' },
  'evsim-blocked.com': { behavior: 'blocks-at-rcpt' },
  'evsim-refusing.com': { behavior: 'blocks-us' },
  'evsim-dead.com': { behavior: 'dead' },
}
/** Mailboxes of each kind in a domain. */
const COUNT = 20
/** A domain that does not exist; all of its mailboxes are missing. */
const NOWHERE = 'evsim-nowhere.com'

const folder = process.argv[2]
if (folder === undefined) {
  process.stderr.write('usage: node tools/measure/world.mjs FOLDER\n')
  process.exit(64)
}
mkdirSync(folder, { recursive: true })

const domains = Object.keys(HOSTS)
const scenario = {
  mailboxes: ['user*'],
  domains: Object.fromEntries(domains.map(name => [name, { mx: [[10, `mx.${name}`]] }])),
  hosts: Object.fromEntries(domains.map(name => [`mx.${name}`, HOSTS[name]])),
}
writeFileSync(join(folder, 'scenario.json'), `${JSON.stringify(scenario, null, 2)}\n`)

const numbers = Array.from({ length: COUNT }, (_, n) => n + 1)
const rows = domains.flatMap(name =>
  numbers.flatMap(n => [`user.${n}@${name},exists`, `former.${n}@${name},missing`]),
)
rows.push(...numbers.map(n => `former.${n}@${NOWHERE},missing`))
writeFileSync(join(folder, 'truth.csv'), `address,truth\n${rows.join('\n')}\n`)
