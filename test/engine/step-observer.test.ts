import { describe, expect, test } from 'vitest'
import type { Step } from '../../src/engine/step-observer.ts'
import { createTestEngine } from '../support/engine.ts'
import { refused, silentFrom } from '../support/mx.ts'
import { BLOCKS_US, mxByEgress } from '../support/mx-by-egress.ts'
import { drainEventLoop } from '../support/wait.ts'

function services(options: Parameters<typeof createTestEngine>[0] = {}) {
  const home = createTestEngine(options)
  const steps: Step[] = []
  const onStep = (step: Step) => void steps.push(step)
  const of = <K extends Step['kind']>(kind: K) =>
    steps.filter((step): step is Extract<Step, { kind: K }> => step.kind === kind)
  return {
    ...home,
    steps,
    onStep,
    of,
    kinds: () => steps.map(({ kind }) => kind).filter((kind, at, all) => kind !== all[at - 1]),
    listen: (text: string, more: Parameters<typeof home.verify>[1] = {}) =>
      home.verify(text, { onStep, ...more }),
  }
}

describe('the steps of a verification', () => {
  test('are emitted as they happen: the address, its route, the server and each line', async () => {
    const { listen, steps, of } = services()
    await listen('ann@a.test')
    expect(steps.slice(0, 4)).toEqual([
      {
        kind: 'syntax',
        ok: true,
        address: { local: 'ann', domain: 'a.test' },
        suggestion: null,
        text: 'The syntax is fine.',
      },
      {
        kind: 'domain',
        ok: true,
        route: 'mx',
        hosts: [{ preference: 10, host: 'mx.a.test' }],
        operator: 'a.test',
        text: 'a.test has one mail server, mx.a.test.',
      },
      {
        kind: 'server',
        ok: true,
        host: 'mx.a.test',
        ip: '192.0.2.1',
        text: 'mx.a.test answers on port 25, at 192.0.2.1.',
      },
      { kind: 'line', text: 'S: 220 mx.a.test ESMTP' },
    ])
    expect(of('line').map(({ text }) => text)).toEqual(
      expect.arrayContaining(['C: EHLO probe.test', 'C: RCPT TO:<ann@a.test>', 'S: 250 2.1.5 Ok']),
    )
  })

  test('arrive before the result', async () => {
    const { engine, onStep, kinds, settled } = services({
      script: silentFrom('RCPT'),
    })
    const asked = engine.verify('ann@a.test', { onStep })
    await drainEventLoop()
    expect(kinds()).toEqual(['syntax', 'domain', 'server', 'line'])
    await settled(asked)
  })

  test('end with the result, after the reply to QUIT', async () => {
    const { engine, onStep, of, steps, settled } = services()
    await settled(engine.verify('ann@a.test', { onStep }))
    const emitted = steps.length
    await engine.close()
    expect(of('line').at(-1)?.text).toBe('S: 221 2.0.0 Bye')
    expect(steps).toHaveLength(emitted)
  })

  test('are independent of the dialogue in the result', async () => {
    const { listen, of } = services()
    expect((await listen('ann@a.test')).evidence.dialogue).toBeNull()
    const { evidence } = await listen('bob@a.test', { include: ['dialogue'] })
    expect(evidence.dialogue?.[0]).toBe('* connected to mx.a.test [192.0.2.1]')
    expect(of('line').map(({ text }) => text)).toContain('C: RCPT TO:<bob@a.test>')
    expect(of('line').filter(({ text }) => text.startsWith('*'))).toEqual([])
  })

  test('end early if no probe is needed', async () => {
    const disposable = { lists: { disposable: ['a.test'], blocked: ['b.test'] } }
    const { listen, kinds } = services({ engine: disposable })
    await listen('ann@a.test')
    expect(kinds()).toEqual(['syntax', 'domain'])
    await listen('ann@b.test')
    expect(kinds()).toEqual(['syntax', 'domain', 'syntax'])
  })

  test('explain an invalid address and suggest the intended one', async () => {
    const { listen, steps } = services()
    await listen('ann@gmail')
    expect(steps).toEqual([
      {
        kind: 'syntax',
        ok: false,
        address: null,
        suggestion: 'ann@gmail.com',
        text: expect.stringMatching(/dot/),
      },
    ])
  })

  test('suggest a listed typo at once, but a guess only after the lookup of its domain', async () => {
    const { listen, steps } = services()
    await listen('ann@gamil.com')
    expect(steps[0]).toMatchObject({ ok: true, suggestion: 'ann@gmail.com' })
    const guessed = services()
    expect((await guessed.listen('ann@gomail.com')).evidence.suggestion).toBe('ann@gmail.com')
    expect(guessed.steps[0]).toMatchObject({ ok: true, suggestion: null })
  })

  test.each<[string, Parameters<typeof services>[0], object]>([
    ['no domain', { zone: { 'a.test': 'no-name' } }, { ok: false, route: 'no-domain' }],
    ['a null MX', { zone: { 'a.test': { MX: [[0, '']] } } }, { ok: false, route: 'null-mx' }],
    ['no mail', { zone: { 'a.test': {} } }, { ok: false, route: 'no-mail' }],
    ['a broken DNS', { zone: { 'a.test': 'server' } }, { ok: null, route: 'unknown' }],
  ])('explain a domain without mail: %s', async (_, options, facts) => {
    const { listen, steps, kinds } = services(options)
    await listen('ann@a.test')
    expect(kinds()).toEqual(['syntax', 'domain'])
    expect(steps[1]).toMatchObject({ ...facts, hosts: [], operator: null })
  })

  test('name the domain if it is its own mail server', async () => {
    const { listen, steps } = services({ zone: { 'a.test': { A: ['192.0.2.1'] } } })
    await listen('ann@a.test')
    const hosts = [{ preference: 0, host: 'a.test' }]
    expect(steps[1]).toMatchObject({ ok: true, route: 'implicit', hosts })
  })

  test('report each server that does not answer, until one does', async () => {
    const { listen, of } = services({
      zone: {
        'a.test': {
          MX: [
            [10, 'mx1.a.test'],
            [20, 'mx2.a.test'],
            [30, 'mx3.a.test'],
          ],
        },
        'mx1.a.test': 'no-name',
        'mx2.a.test': { A: ['127.0.0.1', '192.0.2.2'] },
        'mx3.a.test': { A: ['192.0.2.3'] },
      },
      script: {
        connect: to => {
          if (to.ip === '192.0.2.2') throw refused(to)
        },
      },
    })
    await listen('ann@a.test')
    expect(of('server').map(({ host, ip, ok }) => [host, ip, ok])).toEqual([
      ['mx1.a.test', null, false],
      ['mx2.a.test', '127.0.0.1', false],
      ['mx2.a.test', '192.0.2.2', false],
      ['mx3.a.test', '192.0.2.3', true],
    ])
  })

  test('report when no server is contacted because the outcome is known', async () => {
    const { listen, of } = services({
      script: {
        connect: to => {
          throw refused(to)
        },
      },
    })
    for (const local of ['ann', 'bob', 'zoe']) await listen(`${local}@a.test`)
    expect(of('server').at(-1)).toMatchObject({ ok: false, host: null, ip: null })
    expect(of('server').at(-1)?.text).toMatch(/^The mail server was not contacted\. /)
  })

  test('sanitize and limit the lines of a server', async () => {
    const evil = `\u001b[31m<b>${'x'.repeat(600)}`
    const flood = (code: number) =>
      [evil, ...Array(110).fill('x'), 'end'].map(
        (line, at) => `${code}${at < 111 ? '-' : ' '}${line}`,
      )
    const { listen, of } = services({
      script: {
        greeting: flood(220).join('\n'),
        answer: line => (line.startsWith('EHLO') ? flood(250).join('\n') : undefined),
      },
    })
    await listen('ann@a.test')
    expect(of('line')).toHaveLength(200)
    const [first] = of('line')
    expect(first?.text).toMatch(/^S: 220 \uFFFD\[31m<b>x+…$/)
    expect(first?.text).toHaveLength(512)
  })

  test('go on with the next egress if the first is blocked', async () => {
    const mx = mxByEgress({ a: BLOCKS_US, b: () => undefined })
    const { listen, of } = services({ engine: { egresses: mx.egresses, dial: mx.dial } })
    expect((await listen('ann@a.test')).evidence.egress).toBe('b')
    expect(of('server').map(({ ok }) => ok)).toEqual([true, false, true])
    expect(of('server')[1]?.text).toMatch(/^mx\.a\.test refused the session\. /)
  })
})

describe('a cached answer', () => {
  test('is served to an observer with its age', async () => {
    const { verify, listen, clock, steps, kinds, mx } = services()
    const { checkedAt } = await verify('ann@a.test')
    const lines = mx.lines().length
    await clock.advance(3 * 3_600_000)
    expect((await listen('ann@a.test')).cached).toBe(true)
    expect(kinds()).toEqual(['syntax', 'domain', 'cached'])
    expect(steps.at(-1)).toEqual({
      kind: 'cached',
      checkedAt,
      text: 'The mail server was asked 3 hours ago; the cached answer is used.',
    })
    expect(mx.lines()).toHaveLength(lines)
  })

  test('is refreshed without steps when it is stale', async () => {
    const { verify, listen, clock, kinds, mx, settled } = services()
    await verify('ann@a.test')
    await clock.advance(25 * 3_600_000)
    const lines = mx.lines().length
    await listen('ann@a.test')
    await settled(drainEventLoop())
    expect(mx.lines().length).toBeGreaterThan(lines)
    expect(kinds()).toEqual(['syntax', 'domain', 'cached'])
  })

  test('is reported when the DNS fails', async () => {
    const { verify, listen, kinds, steps, clock, zone } = services()
    await verify('ann@a.test')
    zone.set('a.test', 'server')
    await clock.advance(2 * 3_600_000)
    expect((await listen('ann@a.test')).verdict.reason).toBe('accepted_email')
    expect(kinds()).toEqual(['syntax', 'domain', 'cached'])
    expect(steps[1]).toMatchObject({ ok: null, route: 'unknown' })
  })

  test('is not served with forceRefresh', async () => {
    const { verify, listen, kinds } = services()
    await verify('ann@a.test')
    await listen('ann@a.test', { forceRefresh: true })
    expect(kinds()).toEqual(['syntax', 'domain', 'server', 'line'])
  })
})

describe('an observer', () => {
  test('starts its own probe, while a caller without observer shares one in flight', async () => {
    const { engine, onStep, kinds, recipients, settled } = services()
    const asked = [{}, { onStep }, {}].map(options => engine.verify('ann@a.test', options))
    const results = await settled(Promise.all(asked))
    expect(results.map(({ verdict }) => verdict.reason)).toEqual(Array(3).fill('accepted_email'))
    expect(recipients().filter(to => to === 'ann@a.test')).toHaveLength(2)
    expect(kinds()).toEqual(['syntax', 'domain', 'server', 'line'])
  })

  test.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('callback failed')
      },
    ],
    ['rejects', () => Promise.reject(new Error('callback failed'))],
  ])('that %s breaks nothing, is logged once and is not called again', async (_, fail) => {
    let calls = 0
    const { verify, loggedErrors } = services()
    const onStep = () => {
      calls++
      return fail() as undefined
    }
    expect((await verify('ann@a.test', { onStep })).verdict.reason).toBe('accepted_email')
    expect(loggedErrors).toEqual(['onStep callback failed {"error":"callback failed"}'])
    expect(calls).toBeLessThan(3)
  })

  test('that aborts gets no further steps', async () => {
    const late = Promise.withResolvers<string>()
    const { engine, onStep, steps, mx, settled } = services({
      script: line => (line.startsWith('MAIL') ? late.promise : undefined),
    })
    const leaving = new AbortController()
    const asked = engine.verify('ann@a.test', { onStep, signal: leaving.signal })
    await drainEventLoop()
    const emitted = steps.length
    leaving.abort(new Error('I left'))
    await expect(asked).rejects.toThrow('I left')
    late.resolve('250 2.1.0 Ok')
    await settled(drainEventLoop())
    expect(mx.lines()).toContain('QUIT')
    expect(steps).toHaveLength(emitted)
  })
})
