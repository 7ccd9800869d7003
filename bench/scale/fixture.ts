import { EgressPool } from '../../src/engine/probe/egress-pool.ts'
import type { EgressProber } from '../../src/engine/probe/egress-prober.ts'
import { RateController } from '../../src/engine/rate-control/controller.ts'
import { limitsFor } from '../../src/engine/rate-control/limit-table.ts'
import { ProbeScheduler, type Slot } from '../../src/jobs/probing/probe-scheduler.ts'
import { directTasks, parseOperator, probeKind } from '../../src/jobs/probing/probe-tasks.ts'
import { createMemoryQueue } from '../../src/queue/memory-queue.ts'
import type { Reschedule } from '../../src/queue/queue.ts'
import { Shelf, type Taken } from './fake-store.ts'
import { HeapClock } from './heap-clock.ts'
import { Draw, type ListPlan, type Load, listsOf, operatorName } from './load.ts'

export type Plan = Load & {
  /** Each asks by an address of its own. */
  readonly workers: number
  readonly seed: number
}

/** What became of all lists. */
export type Course = {
  /** From the first list to the last result, ms. */
  readonly tookMs: number
  readonly lists: readonly Finished[]
  readonly sessions: number
  /** Of all places for connections that the workers have, the share that stood empty, over the whole time. */
  readonly idleShare: number
  /** Entries of the queue at the same time, at most. */
  readonly entriesMax: number
  /** Times that an entry was taken. */
  readonly turns: number
}

export type Finished = { readonly rows: number; readonly waitedMs: number }

/** Connections of one worker at the same time, as `--concurrency` has it. */
const CONCURRENCY = 200
/** A pace that wants a longer wait than this gives its place to another operator, as in the worker. */
const TIMEOUT_MS = 1_000
/** Round trips before the first recipient (connect, greeting, EHLO, TLS) and after the last, and for each recipient. */
const [SESSION_MS, RECIPIENT_MS] = [700, 40]
/** Sessions that an operator cuts short, asking us to slow down. */
const THROTTLED_SHARE = 0.002
const NO_OVERRIDES = {
  sessionsPerOperator: null,
  recipientsPerSession: null,
  sessionsPerSecond: null,
}

/** Plays a load against the queue, slots, paces and egresses of the worker; only the clock and the mail servers are made up. */
export async function play(plan: Plan, onTurns: (answered: number) => void): Promise<Course> {
  const clock = new HeapClock()
  const draw = new Draw(plan.seed)
  const services = new House(clock, draw, plan.workers, onTurns)
  const lists = listsOf(plan, draw)
  let handedIn = 0
  const next = () => {
    const list = lists[handedIn]
    if (list === undefined) return
    clock.after(list.atMs - clock.now(), () => {
      handedIn++
      services.handIn(list)
      next()
    })
  }
  next()
  await clock.run(() => services.finished.length === lists.length)
  return services.course()
}

class House {
  readonly finished: Finished[] = []
  readonly #clock: HeapClock
  readonly #draw: Draw
  readonly #workers: number
  readonly #onTurns: (answered: number) => void
  readonly #shelf = new Shelf()
  readonly #queue: ReturnType<typeof createMemoryQueue>
  /** Each process has its own, by its egress. */
  readonly #slots: ReadonlyMap<string, ProbeScheduler>
  readonly #egressPool: EgressPool
  readonly #engine: never
  readonly #paces: ReadonlyMap<string, Map<string, RateController>>
  /** The number of each operator that was drawn. */
  readonly #numbers = new Map<string, number>()
  /** Where each of them is asked first, by its number: with a thousand egresses it takes a while to say, and here one asks for all. */
  readonly #firsts: Slot[] = []
  readonly #open = new Map<number, { plan: ListPlan; left: number }>()
  #handedIn = 0
  #answered = 0
  #sessions = 0
  #turns = 0
  #busyMs = 0
  #entriesMax = 0

  /** `onTurns` hears now and then how many addresses are answered. */
  constructor(clock: HeapClock, draw: Draw, workers: number, onTurns: (answered: number) => void) {
    this.#clock = clock
    this.#draw = draw
    this.#workers = workers
    this.#onTurns = onTurns
    this.#queue = createMemoryQueue(clock, SILENT)
    const names = Array.from({ length: workers }, (_, n) => `worker${n}`)
    const entries = directTasks(this.#queue)
    this.#slots = new Map(names.map(name => [name, new ProbeScheduler(entries, clock, true)]))
    this.#paces = new Map(names.map(name => [name, new Map<string, RateController>()]))
    this.#egressPool = new EgressPool(names.map(name => this.#prober(name)))
    this.#engine = {
      fleet: this.#egressPool,
      pace: (operator: string, egress: string) => this.#pace(egress, operator),
    } as never
    for (const egress of names) {
      const work = (key: string) => this.#turn({ operator: parseOperator(key), egress })
      this.#queue.work(probeKind(egress), work, { concurrency: CONCURRENCY })
    }
  }

