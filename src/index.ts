import { composeEngine, type ExternalDeps, listFiles } from './compose/engine.ts'
import { toConfig } from './config/config.ts'
import type { EgressConfig, OperatorConfig } from './config/file-settings.ts'
import {
  ENGINE_SETTINGS,
  type ServeSettings,
  type Settings,
  toDisplayUnit,
} from './config/settings.ts'
import type { ClassifierOptions } from './engine/address/classifier.ts'
import { ENTRY_FORMAT_HINT } from './engine/address/custom-list-entry.ts'
import type { Resolver } from './engine/dns/resolver.ts'
import type { Engine } from './engine/engine.ts'
import type { LearnedReplyStore } from './engine/learned-replies/learned-replies.ts'
import { openLists } from './engine/lists.ts'
import type { ResultCache } from './engine/result-cache.ts'
import type { Clock } from './platform/clock.ts'
import { EvError } from './platform/error.ts'
import { guardedLog, type Log, silentLog } from './platform/log.ts'
import { omitUndefined } from './platform/omit-undefined.ts'
import type { Random } from './platform/random.ts'

export type { EgressConfig } from './config/file-settings.ts'
export type { Address, SyntaxFault } from './engine/address/address.ts'
export type { AddressFlags as Traits } from './engine/address/classifier.ts'
export type { Route } from './engine/dns/route.ts'
export type { Engine } from './engine/engine.ts'
export type { LearnedReply, LearnedReplyStore } from './engine/learned-replies/learned-replies.ts'
export type {
  CachedAnswer as Remembered,
  ResultCache as ResultMemory,
} from './engine/result-cache.ts'
export type { RecipientOutcome as Answer } from './engine/smtp/classify-reply.ts'
export type { Step } from './engine/step-observer.ts'
export { type Action, type ActionPolicy, type Decision, decide } from './engine/verdict/action.ts'
export { type Include, presentResult } from './engine/verdict/present-result.ts'
export type { Reason } from './engine/verdict/reason.ts'
export {
  type Class,
  type Evidence,
  type Result,
  toClass as classOf,
  type Verdict,
} from './engine/verdict/verdict.ts'
export type { ManyOptions } from './engine/verify-many.ts'
export type { VerifyOptions } from './engine/verify-options.ts'
export { EvError } from './platform/error.ts'
export type { Log } from './platform/log.ts'

/** Settings of an embedded engine: those of the command line, and injectable dependencies. */
export type EngineOptions = Partial<
  Omit<
    Settings,
    | keyof ServeSettings
    | 'actionPolicy'
    | 'dnsCheckNames'
    | 'dataDir'
    | 'database'
    | 'keepResultsMs'
    | 'log'
    | 'logFormat'
  >
> & {
  /** Names with MX records, for the check of the DNS servers; `off` disables the check. */
  readonly dnsCheckNames?: readonly string[] | 'off'
  /**
   * The egresses; a missing setting defaults to the top-level one. `egress` selects one of them.
   */
  readonly egresses?: readonly (Pick<EgressConfig, 'name'> & Partial<EgressConfig>)[]
  /** Settings per operator name; a missing one defaults to the setting for all operators. */
  readonly operators?: Readonly<Record<string, Partial<OperatorConfig>>>
  /** Additions to the built-in lists. */
  readonly lists?: ClassifierOptions
  /** Simulate results by the prefix of the address: no DNS, no socket. */
  readonly sandbox?: boolean
  /** The cache of definite answers; default: in this process. */
  readonly resultCache?: ResultCache
  /** Storage of the replies that servers give to random recipients; default: in this process. */
  readonly learnedReplies?: LearnedReplyStore
  readonly log?: Log
  readonly clock?: Clock
  readonly random?: Random
  readonly resolver?: Resolver
  /** One dial function for all egresses, or one per egress. */
  readonly dial?: NonNullable<ExternalDeps['dial']>
}

/**
 * Creates an embedded engine. It opens no database, and no socket before the first verification;
 * call `close()` when done. Throws EvError('usage') on an invalid setting.
 *
 * @example
 * const engine = createEngine({ helo: 'probe.example.com' })
 * const { verdict } = await engine.verify('ann@example.com')
 * await engine.close()
 */
export function createEngine(options: EngineOptions = {}): Engine {
  const {
    lists,
    sandbox,
    resultCache,
    learnedReplies,
    log,
    clock,
    random,
    resolver,
    dial,
    ...rest
  } = options
  const { egresses, operators, gravatarKey, ...settings } = rest
  const structures = toFileFormat({ egresses, operators })
  const config = toConfig({
    flags: asFlags(settings),
    environment: secretsOf(gravatarKey),
    file: null,
    structures,
  })
  const externalDeps = {
    ...omitUndefined({ clock, random, resolver, dial }),
    log: log === undefined ? silentLog : guardedLog(log),
  }
  const customLists = openLists(listFiles(config, entriesOf(lists)))
  return composeEngine(config, externalDeps, {
    lists: customLists,
    ...omitUndefined({ sandbox, cache: resultCache, learnedReplies }),
  })
}

/** Secrets are not accepted as flags. */
const secretsOf = (gravatarKey: string | null | undefined) =>
  gravatarKey == null ? {} : { EV_GRAVATAR_KEY: gravatarKey }

/**
 * Converts settings to flags, which have the same checks. Null, undefined and empty lists are
 * unset.
 */
function asFlags(settings: Readonly<Record<string, unknown>>): Record<string, string> {
  const entries = Object.entries(settings).filter(([, value]) => isSet(value))
  const flags = entries.map(([key, value]) => {
    const setting = ENGINE_SETTINGS.find(one => one.key === key)
    if (setting === undefined) throw new EvError('usage', `createEngine has no option "${key}".`)
    return [key, String(toDisplayUnit(setting, value))]
  })
  return Object.fromEntries(flags)
}

const isSet = (value: unknown) =>
  value !== null && value !== undefined && !(Array.isArray(value) && value.length === 0)

/** Converts structures to their form in the config file, without unset values. */
function toFileFormat(structures: { readonly egresses: unknown; readonly operators: unknown }) {
  const { egresses, operators } = structures
  const all = {
    egresses: Array.isArray(egresses) ? egresses.map(withoutUnset) : egresses,
    operators: isObject(operators)
      ? Object.fromEntries(
          Object.entries(operators).map(([name, one]) => [name, withoutUnset(one)]),
        )
      : operators,
  }
  return withoutUnset(all) as Partial<typeof all>
}

const withoutUnset = (one: unknown): unknown =>
  isObject(one) ? Object.fromEntries(Object.entries(one).filter(([, it]) => isSet(it))) : one

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Copies entries to arrays, because a reload reads them again and an iterator yields only once. */
function entriesOf(lists: ClassifierOptions = {}): ClassifierOptions {
  const entries = Object.entries(lists).filter(([, values]) => values !== undefined)
  const unknown = entries.find(([list]) => !Object.hasOwn(ENTRY_FORMAT_HINT, list))
  if (unknown !== undefined) {
    const names = Object.keys(ENTRY_FORMAT_HINT).join(', ')
    throw new EvError('usage', `createEngine has no list "${unknown[0]}"; it has ${names}.`)
  }
  return Object.fromEntries(entries.map(([list, values]) => [list, [...values]]))
}
