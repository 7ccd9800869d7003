import { type Command, Option } from 'commander'
import { KEY_GRACE_MAX_MS, KEY_GRACE_MS } from '../accounts/key.ts'
import {
  isSecretScope,
  KEY_RATE_MAX,
  RESTRICTIONS_MAX,
  readAllowedDomain,
  readAllowedIp,
  SCOPES,
} from '../accounts/key-rights.ts'
import { parseName } from '../accounts/name.ts'
import type { Key, NewKey } from '../client/types.ts'
import { HOUR } from '../platform/clock.ts'
import { EvError } from '../platform/error.ts'
import { isoTime, pluralize } from '../platform/format.ts'
import { omitUndefined } from '../platform/omit-undefined.ts'
import { sanitizeText } from '../platform/text.ts'
import { confirm, YES } from './confirm.ts'
import type { CliContext } from './context.ts'
import { addOwnedListCommand, type DataFlags, openBackend, worksOnData } from './data-command.ts'
import { parseExpiry, parseGrace } from './flag-values.ts'
import { printJson, printText, timeText } from './print.ts'
import {
  createRemoteKeys,
  type KeysBackend,
  type KeyWithOwner,
  type OwnedKey,
} from './remote/keys.ts'
import type { Column } from './table.ts'

const EXAMPLES = `
Examples:
  ev keys
  ev keys create --name CI
  ev keys create --name Shop --scopes verify:single --allow-ip 203.0.113.0/24 --expires 90d
  ev keys rotate key_4kq2
  ev keys revoke key_4kq2

These commands work while "ev serve" runs; changes take effect within a second. ev shows a key once, when it is created.
Rotating or revoking a key ends the dashboard sessions that were opened with it.`

const openKeys = (context: CliContext, flags: DataFlags): Promise<KeysBackend> =>
  openBackend(context, flags, {
    remote: createRemoteKeys,
    loadLocal: async () => (await import('./local/keys.ts')).createLocalKeys,
  })

export function defineKeys(keys: Command, context: CliContext): void {
  keys.addHelpText('after', EXAMPLES)
  addList(keys, context)
  addCreate(keys, context)
  addRotate(keys, context)
  addRevoke(keys, context)
}

const addList = (keys: Command, context: CliContext): void =>
  addOwnedListCommand(keys, context, {
    noun: 'keys',
    description: 'list all keys that are not revoked',
    examples: ['ev keys list', 'ev keys --json'],
    open: flags => openKeys(context, flags),
    table: { columns: COLUMNS, rowOf, none: NO_KEYS },
  })

const NO_KEYS = 'No keys. To create one, run "ev keys create --name NAME".'

const COLUMNS: readonly Column[] = [
  { title: 'ID' },
  { title: 'KEY', dropRank: 5 },
  { title: 'ACCOUNT', dropRank: 2 },
  { title: 'CREATED', dropRank: 1 },
  { title: 'LAST USED', dropRank: 3 },
  { title: 'EXPIRES', dropRank: 4 },
  { title: 'SCOPES' },
  { title: 'NAME' },
]

const rowOf = (key: OwnedKey): string[] => [
  key.id,
  `${key.prefix}…${key.hint}`,
  key.account_id,
  timeText(Date.parse(key.created_at)),
  key.last_used_at === null ? '–' : timeText(Date.parse(key.last_used_at)),
  key.expires_at === null ? '–' : timeText(Date.parse(key.expires_at)),
  key.scopes.join(','),
  // The last column, because its width is not limited.
  sanitizeText(key.name),
]

type CreateFlags = DataFlags & {
  readonly name: string
  readonly scopes?: string
  readonly publishable?: boolean
  readonly test?: boolean
  readonly allowIp?: string
  readonly allowDomain?: string
  readonly expires?: string
  readonly account?: string
  readonly rateLimit?: string
}

