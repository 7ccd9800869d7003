import { type Database, type Trx, write } from '../db/database.ts'
import type { Clock } from '../platform/clock.ts'
import {
  addVerdictCount,
  applyOutcome,
  countDomain,
  newAddressState,
  periodOf,
} from './address-state.ts'
import { feedbackError } from './errors.ts'
import { type Feedback, type FeedbackInput, parseFeedback } from './feedback.ts'
import {
  addDayCounts,
  addDomainCounts,
  addVerdictCounts,
  type DomainChange,
  type VerdictCount,
} from './feedback-counts.ts'
import {
  countKnown,
  enrollAccount,
  getAddressStates,
  getStoredPieces,
  insertFeedback,
  putOutcomes,
} from './feedback-store.ts'
import { addReplyCounts, type ReplyCount, replyChanges } from './reply-counts.ts'

/** Most pieces of feedback of one request. */
export const FEEDBACK_ITEMS_MAX = 1_000

/** Pieces per transaction, which blocks other writers for about 10 ms. */
const TRANSACTION_MAX = 500

/** The plan of an account: how many pieces it may store; null: unlimited. */
export type FeedbackPlan = { readonly name: string; readonly storedFeedback: number | null }

type RecordServices = {
  readonly database: Database
  /** Counts refusals. */
  readonly metrics?: { refused(limit: 'stored-feedback'): void }
}

type FeedbackSubmission = {
  readonly accountId: string
  /** Null for the owner of lists of the command line, who has no limit. */
  readonly plan: FeedbackPlan | null
  /** The way it was received: `api`, `import`, or the name of the provider. */
  readonly source: string
  readonly items: readonly FeedbackInput[]
}

export type RecordedFeedback = {
  readonly received: number
  readonly recorded: number
  /** Pieces that were recorded before. */
  readonly duplicates: number
  /** Invalid pieces, by their index. */
  readonly rejected: readonly { readonly index: number; readonly error: string }[]
}

/**
 * Records feedback of an account. A piece that was recorded before is counted and changes nothing,
 * so that a submission can be repeated. Throws `stored_feedback_exceeded`, before anything is
 * recorded unless another submission takes the rest of the limit at the same time.
 */
export async function recordFeedback(
  services: RecordServices,
  { accountId, plan, source, items }: FeedbackSubmission,
): Promise<RecordedFeedback> {
  const { database } = services
  const now = database.clock.now()
  const { valid, rejected } = parseItems(items, now)
  let recorded = 0
  for (let from = 0; from < valid.length; from += TRANSACTION_MAX) {
    const rows = valid.slice(from, from + TRANSACTION_MAX)
    recorded += await write(database, async trx => {
      await enrollAccount(trx, accountId, now)
      await checkStored(services, trx, { accountId, plan, rows: valid.slice(from) })
      const added = await insertFeedback(trx, rows, { accountId, source, now })
      const pieces = takeNew(rows, added)
      await addDayCounts(trx, pieces, { accountId, source, now })
      await applyOutcomes(trx, accountId, pieces)
      return added.size
    })
  }
  const duplicates = valid.length - recorded
  return { received: items.length, recorded, duplicates, rejected }
}

/**
 * Throws `stored_feedback_exceeded` if the account would store too many pieces. Exact, because
 * these transactions run one at a time.
 */
async function checkStored(
  { metrics }: RecordServices,
  trx: Trx,
  { accountId, plan, rows }: Pick<FeedbackSubmission, 'accountId' | 'plan'> & Rows,
): Promise<void> {
  if (plan === null || plan.storedFeedback === null) return
  const { name, storedFeedback: max } = plan
  const stored = await getStoredPieces(trx, accountId)
  if (stored + rows.length <= max) return
  const keys = [...new Set(rows.map(({ dedupeKey }) => dedupeKey))]
  const pieces = keys.length - (await countKnown(trx, accountId, keys))
  if (pieces === 0 || stored + pieces <= max) return
  metrics?.refused('stored-feedback')
  throw feedbackError('stored_feedback_exceeded', { plan: name, stored, pieces, max })
}

type Rows = { readonly rows: readonly Feedback[] }

/** Checks feedback and stores nothing, for the sandbox. */
export function checkFeedback(
  { clock }: { readonly clock: Clock },
  { items }: Pick<FeedbackSubmission, 'items'>,
): RecordedFeedback {
  const { valid, rejected } = parseItems(items, clock.now())
  const recorded = new Set(valid.map(({ dedupeKey }) => dedupeKey)).size
  return { received: items.length, recorded, duplicates: valid.length - recorded, rejected }
}

function parseItems(items: readonly FeedbackInput[], now: number) {
  const parsed = items.map(item => parseFeedback(item, now))
  return {
    valid: parsed.filter(item => typeof item !== 'string'),
    rejected: parsed.flatMap((item, index) =>
      typeof item === 'string' ? [{ index, error: item }] : [],
    ),
  }
}

/** Of equal pieces of one batch, the first is new. */
function takeNew(rows: readonly Feedback[], added: Set<string>): Feedback[] {
  const pending = new Set(added)
  return rows.filter(({ dedupeKey }) => pending.delete(dedupeKey))
}

/** Updates the states of addresses, and the counts of their domains and verdicts. */
async function applyOutcomes(
  trx: Trx,
  accountId: string,
  added: readonly Feedback[],
): Promise<void> {
  const firm = added.filter(({ outcome }) => outcome !== null)
  if (firm.length === 0) return
  const keys = [...new Set(firm.map(({ addressKey }) => addressKey))]
  const known = await getAddressStates(trx, accountId, keys)
  const states = new Map(known.map(state => [state.address_key, state]))
  const domains = new Map<string, DomainChange>()
  const verdicts = new Map<string, VerdictCount>()
  const replies: ReplyCount[] = []
  for (const feedback of [...firm].sort((a, b) => a.occurredAt - b.occurredAt)) {
    const before =
      states.get(feedback.addressKey) ?? newAddressState(feedback.addressKey, accountId)
    const { state, counts } = applyOutcome(before, feedback)
    states.set(feedback.addressKey, state)
    countDomain(domains, feedback.domain, { before, after: state })
    for (const count of counts) addVerdictCount(verdicts, count)
    replies.push(...replyChanges(before, state.counted, periodOf(feedback.occurredAt)))
  }
  await putOutcomes(trx, [...states.values()])
  await addDomainCounts(trx, accountId, [...domains.values()])
  await addVerdictCounts(trx, accountId, [...verdicts.values()])
  await addReplyCounts(trx, accountId, replies)
}
