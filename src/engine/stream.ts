import { type Clock, SECOND, sleep, yieldToEventLoop } from '../platform/clock.ts'
import { EvError, errorMessage } from '../platform/error.ts'
import { withDeadline } from './deadline.ts'
import type { MxOperator } from './dns/operators.ts'
import type { ResolverCheck } from './dns/resolver-check.ts'
import { DnsPause, dnsWaitMs } from './dns-pause.ts'
import { DomainBacklog } from './domain-backlog.ts'
import { type MxBatch, OperatorQueue, type PendingAddress } from './operator-queue.ts'
import type { EgressPool } from './probe/egress-pool.ts'
import { hostsOf, type RouteWithHost } from './probe/mx-groups.ts'
import { isBackupOnly } from './probing/mx-hosts.ts'
import type { PreparedAddress, ProbeTask } from './probing/prepare.ts'
import type { ProbeListOptions } from './probing/probe-runner.ts'
import { FAULTS_MAX, isDecided, nextRetry, type Outcome } from './probing/retry-policy.ts'
import { Source } from './stream-source.ts'
import { fromFailedProbe } from './verdict/build-result.ts'
import { isFailure, type Result } from './verdict/verdict.ts'
import type { RouteOptions } from './verify-options.ts'

export type ManyOptions = {
  readonly signal?: AbortSignal
  readonly checkSmtp?: boolean
  readonly forceRefresh?: boolean
  /** As in `VerifyOptions`. */
  readonly cacheScope?: string | null
  /** False: a greylisted address ends as `greylisted` at once. */
  readonly wait?: boolean
  /**
   * True: a client waits for the results, so their connections take precedence over those of lists.
   */
  readonly urgent?: boolean
  /** Maximum number of addresses in flight, those in DNS lookups and in waits included. */
  readonly windowMax?: number
}

type StreamOptions = ManyOptions & {
  readonly concurrency: number
  readonly greylistDelayMs: number | null
  readonly clock: Clock
  /** Aborts when the engine is closed. */
  readonly closing: AbortSignal
}

/**
 * Texts in memory. A list often has the addresses of a domain far apart, and only those in the
 * window can share a connection. A waiting text takes 70 bytes, or 200 if no other has its domain,
 * in total at most 20 MB.
 */
const WINDOW_MAX = 100_000
/** The window is refilled when this share of it is free, so that texts arrive in groups. */
const REFILL_SHARE = 1 / 16
/** Addresses that are routed and not yet probed; about 1 KB each. Later ones wait as texts. */
const ACTIVE_MAX = 10_000
/** Concurrent route lookups: enough to keep the resolver busy, few enough that each is quick. */
const ROUTING_MAX = 1_000
/** Addresses of one domain that are routed together, so that other domains have their turn. */
const GROUP_MAX = 200
/**
 * Share of the window for addresses that wait until a block expires (half an hour). Without this
 * limit they could fill the window and stall the rest of the list.
 */
const BLOCKED_SHARE_MAX = 0.5
/** How long addresses that cannot fill a connection wait for more, after the last arrival. */
const GATHER_MS = 100
/** The same for addresses that a connection has returned. */
const RETURNED_MS = 20
/** A source is idle after this time without a text: those that wait are routed then. */
const IDLE_MS = 25
/** The longest wait for a source that is never idle, as in a list that is being routed. */
const HOLD_MAX_MS = 5 * SECOND
/** The wait before an address is probed again after an internal failure. */
const FAULT_DELAY_MS = SECOND
/** Texts of a synchronous source that are read in one turn of the event loop. */
const READ_MAX = 2_000

/** The part of the engine that a stream uses. */
type StreamEngine = {
  readonly resolverCheck: ResolverCheck | null
  readonly egressPool: EgressPool
  routeOne(text: string, options: RouteOptions): Promise<PreparedAddress>
  prefetchHost(route: RouteWithHost): void
  isTested(task: ProbeTask): boolean
  probe(operator: MxOperator, tasks: readonly ProbeTask[], options: ProbeListOptions): Promise<void>
}