function addCreate(keys: Command, context: CliContext): void {
  const create = keys
    .command('create')
    .description('create a key')
    .requiredOption('--name <name>', 'name of the key')
    .option('--scopes <scope,…>', 'scopes of the key (default: all)')
    .option('--publishable', 'create a publishable key for forms on websites; needs --allow-domain')
    .addOption(
      new Option('--test', 'create a test key, whose requests all use the sandbox').conflicts(
        'publishable',
      ),
    )
    .option('--allow-ip <range,…>', 'accept the key only from these IP addresses or CIDR ranges')
    .option('--allow-domain <domain,…>', 'accept the key only from browsers on these websites')
    .option('--expires <time>', 'expiry: 90d, 12h, or a date such as 2030-01-31')
    .option('--rate-limit <n>', 'requests per minute, in addition to the limit of the plan')
    .option('--account <account>', 'account, by ID or name; optional if there is only one')
    .option('--json', 'print JSON: one object')
    .addHelpText(
      'after',
      `
Examples:
  ev keys create --name CI
  ev keys create --name Shop --scopes verify:single,verify:bulk --allow-domain shop.example.com
  ev keys create --name "Sign-up form" --publishable --allow-domain shop.example.com

Scopes: ${SCOPES.filter(scope => scope !== 'dashboard').join(', ')}, dashboard (sign in to the dashboard), and * for
all scopes. The scope accounts:write needs an admin account.

A publishable key (ev_pub_…) may be part of a web page: it can only verify addresses of forms on the websites of
--allow-domain. All requests of a test key (ev_test_…) use the sandbox: they are simulated and cost no credits.`,
    )
    .action(flags => createCommand(context, flags))
  worksOnData(create, context)
}

async function createCommand(context: CliContext, flags: CreateFlags): Promise<void> {
  if (flags.publishable && flags.scopes !== undefined) throw scopesFixed()
  const input = toNewKey(flags, context.clock.now())
  const backend = await openKeys(context, flags)
  const created = await backend.create(input, flags.account)
  if (flags.json) printJson(context, newKeyObject(created))
  else printText(context, newKeyText(created))
}

const scopesFixed = () =>
  new EvError(
    'usage',
    '--scopes cannot be combined with --publishable: a publishable key can only verify addresses of forms.',
  )

/** Parses the flags before the database is opened. A restriction without a flag is left out. */
function toNewKey(flags: CreateFlags, now: number): NewKey {
  const { publishable, test, allowIp, allowDomain, rateLimit } = flags
  const expiresAt = parseExpiry(flags.expires, now)
  return omitUndefined({
    name: parseName(flags.name),
    publishable,
    scopes: publishable ? undefined : parseScopes(flags.scopes ?? '*'),
    test,
    allowed_ips: allowIp === undefined ? undefined : parseIps(allowIp),
    allowed_domains: allowDomain === undefined ? undefined : parseDomains(allowDomain),
    expires_at: expiresAt === null ? undefined : isoTime(expiresAt),
    rate_limit_per_minute: rateLimit === undefined ? undefined : parseRate(rateLimit),
  })
}

const parseIps = (value: string) =>
  parseEntries('--allow-ip', value, readAllowedIp, 'IP addresses and CIDRs, such as 203.0.113.0/24')

const parseDomains = (value: string) =>
  parseEntries('--allow-domain', value, readAllowedDomain, 'domains, such as app.example.com')

function parseScopes(value: string) {
  const all = [...new Set(value.split(',').map(one => one.trim()))]
  if (all.every(isSecretScope)) return all
  const wrong = all.find(one => !isSecretScope(one)) ?? ''
  throw new EvError(
    'usage',
    `Unknown scope "${sanitizeText(wrong)}". Scopes: ${SCOPES.join(', ')}.`,
  )
}

function parseEntries(
  flag: string,
  value: string,
  read: (text: string) => string | null,
  expected: string,
): string[] {
  const texts = value.split(',')
  const entries = texts.map(read)
  const wrong = texts.find((_, n) => entries[n] === null)
  if (wrong === undefined && entries.length <= RESTRICTIONS_MAX) return entries as string[]
  const fault = wrong === undefined ? pluralize(texts.length, 'entry') : `"${sanitizeText(wrong)}"`
  throw new EvError(
    'usage',
    `${flag} has ${fault}; it takes up to ${RESTRICTIONS_MAX} ${expected}, separated by commas.`,
  )
}

function parseRate(value: string): number {
  const rate = Number(value)
  if (/^\d+$/.test(value) && rate >= 1 && rate <= KEY_RATE_MAX) return rate
  throw new EvError(
    'usage',
    `--rate-limit is "${sanitizeText(value)}"; it takes requests per minute, a whole number from 1 to ${KEY_RATE_MAX}.`,
  )
}

