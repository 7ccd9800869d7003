import { networkInterfaces } from 'node:os'
import { SMTP_PORT } from '../config/engine-settings.ts'
import type { EgressConfig } from '../config/file-settings.ts'
import type { Config } from '../config/settings.ts'
import type { ClassifierOptions } from '../engine/address/classifier.ts'
import { cachedResolver } from '../engine/dns/cached-resolver.ts'
import { createCheckedResolver } from '../engine/dns/checked-resolver.ts'
import { createNodeResolver } from '../engine/dns/node-resolver.ts'
import type { Resolver } from '../engine/dns/resolver.ts'
import { ResolverCheck } from '../engine/dns/resolver-check.ts'
import type { AddressFamilies } from '../engine/dns/route.ts'
import { Engine } from '../engine/engine.ts'
import {
  LearnedReplies,
  type LearnedReplyStore,
} from '../engine/learned-replies/learned-replies.ts'
import { type ListFiles, type ListLoader, openLists } from '../engine/lists.ts'
import { CatchAllCache } from '../engine/probe/catch-all.ts'
import type { ProbeDeps } from '../engine/probe/egress.ts'
import { EgressPool } from '../engine/probe/egress-pool.ts'
import { EgressProber } from '../engine/probe/egress-prober.ts'
import { LikelyHosts } from '../engine/probe/mx-hosts.ts'
import { ServedAddresses } from '../engine/probe/served-addresses.ts'
import type { CatchAllStore } from '../engine/probe/shared-catch-all.ts'
import type { WitnessStore } from '../engine/probe/witnesses.ts'
import { DestinationLimits } from '../engine/rate-control/destination-limits.ts'
import {
  createLimits,
  destinationLimitsFor,
  limitsFor,
} from '../engine/rate-control/limit-table.ts'
import type { RateKey, SharedRateState } from '../engine/rate-control/shared-state.ts'
import { noCache, processCache, type ResultCache } from '../engine/result-cache.ts'
import { Gravatar } from '../engine/signals/gravatar.ts'
import { OutsideSignals } from '../engine/signals/outside-signals.ts'
import { type Dial, getDialFamilies, tcpDial } from '../engine/smtp/dial.ts'
import { createIpPolicy } from '../engine/smtp/dial-policy.ts'
import { type Clock, HOUR, MINUTE, SECOND, systemClock } from '../platform/clock.ts'
import { CHECK_NAMES } from '../platform/domain-names.ts'
import type { Log } from '../platform/log.ts'
import { type Random, systemRandom } from '../platform/random.ts'
import { Semaphore } from '../platform/semaphore.ts'
import { detectSuspensions } from '../platform/suspension.ts'
import type { Notify } from '../webhooks/mail-transport.ts'
import type { WebhookTransport } from '../webhooks/transport.ts'
import { createGetStatus } from './get-status.ts'

/** External dependencies; omitted ones default to the real ones. */
export type ExternalDeps = {
  readonly clock?: Clock
  readonly random?: Random
  readonly resolver?: Resolver
  /** One for all egresses, or one for each. */
  readonly dial?: Dial | ((egress: EgressConfig) => Dial)
  readonly transport?: WebhookTransport
  readonly notify?: Notify
  /** Returns the free bytes on the disk of a folder. */
  readonly freeBytes?: (folder: string) => Promise<number>
  readonly log: Log
}

type ComposeOptions = {
  readonly sandbox?: boolean
  /** Result cache. Default: in this process. */
  readonly cache?: ResultCache
  /** Storage of learned replies. Default: in this process. */
  readonly learnedReplies?: LearnedReplyStore
  /** Storage of recipients that servers accepted. Default: in this process. */
  readonly witnesses?: WitnessStore
  /** Default: the lists of the settings. */
  readonly lists?: ListLoader
  /** State shared with other processes. Default: none. */
  readonly cluster?: ClusterDeps
}

/** State that the processes of a cluster share. */
export type ClusterDeps = {
  readonly rateStates: SharedRateState
  readonly catchAll: CatchAllStore
  /** Names of the egresses of all members; the same array until they change. */
  readonly egresses: () => readonly string[]
}

const SINGLE_DEADLINE_MS = 10_000

