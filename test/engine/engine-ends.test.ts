import { describe, expect, test } from 'vitest'
import type { Resolver } from '../../src/engine/dns/resolver.ts'
import { createTestEngine } from '../support/engine.ts'
import { closedDial, stay } from '../support/mx.ts'
import { isRandomRecipient, knows, toRecipients } from '../support/recipients.ts'
import { drainEventLoop } from '../support/wait.ts'

const YES = '250 2.1.5 Ok'
const NO = '550 5.1.1 No such user'

describe('an internal error is a result and never "invalid"', () => {
  test.each<[string, Parameters<typeof createTestEngine>[0]]>([
    ['a resolver that throws', { resolver: () => throwing(new TypeError('broken')) }],
    ['a resolver that rejects with nothing', { resolver: () => rejecting(undefined) }],
    ['a resolver that breaks at the exchanger', { resolver: breakingAt('A') }],
    [
      'a random source that throws during a session',
      {
        script: { greeting: '220 hi' },
        engine: {
          random: {
            below: () => 0,
            token: () => {
              throw new RangeError('no entropy left')
            },
          },
        },
      },
    ],
  ])('%s', async (_, options) => {
    const { verify, loggedErrors } = createTestEngine(options)
    const { verdict, evidence } = await verify('ann@a.test')
    expect(verdict).toMatchObject({ reason: 'unexpected_error', risk: 'unknown' })
    expect(evidence.failure).toEqual(expect.any(String))
    expect(loggedErrors.join()).toMatch(/^verification failed/)
  })

  test('keeps the evidence found before the error', async () => {
    const { verify } = createTestEngine({ resolver: breakingAt('A') })
    const { verdict, evidence } = await verify('ann@a.test')
    expect(verdict.details).toEqual({
      syntaxValid: true,
      domainExists: true,
      mxRecord: true,
      smtpValid: false,
    })
    expect(evidence.route).toMatchObject({ kind: 'mx' })
  })

  test('a dial that throws counts as an unreachable exchanger', async () => {
    const { reason } = createTestEngine({
      dial: () => ({
        connect: () => {
          throw new Error('odd')
        },
        secure: closedDial.secure,
      }),
    })
    expect(await reason('ann@a.test')).toBe('no_connect')
  })

  test('does not affect the next verification', async () => {
    let broken = true
    const { reason } = createTestEngine({
      resolver: zone => ({
        resolve: (name, type, signal) => {
          if (broken) throw new Error('broken')
          return zone.resolve(name, type, signal)
        },
      }),
    })
    expect(await reason('ann@a.test')).toBe('unexpected_error')
    broken = false
    expect(await reason('ann@a.test')).toBe('accepted_email')
  })
})

describe('an early end', () => {
  test('an abort rejects with the reason of the signal', async () => {
    const { engine } = createTestEngine({ script: { greeting: null } })
    const abort = new AbortController()
    const verifying = engine.verify('ann@a.test', { signal: abort.signal })
    await drainEventLoop()
    abort.abort(new Error('changed my mind'))
    await expect(verifying).rejects.toThrow('changed my mind')
    await engine.close()
  })

  test('an aborted signal starts no probe', async () => {
    const { engine, zone } = createTestEngine()
    const signal = AbortSignal.abort(new Error('too late'))
    await expect(engine.verify('ann@a.test', { signal })).rejects.toThrow('too late')
    expect(zone.asked).toEqual([])
  })

  test('an abort does not affect another caller for the same address', async () => {
    let answer = () => {}
    const { engine, settled } = createTestEngine({
      script: toRecipients((to, session) => {
        if (isRandomRecipient(to)) return null
        answer = () => {
          session.say(YES)
          session.say(NO)
        }
        return null
      }),
    })
    const abort = new AbortController()
    const leaving = engine.verify('ann@a.test', { signal: abort.signal })
    const staying = engine.verify('ann@a.test')
    await drainEventLoop()
    abort.abort()
    await expect(leaving).rejects.toThrow()
    answer()
    expect((await settled(staying)).verdict.reason).toBe('accepted_email')
  })

  test('close aborts work in flight and leaves no connection and no timer', async () => {
    const { engine, mx, clock } = createTestEngine({ script: { greeting: null } })
    const verifying = engine.verify('ann@a.test')
    await drainEventLoop()
    expect(mx.sessions.map(({ closed }) => closed)).toEqual([false])
    await engine.close()
    expect((await verifying).verdict).toMatchObject({ valid: false, risk: 'unknown' })
    await drainEventLoop()
    expect(mx.sessions.map(({ closed }) => closed)).toEqual([true])
    await clock.advance(20)
    expect(clock.pending).toBe(0)
  })

  test('close may be called twice, and before any verification', async () => {
    const { engine, mx } = createTestEngine()
    await Promise.all([engine.close(), engine.close()])
    await engine.close()
    expect(mx.dialled).toEqual([])
  })

  test('close waits for the reply to QUIT', async () => {
    const known = knows('ann')
    let bye = () => {}
    const { engine, mx } = createTestEngine({
      script: {
        answer: (line, session) => {
          if (line !== 'QUIT') return known(line, session)
          bye = () => session.hangUp()
          return stay(session)
        },
      },
    })
    expect((await engine.verify('ann@a.test')).verdict.reason).toBe('accepted_email')
    let closed = false
    const closing = engine.close().then(() => {
      closed = true
    })
    await drainEventLoop()
    expect(closed).toBe(false)
    bye()
    await closing
    expect(mx.sessions[0]?.closed).toBe(true)
  })

  test('a closed engine starts no probes', async () => {
    const { engine, verify, mx, zone, many } = createTestEngine()
    await engine.close()
    expect((await verify('ann@a.test')).verdict.risk).toBe('unknown')
    await expect(many(['ann@a.test'])).rejects.toMatchObject({ code: 'interrupted' })
    expect({ asked: zone.asked, dialled: mx.dialled }).toEqual({ asked: [], dialled: [] })
  })
})

const throwing = (error: unknown): Resolver => ({
  resolve: () => {
    throw error
  },
})
const rejecting = (error: unknown): Resolver => ({ resolve: () => Promise.reject(error) })
const breakingAt = (broken: string) => (zone: Resolver) =>
  ({
    resolve: (name, type, signal) => {
      if (type === broken) throw new Error(`${broken} is broken`)
      return zone.resolve(name, type, signal)
    },
  }) satisfies Resolver as Resolver
