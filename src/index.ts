import { composeEngine, type ExternalDeps, listFiles } from './compose/engine.ts'
import { toConfig } from './config/config.ts'
import type { EgressConfig } from './config/egresses.ts'
import type { OperatorConfig } from './config/operators.ts'
import { ENGINE_SETTINGS, toDisplayUnit, type ServeSettings, type Settings } from './config/settings.ts'
import type { ClassifierOptions } from './engine/address/classifier.ts'
import { ENTRY_FORMAT_HINT } from './engine/address/custom-list-file.ts'
import type { Resolver } from './engine/dns/resolver.ts'
import type { Engine } from './engine/engine.ts'
import { openLists } from './engine/lists.ts'
import type { ResultCache } from './engine/result-cache.ts'
import type { Clock } from './platform/clock.ts'
import { EvError } from './platform/error.ts'
import { type Log, silentLog } from './platform/log.ts'
import type { Random } from './platform/random.ts'

export type { EgressConfig } from './config/egresses.ts'
export type { Address, SyntaxFault } from './engine/address/address.ts'
export type { AddressFlags as Traits } from './engine/address/classifier.ts'
export type { Route } from './engine/dns/route.ts'
export type { Engine } from './engine/engine.ts'
export type { VerifyOptions } from './engine/verify-options.ts'
export type {
  CachedAnswer as Remembered,
  ResultCache as ResultMemory,
} from './engine/result-cache.ts'
export type { RecipientOutcome as Answer } from './engine/smtp/classify-reply.ts'
export type { Step } from './engine/step.ts'
export type { ManyOptions } from './engine/stream.ts'
export { type Include, presentResult } from './engine/verdict/present-result.ts'
export type { Reason } from './engine/verdict/reason.ts'
export {
  type Class,
  type Evidence,
  type Result,
  toClass as classOf,
  type Verdict,
} from './engine/verdict/verdict.ts'
export { EvError } from './platform/error.ts'
export type { Log } from './platform/log.ts'

/** Settings of an embedded engine: those of the command line, by the same names, and the doors to the world. */
export type EngineOptions = Partial<
  Omit<
    Settings,
    | keyof ServeSettings
    | 'dnsCheckNames'
    | 'dataDir'
    | 'database'
    | 'keepResultsMs'
    | 'log'
    | 'logFormat'
  >
> & {
  /** Names that must have MX records, by which the DNS servers are checked; `off`: they are not. */
  readonly dnsCheckNames?: readonly string[] | 'off'
  /** Several source identities; what one leaves out is as the settings beside it have it. `egress` picks one of them. */
  readonly egresses?: readonly (Pick<EgressConfig, 'name'> & Partial<EgressConfig>)[]
  /** By its name, how one operator is asked; what is left out is as for all. */
  readonly operators?: Readonly<Record<string, Partial<OperatorConfig>>>
  /** Additions to the built-in lists. */
  readonly lists?: ClassifierOptions
  /** Results are simulated by the prefix of the address: no DNS, no socket. */
  readonly sandbox?: boolean
  /** Where definite answers are cached; in this process when left out. */
  readonly resultCache?: ResultCache
  readonly log?: Log
  readonly clock?: Clock
  readonly random?: Random
  readonly resolver?: Resolver
  /** One for all egresses, or one for each. */
  readonly dial?: NonNullable<ExternalDeps['dial']>
}

/**
 * An engine of one's own. Opens no database and nothing else before it is asked something; `close()` it at
 * the end. Throws EvError('usage') on a bad setting.
 */
export function createEngine(options: EngineOptions = {}): Engine {
  const { lists, sandbox, resultCache, log, clock, random, resolver, dial, ...rest } = options
  const { egresses, operators, ...settings } = rest
  const structures = normalizeKey({ egresses, operators })
  const config = toConfig({ flags: asFlags(settings), environment: {}, file: null, structures })
  const externalDeps = { ...optional({ clock, random, resolver, dial }), log: log ?? silentLog }
  const own = openLists(listFiles(config, entriesOf(lists)))
  return composeEngine(config, externalDeps, {
    lists: own,
    ...optional({ sandbox, cache: resultCache }),
  })
}

/** Settings go through the same checks as flags; what is null, undefined or an empty list is not given. */
function asFlags(settings: Readonly<Record<string, unknown>>): Record<string, string> {
  const given = Object.entries(settings).filter(([, value]) => isGiven(value))
  const flags = given.map(([key, value]) => {
    const setting = ENGINE_SETTINGS.find(one => one.key === key)
    if (setting === undefined) throw new EvError('usage', `createEngine has no option "${key}".`)
    return [key, String(toDisplayUnit(setting, value))]
  })
  return Object.fromEntries(flags)
}

const isGiven = (value: unknown) =>
  value !== null && value !== undefined && !(Array.isArray(value) && value.length === 0)

/** As the config file would hold them, where null cannot stand for nothing. */
function normalizeKey(given: { readonly egresses: unknown; readonly operators: unknown }) {
  const { egresses, operators } = given
  const all = {
    egresses: Array.isArray(egresses) ? egresses.map(onlyGiven) : egresses,
    operators: isObject(operators)
      ? Object.fromEntries(Object.entries(operators).map(([name, one]) => [name, onlyGiven(one)]))
      : operators,
  }
  return onlyGiven(all) as Partial<typeof all>
}

const onlyGiven = (one: unknown): unknown =>
  isObject(one) ? Object.fromEntries(Object.entries(one).filter(([, it]) => isGiven(it))) : one

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Kept as arrays, as they are read again with the lists; an iterator gives what it has only once. */
function entriesOf(lists: ClassifierOptions = {}): ClassifierOptions {
  const given = Object.entries(lists).filter(([, entries]) => entries !== undefined)
  const unknown = given.find(([list]) => !Object.hasOwn(ENTRY_FORMAT_HINT, list))
  if (unknown !== undefined) {
    const names = Object.keys(ENTRY_FORMAT_HINT).join(', ')
    throw new EvError('usage', `createEngine has no list "${unknown[0]}"; it has ${names}.`)
  }
  return Object.fromEntries(given.map(([list, entries]) => [list, [...entries]]))
}

/** The same object without what is undefined. */
function optional<T extends object>(all: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const given = Object.entries(all).filter(([, value]) => value !== undefined)
  return Object.fromEntries(given) as { [K in keyof T]?: Exclude<T[K], undefined> }
}
