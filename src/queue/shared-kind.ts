import { type Clock, sleep } from '../base/clock.ts'
import { messageOf } from '../base/error.ts'
import type { LogFields } from '../base/log.ts'
import { Alarm } from './alarm.ts'
import { Endings } from './endings.ts'
import type { Claim, Entries, Wanted } from './entries.ts'
import { Gather } from './gather.ts'
import type { Handler, NextDue, Worker, WorkOptions } from './queue.ts'
import { DEFAULT_QUEUE_TIMINGS, type QueueTimings } from './queue-timings.ts'

/** Claimed by one statement. */
const BATCH_MAX = 500

export type SharedKindParts = {
  readonly entries: Entries
  readonly clock: Clock
  readonly timings?: QueueTimings
  /** Tells of a fault of the database. */
  readonly complain: (message: string, fields: LogFields) => void
  /** Tells of a handler that threw. */
  readonly onFailure: (fields: LogFields) => void
}

type Run = {
  readonly claim: Claim
  readonly lost: AbortController
  /** By the clock's ticks: until then nobody else has it. */
  aliveUntil: number
  /** Put again here while it ran: when it is due, in ticks. */
  againAt: number | null
  over: Promise<void>
}

/** Works on the entries of one kind that many processes share. */
export class SharedKind {
  readonly #entries: Entries
  readonly #clock: Clock
  readonly #timings: QueueTimings
  readonly #complain: SharedKindParts['complain']
  readonly #onFailure: SharedKindParts['onFailure']
  readonly #puts: Gather<{ key: string; dueAt: number }>
  readonly #endings: Endings
  readonly #alarm: Alarm
  readonly #stopping = new AbortController()
  readonly #runs = new Set<Run>()
  /** The newest run of each key. */
  readonly #byKey = new Map<string, Run>()
  #handler: Handler | null = null
  #concurrency = 0
  /** Something may be due. */
  #wanted = true
  #taking: Promise<void> | null = null
  #touching = false
  #touchedAt = Number.NEGATIVE_INFINITY
  #stopped: Promise<void> | null = null

