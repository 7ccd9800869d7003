import { EgressPool } from '../../src/engine/probe/egress-pool.ts'
import type { EgressProber } from '../../src/engine/probe/egress-prober.ts'
import { RateController } from '../../src/engine/rate-control/controller.ts'
import { limitsFor } from '../../src/engine/rate-control/limit-table.ts'
import { ProbeScheduler, type Slot } from '../../src/jobs/probing/probe-scheduler.ts'
import { directTasks, parseSlot, probeKind } from '../../src/jobs/probing/probe-tasks.ts'
import { createMemoryQueue } from '../../src/queue/memory-queue.ts'
import type { Reschedule } from '../../src/queue/queue.ts'
import { type ClaimedPart, FakeStore } from './fake-store.ts'
import { HeapClock } from './heap-clock.ts'
import { type ListPlan, type Load, LoadGenerator, listsOf, operatorName } from './load.ts'

export type Plan = Load & {
  /** Each has an egress of its own. */
  readonly workers: number
  readonly seed: number
}

export type LoadResult = {
  /** Time from the first list to the last result. */
  readonly tookMs: number
  readonly lists: readonly Finished[]
  readonly sessions: number
  /** Share of the connections of all workers that were idle, over the whole time. */
  readonly idleShare: number
  /** Peak number of queue tasks. */
  readonly tasksMax: number
  /** Number of task runs. */
  readonly runs: number
}

export type Finished = { readonly rows: number; readonly waitedMs: number }

/** Concurrent connections of a worker, as set by `--concurrency`. */
const CONCURRENCY = 200
/**
 * If the rate limit requires a longer wait, another operator is probed meanwhile, as in the worker.
 */
const NEVER = new AbortController().signal
const TIMEOUT_MS = 1_000
/**
 * Duration of a session without recipients (connect, greeting, EHLO, TLS, QUIT), and of each
 * recipient.
 */
const [SESSION_MS, RECIPIENT_MS] = [700, 40]
/** Share of sessions that are throttled. */
const THROTTLED_SHARE = 0.002
const NO_OVERRIDES = {
  sessionsPerOperator: null,
  recipientsPerSession: null,
  sessionsPerSecond: null,
}

/**
 * Runs a load against the queue, probe scheduler, rate control and egress pool of the worker; only
 * the clock, the database and the mail servers are simulated.
 */
export async function simulateLoad(
  plan: Plan,
  onProgress: (answered: number) => void,
): Promise<LoadResult> {
  const clock = new HeapClock()
  const generator = new LoadGenerator(plan.seed)
  const simulated = new SimulatedWorkers(clock, generator, plan.workers, onProgress)
  const lists = listsOf(plan, generator)
  let submitted = 0
  const next = () => {
    const list = lists[submitted]
    if (list === undefined) return
    clock.after(list.atMs - clock.now(), () => {
      submitted++
      simulated.submit(list)
      next()
    })
  }
  next()
  await clock.run(() => simulated.finished.length === lists.length)
  return simulated.loadResult()
}

class SimulatedWorkers {
  readonly finished: Finished[] = []
  readonly #clock: HeapClock
  readonly #generator: LoadGenerator
  readonly #workers: number
  readonly #onProgress: (answered: number) => void
  readonly #store = new FakeStore()
  readonly #queue: ReturnType<typeof createMemoryQueue>
  /** One per process, by its egress. */
  readonly #schedulers: ReadonlyMap<string, ProbeScheduler>
  readonly #egressPool: EgressPool
  readonly #engine: never
  readonly #controllers: ReadonlyMap<string, Map<string, RateController>>
  /** Numbers by operator name. */
  readonly #numbers = new Map<string, number>()
  /** Initial slots by operator number, cached because ranking a thousand egresses is slow. */
  readonly #initialSlots: Slot[] = []
  readonly #open = new Map<number, { plan: ListPlan; left: number }>()
  #submitted = 0
  #answered = 0
  #sessions = 0
  #runs = 0
  #busyMs = 0
  #tasksMax = 0

  /** `onProgress` is called from time to time with the number of answered addresses. */
  constructor(
    clock: HeapClock,
    generator: LoadGenerator,
    workers: number,
    onProgress: (answered: number) => void,
  ) {
    this.#clock = clock
    this.#generator = generator
    this.#workers = workers
    this.#onProgress = onProgress
    this.#queue = createMemoryQueue(clock, SILENT)
    const names = Array.from({ length: workers }, (_, n) => `worker${n}`)
    const tasks = directTasks(this.#queue)
    this.#schedulers = new Map(names.map(name => [name, new ProbeScheduler(tasks, clock, true)]))
    this.#controllers = new Map(names.map(name => [name, new Map<string, RateController>()]))
    this.#egressPool = new EgressPool(names.map(name => this.#prober(name)))
    this.#engine = {
      egressPool: this.#egressPool,
      rateController: (operator: string, egress: string) => this.#controllerFor(egress, operator),
    } as never
    for (const egress of names) {
      const work = (key: string) => this.#runTask({ operator: parseSlot(key, '').operator, egress })
      this.#queue.work(probeKind(egress), work, { concurrency: CONCURRENCY })
    }
  }

