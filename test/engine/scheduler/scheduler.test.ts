import { describe, expect, test } from 'vitest'
import type { Engine } from '../../../src/engine/engine.ts'
import type { Feed, Row, Sink } from '../../../src/engine/scheduler/feed.ts'
import type { RunOptions, SchedulerOptions } from '../../../src/engine/scheduler/run.ts'
import { Scheduler } from '../../../src/engine/scheduler/scheduler.ts'
import { MINUTE, SECOND, sleep } from '../../../src/platform/clock.ts'
import { createTestEngine } from '../../support/engine.ts'
import { isRandomRecipient, toRecipients } from '../../support/recipients.ts'
import { drainEventLoop } from '../../support/wait.ts'

const NO = '550 5.1.1 No such user'
const GREY = '450 4.2.0 Greylisted, try again in 10 minutes'
const NEVER = new AbortController().signal

const rowsOf = (...texts: readonly string[]): Row<string>[] =>
  texts.map(text => ({ item: text, text, history: null }))

/** Feeds one page, and then waits or ends. */
function feedOf(rows: readonly Row<string>[], end: Promise<null> = Promise.resolve(null)) {
  const pages = [rows]
  const feed: Feed<string> = { read: async () => pages.shift() ?? end }
  return feed
}

/** Notes all calls; the method `throws` throws. Postponed rows stay with the scheduler. */
function noteCalls(throws?: keyof Sink<string>) {
  const calls: string[] = []
  const note = (method: keyof Sink<string>, text: string) => {
    calls.push(text)
    if (method === throws) throw new Error('the list is gone')
  }
  const sink: Sink<string> = {
    held: 0,
    drained: () => 0,
    decided: (item, { verdict }) => note('decided', `${item} ${verdict.reason}`),
    postponed: (item, { retry: { delayMs, tries, egress } }) => {
      note('postponed', `${item} postponed ${delayMs} ${tries} ${egress}`)
      return false
    },
    refused: item => note('refused', `${item} refused`),
  }
  return { calls, sink }
}

/** A list whose feed ends when all rows are decided; `supply` adds rows that were refused. */
function createOpenList(texts: readonly string[]) {
  const due: (readonly Row<string>[])[] = [rowsOf(...texts)]
  let open = texts.length
  let wake = () => {}
  const feed: Feed<string> = {
    async read() {
      while (due.length === 0 && open > 0) {
        await new Promise<void>(resolve => {
          wake = resolve
        })
      }
      return due.shift() ?? null
    },
  }
  return {
    feed,
    get open() {
      return open
    },
    sink: {
      held: 0,
      decided() {
        open--
        wake()
      },
      postponed: () => false,
    },
    supply(rows: readonly Row<string>[]) {
      if (rows.length > 0) due.push(rows)
      wake()
    },
  }
}

type Options = Pick<SchedulerOptions, 'clock'> & Partial<SchedulerOptions & RunOptions>

function schedule(engine: Engine, sink: Sink<string>, o: Options) {
  const { canRefuse = false, route = {}, signal = NEVER, drain, finish, ...options } = o
  const scheduler = new Scheduler(engine, {
    concurrency: engine.concurrency,
    greylistDelayMs: null,
    windowMax: 100,
    wait: true,
    urgent: false,
    ...options,
  })
  const signals = { ...(drain && { drain }), ...(finish && { finish }) }
  return {
    run: (feed: Feed<string>) =>
      scheduler.run(feed, sink, { canRefuse, route, signal, ...signals }),
  }
}

describe('the sink hears of each row', () => {
  test('its result, and before that each postponement', async () => {
    const asked = new Set<string>()
    const script = toRecipients(to => {
      if (to !== 'bob@a.test') return isRandomRecipient(to) ? NO : undefined
      const isFirst = !asked.has(to)
      asked.add(to)
      return isFirst ? GREY : undefined
    })
    const { engine, settled, clock } = createTestEngine({ script })
    const { calls, sink } = noteCalls()
    const feed = feedOf(rowsOf('nonsense', 'ann@a.test', 'bob@a.test'))
    await settled(schedule(engine, sink, { clock }).run(feed))
    expect(calls.slice(0, 1)).toEqual(['nonsense invalid_email'])
    expect(calls.slice(1).toSorted()).toEqual([
      'ann@a.test accepted_email',
      'bob@a.test accepted_email',
      `bob@a.test postponed ${10 * MINUTE} 1 default`,
    ])
  })

  test('that it is refused, if the run ends before its result', async () => {
    const { engine, clock } = createTestEngine({ script: { greeting: null } })
    const { calls, sink } = noteCalls()
    const end = new AbortController()
    const run = schedule(engine, sink, { clock, signal: end.signal }).run(
      feedOf(rowsOf('nonsense', 'ann@a.test'), new Promise(() => {})),
    )
    await drainEventLoop()
    await clock.advance(200)
    await drainEventLoop()
    end.abort()
    await run
    await drainEventLoop()
    expect(calls).toEqual(['nonsense invalid_email', 'ann@a.test refused'])
  })
})

test('a drain lets the sessions in flight finish and refuses the other rows', async () => {
  const drain = new AbortController()
  const script = toRecipients(to => {
    drain.abort()
    return isRandomRecipient(to) ? NO : undefined
  })
  const { engine, settled, clock, mx } = createTestEngine({
    script,
    zone: { 'silent.test': 'never' },
  })
  const { calls, sink } = noteCalls()
  const rows = rowsOf('ann@silent.test', 'ann@a.test')
  const run = schedule(engine, sink, { clock, drain: drain.signal }).run(
    feedOf(rows, new Promise(() => {})),
  )
  await settled(run)
  expect(calls).toEqual(['ann@a.test accepted_email', 'ann@silent.test refused'])
  expect(mx.sessions.map(({ closed }) => closed)).toEqual([true])
  expect(clock.pending).toBe(0)
})