/**
 * Yields the results of a stream of addresses in order of completion, one for each text. An internal
 * failure becomes the result of its address. If even that fails, throws an EvError that names the
 * cause, after the results that are ready.
 */
export async function* streamResults(
  engine: StreamEngine,
  texts: AsyncIterable<string> | Iterable<string>,
  options: StreamOptions,
): AsyncGenerator<Result> {
  const stream = new Stream(engine, options)
  const input = stream.feed(texts)
  input.catch(() => {})
  try {
    for (;;) {
      const result = await stream.next()
      if (result === null) break
      yield result
    }
    await input
  } finally {
    stream.stop()
  }
}

class Stream {
  readonly #engine: StreamEngine
  readonly #options: StreamOptions
  readonly #windowMax: number
  readonly #queues = new Map<string, OperatorQueue>()
  /** Queues that wait for a free worker. */
  readonly #waitingQueues = new Set<OperatorQueue>()
  /**
   * Duplicates of each address in flight, so that an address is never probed twice at the same
   * time.
   */
  readonly #duplicates = new Map<string, ProbeTask[]>()
  readonly #stopping = new AbortController()
  /** Aborts with the stream, the caller's signal or the engine. */
  readonly #ending: AbortSignal
  readonly #dnsPause: DnsPause
  /** Texts that wait for their route. */
  readonly #backlog = new DomainBacklog()
  /** Batches that wait for more addresses, in the order of `at`, a time of their last arrival. */
  readonly #gathering = new Map<MxBatch, { readonly queue: OperatorQueue; readonly at: number }>()
  #cancelGather: (() => void) | null = null
  /** Since when the backlog waits for the source, monotonic ms; null if it does not. */
  #heldSince: number | null = null
  #cancelHold: (() => void) | null = null
  /** When the last text was read, monotonic ms. */
  #readAt = 0
  #ready: Result[] = []
  /** Number of texts read whose result is not yet delivered. */
  #inFlight = 0
  /** Number of groups of texts that are being routed. */
  #routing = 0
  /** Number of addresses that are routed, wait for no retry and have no result yet. */
  #active = 0
  /** Number of addresses that wait, unprobed, until a block expires. */
  #blockedCount = 0
  #workers = 0
  #inputEnded = false
  /** Number of consecutive internal failures of the selection of an egress. */
  #selectionFaults = 0
  /** The internal failure that ended the stream. */
  #failure: EvError | null = null
  #wake: () => void = () => {}
  #onCapacity: () => void = () => {}

  constructor(engine: StreamEngine, options: StreamOptions) {
    this.#engine = engine
    this.#options = options
    this.#windowMax = windowFor(options)
    const { clock, signal, closing } = options
    const ending = withDeadline(clock, null, [signal, closing, this.#stopping.signal])
    this.#ending = ending.signal
    this.#dnsPause = new DnsPause(engine.resolverCheck, clock, ending.signal)
    this.#ending.addEventListener('abort', () => {
      this.#cancelHold?.()
      this.#cancelGather?.()
      this.#wake()
      this.#onCapacity()
    })
  }

  /** Reads texts while the window has capacity. */
  async feed(texts: AsyncIterable<string> | Iterable<string>): Promise<void> {
    let source: Source | null = null
    try {
      source = new Source(texts, this.#ending)
      for (let count = 1; !this.#ending.aborted; count++) {
        const item = source.isSync ? source.read() : await source.next()
        if (item === null) return
        this.#accept(item.text, !source.isSync)
        if (this.#inFlight >= this.#windowMax) await this.#waitForCapacity()
        else if (source.isSync && count % READ_MAX === 0) await yieldToEventLoop()
      }
    } finally {
      source?.close()
      this.#inputEnded = true
      this.#release()
      this.#dispatchAll()
      this.#wake()
    }
  }

  /**
   * Adds a text to the backlog. While the source has more, the backlog grows, so that the addresses
   * of a domain are found together; a text that arrives alone is routed at once.
   */
  #accept(text: string, mayBeAlone: boolean) {
    const isAlone = mayBeAlone && this.#inFlight === 0
    this.#inFlight++
    this.#backlog.add(text)
    if (isAlone) return this.#release()
    this.#readAt = this.#options.clock.monotonicNow()
    if (this.#heldSince !== null) return
    this.#heldSince = this.#readAt
    this.#hold(IDLE_MS)
  }

  #hold(delayMs: number) {
    const { clock } = this.#options
    this.#cancelHold = clock.after(delayMs, () => {
      const now = clock.monotonicNow()
      const idleInMs = this.#readAt + IDLE_MS - now
      const heldMs = now - (this.#heldSince ?? now)
      if (idleInMs >= 1 && heldMs < HOLD_MAX_MS) this.#hold(idleInMs)
      else this.#release()
    })
  }

