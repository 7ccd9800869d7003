import { describe, expect, test } from 'vitest'
import { sandboxResult, sandboxSteps } from '../../src/engine/sandbox.ts'
import { fakeClock } from '../support/clock.ts'
import { createTestEngine } from '../support/engine.ts'

const stepsOf = (text: string) => sandboxSteps(sandboxResult(fakeClock(), text))
const saidTo = (text: string) => stepsOf(text).at(-1)?.text

describe('the steps of a simulated result', () => {
  test('match those of a real verification and are marked as simulated', () => {
    expect(stepsOf('valid@a.test')).toEqual([
      {
        kind: 'syntax',
        ok: true,
        suggestion: null,
        text: 'The syntax is fine.',
        address: { local: 'valid', domain: 'a.test' },
      },
      {
        kind: 'domain',
        ok: true,
        route: 'mx',
        operator: null,
        hosts: [{ preference: 10, host: 'mx.a.test' }],
        text: 'Simulated: a.test has one mail server, mx.a.test.',
      },
      {
        kind: 'server',
        ok: true,
        host: 'mx.a.test',
        ip: null,
        text: 'Simulated: mx.a.test answers.',
      },
      { kind: 'line', text: 'C: MAIL FROM:<>' },
      { kind: 'line', text: 'S: 250 2.1.0 Ok' },
      { kind: 'line', text: 'C: RCPT TO:<valid@a.test>' },
      { kind: 'line', text: 'S: 250 2.1.5 Ok' },
    ])
  })

  test.each([
    ['invalid', /^S: 550 /],
    ['mailbox-full', /^S: 452 /],
    ['greylisted', /^S: 450 /],
    ['risky', /^S: 252 /],
    ['error-ratelimit', /^S: 451 /],
    ['error-auth', /^S: 554 /],
    ['timeout', /^C: RCPT /],
    ['disposable', /^Simulated: a\.test has one mail server/],
    ['no-mx', /^Simulated: a\.test accepts no mail/],
    ['error-server', /^The syntax is fine/],
  ])('end with the step of %s', (local, last) => {
    expect(saidTo(`${local}@a.test`)).toMatch(last)
  })

  test('are a single syntax step with a suggestion for an invalid address', () => {
    expect(stepsOf('ann@gmail')).toEqual([
      expect.objectContaining({ kind: 'syntax', ok: false, suggestion: 'ann@gmail.com' }),
    ])
  })

  test('have no domain step for an address literal', () => {
    expect(stepsOf('valid@[192.0.2.1]').map(({ kind }) => kind)).toEqual(['syntax'])
  })

  test('are emitted by a sandbox engine without network access', async () => {
    const told: unknown[] = []
    const { verify, zone } = createTestEngine({ engine: { sandbox: true } })
    await verify('valid@a.test', { onStep: step => told.push(step) })
    expect(told).toEqual(stepsOf('valid@a.test'))
    expect(zone.asked).toEqual([])
  })
})
