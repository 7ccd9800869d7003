import type { Account } from '../../accounts/account-store.ts'
import { isPublishable } from '../../accounts/key-rights.ts'
import type { ApiKey } from '../../accounts/key-store.ts'
import { presentKey } from '../../api/keys/present.ts'
import { timeText } from '../jobs/time-text.ts'
import { type Column, table } from '../table.ts'

/** Formats a new key with its secret, which cannot be shown again. */
export function newKeyText(key: ApiKey, { id, name }: Account, text: string): string {
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
export function newKeyObject(key: ApiKey, text: string) {
  const { id, ...rest } = presentKey(key)
  return { id, key: text, account_id: key.accountId, ...rest }
}

/** Formats keys without their secrets. */
export const keysText = (keys: readonly ApiKey[], width: number | null): string =>
  table(COLUMNS, keys.map(rowOf), width)

/** Returns the JSON form of a key without its secret. */
export function keyObject(key: ApiKey) {
  const { id, ...rest } = presentKey(key)
  return { id, account_id: key.accountId, ...rest }
}

function limitsText({ allowedIps, allowedDomains, rateLimitPerMinute, expiresAt }: ApiKey): string {
  const limits = [
    ...(allowedIps.length === 0 ? [] : [`only from ${allowedIps.join(', ')}`]),
    ...(allowedDomains.length === 0 ? [] : [`only on ${allowedDomains.join(', ')}`]),
    ...(rateLimitPerMinute === null ? [] : [`${rateLimitPerMinute} requests per minute`]),
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
