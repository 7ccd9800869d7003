import { type Clock, MINUTE, SECOND } from '../../platform/clock.ts'
import { orOnAbort } from '../../platform/error.ts'
import { TtlMap } from '../../platform/ttl-map.ts'
import {
  type DnsAnswer,
  type HostAddresses,
  plainName,
  type RecordType,
  type Resolver,
} from './resolver.ts'

/**
 * A resolver that asks `inner` each question once at a time, however many wait for it, and remembers what came.
 * A caller that aborts gets `timeout` and leaves the others their answer; when all have gone the question is given up.
 */
export function cachedResolver(
  inner: Resolver,
  options: { clock: Clock; sizeMax?: number },
): CachedResolver {
  const cache = new TtlMap<Answer>({
    sizeMax: options.sizeMax ?? SIZE_MAX,
    clock: options.clock,
  })
  const flights = new Map<string, Flight>()
  let forgotten = 0

  const ask = async (name: string, type: RecordType, signal?: AbortSignal): Promise<Answer> => {
    const key = `${type} ${name}`
    const known = cache.get(key)
    if (known) return known
    if (signal?.aborted) return GONE
    const flight = flights.get(key) ?? start(key, name, type)
    flight.callers++
    try {
      return await orOnAbort(flight.answer, signal, GONE)
    } finally {
      leave(key, flight)
    }
  }
  const start = (key: string, name: string, type: RecordType): Flight => {
    const giveUp = new AbortController()
    const before = forgotten
    const fly = async () => {
      const answer = await inner.resolve(name, type, giveUp.signal)
      // The fault of a question given up is our doing and says nothing of the name.
      const isKept = !giveUp.signal.aborted && forgotten === before && !isNotBelieved(answer)
      if (isKept) cache.set(key, answer, keepMs(answer))
      if (isKept && 'records' in answer) keepAdditional(answer.additional ?? [])
      flight.landed = true
      return answer
    }
    const flight: Flight = { answer: NOT_YET, giveUp, callers: 0, landed: false }
    flight.answer = fly()
    flights.set(key, flight)
    return flight
  }
  /** Addresses that came with MX records answer the next question; what was asked for itself stays. */
  const keepAdditional = (additional: readonly HostAddresses[]) => {
    for (const { host, type, addresses } of additional) {
      const key = `${type} ${host}`
      if (cache.get(key) === undefined) cache.set(key, { records: addresses }, ANSWER_TTL_MS)
    }
  }
  /** The last to leave ends the flight: landed it matters to nobody, in the air it is given up. */
  const leave = (key: string, flight: Flight) => {
    flight.callers--
    if (flight.callers > 0 || flights.get(key) !== flight) return
    // Taken off first: who asks from now on starts anew and does not board a flight that is given up.
    flights.delete(key)
    // An abort that nobody hears still makes an error with a stack.
    if (!flight.landed) flight.giveUp.abort()
  }
  return {
    resolve: <T extends RecordType>(name: string, type: T, signal?: AbortSignal) =>
      ask(plainName(name), type, signal) as Promise<DnsAnswer<T>>,
    forget() {
      forgotten++
      cache.clear()
    },
  }
}

export type CachedResolver = Resolver & {
  /** Forgets all answers, and keeps none of the questions under way. */
  forget(): void
}

type Answer = DnsAnswer<RecordType>
type Flight = {
  answer: Promise<Answer>
  readonly giveUp: AbortController
  callers: number
  landed: boolean
}

const NOT_YET = new Promise<never>(() => {})

const GONE: Answer = { fault: 'timeout' }

/** About 10 MB: a name has up to three entries of some 200 bytes. */
const SIZE_MAX = 20_000
/** node:dns tells no TTL of an MX: as long as most zones allow, and short enough to see a mended zone soon. */
const ANSWER_TTL_MS = 5 * MINUTE
/** RFC 9520 §3.2: failures are kept for 1 s to 5 min, so that a broken zone is not hammered. */
const FAULT_TTL_MS = 10 * SECOND

/** The resolver is asked again as soon as it is checked again. */
const isNotBelieved = (answer: Answer) => 'fault' in answer && answer.detail !== undefined

const keepMs = (answer: Answer) =>
  'fault' in answer && (answer.fault === 'server' || answer.fault === 'timeout')
    ? FAULT_TTL_MS
    : ANSWER_TTL_MS
