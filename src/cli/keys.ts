import type { Account } from '../accounts/account-store.ts'
import { parseName } from '../accounts/accounts.ts'
import {
  isPublishable,
  isSecretScope,
  PUBLISHABLE_SCOPES,
  RESTRICTIONS_MAX,
  readAllowedDomain,
  readAllowedIp,
  SCOPES,
  type Scope,
} from '../accounts/key-rights.ts'
import { type ApiKey, listKeys } from '../accounts/key-store.ts'
import {
  createKey,
  KEY_GRACE_MAX_MS,
  KEY_GRACE_MS,
  KEY_RATE_MAX,
  type KeyInput,
  revokeKey,
  rotateKey,
} from '../accounts/keys.ts'
import { mergePlans } from '../accounts/plan.ts'
import { presentKey } from '../accounts/present-key.ts'
import { HOUR } from '../platform/clock.ts'
import { EvError } from '../platform/error.ts'
import { pluralize } from '../platform/format.ts'
import { sanitizeText } from '../platform/text.ts'
import { selectAccount, withAccounts } from './accounts.ts'
import { confirm } from './confirm.ts'
import type { CliContext } from './context.ts'
import { auditServices } from './database.ts'
import { parseExpiry, parseGrace } from './flag-values.ts'
import { printJson, printText, timeText } from './print.ts'
import { readConfig } from './settings.ts'
import { type Column, table } from './table.ts'
import { widthOf } from './width.ts'

type CreateFlags = {
  readonly name: string
  readonly scopes?: string
  readonly publishable?: boolean
  readonly test?: boolean
  readonly allowIp?: string
  readonly allowDomain?: string
  readonly expires?: string
  readonly account?: string
  readonly rateLimit?: string
  readonly json?: boolean
  readonly [setting: string]: unknown
}

/** Runs `ev keys create` and returns the exit code. */
export function createCommand(context: CliContext, flags: CreateFlags): Promise<number> {
  const now = context.clock.now()
  const input = toKeyInput(flags, now)
  const config = readConfig(context, flags)
  return withAccounts(context, config, async (database, accounts) => {
    const account = selectAccount(accounts, flags.account)
    const services = { ...auditServices(context), database, plans: mergePlans(config.plans) }
    const { key, text } = await createKey(services, {
      ...input,
      accountId: account.id,
      actor: null,
    })
    if (flags.json) printJson(context, newKeyObject(key, text))
    else printText(context, newKeyText(key, account, text))
    return 0
  })
}

/** Parses the flags before the database is opened. */
function toKeyInput(flags: CreateFlags, now: number): Omit<KeyInput, 'accountId' | 'actor'> {
  return {
    name: parseName(flags.name, 'key'),
    scopes: scopesOf(flags),
    isTest: flags.test === true,
    allowedIps: parseEntries(
      '--allow-ip',
      flags.allowIp,
      readAllowedIp,
      'IP addresses and CIDRs, such as 203.0.113.0/24',
    ),
    allowedDomains: parseEntries(
      '--allow-domain',
      flags.allowDomain,
      readAllowedDomain,
      'domains, such as app.example.com',
    ),
    expiresAt: parseExpiry(flags.expires, now),
    ...(flags.rateLimit !== undefined && { rateLimitPerMinute: parseRate(flags.rateLimit) }),
  }
}

function scopesOf({ publishable, scopes }: CreateFlags): readonly Scope[] {
  if (!publishable) return parseScopes(scopes ?? '*')
  if (scopes === undefined) return PUBLISHABLE_SCOPES
  throw new EvError(
    'usage',
    '--scopes cannot be combined with --publishable: a publishable key can only verify addresses of forms.',
  )
}

