import { type CallKind, type Tried, WAYS } from '../support/nth-call.ts'

/** A kind of call, and the way in which one of them fails. */
export type Case = readonly [kind: CallKind, way: string]

export const casesOf = (kinds: readonly CallKind[]): Case[] =>
  kinds.flatMap(kind => WAYS[kind].map(way => [kind, way] as const))

/** Prints how many calls were tried, and what was wrong. */
export function report(subject: string, [kind, way]: Case, { calls, violations }: Tried): void {
  console.log(`${subject} | ${kind} | ${way} | ${calls} | ${violations.length}`)
  for (const text of violations) console.log(text)
}