/** Returns the JSON form of a new key, as in the HTTP API. */
function newKeyObject({ key: { id, key, ...rest }, account }: KeyWithOwner) {
  return { id, key, account_id: account.id, ...rest }
}

/** Formats a new key with its secret, which cannot be shown again. */
function newKeyText({ key, account }: KeyWithOwner): string {
  const scopes = key.scopes.includes('*') ? 'all' : key.scopes.join(', ')
  return `Key ${key.id} "${key.name}" of account ${account.id} "${account.name}":

  ${key.key}

Store it now: ev keeps only its hash and cannot show it again.
${key.publishable ? PUBLISHABLE : ''}${key.test ? TEST : ''}Scopes: ${scopes}${limitsText(key)}.
`
}

const PUBLISHABLE =
  'The key is publishable: web pages may contain it. It can only verify addresses of forms.\n'

const TEST = 'The key is a test key: all its requests are in the sandbox.\n'

function limitsText({ allowed_ips, allowed_domains, rate_limit_per_minute, expires_at }: Key) {
  const limits = [
    ...(allowed_ips.length === 0 ? [] : [`only from ${allowed_ips.join(', ')}`]),
    ...(allowed_domains.length === 0 ? [] : [`only on ${allowed_domains.join(', ')}`]),
    ...(rate_limit_per_minute === null
      ? []
      : [`${pluralize(rate_limit_per_minute, 'request')} per minute`]),
    ...(expires_at === null ? [] : [`until ${timeText(Date.parse(expires_at))}`]),
  ]
  return limits.map(limit => `; ${limit}`).join('')
}

type RotateFlags = DataFlags & { readonly grace?: string }

function addRotate(keys: Command, context: CliContext): void {
  const rotate = keys
    .command('rotate')
    .description('issue a new secret; the old one stays valid during the grace period')
    .argument('<key>', 'ID of the key')
    .option('--grace <time>', 'grace period: 30m, 24h, up to 7d, or 0 (default: 24h)')
    .option('--json', 'print JSON: one object')
    .addHelpText(
      'after',
      '\nExamples:\n  ev keys rotate key_4kq2\n  ev keys rotate key_4kq2 --grace 0',
    )
    .action((id: string, flags) => rotateCommand(context, id, flags))
  worksOnData(rotate, context)
}

async function rotateCommand(context: CliContext, id: string, flags: RotateFlags): Promise<void> {
  const graceMs = parseGrace(flags.grace ?? `${KEY_GRACE_MS / HOUR}h`, KEY_GRACE_MAX_MS)
  const backend = await openKeys(context, flags)
  const rotated = await backend.rotate(id, graceMs)
  if (flags.json) printJson(context, newKeyObject(rotated))
  else {
    const end =
      graceMs === 0
        ? 'is no longer valid'
        : `stays valid until ${timeText(rotated.previousExpiresAt)}`
    printText(context, `${newKeyText(rotated)}The old secret ${end}.\n`)
  }
}

type RevokeFlags = DataFlags & { readonly force?: boolean; readonly yes?: boolean }

function addRevoke(keys: Command, context: CliContext): void {
  const revoke = keys
    .command('revoke')
    .description('revoke a key')
    .argument('<key>', 'ID of the key')
    .option('--force', 'revoke even the last key of an account')
    .option(...YES)
    .addHelpText(
      'after',
      '\nExamples:\n  ev keys revoke key_4kq2\n  ev keys revoke key_4kq2 --force --yes',
    )
    .action((id: string, flags) => revokeCommand(context, id, flags))
  worksOnData(revoke, context)
}

async function revokeCommand(context: CliContext, id: string, flags: RevokeFlags): Promise<void> {
  const backend = await openKeys(context, flags)
  const { name } = await backend.get(id)
  await confirm(context, flags, `revoke ${id} "${sanitizeText(name)}"`)
  await backend.revoke(id, { isForced: flags.force === true })
  printText(
    context,
    `Revoked ${id} "${sanitizeText(name)}". A running "ev serve" rejects it within a second.\n`,
  )
}
