import { CallbackAbortController, orOnAbort } from '../../platform/abort.ts'
import { type Clock, DAY, HOUR, MINUTE, SECOND } from '../../platform/clock.ts'
import { wasSuspended } from '../../platform/suspension.ts'
import { TtlMap } from '../../platform/ttl-map.ts'
import {
  type DnsAnswer,
  type DnsFailure,
  type HostAddresses,
  isNegative,
  plainName,
  type RecordType,
  type Resolver,
} from './resolver.ts'

/**
 * A caching resolver: an answer is kept for its TTL, within limits. Concurrent lookups of the same
 * record share one query to `inner`. A caller that aborts gets `timeout` without affecting the
 * others; the query is cancelled when all have aborted.
 */
export function cachedResolver(
  inner: Resolver,
  options: { clock: Clock; sizeMax?: number },
): CachedResolver {
  const cache = new TtlMap<Answer>({
    sizeMax: options.sizeMax ?? SIZE_MAX,
    clock: options.clock,
  })
  const inFlight = new Map<string, SharedQuery>()
  let clears = 0
  let negativeClears = 0

  const ask = async (name: string, type: RecordType, signal?: AbortSignal): Promise<Answer> => {
    const key = `${type} ${name}`
    const known = cache.get(key)
    if (known) return known
    if (signal?.aborted) return ABORTED
    const query = inFlight.get(key) ?? start(key, name, type)
    query.callers++
    try {
      return await orOnAbort(query.answer, signal, ABORTED)
    } finally {
      release(key, query)
    }
  }
  const start = (key: string, name: string, type: RecordType): SharedQuery => {
    const cancel = new CallbackAbortController()
    const before = { clears, negativeClears }
    const startedAt = options.clock.monotonicNow()
    const run = async () => {
      const answer = await inner.resolve(name, type, cancel.signal)
      const isCleared =
        clears !== before.clears ||
        (!('records' in answer) && negativeClears !== before.negativeClears)
      // A cancelled query fails because of the cancellation, which says nothing about the name.
      // Neither does a failure of a query that this process could not send, or that was suspended.
      const isOurs = isFailure(answer) && (answer.isOurs || wasSuspended(options.clock, startedAt))
      const isCacheable = !cancel.signal.aborted && !isCleared && !isUntrusted(answer) && !isOurs
      if (isCacheable) cache.set(key, withoutAdditional(answer), ttlFor(answer))
      if (isCacheable && 'records' in answer) cacheAdditional(answer.additional ?? [])
      query.isDone = true
      return answer
    }
    const query: SharedQuery = { answer: PENDING, cancel, callers: 0, isDone: false }
    query.answer = run()
    inFlight.set(key, query)
    return query
  }
  /** Caches the addresses sent with MX records, without replacing answers to direct queries. */
  const cacheAdditional = (additional: readonly HostAddresses[]) => {
    for (const { host, type, addresses, ...ttl } of additional) {
      const key = `${type} ${host}`
      const answer = { records: addresses, ...ttl }
      if (cache.get(key) === undefined) cache.set(key, answer, ttlFor(answer))
    }
  }
  /** Removes the query when its last caller is done, and cancels it if it is still in flight. */
  const release = (key: string, query: SharedQuery) => {
    query.callers--
    if (query.callers > 0 || inFlight.get(key) !== query) return
    // Deleted before the abort, so that new callers start a new query instead of joining this one.
    inFlight.delete(key)
    // An abort without listeners still creates an error with a stack, so finished queries skip it.
    if (!query.isDone) query.cancel.abort()
  }
  return {
    resolve: <T extends RecordType>(name: string, type: T, signal?: AbortSignal) =>
      ask(plainName(name), type, signal) as Promise<DnsAnswer<T>>,
    cached: <T extends RecordType>(name: string, type: T) =>
      cache.get(`${type} ${plainName(name)}`) as DnsAnswer<T> | undefined,
    clear() {
      clears++
      cache.clear()
    },
    clearNegative() {
      negativeClears++
      for (const [key, answer] of [...cache.entries()]) if ('fault' in answer) cache.delete(key)
    },
  }
}

type CachedResolver = Resolver & {
  /** Clears the cache; the answers of queries in flight are not cached. */
  clear(): void
  /** Removes the answers without records; those of queries in flight are not cached. */
  clearNegative(): void
}

type Answer = DnsAnswer<RecordType>
type SharedQuery = {
  answer: Promise<Answer>
  readonly cancel: AbortController
  callers: number
  isDone: boolean
}

const PENDING = new Promise<never>(() => {})

const ABORTED: Answer = { fault: 'timeout' }

/**
 * MX and A records of 50,000 domains. A list comes back to a domain after as many others as it has,
 * and a smaller cache would then have evicted it. An entry takes about 450 bytes, in total 45 MB.
 */
const SIZE_MAX = 100_000
/**
 * A shorter TTL is extended, also 0: one address needs an answer several times, for the route, the
 * connection and its retry.
 */
const TTL_MIN_MS = 10 * SECOND
/** The limit of common resolvers (`cache-max-ttl` of unbound): a typing error may be 68 years. */
const TTL_MAX_MS = DAY
/** RFC 2308 §5: one to three hours. A domain that is registered or fixed is seen within this time. */
const NEGATIVE_TTL_MAX_MS = HOUR
/**
 * For an answer without a TTL: node:dns reports none for MX records, and a negative answer may lack
 * its SOA record. Most zones allow this.
 */
const UNKNOWN_TTL_MS = 5 * MINUTE
/** RFC 9520 §3.2: failures are cached for 1 s to 5 min, to protect a broken zone from queries. */
const FAULT_TTL_MS = 10 * SECOND

/** An untrusted answer is not cached, so that the name is queried again after the next check. */
const isUntrusted = (answer: Answer) => 'fault' in answer && answer.detail !== undefined

/** Removes the addresses of mail hosts: the cache has separate entries for them, with their own TTL. */
function withoutAdditional(answer: Answer): Answer {
  if (!('records' in answer) || answer.additional === undefined) return answer
  const { additional: _, ...kept } = answer
  return kept
}

function ttlFor(answer: Answer): number {
  if (isFailure(answer)) return FAULT_TTL_MS
  const { ttlMs = UNKNOWN_TTL_MS } = answer
  const maxMs = 'fault' in answer ? NEGATIVE_TTL_MAX_MS : TTL_MAX_MS
  return Math.min(Math.max(ttlMs, TTL_MIN_MS), maxMs)
}

const isFailure = (answer: Answer): answer is DnsFailure => 'fault' in answer && !isNegative(answer)