  submit(plan: ListPlan): void {
    const list = this.#submitted++
    this.#open.set(list, { plan, left: plan.rows })
    const operators = new Set<number>()
    for (let row = 0; row < plan.rows; row++) {
      const operator = this.#generator.operator()
      this.#store.put(operator, list)
      operators.add(operator)
    }
    for (const operator of operators) {
      const slot = this.#initialSlot(operator)
      void this.#schedulerOf(slot).put(slot)
    }
  }

  #initialSlot(number: number): Slot {
    const known = this.#initialSlots[number]
    if (known !== undefined) return known
    const operator = operatorName(number)
    const slot = { operator, egress: this.#egressPool.primaryFor(operator) }
    this.#numbers.set(operator, number)
    this.#initialSlots[number] = slot
    return slot
  }

  loadResult(): LoadResult {
    const tookMs = this.#clock.now()
    return {
      tookMs,
      lists: this.finished,
      sessions: this.#sessions,
      runs: this.#runs,
      idleShare: 1 - this.#busyMs / (tookMs * this.#workers * CONCURRENCY),
      tasksMax: this.#tasksMax,
    }
  }

  /**
   * Runs a task as the worker does: claims a connection's worth of addresses, probes them, and
   * returns when the task is due again.
   */
  async #runTask(slot: Slot): Promise<Reschedule> {
    const { operator, egress } = slot
    this.#runs++
    if (this.#runs % 1_024 === 0) this.#count()
    const number = this.#numbers.get(operator) as number
    if (!this.#store.has(number)) return this.#whenDue(slot)
    const controller = this.#controllerFor(egress, operator)
    if (controller.readyInMs > TIMEOUT_MS)
      return { dueAt: this.#clock.now() + controller.readyInMs }
    const start = await controller.start(0, NEVER, false, 0)
    if (!('permit' in start)) {
      const waitMs = 'waitMs' in start ? start.waitMs : TIMEOUT_MS
      return { dueAt: this.#clock.now() + waitMs }
    }
    const max = controller.row.recipientsPerSession
    const claimed = this.#store.claim(number, max)
    const count = claimed.reduce((sum, part) => sum + part.count, 0)
    if (count === max) await this.#schedulerOf(slot).putAll(this.#engine, slot)
    await this.#probe(controller, count)
    start.permit.release()
    for (const part of claimed) this.#record(part)
    return this.#store.has(number) ? { dueAt: this.#clock.now() } : this.#whenDue(slot)
  }

  /** Ends a task without addresses; there are no delayed retries here. */
  #whenDue(slot: Slot): Reschedule {
    this.#schedulerOf(slot).onEmptyClaim(slot.operator)
    return 'done'
  }

  async #probe(controller: RateController, count: number): Promise<void> {
    this.#sessions++
    // Varies the duration by up to half, as between servers.
    const tookMs = (SESSION_MS + count * RECIPIENT_MS) * (0.5 + this.#generator.random())
    await new Promise<void>(resolve => this.#clock.after(tookMs, resolve))
    this.#busyMs += tookMs
    if (this.#generator.random() < THROTTLED_SHARE) controller.throttled(null)
    else controller.succeeded()
  }

  #record({ list, count }: ClaimedPart): void {
    const open = this.#open.get(list)
    if (open === undefined) return
    this.#answered += count
    open.left -= count
    if (open.left > 0) return
    this.#open.delete(list)
    this.finished.push({ rows: open.plan.rows, waitedMs: this.#clock.now() - open.plan.atMs })
  }

  #schedulerOf({ egress }: Slot): ProbeScheduler {
    return this.#schedulers.get(egress) as ProbeScheduler
  }

  #count(): void {
    const { waiting, running } = this.#queue.status()
    this.#tasksMax = Math.max(this.#tasksMax, waiting + running)
    this.#onProgress(this.#answered)
  }

  #controllerFor(egress: string, operator: string): RateController {
    const ofEgress = this.#controllers.get(egress) as Map<string, RateController>
    const known = ofEgress.get(operator)
    if (known !== undefined) return known
    const controller = new RateController(limitsFor(operator, NO_OVERRIDES), this.#clock)
    // Controllers of small operators are not cached beyond a limit, as in the worker.
    if (!operator.startsWith('own') || ofEgress.size < CONTROLLERS_MAX)
      ofEgress.set(operator, controller)
    return controller
  }

  /** The part of a prober that the egress pool uses. */
  #prober(egressName: string): EgressProber {
    return {
      egressName,
      uncertainForMs: null,
      mayAsk: () => true,
      row: (operator: string) => limitsFor(operator, NO_OVERRIDES),
      rateController: (operator: string) => this.#controllerFor(egressName, operator),
    } as unknown as EgressProber
  }
}

const CONTROLLERS_MAX = 20_000
const SILENT = { debug() {}, info() {}, warn() {}, error() {} }
