import { networkInterfaces } from 'node:os'
import type { TraitOptions } from './address/traits.ts'
import { type Clock, systemClock } from './base/clock.ts'
import type { Log } from './base/log.ts'
import { type Random, systemRandom } from './base/random.ts'
import type { EgressConfig } from './config/egresses.ts'
import type { Config } from './config/settings.ts'
import { cachedResolver } from './dns/cached-resolver.ts'
import { createCheckedResolver } from './dns/checked-resolver.ts'
import { createNodeResolver } from './dns/node-resolver.ts'
import type { Resolver } from './dns/resolver.ts'
import { CHECK_NAMES, ResolverCheck } from './dns/resolver-check.ts'
import { Engine } from './engine/engine.ts'
import { LikelyHosts } from './engine/inquiry/likely-hosts.ts'
import { type ListPlan, type Lists, openLists } from './engine/lists.ts'
import { noMemory, processMemory, type ResultMemory } from './engine/memory.ts'
import { CatchAllMemory } from './probe/catch-all.ts'
import type { CatchAllStore } from './probe/catch-all-share.ts'
import type { ProbeWorld } from './probe/egress/egress.ts'
import { Fleet } from './probe/egress/fleet.ts'
import { DestinationLimits } from './probe/pace/destination-limits.ts'
import type { PaceKey, PaceShare } from './probe/pace-share.ts'
import { paceRow } from './probe/pace-table.ts'
import { Places } from './probe/places.ts'
import { Prober } from './probe/probe.ts'
import { type Dial, mayDialIpv6, tcpDial } from './smtp/dial.ts'
import { addressJudge } from './smtp/public-address.ts'
import type { Notify } from './work/notify/notify.ts'
import type { Post } from './work/post/post.ts'

/** The doors to the world; what is left out is the real one. */
export type Doors = {
  readonly clock?: Clock
  readonly random?: Random
  readonly resolver?: Resolver
  /** One for all egresses, or one for each. */
  readonly dial?: Dial | ((egress: EgressConfig) => Dial)
  readonly post?: Post
  readonly notify?: Notify
  /** Bytes that may still be written on the disk of a folder. */
  readonly freeBytes?: (folder: string) => Promise<number>
  readonly log: Log
}

export type EngineParts = {
  readonly sandbox?: boolean
  /** For a list: more time, and no single verification waits. */
  readonly list?: boolean
  /** Where answers are remembered; in this process when left out. */
  readonly memory?: ResultMemory
  /** Those that the settings name when left out. */
  readonly lists?: Lists
  /** What is kept together with other processes; when left out, nothing is. */
  readonly cluster?: ClusterParts
}

/** What the processes that share a database go by together. */
export type ClusterParts = {
  readonly paces: PaceShare
  readonly catchAll: CatchAllStore
  /** Names of all egresses that somebody asks by; the very same list while nothing changes. */
  readonly egresses: () => readonly string[]
}

const SINGLE_DEADLINE_MS = 10_000
const LIST_SESSION_MS = 60_000

/** Builds an engine from settings and doors. Opens nothing before it is asked something. */
export function wireEngine(config: Config, doors: Doors, parts: EngineParts = {}): Engine {
  const { clock = systemClock, random = systemRandom, log } = doors
  const { resolver, check, close } = wireCheckedResolver(config, doors)
  const lists = parts.lists ?? openLists(listPlan(config))
  const cluster = parts.cluster ?? null
  const world = {
    resolver,
    clock,
    random,
    log,
    isPublic: addressJudge(config.allowRanges),
    smtpPort: config.smtpPort,
    timeouts: timeouts(config, parts.list ?? false),
    startTls: config.startTls,
    places: new Places(config.concurrency),
    destinationLimits: new DestinationLimits({
      ...{ clock, row: paceRow('', config), share: cluster?.paces ?? null },
      isKnown: operator => lists.operators.isKnown(operator) || hasOwnLimits(config, operator),
      hasSeveralEgresses: () => (cluster?.egresses() ?? config.egresses).length > 1,
    }),
  }
  return new Engine({
    resolver,
    resolverCheck: check,
    clock,
    log,
    fleet: wireFleet(config, world, doors.dial ?? tcpDial, cluster),
    lists,
    memory: parts.memory ?? (config.cache ? processMemory(clock) : noMemory),
    specialDomains: config.specialDomains,
    likelyHosts: new LikelyHosts(clock),
    hasIpv6: hasIpv6(config.egresses, doors.dial),
    sandbox: parts.sandbox ?? false,
    deadlineMs: config.deadlineMs ?? SINGLE_DEADLINE_MS,
    greylistDelayMs: config.greylistDelayMs,
    concurrency: config.concurrency,
    close,
  })
}

