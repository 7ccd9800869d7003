import { SECOND } from '../../platform/clock.ts'
import { DEFAULT_RATE_TIMINGS } from './rate-timings.ts'

/**
 * The ticket of a member that waits for a connection held by others. Times are by the database's
 * clock, epoch ms.
 */
export type WaitTicket = {
  readonly since: number
  /** Renewed while the member waits, so that a ticket it could not withdraw expires. */
  readonly until: number
  /** A client waits for the answer. */
  readonly single: boolean
}

export type Tickets = Readonly<Record<string, WaitTicket>>

/** A position in the queue. */
export type QueuePosition = Pick<WaitTicket, 'since' | 'single'>

const { ticketMs: TICKET_MS } = DEFAULT_RATE_TIMINGS
/** Head start of single verifications over lists. */
const SINGLE_FIRST_MS = 5 * SECOND
/**
 * How much longer than another list a list must have waited to go first: if two lists alternate, a
 * connection idles at each change.
 */
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

/** Whether a ticket is up to date and stays valid for a while. */
export function isCurrent(
  ticket: WaitTicket | null,
  position: QueuePosition | null,
  now: number,
  ticketMs = TICKET_MS,
): boolean {
  if (ticket === null || position === null) return ticket === position
  return ticket.single === position.single && ticket.until > now + ticketMs / 2
}

/** Returns how many connections are reserved for other members, which come before this position. */
export function reservedFor(
  tickets: Tickets,
  member: string,
  position: QueuePosition,
  now: number,
): number {
  let reserved = 0
  for (const other in tickets) {
    const ticket = tickets[other] as WaitTicket
    const graceMs = ticket.single ? 0 : LIST_GRACE_MS
    const isAhead = rank(ticket) + graceMs < rank(position)
    if (other !== member && ticket.until > now && isAhead) reserved++
  }
  return reserved
}

/** Whether a client of another member waits. */
export const isSingleWaiting = (tickets: Tickets, member: string, now: number) =>
  Object.entries(tickets).some(([other, ticket]) => {
    return other !== member && ticket.single && ticket.until > now
  })

const rank = ({ since, single }: QueuePosition) => (single ? since : since + SINGLE_FIRST_MS)
