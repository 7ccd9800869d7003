import { createHash } from 'node:crypto'
import { type Database, write } from '../db/database.ts'
import { type Clock, MINUTE } from '../platform/clock.ts'
import type { SecretBox } from '../platform/secret-box.ts'
import { reject } from './providers/checks.ts'
import type { Provider, ProviderDeps, ProviderRequest } from './providers/provider.ts'
import { PROVIDERS } from './providers/providers.ts'
import { type FeedbackPlan, type RecordedFeedback, recordFeedback } from './record-feedback.ts'
import { type FeedbackSource, findSource, setLastReceived } from './source-store.ts'
import { sourceNotFound } from './sources.ts'

type ReceiveServices = Pick<ProviderDeps, 'certificates' | 'getDocument'> & {
  readonly database: Database
  readonly clock: Clock
  readonly secretBox: SecretBox
  readonly metrics?: { refused(limit: 'stored-feedback'): void }
  readonly getPlan: (accountId: string) => Promise<FeedbackPlan>
  /** Binds a token to the digest of a body. Returns false if it is bound to another one. */
  readonly bindToken: (sourceId: string, token: string, digest: string) => Promise<boolean>
}

/** Precision of the stored time of the last request. */
const LAST_RECEIVED_PRECISION_MS = MINUTE

/** Returns the source at a path. Throws `feedback_source_not_found`. */
export async function getSource(
  { database }: { readonly database: Database },
  { provider, id }: { readonly provider: string; readonly id: string },
): Promise<FeedbackSource> {
  const source = await findSource(database, id)
  return source?.provider === provider ? source : sourceNotFound(id)
}

/**
 * Records the events of a request of an email provider. An event that was recorded before changes
 * nothing: providers repeat requests. Throws `feedback_request_rejected` and
 * `stored_feedback_exceeded`.
 */
export async function receiveFeedback(
  services: ReceiveServices,
  source: FeedbackSource,
  request: Omit<ProviderRequest, 'key'>,
): Promise<RecordedFeedback> {
  const { database, clock, secretBox, certificates, getDocument } = services
  const now = clock.now()
  const provider = PROVIDERS[source.provider]
  checkBody(provider, request.body)
  const { items, token } = await provider.receive(
    { ...request, key: secretBox.decrypt(source.secret) },
    { now, certificates, getDocument },
  )
  if (token !== undefined) {
    const digest = createHash('sha256').update(request.bytes).digest('hex')
    if (!(await services.bindToken(source.id, token, digest)))
      reject('authentication', 'The token of the signature was used for another event.')
  }
  if (now - (source.last_received_at ?? 0) >= LAST_RECEIVED_PRECISION_MS)
    await write(database, trx => setLastReceived(trx, source.id, now))
  const accountId = source.account_id
  const plan = await services.getPlan(accountId)
  return recordFeedback(services, { accountId, plan, source: source.provider, items })
}

function checkBody({ title, body: expected }: Provider, body: unknown): void {
  const isObject = typeof body === 'object' && body !== null && !Array.isArray(body)
  if (expected === 'object' && !isObject)
    reject('body', `The body of a request of ${title} must be a JSON object with an event.`)
  if (expected === 'array' && !(Array.isArray(body) && body.length > 0))
    reject('body', `The body of a request of ${title} must be a JSON array of events.`)
}
