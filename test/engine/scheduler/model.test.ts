import { expect, test } from 'vitest'
import type { Feed, Postponement, Refusal, Row, Sink } from '../../../src/engine/scheduler/feed.ts'
import { Scheduler } from '../../../src/engine/scheduler/scheduler.ts'
import type { Result } from '../../../src/engine/verdict/verdict.ts'
import { onAbort } from '../../../src/platform/abort.ts'
import type { Clock } from '../../../src/platform/clock.ts'
import { createTestEngine, mail } from '../../support/engine.ts'
import { HANG_UP, type MxSays, type MxSession } from '../../support/mx.ts'
import { fc, runs } from '../../support/property.ts'
import { isRandomRecipient, toRecipients } from '../../support/recipients.ts'

// Any lists, through one scheduler, against a model of five lines: the scheduler has a row or the
// list has it; each row is decided once; a list that is not stopped ends with all rows decided; one
// that is stopped gets the others back; and no operator has more connections than it allows.

/** Domains of two operators by their IP address, and what their servers do. */
const ZONE = {
  ...mail('plain.test', '192.0.2.1'),
  ...mail('all.test', '192.0.2.1'),
  ...mail('grey.test', '192.0.2.1'),
  ...mail('breaks.test', '192.0.2.2'),
  ...mail('other.test', '192.0.2.2'),
}
const DOMAINS = ['plain.test', 'all.test', 'grey.test', 'breaks.test', 'other.test', 'none.test']
const NO = '550 5.1.1 No such user'
const GREY = '450 4.2.0 Greylisted, try again in 10 minutes'

/** Servers that greylist each recipient once, and hang up once. */
function createServers() {
  const asked = new Set<string>()
  return toRecipients((to): MxSays => {
    const [local = '', domain = ''] = to.split('@')
    const isFirst = !asked.has(to)
    asked.add(to)
    if (domain === 'all.test') return undefined
    if (isRandomRecipient(to)) return NO
    if (domain === 'grey.test' && isFirst) return GREY
    if (domain === 'breaks.test' && isFirst && local.endsWith('3')) return HANG_UP
    return local.endsWith('9') ? NO : undefined
  })
}

type ListPlan = {
  readonly rows: readonly (readonly [user: number, domain: string])[]
  readonly pageMax: number
  /** Whether the list takes refused and postponed rows back. */
  readonly canRefuse: boolean
  readonly takesPostponed: boolean
  /** Whether it answers later whether it has refused rows, as after a question to a database. */
  readonly answersLater: boolean
  /** When it begins, and when it is stopped or finished, in ms; null: never. */
  readonly beginsAtMs: number
  readonly stopsAfterMs: number | null
  readonly finishesAfterMs: number | null
}

const listPlan: fc.Arbitrary<ListPlan> = fc.record({
  rows: fc.array(fc.tuple(fc.nat(40), fc.constantFrom(...DOMAINS)), { maxLength: 60 }),
  pageMax: fc.integer({ min: 1, max: 30 }),
  canRefuse: fc.boolean(),
  takesPostponed: fc.boolean(),
  answersLater: fc.boolean(),
  beginsAtMs: fc.nat(3_000),
  stopsAfterMs: fc.option(fc.nat(4_000), { freq: 2 }),
  finishesAfterMs: fc.option(fc.nat(4_000), { freq: 2 }),
})

/** A list that keeps what the scheduler gives back, as a database does. */
class ModelList implements Feed<number>, Sink<number> {
  readonly decidedBy = new Map<number, Result>()
  readonly #plan: ListPlan
  readonly #clock: Clock
  readonly #stopping: AbortSignal
  readonly #refused = new Map<string, number[]>()
  #due: Row<number>[]
  /** Rows that the list has, or that wait for their time. */
  #kept = 0
  /** Rows that the scheduler has. */
  readonly given = new Set<number>()
  #isIdle = false
  #wake: () => void = () => {}
  readonly faults: string[] = []
  readonly held = 0

  constructor(plan: ListPlan, clock: Clock, stopping: AbortSignal) {
    this.#plan = plan
    this.#clock = clock
    this.#stopping = stopping
    this.#due = plan.rows.map((_, item) => this.#row(item))
    onAbort(stopping, () => this.#wake())
  }

  #row(item: number, askedBy?: string): Row<number> {
    const [user, domain] = this.#plan.rows[item] ?? [0, '']
    return { item, text: `user${user}@${domain}`, history: null, askedBy }
  }

