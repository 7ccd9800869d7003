import type { PaceState } from '../../../probe/pace/rules.ts'
import type { Ticket, Tickets } from './tickets.ts'

/** What a row says: how the operator is asked, how many connections each member holds, and which members wait for one. */
export type StoredPace = {
  readonly state: PaceState
  readonly held: Readonly<Record<string, number>>
  readonly waiting: Tickets
}

/** The same without what is said of who is no member: that is void. The very same where there is nothing such. */
export function ofMembers(stored: StoredPace, members: readonly string[]): StoredPace {
  const { state, held, waiting } = stored
  const isVoid = (id: string) => !members.includes(id)
  if (!Object.keys(held).some(isVoid) && !Object.keys(waiting).some(isVoid)) return stored
  return { state, held: living(held, members), waiting: living(waiting, members) }
}

/** The same with what one member says of itself. */
export function withOwn(
  { held, waiting }: StoredPace,
  member: string,
  own: { readonly state: PaceState; readonly held: number; readonly ticket: Ticket | null },
): StoredPace {
  const { [member]: _held, ...heldElsewhere } = held
  const { [member]: _ticket, ...waitingElsewhere } = waiting
  return {
    state: own.state,
    held: own.held === 0 ? heldElsewhere : { ...heldElsewhere, [member]: own.held },
    waiting: own.ticket === null ? waitingElsewhere : { ...waitingElsewhere, [member]: own.ticket },
  }
}

const living = <T>(record: Readonly<Record<string, T>>, members: readonly string[]) =>
  Object.fromEntries(Object.entries(record).filter(([id]) => members.includes(id)))