  handIn(plan: ListPlan): void {
    const list = this.#handedIn++
    this.#open.set(list, { plan, left: plan.rows })
    const operators = new Set<number>()
    for (let row = 0; row < plan.rows; row++) {
      const operator = this.#draw.operator()
      this.#shelf.put(operator, list)
      operators.add(operator)
    }
    for (const operator of operators) {
      const slot = this.#firstOf(operator)
      void this.#slotsOf(slot).put(slot)
    }
  }

  #firstOf(number: number): Slot {
    const known = this.#firsts[number]
    if (known !== undefined) return known
    const operator = operatorName(number)
    const slot = { operator, egress: this.#egressPool.primaryFor(operator) }
    this.#numbers.set(operator, number)
    this.#firsts[number] = slot
    return slot
  }

  course(): Course {
    const tookMs = this.#clock.now()
    return {
      ...{ tookMs, lists: this.finished, sessions: this.#sessions, turns: this.#turns },
      idleShare: 1 - this.#busyMs / (tookMs * this.#workers * CONCURRENCY),
      entriesMax: this.#entriesMax,
    }
  }

  /** What the worker does with a slot: claims a connection's worth, asks, and says when it is due again. */
  async #turn(slot: Slot): Promise<Reschedule> {
    const { operator, egress } = slot
    this.#turns++
    if (this.#turns % 1_024 === 0) this.#count()
    const number = this.#numbers.get(operator) as number
    if (!this.#shelf.has(number)) return this.#whenDue(slot)
    const pace = this.#pace(egress, operator)
    if (pace.readyInMs > TIMEOUT_MS) return { dueAt: this.#clock.now() + pace.readyInMs }
    const start = pace.tryStart()
    if (!('permit' in start)) {
      const waitMs = 'waitMs' in start ? start.waitMs : TIMEOUT_MS
      return { dueAt: this.#clock.now() + waitMs }
    }
    const max = pace.row.recipientsPerSession
    const claimed = this.#shelf.take(number, max)
    const count = claimed.reduce((sum, part) => sum + part.count, 0)
    if (count === max) await this.#slotsOf(slot).putAll(this.#engine, slot)
    await this.#ask(pace, count)
    start.permit.release()
    for (const part of claimed) this.#record(part)
    return this.#shelf.has(number) ? { dueAt: this.#clock.now() } : this.#whenDue(slot)
  }

  /** Nothing waits for its time here. */
  #whenDue(slot: Slot): Reschedule {
    this.#slotsOf(slot).onEmptyClaim(slot.operator)
    return 'done'
  }

  async #ask(pace: RateController, count: number): Promise<void> {
    this.#sessions++
    // Servers are no two alike: half as long, or half as long again.
    const tookMs = (SESSION_MS + count * RECIPIENT_MS) * (0.5 + this.#draw.entropy())
    await new Promise<void>(resolve => this.#clock.after(tookMs, resolve))
    this.#busyMs += tookMs
    if (this.#draw.entropy() < THROTTLED_SHARE) pace.throttled(null)
    else pace.succeeded()
  }

  #record({ list, count }: Taken): void {
    const open = this.#open.get(list)
    if (open === undefined) return
    this.#answered += count
    open.left -= count
    if (open.left > 0) return
    this.#open.delete(list)
    this.finished.push({ rows: open.plan.rows, waitedMs: this.#clock.now() - open.plan.atMs })
  }

  #slotsOf({ egress }: Slot): ProbeScheduler {
    return this.#slots.get(egress) as ProbeScheduler
  }

  #count(): void {
    const { waiting, running } = this.#queue.status()
    this.#entriesMax = Math.max(this.#entriesMax, waiting + running)
    this.#onTurns(this.#answered)
  }

  #pace(egress: string, operator: string): RateController {
    const paces = this.#paces.get(egress) as Map<string, RateController>
    const known = paces.get(operator)
    if (known !== undefined) return known
    const pace = new RateController(limitsFor(operator, NO_OVERRIDES), this.#clock)
    // Those who run their own mail are so many that they are forgotten, as in the worker.
    if (!operator.startsWith('own') || paces.size < PACES_MAX) paces.set(operator, pace)
    return pace
  }

  /** All that the fleet wants to know of one. */
  #prober(egressName: string): EgressProber {
    return {
      egressName,
      doubtMs: null,
      mayAsk: () => true,
      row: (operator: string) => limitsFor(operator, NO_OVERRIDES),
      pace: (operator: string) => this.#pace(egressName, operator),
    } as unknown as EgressProber
  }
}

const PACES_MAX = 20_000
const SILENT = { debug() {}, info() {}, warn() {}, error() {} }
