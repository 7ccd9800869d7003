import { readFileSync } from 'node:fs'
import { createTraits, type TraitOptions } from './address/traits.ts'
import { type Clock, systemClock } from './base/clock.ts'
import { EvError, messageOf } from './base/error.ts'
import type { Log } from './base/log.ts'
import { type Random, systemRandom } from './base/random.ts'
import type { Config } from './config/settings.ts'
import { cachedResolver } from './dns/cached-resolver.ts'
import { createNodeResolver } from './dns/node-resolver.ts'
import type { Resolver } from './dns/resolver.ts'
import { Engine } from './engine/engine.ts'
import { noMemory, processMemory, type ResultMemory } from './engine/memory.ts'
import { paceRow } from './probe/pace-table.ts'
import { Prober } from './probe/probe.ts'
import { type Dial, tcpDial } from './smtp/dial.ts'
import { addressJudge } from './smtp/public-address.ts'

/** The doors to the world; what is left out is the real one. */
export type Doors = {
  readonly clock?: Clock
  readonly random?: Random
  readonly resolver?: Resolver
  readonly dial?: Dial
  readonly log: Log
}

export type EngineParts = {
  readonly sandbox?: boolean
  /** For a list: more time, and no single verification waits. */
  readonly list?: boolean
  /** Where answers are remembered; in this process when left out. */
  readonly memory?: ResultMemory
  readonly lists?: TraitOptions
}

const SINGLE_DEADLINE_MS = 10_000
const LIST_SESSION_MS = 60_000

/** Builds an engine from settings and doors. Opens nothing before it is asked something. */
export function wireEngine(config: Config, doors: Doors, parts: EngineParts = {}): Engine {
  const { clock = systemClock, random = systemRandom, log } = doors
  const { resolver, close } = wireResolver(config, doors.resolver, clock)
  const prober = new Prober(
    {
      resolver,
      clock,
      random,
      log,
      egress: {
        name: config.egress,
        helo: config.helo,
        mailFrom: config.mailFrom,
        dial: doors.dial ?? tcpDial(config),
      },
      isPublic: addressJudge(config.allowRanges),
      smtpPort: config.smtpPort,
      timeouts: timeouts(config, parts.list ?? false),
      startTls: config.startTls,
    },
    operator => paceRow(operator, config),
  )
  return new Engine({
    resolver,
    clock,
    log,
    prober,
    traits: createTraits(traitOptions(config, parts.lists)),
    memory: parts.memory ?? (config.cache ? processMemory(clock) : noMemory),
    specialDomains: config.specialDomains,
    sandbox: parts.sandbox ?? false,
    deadlineMs: config.deadlineMs ?? SINGLE_DEADLINE_MS,
    greylistDelayMs: config.greylistDelayMs,
    concurrency: config.concurrency,
    close,
  })
}

function wireResolver(config: Config, given: Resolver | undefined, clock: Clock) {
  if (given !== undefined) return { resolver: cachedResolver(given, { clock }), close: () => {} }
  const servers = config.dns.length > 0 ? { servers: config.dns } : {}
  const inner = createNodeResolver({ ...servers, clock })
  return { resolver: cachedResolver(inner, { clock }), close: () => inner.close() }
}

function timeouts(config: Config, list: boolean) {
  const limitMs = list ? (config.deadlineMs ?? LIST_SESSION_MS) : Number.POSITIVE_INFINITY
  return {
    connectMs: config.connectTimeoutMs,
    greetingMs: config.greetingTimeoutMs,
    replyMs: config.replyTimeoutMs,
    sessionMs: Math.min(config.sessionTimeoutMs, limitMs),
  }
}

/** The lists of the settings' files and of the caller together. */
function traitOptions(config: Config, given: TraitOptions = {}): TraitOptions {
  return {
    ...given,
    disposable: [...(given.disposable ?? []), ...linesOf(config.disposableFile)],
    allow: [...(given.allow ?? []), ...linesOf(config.allowFile)],
  }
}

/** One name a line; empty lines and what follows a `#` do not count. */
function linesOf(file: string | null): string[] {
  if (file === null) return []
  try {
    const lines = readFileSync(file, 'utf8').split(/\r?\n/)
    return lines.map(line => line.replace(/#.*/, '').trim()).filter(line => line !== '')
  } catch (error) {
    throw new EvError('bad_config', `The list ${file} cannot be read: ${messageOf(error)}.`, {
      cause: error,
    })
  }
}