  #release() {
    this.#cancelHold?.()
    this.#cancelHold = null
    this.#heldSince = null
    this.#backlog.release()
    this.#routeBacklog()
  }

  /**
   * Returns the next result; null after the last. Throws if the caller's signal or the engine
   * aborted, or after an internal failure that left addresses without a result.
   */
  async next(): Promise<Result | null> {
    for (;;) {
      this.#options.signal?.throwIfAborted()
      if (this.#options.closing.aborted) throw new EvError('interrupted', 'The engine was closed.')
      const result = this.#ready.shift()
      if (result !== undefined) {
        this.#inFlight--
        if (this.#inFlight <= this.#windowMax * (1 - REFILL_SHARE)) this.#onCapacity()
        return result
      }
      if (this.#failure !== null) throw this.#failure
      if (this.#inputEnded && this.#inFlight === 0) return null
      await new Promise<void>(resolve => {
        this.#wake = resolve
      })
    }
  }

  stop() {
    this.#stopping.abort()
  }

  /** Ends all work. `step` names what failed. */
  #fail(step: string, cause: unknown) {
    this.#failure ??= new EvError('internal', `${step} failed: ${errorMessage(cause)}`, { cause })
    this.stop()
  }

  async #waitForCapacity(): Promise<void> {
    this.#release()
    while (this.#inFlight >= this.#windowMax && !this.#ending.aborted) {
      await new Promise<void>(resolve => {
        this.#onCapacity = resolve
      })
    }
  }

  /** Starts as many route lookups as the limits allow. */
  #routeBacklog() {
    while (
      this.#backlog.hasReleased &&
      this.#routing < ROUTING_MAX &&
      this.#active < ACTIVE_MAX &&
      !this.#ending.aborted
    )
      this.#routeGroup(this.#backlog.take(GROUP_MAX)).catch(error => this.#fail('Routing', error))
  }

  /** Routes texts of one domain: the first one is looked up, and the others find its answer. */
  async #routeGroup(texts: readonly string[]): Promise<void> {
    const [first] = texts as [string]
    this.#routing++
    this.#active += texts.length
    const task = await this.#route(first)
    if (texts.length > 1) await Promise.all(texts.slice(1).map(text => this.#route(text)))
    this.#routing--
    // Other domains rarely use the exchangers of this one, so no more recipients are expected.
    if (task !== null && isSelfHosted(task) && !this.#backlog.hasDomainOf(first)) {
      const queue = this.#queues.get(task.operator.name)
      queue?.markHostsReady(task)
      if (queue !== undefined) this.#dispatch(queue)
    }
    if (this.#heldSince === null) this.#backlog.release()
    this.#routeBacklog()
    this.#dispatchAll()
  }

  /** Returns the task of a text that needs a probe; null for any other. */
  async #route(text: string): Promise<ProbeTask | null> {
    const { checkSmtp = true, forceRefresh = false, cacheScope = null, wait = true } = this.#options
    const options = { checkSmtp, forceRefresh, cacheScope, signal: this.#ending }
    const dnsPause = wait ? { dnsPause: this.#dnsPause } : {}
    const prepared = await this.#engine.routeOne(text, { ...options, ...dnsPause })
    if ('task' in prepared) this.#routed(prepared.task)
    else {
      this.#active--
      this.#emit(prepared.result)
    }
    return 'task' in prepared ? prepared.task : null
  }

  #routed(task: ProbeTask) {
    const key = task.cacheKey
    const duplicates = this.#duplicates.get(key)
    if (duplicates !== undefined) {
      this.#active--
      if (duplicates === NO_DUPLICATES) this.#duplicates.set(key, [task])
      else duplicates.push(task)
      return
    }
    this.#duplicates.set(key, NO_DUPLICATES)
    const since = this.#options.clock.monotonicNow()
    this.#enqueue({ task, since, tries: 0, egress: null, refusedBy: [], faults: 0 })
  }

  #enqueue(pending: PendingAddress, isRetry = false) {
    let queue: OperatorQueue
    try {
      queue = this.#queueFor(pending.task)
    } catch (error) {
      return this.#handleFault(pending, error)
    }
    // Retries that were delayed together return together, so they gather even at the end of the
    // input.
    const gathers = isRetry || !this.#isAllRouted
    const now = this.#options.clock.monotonicNow()
    const batch = queue.add(pending, now, gathers)
    if (queue.hasFull || !gathers) this.#dispatch(queue)
    if (!batch.isGathering || this.#gathering.has(batch)) return
    this.#gathering.set(batch, { queue, at: now })
    if (this.#cancelGather === null) this.#gather(GATHER_MS)
  }

  #queueFor({ operator, route }: ProbeTask): OperatorQueue {
    const known = this.#queues.get(operator.name)
    if (known !== undefined) return known
    const queue = new OperatorQueue(operator, this.#engine.egressPool.row(operator.name))
    this.#queues.set(operator.name, queue)
    this.#engine.prefetchHost(route)
    return queue
  }

  /**
   * One connection costs the same for one recipient as for many, so a batch waits for more of them.
   * One timer serves all batches.
   */
  #gather(delayMs: number) {
    const { clock } = this.#options
    this.#cancelGather = clock.after(delayMs, () => {
      this.#cancelGather = null
      const now = clock.monotonicNow()
      for (const [batch, { queue, at }] of this.#gathering) {
        const leftMs = at + GATHER_MS - now
        if (leftMs >= 1) return this.#gather(leftMs)
        this.#gathering.delete(batch)
        if (batch.addresses.length === 0 || !batch.isGathering) continue
        if (batch.lastAt > at) {
          this.#gathering.set(batch, { queue, at: batch.lastAt })
          continue
        }
        queue.markReady(batch)
        this.#dispatch(queue)
      }
    })
  }

  get #isAllRouted(): boolean {
    return this.#inputEnded && this.#routing === 0 && this.#backlog.isEmpty
  }

  /** Dispatches partial batches once the input has ended and all routes are known. */
  #dispatchAll() {
    if (!this.#isAllRouted) return
    for (const queue of this.#queues.values()) {
      queue.markAllReady()
      this.#dispatch(queue)
    }
  }

  #dispatch(queue: OperatorQueue) {
    try {
      this.#startWorkers(queue)
      this.#selectionFaults = 0
    } catch (error) {
      // Nothing was taken from the queue.
      if (++this.#selectionFaults >= FAULTS_MAX) return this.#fail('Selecting an egress', error)
      const { clock } = this.#options
      void sleep(clock, FAULT_DELAY_MS, this.#ending).then(() => this.#dispatch(queue))
    }
  }

  /** Starts as many workers on a queue as the limits of each egress and of the stream allow. */
  #startWorkers(queue: OperatorQueue) {
    const egressPool = this.#engine.egressPool.own
    const operator = queue.operator.name
    const first = egressPool.primaryFor(operator)
    const { sessionsMax } = queue.limits
    for (const egress of egressPool.ranked(operator)) {
      // A blocked egress takes only what is pinned to it; that fails and moves to other egresses.
      const takesFree = egressPool.takesAny(egress, operator)
      // Only the primary egress takes a partial batch; the others take free addresses when they
      // fill a connection.
      const takesPartial = egress === first
      while (queue.workers(egress) < sessionsMax) {
        if (queue.isEmpty || this.#ending.aborted) return
        if (this.#workers >= this.#options.concurrency) return void this.#waitingQueues.add(queue)
        const capacityFor = (next: PendingAddress) => this.#capacityFor(queue, next)
        const chunk = queue.take(egress, { takesFree, takesPartial, capacityFor })
        if (chunk.length === 0) break
        this.#startWorker(queue, egress, chunk)
      }
    }
  }

  /**
   * Recipients per connection; until the catch-all status is known, one goes to the catch-all
   * probe.
   */
  #capacityFor({ limits }: OperatorQueue, next: PendingAddress): number {
    const isTested = this.#engine.isTested(next.task)
    return Math.max(1, limits.recipientsPerSession - (isTested ? 0 : 1))
  }

  #startWorker(queue: OperatorQueue, egress: string, chunk: PendingAddress[]) {
    queue.countWorker(egress, 1)
    this.#workers++
    const onEnd = () => {
      queue.countWorker(egress, -1)
      this.#workers--
      if (queue.isDone) this.#queues.delete(queue.operator.name)
      this.#dispatchNext(queue)
    }
    this.#probeChunk(queue, egress, chunk)
      .catch(error => this.#fail('Probing', error))
      .then(onEnd)
      .catch(error => this.#fail('Probing', error))
  }

  /**
   * Gives a free worker to the queues that wait for one first, so that a long queue cannot starve
   * them.
   */
  #dispatchNext(queue: OperatorQueue) {
    for (const waiting of this.#waitingQueues) {
      if (this.#workers >= this.#options.concurrency) break
      this.#waitingQueues.delete(waiting)
      this.#dispatch(waiting)
    }
    this.#dispatch(queue)
  }

  /** Probes a chunk. An address whose last probe failed internally is probed separately. */
  async #probeChunk(
    queue: OperatorQueue,
    egress: string,
    chunk: readonly PendingAddress[],
  ): Promise<void> {
    const others = chunk.filter(({ faults }) => faults === 0)
    if (others.length > 0) await this.#probeTogether(queue, egress, others)
    for (const suspect of chunk) {
      if (suspect.faults > 0) await this.#probeTogether(queue, egress, [suspect])
    }
  }

  async #probeTogether(
    queue: OperatorQueue,
    egress: string,
    chunk: readonly PendingAddress[],
  ): Promise<void> {
    /** The addresses without an outcome. */
    const open = new Map(chunk.map(pending => [pending.task, pending]))
    const pendingOf = (task: ProbeTask): PendingAddress => {
      const pending = open.get(task)
      if (pending === undefined) throw new EvError('internal', `unknown task: ${task.text}`)
      return pending
    }
    let failure: unknown = null
    try {
      await this.#engine.probe(queue.operator, [...open.keys()], {
        egress,
        signal: this.#ending,
        urgent: this.#options.urgent ?? false,
        onResult: (task, result, asked) => {
          this.#handleOutcome(pendingOf(task), {
            result,
            asked,
            egress,
            isBackupOnly: isBackupOnly(task.exchangers, result),
          })
          open.delete(task)
        },
        onRetryLater: (task, delayMs) => {
          this.#enqueueLater(pendingOf(task), delayMs)
          open.delete(task)
        },
        onReturned: tasks => {
          this.#requeue(queue, tasks.map(pendingOf))
          for (const task of tasks) open.delete(task)
        },
      })
    } catch (error) {
      failure = error
    }
    if (this.#ending.aborted) return
    for (const pending of open.values()) this.#handleFault(pending, failure)
  }

  /** Probes an address again after an internal failure, or gives it the failure as its result. */
  #handleFault(pending: PendingAddress, error: unknown) {
    const faults = pending.faults + 1
    if (faults < FAULTS_MAX) this.#enqueueLater({ ...pending, faults }, FAULT_DELAY_MS)
    else this.#finish(pending.task, fromFailedProbe(this.#options.clock, pending.task, error))
  }

  /**
   * Queues addresses that a connection has returned. They wait a moment, because connections to the
   * same hosts return theirs at about the same time, and together they fill fewer connections.
   */
  #requeue(queue: OperatorQueue, returned: readonly PendingAddress[]) {
    const { clock } = this.#options
    const now = clock.monotonicNow()
    const batches = new Set(returned.map(pending => queue.add(pending, now, true)))
    if (queue.hasFull) this.#dispatch(queue)
    clock.after(RETURNED_MS, () => {
      for (const batch of batches) queue.markReady(batch)
      this.#dispatch(queue)
    })
  }

  #handleOutcome(pending: PendingAddress, outcome: Outcome) {
    const { task, since, faults } = pending
    if (isDecided(outcome)) return this.#finish(task, outcome.result)
    if (isFailure(outcome.result.verdict)) {
      return this.#handleFault(pending, outcome.result.evidence.failure)
    }
    const { clock, wait = true, greylistDelayMs } = this.#options
    const egressPool = this.#engine.egressPool.own
    const { name } = task.operator
    const available = () => egressPool.availableFor(name)
    const uncertainForMs = () => egressPool.uncertainForMs(outcome.egress, name)
    const history = { ...pending, waitedMs: clock.monotonicNow() - since }
    const dnsUncertainForMs = () => dnsWaitMs(this.#engine.resolverCheck)
    const domain = task.address.domain.ascii
    const refusedForMs = () => egressPool.refusedForMs(outcome.egress, name, domain)
    const isBlocked = !outcome.asked && outcome.result.evidence.answer?.kind === 'blocked'
    const isWindowFull = isBlocked && this.#blockedCount >= this.#windowMax * BLOCKED_SHARE_MAX
    const uncertainty = {
      uncertainForMs,
      dnsUncertainForMs,
      refusedForMs,
    }
    const rules = {
      greylistDelayMs,
      available,
      ...uncertainty,
      wait: wait && !isWindowFull,
    }
    const retry = nextRetry(outcome, history, rules)
    if (retry === null) return this.#finish(task, outcome.result)
    const { delayMs, accepted, ...attempts } = retry
    const next = { task: { ...task, accepted }, since, faults, ...attempts }
    this.#enqueueLater(next, delayMs, isBlocked)
  }

  /** Queues an address again; `isBlocked`: it counts as waiting for a block to expire until then. */
  #enqueueLater(pending: PendingAddress, delayMs: number, isBlocked = false) {
    if (isBlocked) this.#blockedCount++
    this.#onInactive()
    const enqueue = () => {
      if (isBlocked) this.#blockedCount--
      this.#active++
      if (!this.#ending.aborted) this.#enqueue(pending, true)
    }
    sleep(this.#options.clock, delayMs, this.#ending)
      .then(enqueue)
      .catch(error => this.#fail('Retrying', error))
  }

  /** An address no longer counts as active, so that another one may be routed. */
  #onInactive() {
    this.#active--
    this.#routeBacklog()
  }

  /** Delivers a result to an address and to its duplicates that arrived meanwhile. */
  #finish({ cacheKey: key }: ProbeTask, result: Result) {
    const duplicates = this.#duplicates.get(key) ?? NO_DUPLICATES
    this.#duplicates.delete(key)
    this.#onInactive()
    this.#emit(result)
    for (const { text } of duplicates) this.#emit({ ...result, email: text })
  }

  #emit(result: Result) {
    this.#ready.push(result)
    this.#wake()
  }
}

/** Whether all exchangers of a domain have names below it. */
function isSelfHosted({ address, route }: ProbeTask): boolean {
  const domain = address.domain.ascii
  return hostsOf(route).every(host => host === domain || host.endsWith(`.${domain}`))
}

/** Shared by all addresses without a duplicate, and never changed. */
const NO_DUPLICATES: ProbeTask[] = []

function windowFor({ windowMax = WINDOW_MAX }: ManyOptions): number {
  if (Number.isInteger(windowMax) && windowMax >= 1) return windowMax
  throw new EvError('usage', `windowMax is ${windowMax}; it takes a whole number from 1.`)
}