  constructor(parts: SharedKindParts) {
    const { entries, clock, complain, onFailure, timings = DEFAULT_QUEUE_TIMINGS } = parts
    this.#timings = timings
    this.#entries = entries
    this.#clock = clock
    this.#complain = complain
    this.#onFailure = onFailure
    this.#alarm = new Alarm(clock, () => this.wake(), timings)
    this.#puts = new Gather(batch => this.#store(batch))
    const stopping = this.#stopping.signal
    this.#endings = new Endings({
      ...{ entries, clock, complain, stopping, retryMs: timings.retryMs },
      onBack: waitMs => this.#expect(waitMs),
      onLost: ({ claim, putAt }) => putAt !== null && this.#putAgain(claim.key, putAt),
    })
  }

  /** What runs here is only marked; everything else is written, together with what others put meanwhile. */
  async put(keys: readonly string[], waitMs: number): Promise<void> {
    const dueAt = this.#clock.ticks() + waitMs
    const others = keys.filter(key => !this.#mark(key, dueAt))
    if (others.length > 0) await this.#puts.add(others.map(key => ({ key, dueAt })))
  }

  work(handler: Handler, options: WorkOptions): Worker {
    this.#handler = handler
    this.#concurrency = options.concurrency
    this.wake()
    return { stop: () => this.stop() }
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#stop()
    return this.#stopped
  }

  /** When all puts are written, or failed. */
  quiet(): Promise<void> {
    return this.#puts.quiet()
  }

  /** Something may be due now. */
  wake(): void {
    this.#wanted = true
    this.#look()
  }

  /** Once a second or so: looks for what came due, keeps the claims, and lets go of those that could not be kept. */
  beat(): void {
    const now = this.#clock.ticks()
    for (const run of this.#runs) if (now >= run.aliveUntil) run.lost.abort()
    if (this.#runs.size > 0 && !this.#touching && now - this.#touchedAt >= this.#timings.touchMs) {
      void this.#touch()
    }
    this.wake()
  }

  /** True when it runs here: it runs once more afterwards. */
  #mark(key: string, dueAt: number): boolean {
    const run = this.#byKey.get(key)
    if (run === undefined || run.lost.signal.aborted) return false
    run.againAt = Math.min(run.againAt ?? dueAt, dueAt)
    return true
  }

  async #store(batch: readonly { key: string; dueAt: number }[]): Promise<void> {
    const now = this.#clock.ticks()
    const earliest = new Map<string, number>()
    for (const { key, dueAt } of batch) {
      const waitMs = Math.max(0, dueAt - now)
      earliest.set(key, Math.min(earliest.get(key) ?? waitMs, waitMs))
    }
    const wanted: Wanted[] = [...earliest].map(([key, waitMs]) => ({ key, waitMs }))
    await this.#entries.put(wanted)
    for (const { waitMs } of wanted) this.#expect(waitMs)
  }

  #expect(waitMs: number) {
    if (waitMs <= 0) this.wake()
    else if (this.#handler !== null && !this.#stopping.signal.aborted) this.#alarm.set(waitMs)
  }

  #look() {
    const isFree = this.#wanted && this.#taking === null && this.#runs.size < this.#concurrency
    if (!isFree || this.#handler === null || this.#stopping.signal.aborted) return
    this.#taking = this.#take(this.#handler).finally(() => {
      this.#taking = null
      this.#look()
    })
  }

  async #take(handler: Handler): Promise<void> {
    const max = Math.min(this.#concurrency - this.#runs.size, BATCH_MAX)
    const since = this.#clock.ticks()
    this.#wanted = false
    try {
      const claims = await this.#entries.take(max)
      if (claims.length === max) this.#wanted = true
      for (const claim of claims) this.#begin(handler, claim, since)
    } catch (error) {
      this.#wanted = true
      this.#complain('work cannot be fetched now; that is tried again', {
        error: messageOf(error),
      })
      await sleep(this.#clock, this.#timings.retryMs, this.#stopping.signal)
    }
  }

  #begin(handler: Handler, claim: Claim, since: number) {
    const before = this.#byKey.get(claim.key)
    before?.lost.abort()
    const run: Run = {
      ...{ claim, lost: new AbortController(), aliveUntil: since + this.#timings.aliveMs },
      ...{ againAt: null, over: Promise.resolve() },
    }
    this.#runs.add(run)
    this.#byKey.set(claim.key, run)
    run.over = this.#run(handler, run, before?.over)
  }

  /** A run of this process that lost the same entry ends first: nothing runs twice at once. */
  async #run(handler: Handler, run: Run, before: Promise<void> | undefined): Promise<void> {
    await before
    const { key } = run.claim
    let next: NextDue = { dueAt: this.#clock.now() }
    if (!this.#stopping.signal.aborted) {
      try {
        const signals = { stopping: this.#stopping.signal, lost: run.lost.signal }
        next = await handler(key, signals)
      } catch (error) {
        this.#onFailure({ key, error: messageOf(error) })
        next = { dueAt: this.#clock.now() + this.#timings.retryMs }
      }
    }
    this.#runs.delete(run)
    if (this.#byKey.get(key) === run) this.#byKey.delete(key)
    this.#end(run, next)
    this.#look()
  }

  #end(run: Run, next: NextDue) {
    const { now, ticks } = { now: this.#clock.now(), ticks: this.#clock.ticks() }
    const asked = next === 'done' ? null : ticks + next.dueAt - now
    const times = [asked, run.againAt].filter(at => at !== null)
    const dueAt = times.length === 0 ? null : Math.min(...times)
    this.#endings.add({ claim: run.claim, dueAt, putAt: run.againAt })
  }

  /** It was another's already when it was put here, and that run may be over. */
  #putAgain(key: string, dueAt: number) {
    this.#puts.add([{ key, dueAt }]).catch(error => {
      this.#complain('work cannot be put back now', { key, error: messageOf(error) })
    })
  }

  async #touch(): Promise<void> {
    const since = this.#clock.ticks()
    const runs = [...this.#byKey.values()]
    this.#touching = true
    this.#touchedAt = since
    try {
      const held = await this.#entries.touch(runs.map(({ claim }) => claim))
      for (const run of runs) {
        if (held.has(run.claim.id))
          run.aliveUntil = Math.max(run.aliveUntil, since + this.#timings.aliveMs)
        // What ended meanwhile is held by nobody.
        else if (this.#runs.has(run)) run.lost.abort()
      }
    } catch (error) {
      this.#touchedAt = Number.NEGATIVE_INFINITY
      this.#complain('work that runs cannot be kept now', { error: messageOf(error) })
    }
    this.#touching = false
  }

  async #stop(): Promise<void> {
    this.#stopping.abort()
    this.#alarm.cancel()
    await this.#taking
    await Promise.all([...this.#runs].map(({ over }) => over))
    await this.#endings.quiet()
  }
}