/** Builds an engine. Opens no connection until the first verification. */
export function composeEngine(
  config: Config,
  externalDeps: ExternalDeps,
  options: ComposeOptions = {},
): Engine {
  const { random = systemRandom, log } = externalDeps
  const clock = detectSuspensions(externalDeps.clock ?? systemClock)
  const { resolver, check, close } = composeCheckedResolver(config, { ...externalDeps, clock })
  const lists = options.lists ?? openLists(listFiles(config))
  const cluster = options.cluster ?? null
  // A Map, because a look-up in an object makes each name of an operator a name of a property.
  const operatorSettings = new Map(Object.entries(config.operators))
  const probeDeps = {
    resolver,
    isDnsTrusted: () => (check?.failure ?? null) === null,
    clock,
    random,
    log,
    isPublic: createIpPolicy(config.allowRanges),
    smtpPort: config.smtpPort,
    timeouts: timeouts(config),
    startTls: config.startTls,
    connectionSlots: new Semaphore(config.concurrency),
    witnesses: options.witnesses ?? null,
    destinationLimits: new DestinationLimits({
      clock,
      limits: limitsFor('', config),
      ...destinationLimitsFor(config),
      share: cluster?.rateStates ?? null,
      isKnown: operator =>
        lists.operators.isKnown(operator) || hasOwnLimits(operatorSettings.get(operator)),
      hasSeveralEgresses: () => (cluster?.egresses() ?? config.egresses).length > 1,
    }),
  }
  return new Engine({
    resolver,
    resolverCheck: check,
    clock,
    log,
    egressPool: composeEgressPool(config, probeDeps, {
      dial: externalDeps.dial ?? tcpDial,
      cluster,
      operatorSettings,
      learned: new LearnedReplies({ clock, log, store: options.learnedReplies ?? null }),
    }),
    lists,
    cache: options.cache ?? (config.cache ? processCache(clock) : noCache),
    network: getNetwork(config),
    specialDomains: config.specialDomains,
    likelyHosts: new LikelyHosts(clock),
    getFamilies: createGetFamilies(config.egresses, externalDeps.dial, clock),
    sandbox: options.sandbox ?? false,
    deadlineMs: config.deadlineMs ?? SINGLE_DEADLINE_MS,
    greylistDelayMs: config.greylistDelayMs,
    concurrency: config.concurrency,
    signals: composeSignals(config, { resolver, clock, log, lists }),
    close,
  })
}

/**
 * Identifies the network in which mail servers are looked up and dialed; null for the public one.
 * Other DNS servers, another port or allowed non-public addresses may lead to other servers, such as
 * simulated ones, so their answers are not those of the public network.
 */
export function getNetwork({ dns, smtpPort, allowRanges }: Config): string | null {
  if (dns.length === 0 && smtpPort === SMTP_PORT && allowRanges.length === 0) return null
  return JSON.stringify({ dns: [...dns].sort(), smtpPort, allowRanges: [...allowRanges].sort() })
}

/** Builds the lookup of signals; null if none are configured. */
function composeSignals(
  { signals, gravatarKey, proxy }: Config,
  deps: {
    readonly resolver: Resolver
    readonly clock: Clock
    readonly log: Log
    readonly lists: ListLoader
  },
): OutsideSignals | null {
  const names = new Set(signals)
  if (names.size === 0) return null
  const { resolver, clock, log, lists } = deps
  const gravatar =
    names.has('gravatar') && gravatarKey !== null
      ? new Gravatar({ apiKey: gravatarKey, getStatus: createGetStatus(proxy), clock, log })
      : null
  const isKnownOperator = (name: string) => lists.operators.isKnown(name)
  return new OutsideSignals({ names, resolver, clock, isKnownOperator, gravatar })
}

/** For how long the addresses of this machine are cached; reading them takes about 50 µs. */
const INTERFACES_TTL_MS = 30 * SECOND

/**
 * Returns a function that tells which addresses the egresses can dial now, because a service may
 * start before its network has all addresses. An injected dial is assumed to dial both families.
 */
function createGetFamilies(
  egresses: readonly EgressConfig[],
  dial: ExternalDeps['dial'],
  clock: Clock,
): () => AddressFamilies {
  if ((dial ?? tcpDial) !== tcpDial) return () => 'both'
  let cached: AddressFamilies = 'both'
  let cachedUntil = Number.NEGATIVE_INFINITY
  return () => {
    const now = clock.monotonicNow()
    if (now < cachedUntil) return cached
    cachedUntil = now + INTERFACES_TTL_MS
    const interfaces = networkInterfaces()
    const families = egresses.map(egress => getDialFamilies(egress, interfaces))
    const [first = 'both', ...others] = families
    cached = others.every(other => other === first) ? first : 'both'
    return cached
  }
}

type OperatorSettings = Config['operators'][string]

const hasOwnLimits = (settings: OperatorSettings | undefined): boolean =>
  settings?.sessionsPerOperator != null || settings?.sessionsPerSecond != null

