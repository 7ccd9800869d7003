import { onAbort } from '../../platform/abort.ts'
import { SECOND } from '../../platform/clock.ts'
import { EvError } from '../../platform/error.ts'
import type { ProbeTask } from '../probe/prepare.ts'
import type { ProbeSink } from '../probe/probe-options.ts'
import { FAULTS_MAX, type Outcome } from '../probe/retry-policy.ts'
import type { Feed, Row, Sink } from './feed.ts'
import { type MxBatch, OperatorQueue } from './operator-queue.ts'
import {
  FAULT_DELAY_MS,
  type Pending,
  Run,
  type RunOptions,
  type SchedulerEngine,
  type SchedulerOptions,
} from './run.ts'

type Queue = OperatorQueue<Run>

/** A batch that waits for more rows after the last arrival, or after an earlier one. */
type Gathering = { readonly queue: Queue; readonly at: number }

/** How long addresses that cannot fill a connection wait for more, after the last arrival. */
const GATHER_MS = 100
/** Longer in a process that serves requests: addresses let them go first, so they arrive slowly. */
const SERVICE_GATHER_MS = SECOND
/** How long addresses wait for more that a connection has returned. */
const RETURNED_MS = 20
/**
 * Rows of an operator that are kept, in connections of all egresses: enough to fill each connection
 * again as soon as it ends. Others are refused, so that they take no memory.
 */
const BATCHES_PER_CONNECTION = 2
/** An egress that may open no connection for longer than this leaves its worker to other operators. */
const PAUSE_MIN_MS = SECOND

/** Rows whose lookup failed, and when the first and the last of them are looked up again, in ms. */
export type FailedLookups = {
  readonly rows: number
  readonly firstInMs: number
  readonly lastInMs: number
}

/**
 * Verifies the rows of feeds and tells their sinks what becomes of each, in order of completion. The
 * lists of a process share one scheduler, so that their rows share connections.
 *
 * 1. A run reads rows from its feed while the window has room, and files their texts by domain
 *    (`DomainBacklog`), so that a domain is looked up once and its rows share connections.
 * 2. It routes rows of one domain at a time. Those that need no mail server are decided; the others
 *    join the batch of their MX hosts in the queue of their operator (`OperatorQueue`), unless it has
 *    as many rows as it needs: then the sink gets them back until there is room.
 * 3. `#startWorkers` gives batches to workers, one per connection, within the limits of the
 *    operator, of each egress and of the scheduler. A batch is taken when it fills a connection, or
 *    when no more rows are expected for it soon. Runs that share a batch are served in turn.
 * 4. `#probeTogether` probes one batch. Each outcome decides its row, or postpones it: the row
 *    waits, and joins a batch again.
 */
export class Scheduler {
  readonly #engine: SchedulerEngine
  readonly #options: SchedulerOptions
  readonly #runs = new Set<Run>()
  readonly #routing = new Set<Run>()
  readonly #queues = new Map<string, Queue>()
  /** Queues that wait for a free worker. */
  readonly #waitingQueues = new Set<Queue>()
  /** Batches that wait for more rows, in the order of `at`, a time of their last arrival. */
  readonly #gathering = new Map<MxBatch<Run>, Gathering>()
  #cancelGather: (() => void) | null = null
  #workers = 0
  /** Number of consecutive internal failures of the selection of an egress. */
  #selectionFaults = 0
  /** Number of rows by operator, and of the runs that have them. */
  readonly #sizes = new Map<string, { rows: number; runs: number }>()
  /** Timers of queues that wait for the end of a pause. */
  readonly #resumptions = new Map<Queue, () => void>()

  constructor(engine: SchedulerEngine, options: SchedulerOptions) {
    this.#engine = engine
    this.#options = options
  }

