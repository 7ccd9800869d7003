import { sql, type Transaction } from 'kysely'
import type { Next } from '../../hook/delivery.ts'
import type { AttemptTable, DeliveryTable, DeliveryTrigger, Schema } from '../schema.ts'
import { keepWebhooks } from './keep-webhooks.ts'
import { enterFailure } from './notices.ts'

/** One request, and what came of it. */
export type Tried = {
  /** When it began, epoch ms. */
  readonly startedAt: number
  readonly url: string
  readonly durationMs: number
  /** Null: nobody answered. */
  readonly statusCode: number | null
  /** Of the answer. */
  readonly headers: Readonly<Record<string, string>> | null
  /** The beginning of the answer's body, cleaned. */
  readonly excerpt: string | null
  /** What was wrong, in a sentence; null: nothing. */
  readonly error: string | null
}

export type NewAttempt = Tried & {
  /** As it was when it was taken. */
  readonly delivery: {
    readonly id: string
    readonly webhookId: string
    readonly round: { readonly trigger: DeliveryTrigger; readonly attempt: number }
  }
  readonly next: Next
  /** Why its webhook is to be switched off with it; null: it is not. */
  readonly disabledReason: string | null
}

/**
 * Writes down what came of attempts, in the order in which they ended, and how it goes on with their deliveries and
 * webhooks. Where somebody asked for a delivery once more meanwhile, that stands. One that is gone is passed over.
 */
export async function recordAttempts(
  trx: Transaction<Schema>,
  attempts: readonly NewAttempt[],
  { now }: { readonly now: number },
): Promise<void> {
  const standing = await standingOf(trx, attempts)
  const made = attempts.flatMap(attempt => {
    const delivery = standing.get(attempt.delivery.id)
    return delivery === undefined ? [] : [{ attempt, delivery }]
  })
  if (made.length === 0) return
  await insertAttempts(
    trx,
    made.map(({ attempt, delivery }) => {
      delivery.attempts += 1
      const { trigger } = attempt.delivery.round
      return attemptRow(attempt, { delivery_id: delivery.id, number: delivery.attempts, trigger })
    }),
  )
  await forgetOldest(trx, made)
  const inRound = made.filter(isInItsRound)
  await moveOn(trx, inRound)
  await enterFailures(trx, inRound, now)
  await keepWebhooks(trx, made, now)
}

/** A delivery, and its webhook, before an attempt is written down. */
export type Standing = Pick<DeliveryTable, 'id' | 'trigger' | 'attempt'> & {
  readonly webhookId: string
  readonly accountId: string
  readonly url: string
  readonly active: number
  readonly failingSince: number | null
  /** Of all its rounds. */
  attempts: number
}

/** An attempt that is written down. */
export type Made = { readonly attempt: NewAttempt; readonly delivery: Standing }

async function standingOf(
  trx: Transaction<Schema>,
  attempts: readonly NewAttempt[],
): Promise<Map<string, Standing>> {
  const ids = JSON.stringify(attempts.map(({ delivery }) => delivery.id))
  const { rows } = await sql<Standing>`
    select delivery.id, delivery."trigger", delivery.attempt,
      webhook.id as "webhookId", webhook.account_id as "accountId", webhook.url, webhook.active,
      webhook.failing_since as "failingSince",
      (select coalesce(max(number), 0) from attempt where delivery_id = delivery.id) as attempts
    from delivery join webhook on webhook.id = delivery.webhook_id
    where delivery.id in (select value from json_each(${ids}))
      and webhook.deleted_at is null`.execute(trx)
  return new Map(rows.map(row => [row.id, row]))
}

const attemptRow = (
  tried: Tried,
  of: Pick<AttemptTable, 'delivery_id' | 'number' | 'trigger'>,
): AttemptTable => ({
  ...of,
  url: tried.url,
  started_at: tried.startedAt,
  duration_ms: tried.durationMs,
  status_code: tried.statusCode,
  headers: tried.headers === null ? null : JSON.stringify(tried.headers),
  excerpt: tried.excerpt,
  error: tried.error,
})

