import { expect, test } from 'vitest'
import { type LogFields, silentLog, throttledLog } from '../../src/platform/log.ts'
import { fakeClock } from '../support/clock.ts'

function createRecordingLog() {
  const clock = fakeClock()
  const lines: [string, LogFields | undefined][] = []
  const logWarning = (message: string, fields?: LogFields) => void lines.push([message, fields])
  const log = throttledLog(
    { ...silentLog, info: logWarning, warn: logWarning, error: logWarning },
    clock,
  )
  return { clock, log, lines }
}

test('a warning repeated every second is logged once, and then once a minute', async () => {
  const { clock, log, lines } = createRecordingLog()
  for (let second = 0; second < 150; second++) {
    log.error('jobs cannot be looked at', { why: 'away', stack: `at ${second}` })
    await clock.advance(1_000)
  }
  expect(lines).toEqual([
    ['jobs cannot be looked at', { why: 'away', stack: 'at 0' }],
    ['jobs cannot be looked at', { why: 'away', stack: 'at 60', repeated: 59 }],
    ['jobs cannot be looked at', { why: 'away', stack: 'at 120', repeated: 59 }],
  ])
})

test('a warning that recurs after a pause is logged again', async () => {
  const { clock, log, lines } = createRecordingLog()
  log.warn('a member is slow')
  await clock.advance(15_001)
  log.warn('a member is slow')
  expect(lines).toEqual([
    ['a member is slow', undefined],
    ['a member is slow', undefined],
  ])
})

test('warnings with other fields or levels are separate; debug and info are never throttled', () => {
  const { log, lines } = createRecordingLog()
  log.error('cannot be fetched', { kind: 'probe/a', why: 'reset' })
  log.error('cannot be fetched', { kind: 'probe/a', why: 'starting up' })
  log.error('cannot be fetched', { kind: 'probe/b', why: 'reset' })
  log.warn('cannot be fetched', { kind: 'probe/b', why: 'reset' })
  log.info('request', { status: 200 })
  log.info('request', { status: 200 })
  expect(lines).toHaveLength(6)
})

test('the number of tracked warnings is bounded, and the oldest is evicted', () => {
  const { log, lines } = createRecordingLog()
  for (let job = 0; job < 600; job++) log.error('a job failed', { job })
  log.error('a job failed', { job: 599 })
  log.error('a job failed', { job: 0 })
  expect(lines).toHaveLength(601)
})
