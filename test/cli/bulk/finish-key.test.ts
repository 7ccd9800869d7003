import { expect, test } from 'vitest'
import { onFinishKey } from '../../../src/cli/bulk/finish-key.ts'
import { memoryContext } from '../../support/cli.ts'

/** Reads keys on a terminal; `signals` has those that a key sent. */
function pressable(options: { columns?: number; isForeground?: boolean } = {}) {
  const { columns = 80, isForeground = true } = options
  const { context } = memoryContext({ home: '/', columns, stdinOpen: true })
  const signals: string[] = []
  const terminal = {
    ...context.terminal,
    isForeground: () => isForeground,
    sendSignal: (signal: string) => void signals.push(signal),
  }
  let finished = 0
  const key = onFinishKey({ ...context, stdin: context.stdin, terminal }, () => finished++)
  const press = async (keys: string) => {
    context.stdin.write(keys)
    await new Promise(resolve => setImmediate(resolve))
  }
  return { context, key, press, signals, finished: () => finished }
}

test('f finishes once, and the terminal returns to its mode', async () => {
  const { context, key, press, finished } = pressable()
  expect([context.isRaw, key.hint()]).toEqual([
    true,
    ' Press f to finish now (--no-wait never waits).',
  ])
  await press('q')
  expect(finished()).toBe(0)
  await press('ff')
  await press('F')
  expect([finished(), context.isRaw, key.hint()]).toEqual([1, false, ''])
})

test('keys that a terminal turns into signals keep their effect', async () => {
  const { context, press, signals } = pressable()
  await press('\u0003')
  await press('\u001c\u0003')
  expect([signals, context.isRaw]).toEqual([['SIGINT', 'SIGQUIT', 'SIGINT'], true])
  // After Ctrl-Z, the process may continue in the background, where it must not read keys.
  await press('\u001a')
  expect([signals.at(-1), context.isRaw]).toEqual(['SIGTSTP', false])
})

test('is not read after the end', async () => {
  const { context, key, press, finished } = pressable()
  key.dispose()
  await press('f')
  expect([finished(), context.isRaw, context.stdin.listenerCount('data')]).toEqual([0, false, 0])
})

test('is not read in the background', () => {
  const { context, key } = pressable({ isForeground: false })
  expect([key.hint(), context.isRaw, context.stdin.listenerCount('data')]).toEqual(['', false, 0])
})

test('is not read if stdin is a pipe', () => {
  const { context } = memoryContext({ home: '/', stdinOpen: true })
  expect(onFinishKey(context, () => {}).hint()).toBe('')
  expect(context.stdin.listenerCount('data')).toBe(0)
})