/** All in one parameter: there is one statement for any number of them, and it is prepared once. */
async function insertAttempts(trx: Transaction<Schema>, rows: AttemptTable[]): Promise<void> {
  await sql`
    insert into attempt (delivery_id, number, "trigger", url, started_at, duration_ms,
      status_code, headers, excerpt, error)
    select value ->> 'delivery_id', value ->> 'number', value ->> 'trigger', value ->> 'url',
      value ->> 'started_at', value ->> 'duration_ms', value ->> 'status_code',
      value ->> 'headers', value ->> 'excerpt', value ->> 'error'
    from json_each(${JSON.stringify(rows)})`.execute(trx)
}

/**
 * Attempts kept of one delivery, the last: each time that somebody asks for it once more there may be six, and
 * nobody else sees to it that they ask no thousand times.
 */
export const ATTEMPTS_MAX = 60

async function forgetOldest(trx: Transaction<Schema>, made: readonly Made[]): Promise<void> {
  const spent = made
    .filter(({ delivery }) => delivery.attempts > ATTEMPTS_MAX)
    .map(({ delivery: { id, attempts } }) => ({ id, until: attempts - ATTEMPTS_MAX }))
  if (spent.length === 0) return
  await sql`
    delete from attempt where rowid in (
      select attempt.rowid from json_each(${JSON.stringify(spent)}) cross join attempt
      where delivery_id = value ->> 'id' and number <= value ->> 'until')`.execute(trx)
}

const isInItsRound = ({ attempt: { delivery: taken }, delivery }: Made) =>
  delivery.trigger === taken.round.trigger && delivery.attempt === taken.round.attempt

async function moveOn(trx: Transaction<Schema>, made: readonly Made[]): Promise<void> {
  const rows = made.map(({ attempt }) => ({ id: attempt.delivery.id, ...afterwards(attempt) }))
  await sql`
    update delivery set attempt = delivery.attempt + 1, state = value ->> 'state',
      due_at = coalesce(value ->> 'due_at', due_at), expires_at = value ->> 'expires_at',
      status_code = value ->> 'status_code', duration_ms = value ->> 'duration_ms',
      error = value ->> 'error'
    from json_each(${JSON.stringify(rows)}) where delivery.id = value ->> 'id'`.execute(trx)
}

const afterwards = ({ next, statusCode, durationMs, error }: Tried & { readonly next: Next }) => ({
  state: next.state,
  /** Null: as it was. */
  due_at: next.state === 'retry_scheduled' ? next.dueAt : null,
  expires_at: next.state === 'retry_scheduled' ? null : next.expiresAt,
  status_code: statusCode,
  duration_ms: durationMs,
  error,
})

/** Whoever owns the webhooks is told of what was given up. */
async function enterFailures(
  trx: Transaction<Schema>,
  made: readonly Made[],
  now: number,
): Promise<void> {
  const failed = made.filter(({ attempt }) => attempt.next.state === 'failed')
  for (const [webhookId, ofOne] of Map.groupBy(failed, ({ delivery }) => delivery.webhookId)) {
    const [last] = ofOne.slice(-1) as [Made]
    const { accountId } = last.delivery
    const events = ofOne.length
    await enterFailure(trx, { webhookId, accountId, events, error: last.attempt.error, now })
  }
}

/** A test, which was sent at once and is written down afterwards. */
export type NewTest = Tried & {
  readonly accountId: string
  readonly webhookId: string
  /** The bytes that were sent. */
  readonly event: { readonly id: string; readonly body: string }
  readonly deliveryId: string
  readonly next: Next
  readonly now: number
}

/** Writes a test down, as an event with its delivery and attempt; it says nothing about how its webhook stands. */
export async function recordTest(trx: Transaction<Schema>, test: NewTest): Promise<void> {
  const { accountId, webhookId, event, deliveryId, now } = test
  const [kind, trigger] = ['webhook.test', 'test'] as const
  await trx
    .insertInto('event')
    .values({ ...event, account_id: accountId, kind, created_at: now })
    .execute()
  const after = afterwards(test)
  await trx
    .insertInto('delivery')
    .values({
      ...{ id: deliveryId, event_id: event.id, webhook_id: webhookId, kind, trigger },
      ...{ ...after, due_at: after.due_at ?? now, attempt: 1, created_at: now },
    })
    .execute()
  await insertAttempts(trx, [attemptRow(test, { delivery_id: deliveryId, number: 1, trigger })])
}
