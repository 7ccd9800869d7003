import type { Random } from '../platform/random.ts'

/** What a webhook can subscribe to (spec section 6). */
export const EVENT_KINDS = [
  'batch.completed',
  'batch.failed',
  'verification.completed',
  'quota.warning',
  'quota.exceeded',
] as const

export type EventKind = (typeof EVENT_KINDS)[number]

export const isEventKind = (text: string): text is EventKind =>
  (EVENT_KINDS as readonly string[]).includes(text)

/** What an endpoint is tried out with: sent to it whatever it subscribed to. */
export const TEST_KIND = 'webhook.test'

/** What is sent, and what the log of deliveries knows. */
export const SENT_KINDS = [...EVENT_KINDS, TEST_KIND] as const

export type SentKind = (typeof SENT_KINDS)[number]

export type NewEvent = {
  /** `evt_…` */
  readonly id: string
  readonly kind: SentKind
  /** When it happened, epoch ms. */
  readonly at: number
  readonly data: object
  readonly sandbox: boolean
}

/**
 * The body that is sent for an event (spec 2.8). It is made once and kept, because a signature is of bytes and
 * every attempt sends the same. What was simulated says so beside `data`, which has the same shape always.
 */
export function eventBody({ id, kind, at, data, sandbox }: NewEvent): string {
  return JSON.stringify({
    event: kind,
    event_id: id,
    timestamp: new Date(at).toISOString(),
    ...(sandbox ? { sandbox: true } : {}),
    data,
  })
}

/** Whether the event of a body of `eventBody` was simulated. */
export const isSandboxBody = (body: string): boolean => SANDBOX_BODY.test(body)

const SANDBOX_BODY = /^\{"event":"[^"]*","event_id":"[^"]*","timestamp":"[^"]*","sandbox":true,/

export const newEventId = (random: Random): string => `evt_${random.token(ID_LENGTH)}`

/** Of one event on its way to one webhook. */
export const newDeliveryId = (random: Random): string => `dlv_${random.token(ID_LENGTH)}`

/** 103 bits of chance: IDs of events are for telling them apart, for ever. */
const ID_LENGTH = 20