  /**
   * Resolves when each row of the feed has a result, when the signal aborts, or when the run has
   * drained. Rejects with the error of the feed after the results of its rows, and with an EvError
   * `internal` if a method of the sink throws or rows cannot be given a result.
   */
  async run<T>(feed: Feed<T>, sink: Sink<T>, options: RunOptions): Promise<void> {
    const deps = {
      engine: this.#engine,
      options: this.#options,
      routing: this.#routing,
      enqueue: this.#enqueue,
      gatherUntil: this.#gatherUntil,
      markHostsReady: this.#markHostsReady,
      markRunReady: this.#markRunReady,
      getRoom: this.#getRoom,
      countRows: this.#countRows,
      takeRows: this.#takeRows,
    }
    const run = new Run(deps, sink, options)
    this.#runs.add(run)
    try {
      await run.start(feed)
    } finally {
      this.#runs.delete(run)
      if (this.#runs.size === 0) this.#cancelTimers()
    }
  }

  /** Call it when the sinks hold fewer results. */
  refill(): void {
    for (const run of this.#runs) run.refill()
    this.#dispatchWaiting()
  }

  /** Number of operators with rows that wait for a connection, and of connections in flight. */
  get status(): { readonly waiting: number; readonly running: number } {
    const waiting = [...this.#queues.values()].filter(({ isEmpty }) => !isEmpty).length
    return { waiting, running: this.#workers }
  }

  /** Returns the number of rows that can be probed and that pass, by operator. */
  countPending(isCounted: (row: Row<unknown>) => boolean): Map<string, number> {
    const counts = new Map<string, number>()
    for (const [operator, queue] of this.#queues) {
      const count = queue.count(({ row }) => isCounted(row))
      if (count > 0) counts.set(operator, count)
    }
    return counts
  }

  /** Returns the rows that pass and that are looked up again later; null if there are none. */
  countFailedLookups(isCounted: (row: Row<unknown>) => boolean): FailedLookups | null {
    const now = this.#options.clock.monotonicNow()
    const groups = [...this.#runs]
      .flatMap(({ failedLookups }) => [...failedLookups])
      .map(([failed, at]) => ({
        rows: failed.filter(({ row }) => isCounted(row)).length,
        inMs: Math.max(0, at - now),
      }))
      .filter(({ rows }) => rows > 0)
    if (groups.length === 0) return null
    const times = groups.map(({ inMs }) => inMs).sort((a, b) => a - b)
    return {
      rows: groups.reduce((sum, { rows }) => sum + rows, 0),
      firstInMs: times[0] as number,
      lastInMs: times.at(-1) as number,
    }
  }

  get #gatherMs(): number {
    return (this.#options.priority ?? null) === null ? GATHER_MS : SERVICE_GATHER_MS
  }

  #cancelTimers() {
    this.#cancelGather?.()
    this.#cancelGather = null
    this.#gathering.clear()
    for (const cancel of this.#resumptions.values()) cancel()
    this.#resumptions.clear()
  }

  readonly #enqueue = (pending: Pending, gathers: boolean): void => {
    const queue = this.#queueFor(pending.task)
    const now = this.#options.clock.monotonicNow()
    const batch = queue.add(pending, now, gathers)
    if (queue.hasFull || !gathers) this.#dispatch(queue)
    this.#gatherBatch(queue, batch, now)
  }

  #gatherBatch(queue: Queue, batch: MxBatch<Run>, now: number) {
    if (!batch.isGathering || this.#gathering.has(batch)) return
    this.#gathering.set(batch, { queue, at: now })
    if (this.#cancelGather === null) this.#gather(this.#gatherMs)
  }

  #queueFor({ operator, route }: ProbeTask): Queue {
    const known = this.#queues.get(operator.name)
    if (known !== undefined) return known
    const queue: Queue = new OperatorQueue(
      operator,
      this.#engine.egressPool.limitsFor(operator.name),
    )
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
        const leftMs = at + this.#gatherMs - now
        if (leftMs >= 1) return this.#gather(leftMs)
        this.#gathering.delete(batch)
        if (batch.rows.length === 0 || !batch.isGathering) continue
        const lastAt = batch.arriving > 0 ? now : batch.lastAt
        if (lastAt > at) {
          this.#gathering.set(batch, { queue, at: lastAt })
          continue
        }
        queue.markReady(batch)
        this.#dispatch(queue)
      }
    })
  }

  readonly #gatherUntil = async (task: ProbeTask, arrived: Promise<unknown>): Promise<void> => {
    const batch = this.#queues.get(task.operator.name)?.batchOf(task)
    if (batch === undefined) return void (await arrived)
    batch.arriving++
    try {
      await arrived
    } finally {
      batch.arriving--
    }
  }

