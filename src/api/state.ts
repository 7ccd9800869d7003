import { ApiError } from './errors/api-error.ts'
import { createStatisticsCache, type StatisticsCache } from './jobs/breakdowns.ts'
import { createWaitReports, type WaitReports } from './jobs/wait-report.ts'
import { AdmissionQueue } from './middleware/admission-queue.ts'
import { createLastUsed, type LastUsed } from './middleware/last-used.ts'
import { createMetrics, type Metrics } from './monitoring/metrics.ts'
import type { Service } from './service.ts'

/** Each costs a look at the database twice a second; a person has a few pages open. */
export const STREAMS_PER_ACCOUNT_MAX = 20
export const STREAMS_MAX = 1_000

/** One answer that goes on for as long as its client listens. */
type StreamSlot = {
  /** Aborts when the service stops. */
  readonly stopping: AbortSignal
  /** May be called twice. */
  leave(): void
}

/** The answers that go on for as long as somebody listens. */
export class Streams {
  readonly #byAccount = new Map<string, number>()
  readonly #stopping = new AbortController()
  #open = 0

  /** Takes a place; throws where there is none. */
  enter(accountId: string): StreamSlot {
    const ofAccount = this.#byAccount.get(accountId) ?? 0
    if (ofAccount >= STREAMS_PER_ACCOUNT_MAX) throw tooMany()
    if (this.#open >= STREAMS_MAX) throw tooBusy()
    this.#open++
    this.#byAccount.set(accountId, ofAccount + 1)
    let isIn = true
    return {
      stopping: this.#stopping.signal,
      leave: () => {
        if (isIn) this.#leave(accountId)
        isIn = false
      },
    }
  }

  /** The service stops: whoever listens comes again to the next one. */
  end(): void {
    this.#stopping.abort()
  }

  #leave(accountId: string) {
    this.#open--
    const rest = (this.#byAccount.get(accountId) ?? 0) - 1
    if (rest > 0) this.#byAccount.set(accountId, rest)
    else this.#byAccount.delete(accountId)
  }
}

const tooMany = () =>
  new ApiError(
    'rate_limit',
    `${STREAMS_PER_ACCOUNT_MAX} streams of this account are open: close one, or ask for the job itself`,
    { retryAfterS: 5 },
  )

const tooBusy = () =>
  new ApiError(
    'service_unavailable',
    `${STREAMS_MAX} streams are open, which is all that there may be: ask for the job itself`,
    { retryAfterS: 5 },
  )

/** What all paths of one service share while it runs. */
export type State = {
  readonly metrics: Metrics
  /** Requests that verify something now. */
  verifying: number
  readonly admissions: AdmissionQueue
  /** Requests with an Idempotency-Key that are being answered now. */
  readonly answering: Set<string>
  readonly streams: Streams
  /** When keys were last used. */
  readonly touches: LastUsed
  readonly breakdowns: StatisticsCache
  readonly waitReports: WaitReports
}

const states = new WeakMap<Service, State>()

export function stateOf(service: Service): State {
  const known = states.get(service)
  if (known !== undefined) return known
  const state: State = {
    metrics: createMetrics(service, {
      deliveries: service.deliveries,
      verifying: () => state.verifying,
    }),
    verifying: 0,
    admissions: new AdmissionQueue(service.clock),
    answering: new Set(),
    streams: new Streams(),
    touches: createLastUsed(service),
    breakdowns: createStatisticsCache(service),
    waitReports: createWaitReports(service),
  }
  states.set(service, state)
  return state
}
