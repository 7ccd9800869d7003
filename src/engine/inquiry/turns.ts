import type { Probed } from '../../probe/lane/lane.ts'
import { type Exchangers, exchangersFor } from './exchangers.ts'
import type { Inquiry } from './prepare.ts'

/** Whom an inquiry is to be asked of now, whom after that, and what was heard before. */
export type Turn = {
  readonly inquiry: Inquiry
  readonly at: Exchangers
  readonly left: readonly Exchangers[]
  readonly before: Probed | null
}

/** The first turn of an inquiry. */
export function firstTurn(inquiry: Inquiry): Turn {
  const [at, ...left] = exchangersFor(inquiry.exchangers, inquiry.accepted)
  return { inquiry, at, left, before: null }
}

/** The inquiry as these exchangers are asked it. */
export function questionOf({ inquiry, at: { operator, route, catchAll } }: Turn): Inquiry {
  if (inquiry.exchangers.length === 1) return inquiry
  const isBackup = operator.name !== inquiry.operator.name
  return { ...inquiry, route, catchAll, isBackup, sharesLimits: true }
}
