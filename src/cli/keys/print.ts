import type { Account } from '../../accounts/account-store.ts'
import type { ApiKey } from '../../accounts/key-store.ts'
import { presentKey } from '../../api/keys/present.ts'
import { timeText } from '../jobs/time-text.ts'
import { type Column, table } from '../table.ts'

/** A key with its text, which nobody sees again; for people. */
export function newKeyText(key: ApiKey, { id, name }: Account, text: string): string {
  return `Key ${key.id} “${key.name}” of the account ${id} “${name}”:

  ${text}

It is shown this once: ev keeps only its hash. It may do ${key.scopes.includes('*') ? 'everything' : key.scopes.join(', ')}${limitsText(key)}.
`
}

/** The same, for programs: as the HTTP API shows a new key. */
export function newKeyObject(key: ApiKey, text: string): string {
  const { id, ...rest } = presentKey(key)
  return `${JSON.stringify({ id, key: text, account_id: key.accountId, ...rest }, null, 2)}\n`
}

/** Keys without their texts. */
export const keysText = (keys: readonly ApiKey[]): string => table(COLUMNS, keys.map(rowOf))

export const keysObject = (keys: readonly ApiKey[]): string =>
  `${JSON.stringify(
    keys.map(key => {
      const { id, ...rest } = presentKey(key)
      return { id, account_id: key.accountId, ...rest }
    }),
    null,
    2,
  )}\n`

function limitsText({ allowedIps, allowedDomains, rateLimitPerMinute, expiresAt }: ApiKey): string {
  const limits = [
    ...(allowedIps.length === 0 ? [] : [`from ${allowedIps.join(', ')} only`]),
    ...(allowedDomains.length === 0 ? [] : [`on ${allowedDomains.join(', ')} only`]),
    ...(rateLimitPerMinute === null ? [] : [`${rateLimitPerMinute} times a minute`]),
    ...(expiresAt === null ? [] : [`until ${timeText(expiresAt)}`]),
  ]
  return limits.map(limit => `, ${limit}`).join('')
}

const COLUMNS: readonly Column[] = [
  { title: 'ID' },
  { title: 'KEY' },
  { title: 'ACCOUNT' },
  { title: 'CREATED' },
  { title: 'LAST USED' },
  { title: 'EXPIRES' },
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
  // Last, as its width is anybody's.
  key.name,
]