  readonly #markHostsReady = (task: ProbeTask): void => {
    const queue = this.#queues.get(task.operator.name)
    if (queue === undefined) return
    queue.markHostsReady(task)
    this.#dispatch(queue)
  }

  readonly #markRunReady = (run: Run, operator: string): void => {
    const queue = this.#queues.get(operator)
    if (queue === undefined) return
    queue.markRunReady(run)
    this.#dispatch(queue)
  }

  readonly #countRows = (operator: string, size: number, change: number): void => {
    const sizes = this.#sizes.get(operator) ?? { rows: 0, runs: 0 }
    if (sizes.rows === 0) this.#sizes.set(operator, sizes)
    sizes.rows += change
    if (size === 0) sizes.runs++
    else if (size + change === 0) sizes.runs--
    if (sizes.rows === 0) this.#sizes.delete(operator)
  }

  /** A run has room up to its equal share, and beyond that as long as the others leave some. */
  readonly #getRoom = (operator: string, size: number): number => {
    const { own } = this.#engine.egressPool
    const { sessionsMax, recipientsPerSession } = own.limitsFor(operator)
    const queue = this.#queues.get(operator)
    if (queue !== undefined && this.#resumptions.has(queue)) return recipientsPerSession - size
    const egresses = own.sharesLists(operator) ? own.ranked(operator).length : 1
    const sizeMax = BATCHES_PER_CONNECTION * egresses * sessionsMax * recipientsPerSession
    const { rows = 0, runs = 0 } = this.#sizes.get(operator) ?? {}
    const share = Math.max(recipientsPerSession, Math.floor(sizeMax / Math.max(1, runs)))
    return Math.max(share - size, sizeMax - rows)
  }

  readonly #takeRows = (run: Run): Pending[] => {
    const taken: Pending[] = []
    for (const [name, queue] of this.#queues) {
      for (const pending of queue.takeWhere(one => one.run === run)) taken.push(pending)
      if (queue.isDone) this.#queues.delete(name)
    }
    return taken
  }

  #dispatch(queue: Queue) {
    try {
      this.#startWorkers(queue)
      this.#selectionFaults = 0
    } catch (error) {
      // Nothing was taken from the queue.
      if (++this.#selectionFaults < FAULTS_MAX) this.#resumeLater(queue, FAULT_DELAY_MS)
      else for (const run of queue.runs) run.fail('Selecting an egress', error)
    }
  }

  /** Starts as many workers on a queue as the limits of each egress and of the scheduler allow. */
  #startWorkers(queue: Queue) {
    const egressPool = this.#engine.egressPool.own
    const operator = queue.operator.name
    const first = egressPool.primaryFor(operator)
    const { sessionsMax } = queue.limits
    let isOpen = false
    for (const egress of egressPool.ranked(operator)) {
      // A blocked egress takes only what is pinned to it; that fails and moves to other egresses.
      const takesFree = egressPool.takesAny(egress, operator)
      // Only the primary egress takes a partial batch; the others take free rows when they fill a
      // connection.
      const takesPartial = egress === first
      if (queue.workers(egress) > 0) isOpen = true
      while (queue.workers(egress) < sessionsMax) {
        if (queue.isEmpty) return
        if (!this.#hasFreeWorker) return void this.#waitingQueues.add(queue)
        const pausedMs = this.#getPauseMs(egress, operator)
        const isPaused = pausedMs > PAUSE_MIN_MS
        if (isPaused) this.#resumeLater(queue, pausedMs)
        else isOpen = true
        const capacityFor = (next: Pending) => this.#capacityFor(queue, next)
        const chunk = isPaused
          ? this.#takeBackedUp(queue, egress, takesFree)
          : queue.take(egress, { takesFree, takesPartial, capacityFor })
        if (chunk.length === 0) break
        this.#startWorker(queue, egress, chunk)
      }
    }
    if (!isOpen && this.#resumptions.has(queue)) this.#shrink(queue)
  }

  get #hasFreeWorker(): boolean {
    const isFull = this.#options.isFull?.() ?? false
    return this.#workers < this.#options.concurrency && !isFull
  }

  /**
   * Returns for how long an egress should open no connection to an operator, in ms. Runs that wait
   * for nothing else wait for the probe of the reference MX hosts: if it finds the port blocked,
   * none of the others is dialed.
   */
  #getPauseMs(egress: string, operator: string): number {
    const egressPool = this.#engine.egressPool.own
    if (!this.#options.wait) return egressPool.prober(egress).probingForMs ?? 0
    const uncertainForMs = egressPool.uncertainForMs(egress, operator) ?? 0
    if (uncertainForMs > 0) return uncertainForMs
    return egressPool.prober(egress).knownController(operator)?.readyInMs ?? 0
  }

  /** During a pause of their first operator, rows with exchangers of another one can be probed. */
  #takeBackedUp(queue: Queue, egress: string, takesFree: boolean): Pending[] {
    const egressPool = this.#engine.egressPool.own
    const { name } = queue.operator
    const isPaused = egressPool.prober(egress).knownController(name)?.isPaused ?? false
    if (!isPaused || (egressPool.uncertainForMs(egress, name) ?? 0) > 0) return []
    return queue.takeBackedUp(egress, takesFree)
  }

  #resumeLater(queue: Queue, delayMs: number) {
    if (this.#resumptions.has(queue)) return
    const cancel = this.#options.clock.after(delayMs, () => {
      this.#resumptions.delete(queue)
      this.#dispatch(queue)
    })
    this.#resumptions.set(queue, cancel)
  }

  /**
   * Gives rows of a paused operator back that fill more than one connection of their run, so that
   * they do not take the place of others. Rows with a history stay: only this process knows it.
   */
  #shrink(queue: Queue) {
    const kept = new Map<Run, number>()
    const isSurplus = ({ run, tries, faults, egress, refusedBy }: Pending) => {
      if (!run.isSelective || tries + faults + refusedBy.length > 0 || egress !== null) return false
      const count = kept.get(run) ?? 0
      kept.set(run, count + 1)
      return count >= queue.limits.recipientsPerSession
    }
    for (const pending of queue.takeWhere(isSurplus)) pending.run.refuseQueued(pending)
  }

  /**
   * Recipients per connection; until the catch-all status is known, one goes to the catch-all
   * probe.
   */
  #capacityFor({ limits }: Queue, next: Pending): number {
    const isTested = this.#engine.isTested(next.task)
    return Math.max(1, limits.recipientsPerSession - (isTested ? 0 : 1))
  }

  #startWorker(queue: Queue, egress: string, chunk: Pending[]) {
    const runs = runsOf(chunk)
    this.#gatherRest(queue, chunk)
    queue.countWorker(egress, 1)
    this.#workers++
    for (const run of runs) run.countProbe(1)
    void this.#work(queue, egress, chunk, runs)
  }

  /** Probes a chunk. An internal failure ends the runs that have rows in it. */
  async #work(
    queue: Queue,
    egress: string,
    chunk: readonly Pending[],
    runs: readonly Run[],
  ): Promise<void> {
    try {
      await this.#probeChunk(queue, egress, chunk)
    } catch (error) {
      for (const run of runs) run.fail('Probing', error)
    }
    try {
      queue.countWorker(egress, -1)
      this.#workers--
      if (queue.isDone) this.#queues.delete(queue.operator.name)
      this.#dispatchNext(queue)
      for (const run of runs) run.countProbe(-1)
    } catch (error) {
      for (const run of runs) run.fail('Probing', error)
    }
  }

  /** More rows for the hosts of a chunk follow if some were refused: its rest waits for them. */
  #gatherRest(queue: Queue, [first]: readonly Pending[]) {
    const operator = queue.operator.name
    if (first === undefined || !first.run.isRefusing(operator)) return
    const now = this.#options.clock.monotonicNow()
    const rest = queue.gatherRest(first, now)
    if (rest !== null) this.#gatherBatch(queue, rest, now)
  }

  /**
   * Gives a free worker to the queues that wait for one first, so that a long queue cannot starve
   * them.
   */
  #dispatchNext(queue: Queue) {
    this.#dispatchWaiting()
    this.#dispatch(queue)
  }

  #dispatchWaiting() {
    // Before the loop too, because an iterator skips the removed queues one by one.
    if (!this.#hasFreeWorker) return
    for (const waiting of this.#waitingQueues) {
      if (!this.#hasFreeWorker) return
      this.#waitingQueues.delete(waiting)
      this.#dispatch(waiting)
    }
  }

  /** Probes a chunk. A row whose last probe failed internally is probed separately. */
  #probeChunk(queue: Queue, egress: string, chunk: readonly Pending[]): Promise<void> {
    const { priority = null } = this.#options
    const isPlain = priority === null && chunk.every(({ faults }) => faults === 0)
    return isPlain
      ? this.#probeTogether(queue, egress, chunk)
      : this.#probeInTurn(queue, egress, chunk)
  }

  async #probeInTurn(queue: Queue, egress: string, chunk: readonly Pending[]): Promise<void> {
    const endProbe = await this.#options.priority?.startProbe(chunk.length)
    try {
      const others = chunk.filter(({ faults }) => faults === 0)
      if (others.length > 0) await this.#probeTogether(queue, egress, others)
      for (const suspect of chunk) {
        if (suspect.faults > 0) await this.#probeTogether(queue, egress, [suspect])
      }
    } finally {
      endProbe?.()
    }
  }

  async #probeTogether(queue: Queue, egress: string, chunk: readonly Pending[]): Promise<void> {
    const { signal, drain, done } = joinSignals(chunk)
    if (drain.aborted) return done()
    const sink = new ChunkSink(chunk, this.#requeue)
    let failure: unknown = null
    try {
      const tasks = chunk.map(({ task }) => task)
      const { urgent } = this.#options
      await this.#engine.probe(queue.operator, tasks, sink, {
        egress,
        signal,
        drain,
        urgent,
      })
    } catch (error) {
      failure = error
    } finally {
      done()
    }
    for (const pending of sink.left) {
      if (!pending.run.draining.aborted) pending.run.handleFault(pending, failure)
    }
  }

  /**
   * Queues rows that a connection has returned. They wait a moment, because connections to the same
   * hosts return theirs at about the same time, and together they fill fewer connections.
   */
  readonly #requeue = (returned: readonly Pending[]): void => {
    const { clock } = this.#options
    const open = returned.filter(({ run }) => !run.draining.aborted)
    const [first] = open
    if (first === undefined) return
    const queue = this.#queueFor(first.task)
    const now = clock.monotonicNow()
    const batches = new Set(open.map(pending => queue.add(pending, now, true)))
    if (queue.hasFull) this.#dispatch(queue)
    clock.after(RETURNED_MS, () => {
      for (const batch of batches) queue.markReady(batch)
      this.#dispatch(queue)
    })
  }
}

