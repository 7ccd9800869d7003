import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { selfSigned } from '../../src/simulator/smtp-host/host.ts'
import { rootOf, startInOwnRoot } from './own-root.ts'
import {
  type Daemon,
  missingFiles,
  type RealServer,
  type ServerEnvironment,
  untilListening,
} from './server.ts'

const PROGRAM = 'usr/sbin/smtpd'

/**
 * The behavior of a host: options of its `listen`, its filters in order, and rules for its
 * recipients.
 */
type HostConfig = {
  readonly listen?: string
  readonly filters?: readonly string[]
  /** Rules after `match from any for domain "…"`; defaults to the table of users. */
  readonly rules?: readonly string[]
}

/** Host configurations by name; each host has its own domain and address. */
const HOSTS: Readonly<Record<string, HostConfig>> = {
  known: {},
  everyone: { rules: ['action "drop"'] },
  system: { rules: ['action "local"'] },
  virtual: { rules: ['action "virtual"'] },
  elsewhere: { rules: [] },
  sender: {
    rules: ['mail-from "probe@probe.test" reject', 'rcpt-to <users> action "drop"'],
  },
  // The OpenSMTPD of Debian 12 is older than its OpenSSL: every handshake fails.
  sealed: { listen: 'tls-require pki own' },
  'tls-offered': { listen: 'tls pki own' },
  'connect-refused': {
    filters: ['phase connect match src "127.0.0.1" disconnect "554 5.7.1 We do not like you"'],
  },
  'connect-deferred': {
    filters: ['phase connect match src "127.0.0.1" disconnect "421 Try again later"'],
  },
  'reverse-name': {
    filters: ['phase connect match !rdns disconnect "550 You have no reverse DNS"'],
  },
  'reverse-both': {
    filters: ['phase connect match !fcrdns disconnect "550 Your reverse DNS is not confirmed"'],
  },
  'helo-refused': {
    filters: ['ehlo', 'helo'].map(
      phase => `phase ${phase} match helo "probe.test" reject "550 5.7.1 You are not who you say"`,
    ),
  },
  'ehlo-refused': {
    filters: ['phase ehlo match helo "probe.test" reject "550 5.7.1 You are not who you say"'],
  },
  'sender-refused': {
    filters: ['phase mail-from match mail-from "probe@probe.test" reject "550 5.1.8 Not you"'],
  },
  told: {
    filters: [
      'phase rcpt-to match rcpt-to regex "^full@" reject "452 4.2.2 Mailbox is full"',
      'phase rcpt-to match rcpt-to regex "^held@" reject "451 4.7.1 Greylisted"',
      'phase rcpt-to match rcpt-to regex "^closed@" disconnect "421 4.7.0 Enough of you"',
    ],
  },
}

const NAMES = Object.keys(HOSTS)
const domainOf = (name: string) => `${name}.opensmtpd.test`
/** Returns the address of a host: 127.0.4.1 for the first one, and so on. */
const addressOf = (name: string) => `127.0.4.${NAMES.indexOf(name) + 1}`

let daemon: Daemon | null = null

/** One OpenSMTPD with a listener for each host. */
export const opensmtpd: RealServer = {
  name: 'opensmtpd',
  domains: Object.fromEntries(NAMES.map(name => [domainOf(name), addressOf(name)])),
  missing: () => missingFiles('OpenSMTPD', PROGRAM),
  async start(env) {
    createFiles(env)
    daemon = startInOwnRoot({
      env,
      programs: [PROGRAM],
      args: ['-d', '-f', '/etc/smtpd.conf'],
      users: ['opensmtpd', 'opensmtpq'],
      files: { '/etc/smtpd.conf': configuration(env), '/etc/mailname': 'mx.opensmtpd.test\n' },
    })
    await untilListening(daemon, NAMES.map(addressOf), env.port)
  },
  async stop() {
    await daemon?.stop()
    daemon = null
  },
}

/** Creates the folders at compiled-in paths, and a private key readable only by its owner. */
function createFiles(env: ServerEnvironment) {
  const at = (path: string) => join(rootOf(env), path)
  for (const path of ['var/lib/opensmtpd/empty', 'var/spool/smtpd', 'var/run', 'etc']) {
    mkdirSync(at(path), { recursive: true })
  }
  chmodSync(at('var/spool/smtpd'), 0o711)
  const { key, cert } = selfSigned('mx.opensmtpd.test')
  writeFileSync(at('etc/mx.key'), key, { mode: 0o600 })
  writeFileSync(at('etc/mx.crt'), cert)
}

const configuration = (env: ServerEnvironment) => `
pki own cert "/etc/mx.crt"
pki own key "/etc/mx.key"
table users { ${NAMES.flatMap(usersOf).join(', ')} }
table addresses { "ann@${domainOf('virtual')}" = "nobody" }
table everyone { "@" = "nobody" }
action "drop" mda "true" virtual <everyone>
action "local" mda "true"
action "virtual" mda "true" virtual <addresses>
${Object.entries(HOSTS).map(filters).join('')}
${NAMES.map(name => listener(name, env)).join('')}
${Object.entries(HOSTS).map(matches).join('')}
`

const USERS = ['ann', 'full', 'held', 'closed', 'user1', 'user2', 'user3', 'user4', 'user5']
const usersOf = (name: string) => USERS.map(user => `"${user}@${domainOf(name)}"`)

/** Returns the filters of a host and a chain of all of them. */
function filters([name, { filters = [] }]: [string, HostConfig]): string {
  if (filters.length === 0) return ''
  const names = filters.map((_, n) => `"${name}-${n}"`)
  const each = filters.map((filter, n) => `filter ${names[n]} ${filter}\n`)
  return `${each.join('')}filter "${name}" chain { ${names.join(', ')} }\n`
}

const listener = (name: string, { port }: ServerEnvironment) => {
  const { listen = '', filters = [] } = HOSTS[name] ?? {}
  const filter = filters.length === 0 ? '' : `filter "${name}"`
  return `listen on ${addressOf(name)} port ${port} ${listen} hostname mx.${domainOf(name)} ${filter}\n`
}

const matches = ([name, { rules = ['rcpt-to <users> action "drop"'] }]: [string, HostConfig]) =>
  rules.map(rule => `match from any for domain "${domainOf(name)}" ${rule}\n`).join('')
