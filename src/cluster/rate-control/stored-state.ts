import type { RateState } from '../../engine/rate-control/rules.ts'
import type { Tickets, WaitTicket } from './wait-tickets.ts'

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
