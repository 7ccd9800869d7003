import { SECOND } from '../../platform/clock.ts'
import { DEFAULT_RATE_TIMINGS } from './rate-timings.ts'

/** A member waits for a connection that others hold. Times are of the database's clock, epoch ms. */
export type WaitTicket = {
  readonly since: number
  /** It is renewed while the member waits: what it could not take back counts no longer. */
  readonly until: number
  /** Somebody waits for the answer. */
  readonly single: boolean
}

export type Tickets = Readonly<Record<string, WaitTicket>>

/** Who waits, and since when. */
export type QueuePosition = Pick<WaitTicket, 'since' | 'single'>

const { ticketMs: TICKET_MS } = DEFAULT_RATE_TIMINGS
/** What somebody waits for goes before a list, but for one that waited so much longer. */
const SINGLE_FIRST_MS = 5 * SECOND
/** So much longer a list must have waited than another: where two go on in turns a connection stands idle at each change. */
const LIST_GRACE_MS = 5 * SECOND

export const newTicket = (
  { since, single }: QueuePosition,
  now: number,
  ticketMs = TICKET_MS,
): WaitTicket => ({
  since,
  single,
  until: now + ticketMs,
})

/** Whether a ticket says what it should, and will do so for a while. */
export function isCurrent(
  ticket: WaitTicket | null,
  place: QueuePosition | null,
  now: number,
  ticketMs = TICKET_MS,
): boolean {
  if (ticket === null || place === null) return ticket === place
  return ticket.single === place.single && ticket.until > now + ticketMs / 2
}

/** How many connections are kept for other members, who come before this place. */
export function reservedFor(
  tickets: Tickets,
  member: string,
  place: QueuePosition,
  now: number,
): number {
  let kept = 0
  for (const other in tickets) {
    const ticket = tickets[other] as WaitTicket
    const graceMs = ticket.single ? 0 : LIST_GRACE_MS
    const isFirst = rank(ticket) + graceMs < rank(place)
    if (other !== member && ticket.until > now && isFirst) kept++
  }
  return kept
}

/** Whether another member has somebody who waits. */
export const isSingleWaiting = (tickets: Tickets, member: string, now: number) =>
  Object.entries(tickets).some(([other, ticket]) => {
    return other !== member && ticket.single && ticket.until > now
  })

const rank = ({ since, single }: QueuePosition) => (single ? since : since + SINGLE_FIRST_MS)
