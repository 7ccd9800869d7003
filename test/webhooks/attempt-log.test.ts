import { describe, expect, test } from 'vitest'
import { HOUR, MINUTE } from '../../src/platform/clock.ts'
import type { Attempt } from '../../src/webhooks/attempt.ts'
import { createAttemptLog } from '../../src/webhooks/attempt-log.ts'
import type { DueDelivery } from '../../src/webhooks/delivery-store.ts'
import { fakeClock } from '../support/clock.ts'
import { recordingLog } from '../support/log.ts'

const due = (id = 'wh_a', failingSince: number | null = null) =>
  ({ eventId: 'evt_1', attempt: 0, webhook: { id, failingSince } }) as DueDelivery

const attempt = (state: Attempt['next']['state'], statusCode = 500) =>
  ({
    statusCode,
    durationMs: 7,
    error: 'It answered 500.',
    next: { state },
  }) as Attempt

function createLog() {
  const clock = fakeClock()
  const { log, lines } = recordingLog()
  const loggedLines = () => lines.filter(({ level }) => level !== 'debug').splice(0)
  return { clock, lines, loggedLines, record: createAttemptLog({ log, clock }) }
}

describe('an endpoint that is down', () => {
  test('with 10,000 events is one log line per hour, with the number of suppressed ones', async () => {
    const { clock, record, loggedLines } = createLog()
    for (let n = 0; n < 10_000; n++) record(due(), attempt('retry_scheduled'), null)
    const message = 'webhook delivery attempt failed; will retry'
    const fields = { webhook: 'wh_a', event: 'evt_1', status: 500, attempts: 1 }
    const first = { level: 'info', message, fields: { ...fields, why: 'It answered 500.' } }
    expect(loggedLines()).toEqual([first])
    await clock.advance(HOUR - 1)
    record(due(), attempt('retry_scheduled'), null)
    expect(loggedLines()).toHaveLength(1)
    await clock.advance(1)
    record(due(), attempt('retry_scheduled'), null)
    expect(loggedLines().slice(1)).toMatchObject([
      { message, fields: { ...fields, times: 10_001 } },
    ])
  })

  test('is logged separately from other endpoints and from failed events', () => {
    const { record, loggedLines } = createLog()
    for (const id of ['wh_a', 'wh_b', 'wh_a']) record(due(id), attempt('retry_scheduled'), null)
    for (const id of ['wh_a', 'wh_a']) record(due(id), attempt('failed'), null)
    expect(loggedLines().map(({ level, fields }) => [level, fields.webhook])).toEqual([
      ...[
        ['info', 'wh_a'],
        ['info', 'wh_b'],
      ],
      ['warn', 'wh_a'],
    ])
  })

  test('and recovers is logged once; one that never failed is not', async () => {
    const { clock, record, loggedLines } = createLog()
    record(due(), attempt('delivered', 200), null)
    expect(loggedLines()).toEqual([])
    for (let n = 0; n < 4; n++) record(due('wh_a', 1), attempt('delivered', 200), null)
    await clock.advance(MINUTE)
    record(due(), attempt('delivered', 200), null)
    expect(loggedLines().map(({ level, message }) => [level, message])).toEqual([
      ['info', 'webhook endpoint recovered'],
    ])
  })

  test('that is disabled has a log line of its own', () => {
    const { record, loggedLines } = createLog()
    record(due(), attempt('failed', 410), 'gone')
    expect(loggedLines().map(({ message }) => message)).toEqual([
      'webhook delivery failed',
      'webhook endpoint disabled',
    ])
  })
})

test('every attempt is logged at debug level', () => {
  const { record, lines } = createLog()
  for (let n = 0; n < 3; n++) record(due(), attempt('retry_scheduled'), null)
  expect(lines.filter(({ level }) => level === 'debug')).toEqual(
    Array.from({ length: 3 }, () => ({
      level: 'debug',
      message: 'webhook delivery attempt',
      fields: {
        webhook: 'wh_a',
        event: 'evt_1',
        status: 500,
        attempt: 1,
        state: 'retry_scheduled',
        ms: 7,
      },
    })),
  )
})
