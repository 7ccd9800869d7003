import {
  RESTRICTIONS_MAX,
  readAllowedDomain,
  readAllowedIp,
} from '../../accounts/key-restrictions.ts'
import { PUBLISHABLE_SCOPES } from '../../accounts/key-rights.ts'
import { createKey, KEY_RATE_MAX, type KeyInput } from '../../accounts/keys.ts'
import { parseName } from '../../accounts/name.ts'
import { isSecretScope, SCOPES, type Scope } from '../../accounts/scope.ts'
import { EvError } from '../../platform/error.ts'
import { sanitizeText } from '../../platform/text.ts'
import { selectAccount, withAccounts } from '../accounts.ts'
import { auditServices, type CliContext } from '../context.ts'
import { printJson, printText } from '../print.ts'
import { readConfig } from '../settings.ts'
import { newKeyObject, newKeyText } from './print.ts'
import { parseExpiry } from './times.ts'

export type CreateFlags = {
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
  return withAccounts(context, readConfig(context, flags), async (database, accounts) => {
    const account = selectAccount(accounts, flags.account)
    const services = { ...auditServices(context), database }
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
    `There is no scope "${sanitizeText(wrong)}". Scopes: ${SCOPES.join(', ')}.`,
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
  const fault = wrong === undefined ? `${texts.length} entries` : `"${sanitizeText(wrong)}"`
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
