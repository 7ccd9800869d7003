import { TAKES } from './address/own/entry.ts'
import type { TraitOptions } from './address/traits.ts'
import type { Clock } from './base/clock.ts'
import { EvError } from './base/error.ts'
import { type Log, silentLog } from './base/log.ts'
import type { Random } from './base/random.ts'
import { toConfig } from './config/config.ts'
import { type Config, SETTINGS } from './config/settings.ts'
import type { Resolver } from './dns/resolver.ts'
import type { Engine } from './engine/engine.ts'
import { openLists } from './engine/lists.ts'
import type { ResultMemory } from './engine/memory.ts'
import type { Dial } from './smtp/dial.ts'
import { listPlan, wireEngine } from './wire.ts'

export type { Address, SyntaxFault } from './address/address.ts'
export type { Traits } from './address/traits.ts'
export { EvError } from './base/error.ts'
export type { Log } from './base/log.ts'
export type { Route } from './dns/route.ts'
export type { Engine, VerifyOptions } from './engine/engine.ts'
export type { Remembered, ResultMemory } from './engine/memory.ts'
export { type Include, presentResult } from './engine/present.ts'
export type { ManyOptions } from './engine/stream.ts'
export type { Answer } from './smtp/answer.ts'
export type { Reason } from './verdict/reason.ts'
export { type Class, classOf, type Evidence, type Result, type Verdict } from './verdict/verdict.ts'

/** Settings of an embedded engine: those of the command line, by the same names, and the doors to the world. */
export type EngineOptions = Partial<Omit<Config, 'dataDir' | 'database' | 'log' | 'logFormat'>> & {
  /** Additions to the built-in lists. */
  readonly lists?: TraitOptions
  /** Results are simulated by the prefix of the address: no DNS, no socket. */
  readonly sandbox?: boolean
  /** Where definite answers are remembered; in this process when left out. */
  readonly memory?: ResultMemory
  readonly log?: Log
  readonly clock?: Clock
  readonly random?: Random
  readonly resolver?: Resolver
  readonly dial?: Dial
}

/**
 * An engine of one's own. Opens no database and nothing else before it is asked something; `close()` it at
 * the end. Throws EvError('usage') on a bad setting.
 */
export function createEngine(options: EngineOptions = {}): Engine {
  const { lists, sandbox, memory, log, clock, random, resolver, dial, ...settings } = options
  const config = toConfig({ flags: asFlags(settings), environment: {}, file: null })
  const doors = { ...optional({ clock, random, resolver, dial }), log: log ?? silentLog }
  const own = openLists(listPlan(config, entriesOf(lists)))
  return wireEngine(config, doors, { lists: own, ...optional({ sandbox, memory }) })
}

/** Settings go through the same checks as flags; what is null, undefined or an empty list is not given. */
function asFlags(settings: Partial<Config>): Record<string, string> {
  const given = Object.entries(settings).filter(
    ([, value]) =>
      value !== null && value !== undefined && !(Array.isArray(value) && !value.length),
  )
  const unknown = given.find(([key]) => !SETTINGS.some(setting => setting.key === key))
  if (unknown !== undefined) {
    throw new EvError('usage', `createEngine has no option "${unknown[0]}".`)
  }
  return Object.fromEntries(
    given.map(([key, value]) => [
      key,
      // The flag takes seconds.
      key === 'greylistDelayMs' ? String(Number(value) / 1_000) : String(value),
    ]),
  )
}

/** Kept as arrays, as they are read again with the lists; an iterator gives what it has only once. */
function entriesOf(lists: TraitOptions = {}): TraitOptions {
  const given = Object.entries(lists).filter(([, entries]) => entries !== undefined)
  const unknown = given.find(([list]) => !Object.hasOwn(TAKES, list))
  if (unknown !== undefined) {
    const names = Object.keys(TAKES).join(', ')
    throw new EvError('usage', `createEngine has no list "${unknown[0]}"; it has ${names}.`)
  }
  return Object.fromEntries(given.map(([list, entries]) => [list, [...entries]]))
}

/** The same object without what is undefined. */
function optional<T extends object>(all: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const given = Object.entries(all).filter(([, value]) => value !== undefined)
  return Object.fromEntries(given) as { [K in keyof T]?: Exclude<T[K], undefined> }
}