/** Whether one of these egresses may dial IPv6 addresses; what a dial of others can reach is not known here. */
const hasIpv6 = (egresses: readonly EgressConfig[], dial: Doors['dial'] = tcpDial) =>
  dial !== tcpDial || egresses.some(egress => mayDialIpv6(egress, networkInterfaces()))

const saidOf = ({ operators }: Config, operator: string) =>
  Object.hasOwn(operators, operator) ? operators[operator] : undefined

function hasOwnLimits(config: Config, operator: string): boolean {
  const said = saidOf(config, operator)
  return said?.sessionsPerOperator != null || said?.sessionsPerSecond != null
}

function wireFleet(
  config: Config,
  world: Omit<ProbeWorld, 'egress'> & { readonly destinationLimits: DestinationLimits },
  dial: Dial | ((egress: EgressConfig) => Dial),
  cluster: ClusterParts | null,
): Fleet {
  const { paces = null, catchAll: store = null } = cluster ?? {}
  const catchAll = new CatchAllMemory(world.clock, store)
  const said = (operator: string) => saidOf(config, operator)
  const probers = config.egresses.map(egress => {
    const { name, helo, mailFrom } = egress
    const own = {
      ...{ name, helo, mailFrom, dial: typeof dial === 'function' ? dial(egress) : dial },
      // What another dial can reach is not known here.
      hasIpv6: hasIpv6([egress], dial),
    }
    const rowOf = (operator: string) => paceRow(operator, config, said(operator))
    return new Prober({ ...world, egress: own }, rowOf, catchAll, paces)
  })
  const others = cluster && {
    names: cluster.egresses,
    isRefused: (key: PaceKey) => cluster.paces.refusal(key) !== null,
  }
  const allowed = (operator: string) => said(operator)?.egresses ?? null
  const sharesLists = (operator: string) => !world.destinationLimits.includes(operator)
  return new Fleet(probers, allowed, others, sharesLists)
}

/** Answers of the DNS, remembered; `close` it at the end. */
export function wireResolver(
  config: Pick<Config, 'dns'>,
  given: Resolver | undefined,
  clock: Clock,
): { readonly resolver: Resolver; readonly close: () => void } {
  if (given !== undefined) return { resolver: cachedResolver(given, { clock }), close: () => {} }
  const inner = createOwnResolver(config, clock)
  return { resolver: cachedResolver(inner, { clock }), close: () => inner.close() }
}

const createOwnResolver = ({ dns }: Pick<Config, 'dns'>, clock: Clock) =>
  createNodeResolver({ ...(dns.length > 0 ? { servers: dns } : {}), clock })

type CheckedResolver = {
  readonly resolver: Resolver
  /** Null: the resolver is not checked. */
  readonly check: ResolverCheck | null
  readonly close: () => void
}

/** The same, with the answers checked. A resolver that was handed in is not ours to doubt. */
function wireCheckedResolver(
  config: Config,
  { clock = systemClock, random = systemRandom, resolver: given, log }: Doors,
): CheckedResolver {
  const names = config.dnsCheckNames ?? CHECK_NAMES
  if (given !== undefined || names.length === 0) {
    return { ...wireResolver(config, given, clock), check: null }
  }
  const inner = createOwnResolver(config, clock)
  // With a limit of its own: behind the questions of a list it would wait, and count as unanswered.
  const own = createOwnResolver(config, clock)
  const check = new ResolverCheck({ resolver: own, names, clock, random, log })
  const resolver = cachedResolver(createCheckedResolver(inner, check), { clock })
  // The answers before a failed check may be false too.
  check.onChange(() => resolver.forget())
  return {
    resolver,
    check,
    close() {
      check.close()
      own.close()
      inner.close()
    },
  }
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

/** The lists that the settings name, and those of the caller beside them. */
export const listPlan = (config: Config, entries: TraitOptions = {}): ListPlan => ({
  files: {
    disposable: config.disposableFile,
    allow: config.allowFile,
    blocked: config.blockedFile,
    spamTrap: config.spamTrapFile,
    role: config.roleFile,
  },
  entries,
  operators: config.operators,
})