/** Takes the outcomes of the rows of one connection. */
class ChunkSink implements ProbeSink<ProbeTask, Outcome> {
  readonly #left = new Map<ProbeTask, Pending>()
  readonly #requeue: (returned: readonly Pending[]) => void

  constructor(chunk: readonly Pending[], requeue: (returned: readonly Pending[]) => void) {
    for (const pending of chunk) this.#left.set(pending.task, pending)
    this.#requeue = requeue
  }

  /** The rows without an outcome. */
  get left(): Iterable<Pending> {
    return this.#left.values()
  }

  probed(task: ProbeTask, outcome: Outcome): void {
    const pending = this.#pendingOf(task)
    pending.run.handleOutcome(pending, outcome)
    this.#left.delete(task)
  }

  later(task: ProbeTask, delayMs: number): void {
    const pending = this.#pendingOf(task)
    pending.run.enqueueLater(pending, delayMs)
    this.#left.delete(task)
  }

  returned(tasks: readonly ProbeTask[]): void {
    const returned = tasks.map(task => this.#pendingOf(task))
    for (const task of tasks) this.#left.delete(task)
    this.#requeue(returned)
  }

  #pendingOf(task: ProbeTask): Pending {
    const pending = this.#left.get(task)
    if (pending === undefined) throw new EvError('internal', `unknown task: ${task.text}`)
    return pending
  }
}

