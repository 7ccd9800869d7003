import { type AuditServices, addAuditEntry } from '../audit.ts'
import { type BeforeCommit, type Database, write, writeWith } from '../db/database.ts'
import { isoTime } from '../platform/format.ts'
import type { Random } from '../platform/random.ts'
import type { SecretBox } from '../platform/secret-box.ts'
import { feedbackError } from './errors.ts'
import { BASIC_USERNAME } from './providers/basic-auth.ts'
import { PROVIDERS, type ProviderName } from './providers/providers.ts'
import {
  type FeedbackSource,
  findSource,
  insertSource,
  listSources,
  removeSource,
} from './source-store.ts'

/** Maximum sources of an account: one for each provider, domain and environment. */
export const SOURCES_MAX = 50

/** 103 bits of entropy: the URL of a source cannot be guessed. */
const ID_LENGTH = 20
/** 165 bits of entropy. */
const PASSWORD_LENGTH = 32
const HINT_LENGTH = 4

type SourceServices = AuditServices & {
  readonly database: Database
  /** Encrypts keys and passwords. */
  readonly secretBox: SecretBox
}

type SourceInput = {
  readonly accountId: string
  readonly provider: ProviderName
  /** The key of the provider; omitted for providers without one. */
  readonly key?: string | undefined
}

export type CreatedSource = {
  readonly source: FeedbackSource
  /** The password of a provider without a key. Only the caller gets it. */
  readonly password: string | null
}

/**
 * Creates a source. Throws `feedback_key_rejected` and `feedback_source_limit_reached`.
 */
export async function createSource(
  services: SourceServices,
  { accountId, provider, key }: SourceInput,
  beforeCommit?: BeforeCommit<CreatedSource>,
): Promise<CreatedSource> {
  const { database, clock, random, secretBox } = services
  const { secret, hint, password } = toSecret(provider, key, random)
  const source: FeedbackSource = {
    id: `fbs_${random.token(ID_LENGTH)}`,
    account_id: accountId,
    provider,
    secret: secretBox.encrypt(secret),
    key_hint: hint,
    created_at: clock.now(),
    last_received_at: null,
  }
  return writeWith(
    database,
    async trx => {
      const { length: count } = await listSources(trx, accountId)
      if (count >= SOURCES_MAX) throw feedbackError('feedback_source_limit_reached', { count })
      await insertSource(trx, source)
      const target = { id: source.id, name: provider }
      await addAuditEntry(trx, services, { action: 'feedback_source.created', accountId, target })
      return { source, password }
    },
    beforeCommit,
  )
}

function toSecret(provider: ProviderName, given: string | undefined, random: Random) {
  const { title, key } = PROVIDERS[provider]
  if (key === null && given === undefined) {
    const password = random.token(PASSWORD_LENGTH)
    return { secret: password, hint: password.slice(-HINT_LENGTH), password }
  }
  const secret = key?.parse(given ?? '') ?? null
  if (key !== null && secret !== null) {
    return { secret, hint: key.isPublic ? secret : secret.slice(-HINT_LENGTH), password: null }
  }
  const facts = { title, keyName: key?.name ?? '', expected: key?.expected ?? null }
  throw feedbackError('feedback_key_rejected', facts)
}

/**
 * Deletes a source of an account; `accountId` null: of any account. Throws
 * `feedback_source_not_found`.
 */
export async function deleteSource(
  services: Pick<SourceServices, 'database'> & AuditServices,
  { id, accountId }: { readonly id: string; readonly accountId: string | null },
): Promise<FeedbackSource> {
  const source = await findSource(services.database, id)
  if (source === null || (accountId !== null && source.account_id !== accountId)) sourceNotFound(id)
  return write(services.database, async trx => {
    if (!(await removeSource(trx, id))) sourceNotFound(id)
    await addAuditEntry(trx, services, {
      action: 'feedback_source.deleted',
      accountId: source.account_id,
      target: { id, name: source.provider },
    })
    return source
  })
}

/** The path to which the provider sends events. */
const sourcePath = ({ provider, id }: Pick<FeedbackSource, 'provider' | 'id'>) =>
  `/v1/feedback/${provider}/${id}`

export function sourceNotFound(id: string): never {
  throw feedbackError('feedback_source_not_found', { id })
}

/** A source without its secret. */
export const presentSource = (source: FeedbackSource, baseUrl: string) => ({
  id: source.id,
  provider: source.provider,
  url: `${baseUrl}${sourcePath(source)}`,
  key_hint: source.key_hint,
  created_at: isoTime(source.created_at),
  last_received_at: source.last_received_at === null ? null : isoTime(source.last_received_at),
})

/** A new source, with its password if it has one. */
export const presentCreatedSource = ({ source, password }: CreatedSource, baseUrl: string) => ({
  ...presentSource(source, baseUrl),
  basic_auth: password === null ? null : { username: BASIC_USERNAME, password },
})
