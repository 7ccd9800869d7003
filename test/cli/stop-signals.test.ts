import { EventEmitter } from 'node:events'
import { expect, test } from 'vitest'
import type { CliSignals } from '../../src/cli/context.ts'
import { onStopSignal } from '../../src/cli/stop-signals.ts'
import { fakeClock } from '../support/clock.ts'

function listen() {
  const clock = fakeClock()
  const signals = new EventEmitter()
  const calls: string[] = []
  const dispose = onStopSignal(
    { clock, signals: signals as unknown as CliSignals },
    signal => calls.push(`stop ${signal}`),
    signal => calls.push(`force ${signal}`),
  )
  return { clock, signals, calls, dispose }
}

test('the first signal stops, and a later one forces the exit', async () => {
  const { clock, signals, calls } = listen()
  signals.emit('SIGINT')
  await clock.advance(100)
  signals.emit('SIGTERM')
  expect(calls).toEqual(['stop SIGINT', 'force SIGTERM'])
})

test('a signal that arrives twice at once stops', async () => {
  const { clock, signals, calls } = listen()
  signals.emit('SIGTERM')
  await clock.advance(99)
  signals.emit('SIGTERM')
  expect(calls).toEqual(['stop SIGTERM'])
})

test('removes its listeners', () => {
  const { signals, calls, dispose } = listen()
  dispose()
  signals.emit('SIGINT')
  expect(calls).toEqual([])
  expect(signals.eventNames()).toEqual([])
})