/** Returns the runs that have rows in a chunk. */
function runsOf(chunk: readonly Pending[]): readonly Run[] {
  const [{ run: first }] = chunk as [Pending]
  if (chunk.every(({ run }) => run === first)) return [first]
  return [...new Set(chunk.map(({ run }) => run))]
}

type JoinedSignals = {
  readonly signal: AbortSignal
  readonly drain: AbortSignal
  readonly done: () => void
}

/** Returns signals that abort when those of all runs have that have rows in a chunk. */
function joinSignals(chunk: readonly Pending[]): JoinedSignals {
  const runs = runsOf(chunk)
  const [first] = runs as [Run]
  if (runs.length === 1) return { signal: first.closing, drain: first.draining, done() {} }
  const ending = whenAllAbort(runs.map(run => run.closing))
  const draining = whenAllAbort(runs.map(run => run.draining))
  return {
    signal: ending.signal,
    drain: draining.signal,
    done() {
      ending.done()
      draining.done()
    },
  }
}

function whenAllAbort(signals: readonly AbortSignal[]) {
  const controller = new AbortController()
  const onOne = () => {
    if (signals.every(({ aborted }) => aborted)) controller.abort()
  }
  const cancels = signals.map(signal => onAbort(signal, onOne))
  return {
    signal: controller.signal,
    done() {
      for (const cancel of cancels) cancel()
    },
  }
}