function parseScopes(value: string): Scope[] {
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
  value: string | undefined,
  read: (text: string) => string | null,
  expected: string,
): string[] {
  if (value === undefined) return []
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

type KeyFlags = {
  readonly account?: string
  readonly grace?: string
  readonly force?: boolean
  readonly yes?: boolean
  readonly json?: boolean
  readonly [setting: string]: unknown
}

/** Runs `ev keys list` and returns the exit code. */
export function listCommand(context: CliContext, flags: KeyFlags): Promise<number> {
  return withAccounts(context, readConfig(context, flags), async (database, accounts) => {
    const selected =
      flags.account === undefined ? accounts : [selectAccount(accounts, flags.account)]
    const keys = (await Promise.all(selected.map(({ id }) => listKeys(database, id)))).flat()
    if (flags.json) printJson(context, keys.map(keyObject))
    else if (keys.length === 0) {
      printText(context, 'No keys. To create one, run "ev keys create --name NAME".')
    } else context.stdout.write(keysText(keys, widthOf(context, context.stdout)))
    return 0
  })
}

/** Runs `ev keys rotate` and returns the exit code. */
export function rotateCommand(context: CliContext, id: string, flags: KeyFlags): Promise<number> {
  const graceMs = parseGrace(flags.grace ?? `${KEY_GRACE_MS / HOUR}h`, KEY_GRACE_MAX_MS)
  return withAccounts(context, readConfig(context, flags), async (database, accounts) => {
    const services = { ...auditServices(context), database }
    const input = { ...ofAdmin(id), graceMs }
    const { key, text, previousExpiresAt } = await rotateKey(services, input)
    if (flags.json) printJson(context, newKeyObject(key, text))
    else {
      const end =
        graceMs === 0 ? 'is no longer valid' : `stays valid until ${timeText(previousExpiresAt)}`
      const account = selectAccount(accounts, key.accountId)
      printText(context, `${newKeyText(key, account, text)}The old secret ${end}.\n`)
    }
    return 0
  })
}

/** Runs `ev keys revoke` and returns the exit code. */
export function revokeCommand(context: CliContext, id: string, flags: KeyFlags): Promise<number> {
  return withAccounts(context, readConfig(context, flags), async (database, accounts) => {
    const keys = (await Promise.all(accounts.map(one => listKeys(database, one.id)))).flat()
    const found = keys.find(one => one.id === id)
    if (found !== undefined) await confirm(context, flags, `revoke ${id} "${found.name}"`)
    const services = { ...auditServices(context), database }
    const key = await revokeKey(services, { ...ofAdmin(id), isForced: flags.force === true })
    printText(
      context,
      `Revoked ${id} "${key.name}". A running "ev serve" rejects it within a second.\n`,
    )
    return 0
  })
}

const ofAdmin = (keyId: string) => ({ keyId, accountId: null, actor: null })

/** Formats a new key with its secret, which cannot be shown again. */
function newKeyText(key: ApiKey, { id, name }: Account, text: string): string {
  return `Key ${key.id} "${key.name}" of account ${id} "${name}":

  ${text}

Store it now: ev keeps only its hash and cannot show it again.
${isPublishable(key) ? PUBLISHABLE : ''}${key.isTest ? TEST : ''}Scopes: ${key.scopes.includes('*') ? 'all' : key.scopes.join(', ')}${limitsText(key)}.
`
}

const PUBLISHABLE =
  'The key is publishable: web pages may contain it. It can only verify addresses of forms.\n'

const TEST = 'The key is a test key: all its requests are in the sandbox.\n'

/** Returns the JSON form of a new key, as in the HTTP API. */
function newKeyObject(key: ApiKey, text: string) {
  const { id, ...rest } = presentKey(key)
  return { id, key: text, account_id: key.accountId, ...rest }
}

/** Formats keys without their secrets. */
const keysText = (keys: readonly ApiKey[], width: number | null): string =>
  table(COLUMNS, keys.map(rowOf), width)

/** Returns the JSON form of a key without its secret. */
function keyObject(key: ApiKey) {
  const { id, ...rest } = presentKey(key)
  return { id, account_id: key.accountId, ...rest }
}

function limitsText({ allowedIps, allowedDomains, rateLimitPerMinute, expiresAt }: ApiKey): string {
  const limits = [
    ...(allowedIps.length === 0 ? [] : [`only from ${allowedIps.join(', ')}`]),
    ...(allowedDomains.length === 0 ? [] : [`only on ${allowedDomains.join(', ')}`]),
    ...(rateLimitPerMinute === null
      ? []
      : [`${pluralize(rateLimitPerMinute, 'request')} per minute`]),
    ...(expiresAt === null ? [] : [`until ${timeText(expiresAt)}`]),
  ]
  return limits.map(limit => `; ${limit}`).join('')
}

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

const rowOf = (key: ApiKey): string[] => [
  key.id,
  `${key.prefix}…${key.hint}`,
  key.accountId,
  timeText(key.createdAt),
  key.lastUsedAt === null ? '–' : timeText(key.lastUsedAt),
  key.expiresAt === null ? '–' : timeText(key.expiresAt),
  key.scopes.join(','),
  // The last column, because its width is not limited.
  key.name,
]