test('a run that is to finish waits for a slow server for a minute', async () => {
  const finish = new AbortController()
  const { engine, settled, clock, mx } = createTestEngine({
    script: async (line): Promise<undefined> => {
      if (line.startsWith('RCPT')) {
        finish.abort()
        await sleep(clock, 100 * SECOND)
      }
      return undefined
    },
  })
  const { calls, sink } = noteCalls()
  const startedAt = clock.now()
  const rows = rowsOf('ann@a.test', 'bob@a.test')
  await settled(schedule(engine, sink, { clock, finish: finish.signal }).run(feedOf(rows)))
  expect(calls.toSorted()).toEqual(['ann@a.test timeout', 'bob@a.test timeout'])
  expect(clock.now() - startedAt).toBeLessThan(MINUTE + SECOND)
  expect(mx.sessions.map(({ closed }) => closed)).toEqual([true])
})

test('each refused row is supplied again once, also if others of the same time are decided at once', async () => {
  const script = toRecipients(to => (isRandomRecipient(to) ? NO : undefined))
  const { engine, settled, clock, recipients } = createTestEngine({
    script,
    engine: { sessionsPerOperator: 1, recipientsPerSession: 5 },
  })
  const texts = Array.from({ length: 200 }, (_, n) => `user${n}@a.test`)
  const refused: Row<string>[] = []
  const list = createOpenList(texts)
  let asked = 0
  const sink: Sink<string> = {
    ...list.sink,
    refused: item => void refused.push(...rowsOf(item)),
    drained(operator, room) {
      // Rows of a domain that has no mail server are decided without a probe.
      const rows = refused.splice(0, room).map((row, n) => ({
        ...row,
        text: n === 0 || asked < 20 ? row.text.replace('a.test', 'none.test') : row.text,
        askedBy: operator,
      }))
      asked += rows.length
      list.supply(rows)
      return rows.length
    },
  }
  await settled(schedule(engine, sink, { clock, canRefuse: true, windowMax: 1_000 }).run(list.feed))
  expect(list.open).toBe(0)
  expect(asked).toBe(190)
  expect(recipients().length).toBeGreaterThan(100)
})

test('a sink may answer later how many rows it supplies', async () => {
  const script = toRecipients(to => (isRandomRecipient(to) ? NO : undefined))
  const { engine, settled, clock } = createTestEngine({
    script,
    engine: { sessionsPerOperator: 1, recipientsPerSession: 5 },
  })
  const texts = Array.from({ length: 100 }, (_, n) => `user${n}@a.test`)
  const list = createOpenList(texts)
  /** Those that the database has, and those that were refused since. */
  const stored: Row<string>[] = []
  const pending: Row<string>[] = []
  const sink: Sink<string> = {
    ...list.sink,
    refused: item => void pending.push(...rowsOf(item)),
    async drained(operator, room) {
      stored.push(...pending.splice(0))
      await drainEventLoop()
      const rows = stored.splice(0, room).map(row => ({ ...row, askedBy: operator }))
      list.supply(rows)
      return rows.length
    },
  }
  await settled(schedule(engine, sink, { clock, canRefuse: true, windowMax: 1_000 }).run(list.feed))
  expect(list.open).toBe(0)
})

test.each(['decided', 'postponed'] as const)(
  'a sink whose `%s` throws ends the run with an error that names it',
  async method => {
    const { engine, settled, clock } = createTestEngine({ script: toRecipients(() => GREY) })
    const { calls, sink } = noteCalls(method)
    const texts = method === 'decided' ? ['nonsense', 'ann@a.test'] : ['ann@a.test', 'bob@a.test']
    const feed = feedOf(rowsOf(...texts), new Promise(() => {}))
    const run = schedule(engine, sink, { clock }).run(feed)
    await expect(settled(run)).rejects.toThrow(`${method} of the sink failed: the list is gone`)
    // Rows whose outcome the sink did not take are given back.
    expect(calls.filter(call => call.endsWith('refused')).toSorted()).toEqual(
      texts.map(text => `${text} refused`).toSorted(),
    )
  },
)

describe('a row with a history', () => {
  const random = toRecipients(to => (isRandomRecipient(to) ? NO : undefined))
  const retried = (tries: number, egress: string): Row<string> => ({
    item: 'ann@a.test',
    text: 'ann@a.test',
    history: { tries, egress, refusedBy: [], accepted: null, waitedMs: 0, route: null },
  })

  test('goes on counting its attempts', async () => {
    const { engine, settled, clock } = createTestEngine({ script: toRecipients(() => GREY) })
    const { calls, sink } = noteCalls()
    await settled(schedule(engine, sink, { clock }).run(feedOf([retried(2, 'default')])))
    expect(calls).toEqual(['ann@a.test greylisted'])
  })

  test('is probed by any egress if its own is no longer configured', async () => {
    const { engine, settled, clock } = createTestEngine({ script: random })
    const { calls, sink } = noteCalls()
    await settled(schedule(engine, sink, { clock }).run(feedOf([retried(2, 'gone')])))
    expect(calls).toEqual(['ann@a.test accepted_email'])
  })
})
