import { expect, test } from 'vitest'
import type { VerifyStep } from '../../../src/client/types.ts'
import { after, EMPTY_FORM, isDone, started } from '../../../src/dashboard/verify/verify-events.ts'

const progressOf = (...steps: readonly VerifyStep[]) =>
  steps.reduce((so, data) => after(so, { event: 'step', data }), started(EMPTY_FORM))

const call = (host: string, ok: boolean) =>
  ({
    step: 'server',
    host,
    ip: null,
    ok,
    text: `${host} ${ok ? 'answers' : 'is silent'}.`,
  }) as const

test('the latest step of a server counts, and the latest server is last', () => {
  const { servers } = progressOf(call('mx1', false), call('mx2', false), call('mx1', true))
  expect(servers.map(one => one.text)).toEqual(['mx2 is silent.', 'mx1 answers.'])
})

test('lines keep their order', () => {
  const lines = ['C: EHLO probe.test', 'S: 250 mx.test', 'C: QUIT']
  expect(progressOf(...lines.map(text => ({ step: 'line', text }) as const)).lines).toEqual(lines)
})

test('an unknown step of a newer API is ignored', () => {
  expect(progressOf({ step: 'weather', text: 'Rain.' } as unknown as VerifyStep)).toEqual(
    started(EMPTY_FORM),
  )
})

test('it is done with a result or an error', () => {
  const open = progressOf({
    step: 'syntax',
    ok: true,
    address: null,
    did_you_mean: null,
    text: 'Fine.',
  })
  expect(isDone(open)).toBe(false)
  const error = { success: false, error: 'No.', code: 'server_error', request_id: '' } as const
  expect(isDone(after(open, { event: 'error', data: error }))).toBe(true)
})
