import type { RateState } from '../../engine/rate-control/rules.ts'
import { MINUTE, SECOND } from '../../platform/clock.ts'

/** Intervals of shared rate control, in ms. */
export type RateTimings = {
  /** Poll interval for changes by other processes. */
  readonly pollMs: number
  /** Poll interval while a client waits for an answer. */
  readonly pollSoonMs: number
  /** Poll interval while no operator is probed; the next probe ends the wait. */
  readonly pollIdleMs: number
  /**
   * Each poll overlaps the previous one by this, so that rows that were committed late are seen.
   */
  readonly overlapMs: number
  /** Interval between deletions of unused states. */
  readonly deleteEveryMs: number
  /** Lifetime of a ticket; it is renewed at half of it. */
  readonly ticketMs: number
}

export const DEFAULT_RATE_TIMINGS: RateTimings = {
  pollMs: SECOND,
  pollSoonMs: 250,
  pollIdleMs: 5 * SECOND,
  overlapMs: 10 * SECOND,
  deleteEveryMs: 10 * MINUTE,
  ticketMs: 4 * SECOND,
}

/** Throws if a ticket would expire before the poll that renews it. */
export function checkRateTimings({ pollMs, pollSoonMs, pollIdleMs, ticketMs }: RateTimings): void {
  if (pollSoonMs > pollMs) throw new RangeError('pollSoonMs must not exceed pollMs')
  if (pollMs > pollIdleMs) throw new RangeError('pollMs must not exceed pollIdleMs')
  if (2 * pollMs > ticketMs) throw new RangeError('pollMs must be at most half of ticketMs')
}

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

type Tickets = Readonly<Record<string, WaitTicket>>

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

/**
 * The stored state: the rate state of the operator, the connections held by each member, and the
 * tickets of waiting members.
 */
export type StoredRate = {
  readonly state: RateState
  readonly held: Readonly<Record<string, number>>
  readonly waiting: Tickets
}

/**
 * Removes the entries of processes that are no longer members. Returns the same object if there are
 * none.
 */
export function dropNonMembers(stored: StoredRate, members: readonly string[]): StoredRate {
  const { state, held, waiting } = stored
  const isGone = (id: string) => !members.includes(id)
  if (!Object.keys(held).some(isGone) && !Object.keys(waiting).some(isGone)) return stored
  return { state, held: pickMembers(held, members), waiting: pickMembers(waiting, members) }
}

/** Replaces the entries of one member. */
export function withMember(
  { held, waiting }: StoredRate,
  member: string,
  own: { readonly state: RateState; readonly held: number; readonly ticket: WaitTicket | null },
): StoredRate {
  const { [member]: _held, ...heldByOthers } = held
  const { [member]: _ticket, ...waitingOthers } = waiting
  return {
    state: own.state,
    held: own.held === 0 ? heldByOthers : { ...heldByOthers, [member]: own.held },
    waiting: own.ticket === null ? waitingOthers : { ...waitingOthers, [member]: own.ticket },
  }
}

const pickMembers = <T>(record: Readonly<Record<string, T>>, members: readonly string[]) =>
  Object.fromEntries(Object.entries(record).filter(([id]) => members.includes(id)))