  async read(max: number): Promise<readonly Row<number>[] | null> {
    while (!this.#stopping.aborted) {
      const page = this.#due.splice(0, Math.min(max, this.#plan.pageMax))
      for (const { item } of page) this.#check(!this.given.has(item), `${item} is given twice`)
      for (const { item } of page) this.given.add(item)
      if (page.length > 0) {
        this.#isIdle = false
        return page
      }
      if (this.given.size + this.#kept === 0) return null
      if (!this.#isIdle) {
        this.#isIdle = true
        return []
      }
      await new Promise<void>(resolve => {
        this.#wake = resolve
      })
    }
    return null
  }

  #check(isRight: boolean, fault: string) {
    if (!isRight) this.faults.push(fault)
  }

  #takeBack(item: number, what: string) {
    this.#check(this.given.delete(item), `${item} is ${what} without having been given`)
    this.#wake()
  }

  decided(item: number, result: Result) {
    this.#check(!this.decidedBy.has(item), `${item} is decided twice`)
    this.decidedBy.set(item, result)
    this.#takeBack(item, 'decided')
  }

  postponed(item: number, { retry: { delayMs } }: Postponement) {
    if (!this.#plan.takesPostponed) return false
    this.#kept++
    this.#takeBack(item, 'postponed')
    this.#clock.after(delayMs, () => this.#supply(item))
    return true
  }

  refused(item: number, refusal: Refusal | null) {
    this.#check(refusal === null || this.#plan.canRefuse, `${item} is refused`)
    this.#kept++
    this.#takeBack(item, 'refused')
    if (refusal === null) return
    const operator = refusal.task.operator.name
    this.#refused.set(operator, [...(this.#refused.get(operator) ?? []), item])
  }

  drained(operator: string, room: number) {
    const items = this.#refused.get(operator)?.splice(0, room) ?? []
    const supply = () => {
      for (const item of items) this.#supply(item, operator)
      return items.length
    }
    return this.#plan.answersLater ? Promise.resolve(0).then(supply) : supply()
  }

  #supply(item: number, askedBy?: string) {
    this.#kept--
    this.#due.push(this.#row(item, askedBy))
    this.#wake()
  }
}

test(
  'each row of any lists is decided once, or given back to a list that is stopped',
  { timeout: 300_000 },
  () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(listPlan, { minLength: 1, maxLength: 4 }),
        fc.record({
          windowMax: fc.integer({ min: 5, max: 200 }),
          concurrency: fc.integer({ min: 1, max: 4 }),
          sessionsPerOperator: fc.integer({ min: 1, max: 2 }),
          recipientsPerSession: fc.integer({ min: 1, max: 6 }),
        }),
        async (plans, { windowMax, concurrency, ...limits }) => {
          let openMax = 0
          const greeting = ({ to }: MxSession) => {
            const open = mx.sessions.filter(one => !one.closed && one.to.ip === to.ip)
            openMax = Math.max(openMax, open.length)
            return undefined
          }
          const { engine, clock, mx, settled } = createTestEngine({
            zone: ZONE,
            script: { answer: createServers(), greeting },
            engine: limits,
          })
          const scheduler = new Scheduler(engine, {
            clock,
            concurrency,
            windowMax,
            greylistDelayMs: null,
            wait: true,
            urgent: false,
          })
          const ended = plans.map(async plan => {
            await new Promise<void>(resolve => {
              clock.after(plan.beginsAtMs, resolve)
            })
            const [stop, finish] = [new AbortController(), new AbortController()]
            const { stopsAfterMs, finishesAfterMs } = plan
            if (stopsAfterMs !== null) clock.after(stopsAfterMs, () => stop.abort())
            if (finishesAfterMs !== null) clock.after(finishesAfterMs, () => finish.abort())
            const list = new ModelList(plan, clock, stop.signal)
            await scheduler.run(list, list, {
              canRefuse: plan.canRefuse,
              route: {},
              signal: new AbortController().signal,
              drain: stop.signal,
              finish: finish.signal,
            })
            return { list, plan, isStopped: stop.signal.aborted }
          })
          for (const { list, plan, isStopped } of await settled(Promise.all(ended))) {
            expect(list.faults).toEqual([])
            expect([...list.given]).toEqual([])
            if (!isStopped) expect(list.decidedBy.size).toBe(plan.rows.length)
          }
          expect(openMax).toBeLessThanOrEqual(limits.sessionsPerOperator)
        },
      ),
      { numRuns: runs(400) },
    ),
)