function composeEgressPool(
  config: Config,
  probeDeps: Omit<ProbeDeps, 'egress'> & { readonly destinationLimits: DestinationLimits },
  {
    dial,
    cluster,
    operatorSettings,
    learned,
  }: {
    readonly dial: Dial | ((egress: EgressConfig) => Dial)
    readonly cluster: ClusterDeps | null
    readonly operatorSettings: ReadonlyMap<string, OperatorSettings>
    readonly learned: LearnedReplies
  },
): EgressPool {
  const { rateStates = null, catchAll: store = null } = cluster ?? {}
  const catchAll = new CatchAllCache(probeDeps.clock, store)
  const served = new ServedAddresses(probeDeps.clock)
  const limits = createLimits(config, operator => operatorSettings.get(operator))
  const probers = config.egresses.map(egress => {
    const { name, helo, mailFrom } = egress
    const identity = {
      name,
      helo,
      mailFrom,
      dial: typeof dial === 'function' ? dial(egress) : dial,
      getFamilies: createGetFamilies([egress], dial, probeDeps.clock),
    }
    return new EgressProber(
      { ...probeDeps, egress: identity },
      limits,
      catchAll,
      rateStates,
      learned,
      served,
    )
  })
  const others = cluster && {
    names: cluster.egresses,
    isRefused: (key: RateKey) => cluster.rateStates.refusal(key) !== null,
  }
  const allowed = (operator: string) => operatorSettings.get(operator)?.egresses ?? null
  const sharesLists = (operator: string) => !probeDeps.destinationLimits.includes(operator)
  return new EgressPool(probers, allowed, others, sharesLists)
}

/** Builds a caching resolver; the caller must `close` it. */
export function composeResolver(
  config: Pick<Config, 'dns'>,
  injected: Resolver | undefined,
  clock: Clock,
): { readonly resolver: Resolver; readonly close: () => void } {
  if (injected !== undefined) {
    return { resolver: cachedResolver(injected, { clock }), close: () => {} }
  }
  const inner = createResolver(config, clock)
  return { resolver: cachedResolver(inner, { clock }), close: () => inner.close() }
}

const createResolver = ({ dns }: Pick<Config, 'dns'>, clock: Clock) =>
  createNodeResolver({ ...(dns.length > 0 ? { servers: dns } : {}), clock })

type CheckedResolver = {
  readonly resolver: Resolver
  /** Null if the resolver is not checked. */
  readonly check: ResolverCheck | null
  readonly close: () => void
}

/** Builds a caching resolver whose answers are checked. An injected resolver is trusted. */
function composeCheckedResolver(
  config: Config,
  { clock = systemClock, random = systemRandom, resolver: injected, log }: ExternalDeps,
): CheckedResolver {
  const names = config.dnsCheckNames ?? CHECK_NAMES
  if (injected !== undefined || names.length === 0) {
    return { ...composeResolver(config, injected, clock), check: null }
  }
  const inner = createResolver(config, clock)
  // A separate resolver: behind the queries of a list the check would time out.
  const checkResolver = createResolver(config, clock)
  const check = new ResolverCheck({ resolver: checkResolver, names, clock, random, log })
  const resolver = cachedResolver(createCheckedResolver(inner, check), { clock })
  // Answers cached before a failed check may be wrong too. While the server only denies names that
  // exist, records are trusted, so those in the cache are kept.
  check.onChange(failure =>
    failure?.kind === 'missing' ? resolver.clearNegative() : resolver.clear(),
  )
  return {
    resolver,
    check,
    close() {
      check.close()
      checkResolver.close()
      inner.close()
    },
  }
}

/** How long a single verification waits, within its deadline. */
const AWAITED_GREETING_MS = 30 * SECOND
const AWAITED_REPLY_MS = 20 * SECOND
const AWAITED_SESSION_MS = MINUTE
/**
 * How long a list waits for the greeting and for each reply. Servers that are busy, or that slow
 * down senders of spam, delay them by 20 to 90 seconds. RFC 5321 §4.5.3.2 allows five minutes, for
 * which a server that never answers would hold each connection.
 */
const LIST_REPLY_MS = 2 * MINUTE
/** A list asks for up to 20 recipients before it reads their replies. */
const LIST_SESSION_MS = HOUR

const timeouts = ({
  connectTimeoutMs: connectMs,
  greetingTimeoutMs,
  replyTimeoutMs,
  sessionTimeoutMs,
}: Config): ProbeDeps['timeouts'] => ({
  awaited: {
    connectMs,
    greetingMs: greetingTimeoutMs ?? AWAITED_GREETING_MS,
    replyMs: replyTimeoutMs ?? AWAITED_REPLY_MS,
    sessionMs: sessionTimeoutMs ?? AWAITED_SESSION_MS,
  },
  list: {
    connectMs,
    greetingMs: greetingTimeoutMs ?? LIST_REPLY_MS,
    replyMs: replyTimeoutMs ?? LIST_REPLY_MS,
    sessionMs: sessionTimeoutMs ?? LIST_SESSION_MS,
  },
})

/** Returns the list files of the settings with the caller's entries. */
export const listFiles = (config: Config, entries: ClassifierOptions = {}): ListFiles => ({
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
