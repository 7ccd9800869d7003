import type { RateState } from '../../engine/rate-control/rules.ts'
import type { Tickets, WaitTicket } from './wait-tickets.ts'

/** What a row says: how the operator is asked, how many connections each member holds, and which members wait for one. */
export type StoredRate = {
  readonly state: RateState
  readonly held: Readonly<Record<string, number>>
  readonly waiting: Tickets
}

/** The same without what is said of who is no member: that is void. The very same where there is nothing such. */
export function ofMembers(stored: StoredRate, members: readonly string[]): StoredRate {
  const { state, held, waiting } = stored
  const isVoid = (id: string) => !members.includes(id)
  if (!Object.keys(held).some(isVoid) && !Object.keys(waiting).some(isVoid)) return stored
  return { state, held: living(held, members), waiting: living(waiting, members) }
}

/** The same with what one member says of itself. */
export function withOwn(
  { held, waiting }: StoredRate,
  member: string,
  own: { readonly state: RateState; readonly held: number; readonly ticket: WaitTicket | null },
): StoredRate {
  const { [member]: _held, ...reservedByOthers } = held
  const { [member]: _ticket, ...waitingAtOthers } = waiting
  return {
    state: own.state,
    held: own.held === 0 ? reservedByOthers : { ...reservedByOthers, [member]: own.held },
    waiting: own.ticket === null ? waitingAtOthers : { ...waitingAtOthers, [member]: own.ticket },
  }
}

const living = <T>(record: Readonly<Record<string, T>>, members: readonly string[]) =>
  Object.fromEntries(Object.entries(record).filter(([id]) => members.includes(id)))
